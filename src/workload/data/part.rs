//! The parts of the data set: a table each, its rows numbered by ids that begin at 1, loaded and
//! verified in chunks of ids.

use super::RowCounts;
use crate::workload::{
    order::{LAST_ENTRY, opening_entry_id},
    random::Permutation,
    schema::{CUSTOMERS, LEDGER, ORDER_ITEMS, ORDERS, PRODUCTS, Table},
};

/// Ids of a chunk at full scale: at most 50,000 rows, which a COPY has in the database in a part of a
/// second. A smaller data set has smaller chunks, so that several workers share it evenly.
const MOST_IDS: u64 = 20_000;
const LEAST_IDS: u64 = 250;
/// Into how many chunks a small table of orders goes.
const CHUNKS: u64 = 64;

/// What is loaded, a table each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Customers,
    Products,
    Orders,
    OrderItems,
    Ledger,
}

impl Part {
    pub(super) const ALL: [Self; 5] =
        [Self::Customers, Self::Products, Self::Orders, Self::OrderItems, Self::Ledger];

    pub(super) const fn table(self) -> &'static Table {
        match self {
            Self::Customers => &CUSTOMERS,
            Self::Products => &PRODUCTS,
            Self::Orders => &ORDERS,
            Self::OrderItems => &ORDER_ITEMS,
            Self::Ledger => &LEDGER,
        }
    }

    /// The last id, the first being 1.
    pub(super) const fn last_id(self, counts: &RowCounts) -> i64 {
        match self {
            Self::Customers => counts.customers.cast_signed(),
            Self::Products => counts.products.cast_signed(),
            Self::Orders | Self::OrderItems | Self::Ledger => counts.orders.cast_signed(),
        }
    }

    /// The rows that the part has.
    pub(super) const fn rows(self, counts: &RowCounts) -> u64 {
        match self {
            Self::Customers => counts.customers,
            Self::Products => counts.products,
            Self::Orders => counts.orders,
            Self::OrderItems => counts.order_items,
            Self::Ledger => counts.ledger,
        }
    }

    /// The column that leads the primary key.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Customers => "customer_id",
            Self::Products => "product_id",
            Self::Orders | Self::OrderItems => "order_id",
            Self::Ledger => "entry_id",
        }
    }

    /// The keys, first and last, that belong to the ids from `first` to `last`.
    pub(super) const fn keys(self, first: i64, last: i64) -> (i64, i64) {
        match self {
            Self::Ledger => (opening_entry_id(first), opening_entry_id(last) + LAST_ENTRY),
            _ => (first, last),
        }
    }
}

/// Some consecutive ids of a part, `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Chunk {
    pub(super) part: Part,
    /// From 0.
    pub(super) number: i64,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Chunk {
    /// How many rows it has.
    pub(super) const fn rows(&self) -> u64 {
        match self.part {
            Part::OrderItems => lines_before(self.last + 1) - lines_before(self.first),
            _ => (self.last - self.first + 1).unsigned_abs(),
        }
    }
}

/// Lines of the orders below this one: their numbers repeat as 1, 2, 3, 4.
const fn lines_before(order_id: i64) -> u64 {
    let (whole, rest) = ((order_id - 1) / 4, (order_id - 1) % 4);
    (whole * 10 + rest * (rest + 1) / 2).unsigned_abs()
}

/// How many ids a chunk of this data set has: by its size alone, so that whoever resumes a load cuts
/// the same chunks.
pub(super) const fn ids_of_a_chunk(counts: &RowCounts) -> i64 {
    let ids = counts.orders / CHUNKS;
    let ids = if ids < LEAST_IDS { LEAST_IDS } else { ids };
    (if ids > MOST_IDS { MOST_IDS } else { ids }).cast_signed()
}

/// A part cut into chunks of so many ids.
pub(super) fn chunks(part: Part, counts: &RowCounts, ids: i64) -> impl Iterator<Item = Chunk> {
    let end = part.last_id(counts);
    (0..)
        .map(move |number| Chunk {
            part,
            number,
            first: number * ids + 1,
            last: ((number + 1) * ids).min(end),
        })
        .take_while(move |chunk| chunk.first <= end)
}

/// Every chunk, the parts in turn, so that workers side by side mostly fill different tables. Mixed,
/// each part's chunks come in an order that jumps about its keys: no range of them is hot.
pub(super) fn all_chunks(counts: &RowCounts, mixed: bool) -> Vec<Chunk> {
    let ids = ids_of_a_chunk(counts);
    let mut columns: Vec<Vec<Chunk>> = Part::ALL
        .into_iter()
        .map(|part| {
            let chunks: Vec<_> = chunks(part, counts, ids).collect();
            if mixed { in_mixed_order(&chunks) } else { chunks }
        })
        .collect();
    // The largest first: what is left at the end is small.
    columns.sort_by_key(|chunks| std::cmp::Reverse(chunks.len()));
    let longest = columns.first().map_or(0, Vec::len);
    (0..longest)
        .flat_map(|at| columns.iter().filter_map(move |chunks| chunks.get(at).copied()))
        .collect()
}

fn in_mixed_order(chunks: &[Chunk]) -> Vec<Chunk> {
    let size = chunks.len().next_power_of_two() as u64;
    let permutation = Permutation::new(size, 1);
    (0..size)
        .filter_map(|index| chunks.get(usize::try_from(permutation.apply(index)).ok()?).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::workload::data::expected;

    #[test]
    fn every_id_is_in_one_chunk_at_every_scale_and_in_either_order() {
        for scale in [1e-9, 0.0002, 0.002, 1.0] {
            let counts = expected(scale).unwrap();
            for mixed in [false, true] {
                let all = all_chunks(&counts, mixed);
                let numbers: HashSet<_> = all.iter().map(|c| (c.part, c.number)).collect();
                assert_eq!(numbers.len(), all.len());
                for part in Part::ALL {
                    let mut of_part: Vec<_> = all.iter().filter(|c| c.part == part).collect();
                    of_part.sort_by_key(|chunk| chunk.first);
                    assert_eq!(of_part[0].first, 1);
                    assert_eq!(of_part[of_part.len() - 1].last, part.last_id(&counts));
                    let rows: u64 = of_part.iter().map(|chunk| chunk.rows()).sum();
                    assert_eq!(rows, part.rows(&counts), "{part:?} at {scale}");
                    assert!(of_part.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
                }
            }
        }
    }

    #[test]
    fn the_mixed_order_jumps_about_the_keys() {
        let counts = expected(1.0).unwrap();
        let all = all_chunks(&counts, true);
        let orders: Vec<_> = all.iter().filter(|c| c.part == Part::Orders).collect();
        let rises = orders.windows(2).filter(|pair| pair[0].number < pair[1].number).count();
        let share = rises as f64 / orders.len() as f64;
        assert!((0.35..0.65).contains(&share), "{share} of {} steps go up", orders.len());
    }
}
