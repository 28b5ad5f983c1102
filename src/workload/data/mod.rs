//! The data set: how much of it there is, loading it, and counting it in the database.

mod copy;
mod load;
mod rows;

use tokio_postgres::Client;

use super::{
    error::{Doing, WorkloadError},
    schema::{Names, TABLES},
};
use crate::{model::TargetSpec, target::session};

pub use load::{LoadProgress, LoadReport, LoadStep, load};

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

    /// The counts in the order of the tables.
    const fn by_table(&self) -> [u64; 6] {
        [self.customers, self.products, self.orders, self.order_items, self.ledger, self.receipts]
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

/// Counts the rows of every table in the database.
///
/// # Errors
/// When the database cannot be reached or a table is not there.
pub async fn count_rows(target: &TargetSpec) -> Result<RowCounts, WorkloadError> {
    count(&session(target).await?, &target.schema).await
}

async fn count(client: &Client, schema: &str) -> Result<RowCounts, WorkloadError> {
    let names = Names::new(schema);
    let mut counts = [0; TABLES.len()];
    for (table, count) in TABLES.iter().zip(&mut counts) {
        let query = format!("SELECT count(*) FROM {}", names.of(table));
        let row = client.query_typed_one(&query, &[]).await;
        let row = row.doing(|| format!("counting table {} of schema {schema}", table.name))?;
        *count = row.get::<_, i64>(0).unsigned_abs();
    }
    let [customers, products, orders, order_items, ledger, receipts] = counts;
    Ok(RowCounts { customers, products, orders, order_items, ledger, receipts })
}

/// That every table holds the rows it should.
fn verify(schema: &str, found: &RowCounts, expected: &RowCounts) -> Result<(), WorkloadError> {
    for ((table, found), expected) in TABLES.iter().zip(found.by_table()).zip(expected.by_table()) {
        if found != expected {
            let schema = schema.to_owned();
            return Err(WorkloadError::Count { schema, table: table.name, found, expected });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
