//! The four transactions: drawn from a seed, run as an application would, statement by statement.

mod draw;
mod open_orders;
mod run;
mod statements;
#[cfg(test)]
mod tests;

use super::{
    Done, Workload, WorkloadError,
    data::expected,
    random::{Permutation, mix},
    schema::Names,
};
use crate::{
    model::{AttemptRange, CellOrder, Class, Dialect, WorkloadSpec},
    target::{Request, Session, SessionError, Statement, Value},
};

use draw::Kind;
use open_orders::OpenOrders;
use statements::Statements;

/// Ledger entries of one order: the opening one, up to seven sales and their reversals.
const ENTRIES_PER_ORDER: i64 = 16;
/// The last of an order's entries, counted from its first.
pub(super) const LAST_ENTRY: i64 = ENTRIES_PER_ORDER - 1;
/// Where the reversals begin among an order's entries.
const FIRST_REVERSAL: i64 = 8;

/// The ledger entry that loaded orders begin with.
pub(super) const fn opening_entry_id(order_id: i64) -> i64 {
    order_id * ENTRIES_PER_ORDER
}

/// The ledger entry of the sale of one line (from 1).
const fn sale_entry_id(order_id: i64, line_no: i32) -> i64 {
    order_id * ENTRIES_PER_ORDER + line_no as i64
}

/// The ledger entry that takes the sale of one line (from 1) back.
const fn reversal_entry_id(order_id: i64, line_no: i32) -> i64 {
    order_id * ENTRIES_PER_ORDER + FIRST_REVERSAL + line_no as i64
}

/// The order business under load: what [`Workload`] asks for, for one attempt at a cell.
///
/// Memory does not grow with the number of transactions.
#[derive(Debug)]
pub struct OrderWorkload {
    statements: Statements,
    mix: [u32; 4],
    seed: u64,
    customers: i64,
    products: i64,
    first_id: i64,
    prefix: String,
    dialect: Dialect,
    permutation: Permutation,
    open_orders: OpenOrders,
}

/// One transaction with all its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTransaction(Kind);

impl OrderWorkload {
    /// The workload of a cell. The attempt's range bounds how many arrivals get order ids of
    /// their own: the ids repeat after `attempt.ids` arrivals, and the database then refuses them.
    ///
    /// # Errors
    /// When the mix does not add up to 100, the scale is out of range, or the attempt's range is
    /// not usable: not a power of two, among the loaded orders, beyond 2^59, or without a prefix.
    pub fn new(order: &CellOrder) -> Result<Self, WorkloadError> {
        let target = &order.target;
        let made = Self::from_parts(&target.schema, &order.workload, &order.attempt, order.seed)?;
        Ok(Self { dialect: target.dialect, ..made })
    }

    /// As [`OrderWorkload::new`], from the parts of the cell's order that matter, on PostgreSQL.
    ///
    /// # Errors
    /// As [`OrderWorkload::new`].
    pub fn from_parts(
        schema: &str,
        spec: &WorkloadSpec,
        attempt: &AttemptRange,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let counts = expected(spec.scale)?;
        let mix = [
            spec.mix.product_lookup,
            spec.mix.order_history,
            spec.mix.order_create,
            spec.mix.order_cancel,
        ];
        let sum = mix.iter().fold(0_u32, |sum, share| sum.saturating_add(*share));
        if sum != 100 {
            return Err(WorkloadError::Mix(sum));
        }
        check_range(attempt, counts.orders)?;
        Ok(Self {
            statements: Statements::new(&Names::new(schema)),
            mix,
            seed,
            customers: counts.customers.cast_signed(),
            products: counts.products.cast_signed(),
            first_id: attempt.first_id,
            prefix: attempt.prefix.clone(),
            dialect: Dialect::default(),
            permutation: Permutation::new(attempt.ids, seed),
            open_orders: OpenOrders::new(),
        })
    }

    /// The business id of a transaction that writes: unique within the attempt, the same however
    /// often the transaction is tried. On DSQL the number in it is mixed (by a bijection), so that
    /// receipts do not all go to the end of one range of keys.
    fn business_id(&self, transaction: &OrderTransaction) -> Option<String> {
        let prefix = &self.prefix;
        let (kind, ordinal) = match &transaction.0 {
            Kind::Create { ordinal, .. } => ("", *ordinal),
            Kind::Cancel { ordinal, .. } => ("c", *ordinal),
            Kind::Lookup { .. } | Kind::History { .. } => return None,
        };
        Some(match self.dialect {
            Dialect::Postgres => format!("{prefix}{kind}{ordinal}"),
            Dialect::Dsql => format!("{prefix}{:016x}{kind}", mix(ordinal)),
        })
    }

    async fn has_receipt<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
    ) -> Result<bool, SessionError> {
        let Some(id) = self.business_id(transaction) else { return Ok(false) };
        let id = [Value::Text(&id)];
        let find = Request::Run(self.statements.receipt(), &id);
        let found = session.trip(&[find]).await.map_err(|failed| failed.error)?;
        Ok(found.rows(0).len() > 0)
    }
}

fn check_range(attempt: &AttemptRange, loaded_orders: u64) -> Result<(), WorkloadError> {
    let AttemptRange { ordinal, first_id, ids, prefix } = attempt;
    let refuse = |what| Err(WorkloadError::Range { ordinal: *ordinal, what });
    if !ids.is_power_of_two() {
        return refuse(format!("{ids} ids: a power of two is needed"));
    }
    if *first_id <= loaded_orders.cast_signed() {
        return refuse(format!(
            "first id {first_id} is among the loaded orders: above {loaded_orders} is allowed"
        ));
    }
    let limit = i64::MAX / ENTRIES_PER_ORDER;
    if i128::from(*first_id) + i128::from(*ids) > i128::from(limit) {
        return refuse(format!("ids from {first_id} on, {ids} of them: up to {limit} is allowed"));
    }
    if prefix.is_empty() || !prefix.is_ascii() {
        return refuse(format!("prefix {prefix:?} of business ids: some ASCII text is needed"));
    }
    Ok(())
}

impl Workload for OrderWorkload {
    type Transaction = OrderTransaction;

    fn statements(&self) -> &[Statement] {
        self.statements.all()
    }

    fn draw(&self, arrival: u64) -> OrderTransaction {
        OrderTransaction(self.draw_kind(arrival))
    }

    fn class(&self, transaction: &OrderTransaction) -> Class {
        match transaction.0 {
            Kind::Lookup { .. } => Class::ProductLookup,
            Kind::History { .. } => Class::OrderHistory,
            Kind::Create { .. } => Class::OrderCreate,
            Kind::Cancel { .. } => Class::OrderCancel,
        }
    }

    /// As the trait says. What an earlier try of the same transaction turns out to have committed
    /// after all (its COMMIT arrived later than a look-up) is answered as committed, not done
    /// twice.
    async fn attempt<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
    ) -> Result<Done, super::AttemptError> {
        self.run(session, transaction).await
    }

    async fn look_up<S: Session>(
        &self,
        session: &mut S,
        transaction: &OrderTransaction,
    ) -> Result<bool, SessionError> {
        self.has_receipt(session, transaction).await
    }

    fn committed(&self, transaction: &OrderTransaction) {
        if let Kind::Create { order_id, .. } = transaction.0 {
            self.open_orders.add(order_id);
        }
    }
}
