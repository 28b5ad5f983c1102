//! The data set: how much of it there is, loading it, and counting it in the database.

//!
//! [`load`] goes by chunks of ids (`part`): workers (`worker`), each with a connection of its own
//! (`link`), take one after the other, generate its rows (`rows`, `encode`) and have them in the
//! database, noting it there (`ledger`); how much is asked of the database at once follows how it
//! takes it (`pressure`). Indexes come after the rows (`index`), and at last what is in the database
//! is held against the generator (`verify`).

mod encode;
mod index;
mod ledger;
mod link;
mod load;
mod part;
mod pressure;
mod rows;
mod status;
mod verify;
mod worker;

use super::error::WorkloadError;

pub use load::{LoadOrder, LoadProgress, LoadReport, LoadStep, load, load_with, verify_rows};
pub use status::{DataStatus, TableStatus, status};

/// Rows of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub customers: u64,
    pub products: u64,
    pub orders: u64,
    pub order_items: u64,
    pub ledger: u64,
    pub receipts: u64,
}

impl RowCounts {
    /// The rows of all tables.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.customers
            + self.products
            + self.orders
            + self.order_items
            + self.ledger
            + self.receipts
    }
}

/// How many rows the data set of a scale has: at 1.0 a million customers, 200,000 products,
/// 11 million orders with 2.5 items each and one ledger row each; at the smallest scales at least
/// one customer, four products and four orders.
///
/// # Errors
/// When `scale` is not above 0 and at most 1.
pub fn expected(scale: f64) -> Result<RowCounts, WorkloadError> {
    if !(scale > 0.0 && scale <= 1.0) {
        return Err(WorkloadError::Scale(scale));
    }
    // Four orders at a time, since their items repeat as 1, 2, 3, 4: so 2.5 each holds exactly.
    let orders = 4 * share(scale, 2_750_000, 1);
    Ok(RowCounts {
        customers: share(scale, 1_000_000, 1),
        // An order has up to four different products.
        products: share(scale, 200_000, 4),
        orders,
        order_items: orders / 2 * 5,
        ledger: orders,
        receipts: 0,
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn share(scale: f64, full: u64, least: u64) -> u64 {
    // Neither sign nor size can be lost: the scale is above 0 and at most 1.
    ((scale * full as f64).round() as u64).max(least)
}

#[cfg(test)]
mod dsql_tests;
#[cfg(test)]
mod tests;
