//! What each loaded row holds: a function of the seed and the row's id alone.

use super::{RowCounts, encode::RowWriter, part::Part};
use crate::workload::{order::opening_entry_id, random::number};

/// One product in this many has little stock, so that some orders are rejected for want of it.
const SCARCE_EVERY: u64 = 200;
/// A scarce product starts with 0 to this many pieces.
const SCARCE_STOCK: u64 = 20;
/// What every other product starts with: more than any run sells.
const AMPLE_STOCK: i64 = 1_000_000_000;

/// When the first loaded order was placed (2023-01-01 UTC, in ms since 1970) and over which time the
/// orders spread (ms): in the past, so that a customer's newest orders are those of the run.
const FIRST_ORDER_MS: u64 = 1_672_531_200_000;
const ORDERS_SPAN_MS: u64 = 2 * 365 * 24 * 3_600_000;

/// Streams of numbers, so that no two things of a row depend on each other.
mod stream {
    pub(super) const PRICE: u64 = 10;
    pub(super) const STOCK: u64 = 11;
    pub(super) const CUSTOMER: u64 = 12;
    pub(super) const FIRST_PRODUCT: u64 = 13;
    pub(super) const STRIDE: u64 = 14;
    pub(super) const QUANTITY: u64 = 15;
}

/// The data set of a scale and seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSet {
    pub(super) seed: u64,
    pub(super) counts: RowCounts,
}

/// One line of a loaded order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) product_id: i64,
    pub(super) quantity: i64,
    pub(super) price_cents: i64,
}

impl DataSet {
    fn number(&self, stream: u64, id: i64) -> u64 {
        number(self.seed, stream, id.unsigned_abs())
    }

    /// From 1.00 to 500.00.
    pub(super) fn price_cents(&self, product_id: i64) -> i64 {
        below(self.number(stream::PRICE, product_id), 49_901) + 100
    }

    pub(super) fn initial_stock(&self, product_id: i64) -> i64 {
        if product_id.unsigned_abs().is_multiple_of(SCARCE_EVERY) {
            below(self.number(stream::STOCK, product_id), SCARCE_STOCK + 1)
        } else {
            AMPLE_STOCK
        }
    }

    pub(super) fn customer_id(&self, order_id: i64) -> i64 {
        below(self.number(stream::CUSTOMER, order_id), self.counts.customers) + 1
    }

    /// In microseconds since 1970.
    fn placed_at_us(&self, order_id: i64) -> i64 {
        let step = ORDERS_SPAN_MS / self.counts.orders;
        ((FIRST_ORDER_MS + step * order_id.unsigned_abs()) * 1_000).cast_signed()
    }

    /// The lines of a loaded order: 1, 2, 3, 4, 1 … by its id, each of another product.
    pub(super) fn lines(&self, order_id: i64) -> impl Iterator<Item = Line> {
        let products = self.counts.products;
        let first = self.number(stream::FIRST_PRODUCT, order_id) % products;
        // Three strides stay below one turn, so no product comes twice.
        let stride = self.number(stream::STRIDE, order_id) % (products / 4) + 1;
        let data = *self;
        (0..=(order_id.unsigned_abs() - 1) % 4).map(move |line| {
            let product_id = below(first + line * stride, products) + 1;
            let quantity = number(data.seed, stream::QUANTITY + line, order_id.unsigned_abs());
            Line {
                product_id,
                quantity: below(quantity, 3) + 1,
                price_cents: data.price_cents(product_id),
            }
        })
    }

    fn total_cents(&self, order_id: i64) -> i64 {
        self.lines(order_id).map(|line| line.quantity * line.price_cents).sum()
    }

    /// Writes the rows that a part has for an id: one, or the lines of an order. How many they were.
    pub(super) fn write(&self, part: Part, id: i64, out: &mut impl RowWriter) -> u64 {
        match part {
            Part::Customers => {
                out.begin(2);
                out.int8(id);
                out.text(&format!("customer {id}"));
                out.end();
            }
            Part::Products => {
                let stock = self.initial_stock(id);
                out.begin(5);
                out.int8(id);
                out.text(&format!("product {id}"));
                out.int8(self.price_cents(id));
                out.int8(stock);
                out.int8(stock);
                out.end();
            }
            Part::Orders => {
                out.begin(5);
                out.int8(id);
                out.int8(self.customer_id(id));
                out.text("placed");
                out.int8(self.total_cents(id));
                out.time(self.placed_at_us(id));
                out.end();
            }
            Part::OrderItems => return self.write_items(id, out),
            Part::Ledger => self.write_opening(id, out),
        }
        1
    }

    fn write_items(&self, order_id: i64, out: &mut impl RowWriter) -> u64 {
        let mut rows = 0;
        for (line_no, line) in (1_i32..).zip(self.lines(order_id)) {
            out.begin(5);
            out.int8(order_id);
            out.int4(line_no);
            out.int8(line.product_id);
            out.int8(line.quantity);
            out.int8(line.price_cents);
            out.end();
            rows += 1;
        }
        rows
    }

    /// One opening entry for each loaded order, of quantity 0: the loaded stock is already net of
    /// the loaded orders. So `stock = initial stock + the ledger's sum` holds from the start, and a
    /// check after a cell need not read the tens of millions of loaded items.
    fn write_opening(&self, order_id: i64, out: &mut impl RowWriter) {
        let product = self.lines(order_id).next().map_or(1, |line| line.product_id);
        out.begin(6);
        out.int8(opening_entry_id(order_id));
        out.int8(order_id);
        out.int8(product);
        out.int8(0);
        out.int8(self.total_cents(order_id));
        out.text("opening");
        out.end();
    }
}

/// A number from 0 to below `bound`, which is far below the limit of `i64` everywhere here.
fn below(number: u64, bound: u64) -> i64 {
    (number % bound).cast_signed()
}
