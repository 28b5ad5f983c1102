//! Which transaction an arrival is.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::OrderWorkload;
use crate::workload::random::generator;

const MOST_LINES: usize = 4;
const MOST_PIECES: i64 = 3;

/// A transaction of one class with its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lookup { product_id: i64 },
    History { customer_id: i64 },
    Create { ordinal: u64, order_id: i64, customer_id: i64, lines: Lines },
    Cancel { ordinal: u64, order_id: i64 },
}

/// What an order is to hold: one to four different products, in the order of their ids, so that
/// two orders never wait for each other's products crosswise. Kept in place: a draw takes no
/// memory from the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    count: usize,
    product_ids: [i64; MOST_LINES],
    quantities: [i64; MOST_LINES],
}

impl Lines {
    pub(super) fn product_ids(&self) -> &[i64] {
        &self.product_ids[..self.count]
    }

    pub(super) fn quantities(&self) -> &[i64] {
        &self.quantities[..self.count]
    }

    /// `products` is at least the most lines an order may have.
    fn draw(random: &mut Pcg64Mcg, products: i64) -> Self {
        let count = random.random_range(1..=MOST_LINES);
        let mut lines = Self { count, product_ids: [0; MOST_LINES], quantities: [0; MOST_LINES] };
        for line in 0..count {
            lines.product_ids[line] = loop {
                let product_id = random.random_range(1..=products);
                if !lines.product_ids[..line].contains(&product_id) {
                    break product_id;
                }
            };
            lines.quantities[line] = random.random_range(1..=MOST_PIECES);
        }
        lines.product_ids[..count].sort_unstable();
        lines
    }
}

impl OrderWorkload {
    pub(super) fn draw_kind(&self, arrival: u64) -> Kind {
        let mut random = generator(self.seed, arrival);
        let share = random.random_range(0..100);
        let [lookup, history, create, _] = self.mix;
        if share < lookup {
            Kind::Lookup { product_id: random.random_range(1..=self.products) }
        } else if share < lookup + history {
            Kind::History { customer_id: random.random_range(1..=self.customers) }
        } else if share < lookup + history + create {
            Kind::Create {
                ordinal: arrival,
                order_id: self.own_order_id(arrival),
                customer_id: random.random_range(1..=self.customers),
                lines: Lines::draw(&mut random, self.products),
            }
        } else {
            // This arrival creates no order: its own id is sure not to exist, so that without an
            // order to cancel the database answers "nothing to cancel".
            let picked = self.open_orders.take(random.random());
            let order_id = picked.unwrap_or_else(|| self.own_order_id(arrival));
            Kind::Cancel { ordinal: arrival, order_id }
        }
    }

    fn own_order_id(&self, arrival: u64) -> i64 {
        // Below the range's size, which was checked to leave room above the first id.
        self.first_id + self.permutation.apply(arrival).cast_signed()
    }
}
