//! Binary COPY of the tables.

use std::pin::Pin;

use tokio_postgres::{
    Client, Error,
    binary_copy::BinaryCopyInWriter,
    types::{ToSql, Type},
};

use super::rows::DataSet;
use crate::workload::{
    order::opening_entry_id,
    schema::{CUSTOMERS, LEDGER, Names, ORDER_ITEMS, ORDERS, PRODUCTS, Table},
};

/// Rows between two reports of progress.
const REPORT_EVERY: u64 = 4096;

/// A COPY under way.
struct Copy<'a, P> {
    writer: Pin<Box<BinaryCopyInWriter>>,
    rows: u64,
    progress: &'a P,
}

impl<'a, P: Fn(u64) + Sync> Copy<'a, P> {
    async fn start(
        client: &Client,
        names: &Names,
        table: &Table,
        progress: &'a P,
    ) -> Result<Self, Error> {
        let columns: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<Type> = table.columns.iter().map(|(_, kind)| kind.wire()).collect();
        let statement = format!(
            "COPY {} ({}) FROM STDIN WITH (FORMAT binary)",
            names.of(table),
            columns.join(", ")
        );
        let sink = client.copy_in(&statement).await?;
        Ok(Self { writer: Box::pin(BinaryCopyInWriter::new(sink, &types)), rows: 0, progress })
    }

    async fn row(&mut self, values: &[&(dyn ToSql + Sync)]) -> Result<(), Error> {
        self.writer.as_mut().write(values).await?;
        self.rows += 1;
        if self.rows.is_multiple_of(REPORT_EVERY) {
            (self.progress)(REPORT_EVERY);
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(), Error> {
        self.writer.as_mut().finish().await?;
        (self.progress)(self.rows % REPORT_EVERY);
        Ok(())
    }
}

/// Copies the rows of one table; `progress` is told how many more have been sent. A table that
/// starts empty is left so.
pub(super) async fn copy_table<P: Fn(u64) + Sync>(
    client: &Client,
    names: &Names,
    table: &Table,
    data: &DataSet,
    progress: &P,
) -> Result<(), Error> {
    let mut copy = Copy::start(client, names, table, progress).await?;
    let copied = match table.name {
        name if name == CUSTOMERS.name => customers(&mut copy, data).await,
        name if name == PRODUCTS.name => products(&mut copy, data).await,
        name if name == ORDERS.name => orders(&mut copy, data).await,
        name if name == ORDER_ITEMS.name => order_items(&mut copy, data).await,
        name if name == LEDGER.name => ledger(&mut copy, data).await,
        _ => Ok(()),
    };
    copied?;
    copy.finish().await
}

fn ids(count: u64) -> impl Iterator<Item = i64> {
    1..=count.cast_signed()
}

async fn customers<P: Fn(u64) + Sync>(copy: &mut Copy<'_, P>, data: &DataSet) -> Result<(), Error> {
    for id in ids(data.counts.customers) {
        copy.row(&[&id, &format!("customer {id}")]).await?;
    }
    Ok(())
}

async fn products<P: Fn(u64) + Sync>(copy: &mut Copy<'_, P>, data: &DataSet) -> Result<(), Error> {
    for id in ids(data.counts.products) {
        let stock = data.initial_stock(id);
        let name = format!("product {id}");
        copy.row(&[&id, &name, &data.price_cents(id), &stock, &stock]).await?;
    }
    Ok(())
}

async fn orders<P: Fn(u64) + Sync>(copy: &mut Copy<'_, P>, data: &DataSet) -> Result<(), Error> {
    for id in ids(data.counts.orders) {
        let (customer, total) = (data.customer_id(id), data.total_cents(id));
        copy.row(&[&id, &customer, &"placed", &total, &data.placed_at(id)]).await?;
    }
    Ok(())
}

async fn order_items<P: Fn(u64) + Sync>(
    copy: &mut Copy<'_, P>,
    data: &DataSet,
) -> Result<(), Error> {
    for id in ids(data.counts.orders) {
        for (line_no, line) in (1_i32..).zip(data.lines(id)) {
            let row: [&(dyn ToSql + Sync); 5] =
                [&id, &line_no, &line.product_id, &line.quantity, &line.price_cents];
            copy.row(&row).await?;
        }
    }
    Ok(())
}

/// One opening entry for each loaded order, of quantity 0: the loaded stock is already net of the
/// loaded orders. So `stock = initial stock + the ledger's sum` holds from the start, and a check
/// after a cell need not read the tens of millions of loaded items.
async fn ledger<P: Fn(u64) + Sync>(copy: &mut Copy<'_, P>, data: &DataSet) -> Result<(), Error> {
    for id in ids(data.counts.orders) {
        let product = data.lines(id).next().map_or(1, |line| line.product_id);
        let entry = opening_entry_id(id);
        let row: [&(dyn ToSql + Sync); 6] =
            [&entry, &id, &product, &0_i64, &data.total_cents(id), &"opening"];
        copy.row(&row).await?;
    }
    Ok(())
}
