//! Running one transaction: each statement a round trip of its own, as an application has it.

use tokio_postgres::{Client, Error, Row, error::SqlState};

use super::{
    Done, OrderSession, OrderTransaction, OrderWorkload,
    draw::{Kind, Lines},
    reversal_entry_id, sale_entry_id,
    statements::{BEGIN, COMMIT, ROLLBACK},
};
use crate::workload::{AttemptError, Reached};

/// How the statements before the end came out.
enum Ready {
    ToCommit,
    /// A business rule forbids it.
    ToReject,
}

/// What the ledger is told of one order.
struct Entries<'a> {
    kind: &'a str,
    entry_ids: &'a [i64],
    product_ids: &'a [i64],
    quantities: &'a [i64],
    amounts: &'a [i64],
}

const fn before_commit(error: Error) -> AttemptError {
    AttemptError { reached: Reached::BeforeCommit, error }
}

impl OrderWorkload {
    pub(super) async fn run(
        &self,
        client: &Client,
        session: &OrderSession,
        transaction: &OrderTransaction,
    ) -> Result<Done, AttemptError> {
        match self.body(client, session, transaction).await {
            // From here on the COMMIT may be on its way, whatever becomes of the reply. If the
            // server answers with an error it has rolled back and is outside the transaction.
            Ok(Ready::ToCommit) => match client.batch_execute(COMMIT).await {
                Ok(()) => Ok(Done::Committed),
                Err(error) => Err(AttemptError { reached: Reached::CommitSent, error }),
            },
            Ok(Ready::ToReject) => self.reject(client, transaction).await,
            Err(error) => self.abandon(client, transaction, error).await,
        }
    }

    async fn body(
        &self,
        client: &Client,
        session: &OrderSession,
        transaction: &OrderTransaction,
    ) -> Result<Ready, Error> {
        client.batch_execute(BEGIN).await?;
        match &transaction.0 {
            Kind::Lookup { product_id } => {
                client.query(&session.product, &[product_id]).await?;
                Ok(Ready::ToCommit)
            }
            Kind::History { customer_id } => history(client, session, *customer_id).await,
            Kind::Create { order_id, customer_id, lines, .. } => {
                let id = self.business_id(transaction).unwrap_or_default();
                create(client, session, &id, *order_id, *customer_id, lines).await
            }
            Kind::Cancel { order_id, .. } => {
                let id = self.business_id(transaction).unwrap_or_default();
                cancel(client, session, &id, *order_id).await
            }
        }
    }

    /// Ends a transaction that a business rule forbids. What forbids it may be this transaction's
    /// own earlier try, whose COMMIT came through after all: then it is committed.
    async fn reject(
        &self,
        client: &Client,
        transaction: &OrderTransaction,
    ) -> Result<Done, AttemptError> {
        client.batch_execute(ROLLBACK).await.map_err(before_commit)?;
        if self.has_receipt(client, transaction).await.map_err(before_commit)? {
            Ok(Done::Committed)
        } else {
            Ok(Done::Rejected)
        }
    }

    /// Leaves the connection outside the failed transaction. Where that fails too, its error is
    /// the one to report: it says that the connection is of no more use.
    async fn abandon(
        &self,
        client: &Client,
        transaction: &OrderTransaction,
        error: Error,
    ) -> Result<Done, AttemptError> {
        if client.is_closed() {
            return Err(before_commit(error));
        }
        client.batch_execute(ROLLBACK).await.map_err(before_commit)?;
        // Ids are unique to a transaction: if one is taken, an earlier try has committed.
        let taken = error.code() == Some(&SqlState::UNIQUE_VIOLATION);
        if taken && self.has_receipt(client, transaction).await.map_err(before_commit)? {
            return Ok(Done::Committed);
        }
        Err(before_commit(error))
    }
}

async fn history(
    client: &Client,
    session: &OrderSession,
    customer_id: i64,
) -> Result<Ready, Error> {
    let orders = client.query(&session.history, &[&customer_id]).await?;
    let order_ids = column(&orders, 0)?;
    client.query(&session.items_of_orders, &[&order_ids]).await?;
    Ok(Ready::ToCommit)
}

async fn create(
    client: &Client,
    session: &OrderSession,
    business_id: &str,
    order_id: i64,
    customer_id: i64,
    lines: &Lines,
) -> Result<Ready, Error> {
    let (products, quantities) = (lines.product_ids(), lines.quantities());
    let found = client.query(&session.price_and_stock, &[&products]).await?;
    let Some(prices) = prices_if_in_stock(&found, lines)? else { return Ok(Ready::ToReject) };

    let amounts: Vec<i64> = prices.iter().zip(quantities).map(|(p, q)| p * q).collect();
    let total: i64 = amounts.iter().sum();
    let line_nos: Vec<i32> = (1..).take(products.len()).collect();
    let sold: Vec<i64> = quantities.iter().map(|quantity| -quantity).collect();
    let entry_ids: Vec<i64> = line_nos.iter().map(|no| sale_entry_id(order_id, *no)).collect();

    client.execute(&session.insert_order, &[&order_id, &customer_id, &total]).await?;
    client
        .execute(&session.insert_items, &[&order_id, &line_nos, &products, &quantities, &prices])
        .await?;
    client.execute(&session.change_stock, &[&products, &sold]).await?;
    let entries = Entries {
        kind: "sale",
        entry_ids: &entry_ids,
        product_ids: products,
        quantities: &sold,
        amounts: &amounts,
    };
    write_ledger(client, session, order_id, &entries).await?;
    client.execute(&session.insert_receipt, &[&business_id, &"create", &order_id]).await?;
    Ok(Ready::ToCommit)
}

async fn cancel(
    client: &Client,
    session: &OrderSession,
    business_id: &str,
    order_id: i64,
) -> Result<Ready, Error> {
    let order = client.query_opt(&session.order, &[&order_id]).await?;
    let status = order.map(|row| row.try_get::<_, String>(0)).transpose()?;
    if status.as_deref() != Some("placed") {
        return Ok(Ready::ToReject);
    }
    let items = client.query(&session.items_of_order, &[&order_id]).await?;
    let mut entry_ids = Vec::with_capacity(items.len());
    let mut amounts = Vec::with_capacity(items.len());
    for item in &items {
        entry_ids.push(reversal_entry_id(order_id, item.try_get(0)?));
        amounts.push(-item.try_get::<_, i64>(2)? * item.try_get::<_, i64>(3)?);
    }
    let (products, returned) = (column(&items, 1)?, column(&items, 2)?);

    if client.execute(&session.cancel_order, &[&order_id]).await? == 0 {
        return Ok(Ready::ToReject);
    }
    client.execute(&session.change_stock, &[&products, &returned]).await?;
    let entries = Entries {
        kind: "reversal",
        entry_ids: &entry_ids,
        product_ids: &products,
        quantities: &returned,
        amounts: &amounts,
    };
    write_ledger(client, session, order_id, &entries).await?;
    client.execute(&session.insert_receipt, &[&business_id, &"cancel", &order_id]).await?;
    Ok(Ready::ToCommit)
}

async fn write_ledger(
    client: &Client,
    session: &OrderSession,
    order_id: i64,
    entries: &Entries<'_>,
) -> Result<(), Error> {
    let Entries { kind, entry_ids, product_ids, quantities, amounts } = entries;
    client
        .execute(
            &session.insert_ledger,
            &[&order_id, kind, entry_ids, product_ids, quantities, amounts],
        )
        .await?;
    Ok(())
}

/// The prices of the lines' products, in the lines' order; `None` where a product is not there or
/// has too little stock.
fn prices_if_in_stock(found: &[Row], lines: &Lines) -> Result<Option<Vec<i64>>, Error> {
    let mut prices = Vec::with_capacity(found.len());
    for (product_id, quantity) in lines.product_ids().iter().zip(lines.quantities()) {
        let mut price = None;
        for row in found {
            if row.try_get::<_, i64>(0)? == *product_id && row.try_get::<_, i64>(2)? >= *quantity {
                price = Some(row.try_get(1)?);
            }
        }
        let Some(price) = price else { return Ok(None) };
        prices.push(price);
    }
    Ok(Some(prices))
}

fn column(rows: &[Row], index: usize) -> Result<Vec<i64>, Error> {
    rows.iter().map(|row| row.try_get(index)).collect()
}
