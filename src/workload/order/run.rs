//! Running one transaction: what does not depend on a reply is asked for together, and whether it
//! travels together is the session's affair.

use super::{
    Done, OrderTransaction, OrderWorkload,
    draw::{Kind, Lines},
    reversal_entry_id, sale_entry_id,
};
use crate::{
    target::{Replies, Request, Row, Session, SessionError, TripError, Value},
    workload::{AttemptError, Reached},
};

/// How an attempt's statements came out.
enum Came {
    Committed,
    /// A business rule forbids it; the transaction is still open.
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

/// A row that cannot be read: nothing was sent after it.
const fn unreadable(error: SessionError) -> TripError {
    TripError { commit_sent: false, error }
}

const fn before_commit(error: SessionError) -> AttemptError {
    AttemptError { reached: Reached::BeforeCommit, error }
}

impl OrderWorkload {
    pub(super) async fn run<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
    ) -> Result<Done, AttemptError> {
        match self.body(session, transaction).await {
            Ok(Came::Committed) => Ok(Done::Committed),
            Ok(Came::ToReject) => self.reject(session, transaction).await,
            Err(failed) => self.abandon(session, transaction, failed).await,
        }
    }

    async fn body<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
    ) -> Result<Came, TripError> {
        match &transaction.0 {
            Kind::Lookup { product_id } => {
                let product = [Value::Int8(*product_id)];
                let read = Request::Run(self.statements.product(), &product);
                session.trip(&[Request::Begin, read, Request::Commit]).await?;
                Ok(Came::Committed)
            }
            Kind::History { customer_id } => self.history(session, *customer_id).await,
            Kind::Create { order_id, customer_id, lines, .. } => {
                let id = self.business_id(transaction).unwrap_or_default();
                self.create(session, &id, *order_id, *customer_id, lines).await
            }
            Kind::Cancel { order_id, .. } => {
                let id = self.business_id(transaction).unwrap_or_default();
                self.cancel(session, &id, *order_id).await
            }
        }
    }

    /// Ends a transaction that a business rule forbids. What forbids it may be this transaction's
    /// own earlier try, whose COMMIT came through after all: then it is committed.
    async fn reject<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
    ) -> Result<Done, AttemptError> {
        roll_back(session).await?;
        if self.has_receipt(session, transaction).await.map_err(before_commit)? {
            Ok(Done::Committed)
        } else {
            Ok(Done::Rejected)
        }
    }

    /// Leaves the connection outside the failed transaction. Where that fails too, its error is
    /// the one to report: it says that the connection is of no more use.
    async fn abandon<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
        TripError { commit_sent, error }: TripError,
    ) -> Result<Done, AttemptError> {
        // Once a COMMIT has been sent it may be carried out, whatever becomes of the reply. If the
        // server answers with an error it has not been, and what the error means is the caller's
        // to read.
        let reached = if commit_sent { Reached::CommitSent } else { Reached::BeforeCommit };
        if !session.is_usable() {
            return Err(AttemptError { reached, error });
        }
        if session.in_transaction() {
            roll_back(session).await?;
        }
        // Ids are unique to a transaction: if one is taken, an earlier try has committed.
        let taken = error.code() == Some(UNIQUE_VIOLATION);
        if taken && self.has_receipt(session, transaction).await.map_err(before_commit)? {
            return Ok(Done::Committed);
        }
        Err(AttemptError { reached, error })
    }

    async fn history<S: Session>(
        &self,
        session: &mut S,
        customer_id: i64,
    ) -> Result<Came, TripError> {
        let customer = [Value::Int8(customer_id)];
        let orders = Request::Run(self.statements.history(), &customer);
        let replies = session.trip(&[Request::Begin, orders]).await?;
        let order_ids = column(replies, 1, 0)?;
        let orders = [Value::Int8s(&order_ids)];
        let items = Request::Run(self.statements.items_of_orders(), &orders);
        session.trip(&[items, Request::Commit]).await?;
        Ok(Came::Committed)
    }

    async fn create<S: Session>(
        &self,
        session: &mut S,
        business_id: &str,
        order_id: i64,
        customer_id: i64,
        lines: &Lines,
    ) -> Result<Came, TripError> {
        let statements = &self.statements;
        let (products, quantities) = (lines.product_ids(), lines.quantities());
        let wanted = [Value::Int8s(products)];
        let find = Request::Run(statements.price_and_stock(), &wanted);
        let replies = session.trip(&[Request::Begin, find]).await?;
        let Some(prices) = prices_if_in_stock(replies.rows(1), lines).map_err(unreadable)? else {
            return Ok(Came::ToReject);
        };

        let amounts: Vec<i64> = prices.iter().zip(quantities).map(|(p, q)| p * q).collect();
        let line_nos: Vec<i32> = (1..).take(products.len()).collect();
        let sold: Vec<i64> = quantities.iter().map(|quantity| -quantity).collect();
        let entry_ids: Vec<i64> = line_nos.iter().map(|no| sale_entry_id(order_id, *no)).collect();
        let entries = Entries {
            kind: "sale",
            entry_ids: &entry_ids,
            product_ids: products,
            quantities: &sold,
            amounts: &amounts,
        };
        let id = Value::Int8(order_id);
        let order = [id, Value::Int8(customer_id), Value::Int8(amounts.iter().sum())];
        let items = [
            id,
            Value::Int4s(&line_nos),
            Value::Int8s(products),
            Value::Int8s(quantities),
            Value::Int8s(&prices),
        ];
        let stock = [Value::Int8s(products), Value::Int8s(&sold)];
        let ledger = entries.values(order_id);
        let receipt = [Value::Text(business_id), Value::Text("create"), id];
        session
            .trip(&[
                Request::Run(statements.insert_order(), &order),
                Request::Run(statements.insert_items(), &items),
                Request::Run(statements.change_stock(), &stock),
                Request::Run(statements.insert_ledger(), &ledger),
                Request::Run(statements.insert_receipt(), &receipt),
                Request::Commit,
            ])
            .await?;
        Ok(Came::Committed)
    }

    async fn cancel<S: Session>(
        &self,
        session: &mut S,
        business_id: &str,
        order_id: i64,
    ) -> Result<Came, TripError> {
        let statements = &self.statements;
        let id = [Value::Int8(order_id)];
        let replies = session
            .trip(&[
                Request::Begin,
                Request::Run(statements.order(), &id),
                Request::Run(statements.items_of_order(), &id),
            ])
            .await?;
        let status = replies.rows(1).next().map(|row| row.text(0)).transpose();
        if status.map_err(unreadable)? != Some("placed") {
            return Ok(Came::ToReject);
        }
        let mut entry_ids = Vec::with_capacity(replies.rows(2).len());
        let mut amounts = Vec::with_capacity(replies.rows(2).len());
        for item in replies.rows(2) {
            let line_no = item.int4(0).map_err(unreadable)?;
            let (quantity, price) = (item.int8(2), item.int8(3));
            entry_ids.push(reversal_entry_id(order_id, line_no));
            amounts.push(-quantity.map_err(unreadable)? * price.map_err(unreadable)?);
        }
        let (products, returned) = (column(replies, 2, 1)?, column(replies, 2, 2)?);
        let entries = Entries {
            kind: "reversal",
            entry_ids: &entry_ids,
            product_ids: &products,
            quantities: &returned,
            amounts: &amounts,
        };
        let stock = [Value::Int8s(&products), Value::Int8s(&returned)];
        let ledger = entries.values(order_id);
        let receipt = [Value::Text(business_id), Value::Text("cancel"), Value::Int8(order_id)];
        let replies = session
            .trip(&[
                Request::Run(statements.cancel_order(), &id),
                Request::Run(statements.change_stock(), &stock),
                Request::Run(statements.insert_ledger(), &ledger),
                Request::Run(statements.insert_receipt(), &receipt),
            ])
            .await?;
        // Whether the order was still there to cancel decides whether to commit.
        if replies.affected(0) == 0 {
            return Ok(Came::ToReject);
        }
        session.trip(&[Request::Commit]).await?;
        Ok(Came::Committed)
    }
}

/// `unique_violation` (PostgreSQL documentation, appendix A).
const UNIQUE_VIOLATION: &str = "23505";

impl Entries<'_> {
    fn values(&self, order_id: i64) -> [Value<'_>; 6] {
        [
            Value::Int8(order_id),
            Value::Text(self.kind),
            Value::Int8s(self.entry_ids),
            Value::Int8s(self.product_ids),
            Value::Int8s(self.quantities),
            Value::Int8s(self.amounts),
        ]
    }
}

async fn roll_back<S: Session>(session: &mut S) -> Result<(), AttemptError> {
    let rolled_back = session.trip(&[Request::Rollback]).await;
    rolled_back.map(|_| ()).map_err(|failed| before_commit(failed.error))
}

/// The prices of the lines' products, in the lines' order; `None` where a product is not there or
/// has too little stock.
fn prices_if_in_stock<'a>(
    found: impl Iterator<Item = Row<'a>>,
    lines: &Lines,
) -> Result<Option<Vec<i64>>, SessionError> {
    let (products, quantities) = (lines.product_ids(), lines.quantities());
    let mut prices = vec![None; products.len()];
    for row in found {
        let (product_id, stock) = (row.int8(0)?, row.int8(2)?);
        if let Some(line) = products.iter().position(|wanted| *wanted == product_id)
            && stock >= quantities[line]
        {
            prices[line] = Some(row.int8(1)?);
        }
    }
    Ok(prices.into_iter().collect())
}

fn column(replies: &Replies, request: usize, column: usize) -> Result<Vec<i64>, TripError> {
    replies.rows(request).map(|row| row.int8(column)).collect::<Result<_, _>>().map_err(unreadable)
}
