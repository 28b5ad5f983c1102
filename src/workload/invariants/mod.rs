//! The checks of the business after a cell: stock, orders, ledger, receipts.
//!
//! They read only what the attempt wrote, by its ranges of order and business ids, and the ledger
//! of the products it touched: what other attempts left behind is never counted as its own.

mod queries;
#[cfg(test)]
mod tests;

use tokio_postgres::{Client, Row, types::ToSql, types::Type};

use super::{
    error::{Doing, WorkloadError},
    schema::Names,
};
use crate::{
    model::{Acknowledged, AttemptRange, InvariantReport, TargetSpec},
    target::session,
};
use queries::{CHECKS, COUNTS, FIRST};

/// One state of the database for all checks, and no way to change it.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Checks an attempt whose cell has drained, on a connection of its own.
///
/// `checked` of the report is the number of its orders, touched products and receipts; `first`
/// has at most five violations, at least one of every kind that was found if so many fit.
///
/// # Errors
/// When the database cannot be reached or fails: then nothing is known of the invariants.
pub async fn check(
    target: &TargetSpec,
    range: &AttemptRange,
    acknowledged: &Acknowledged,
) -> Result<InvariantReport, WorkloadError> {
    let client = session(target).await?;
    let doing = || format!("checking attempt {}", range.ordinal);
    client.batch_execute(BEGIN).await.doing(doing)?;
    let report = check_within(&client, &target.schema, range, acknowledged).await?;
    client.batch_execute("COMMIT").await.doing(doing)?;
    Ok(report)
}

/// The checks, inside a transaction that the caller has begun.
async fn check_within(
    client: &Client,
    schema: &str,
    range: &AttemptRange,
    acknowledged: &Acknowledged,
) -> Result<InvariantReport, WorkloadError> {
    let scope = Scope::new(range);
    let names = Names::new(schema);
    let doing = |what: &str| format!("checking the {what} of attempt {}", range.ordinal);

    let counts = scope.query(client, &names.fill(COUNTS)).await.doing(|| doing("counts"))?;
    let counts = counts.first().map(Counts::of).transpose().doing(|| doing("counts"))?;
    let counts = counts.unwrap_or_default();
    let mut found = vec![counts.against(acknowledged)];
    for (what, query) in CHECKS {
        let rows = scope.query(client, &names.fill(query)).await.doing(|| doing(what))?;
        found.push(Violations::of(&rows).doing(|| doing(what))?);
    }
    Ok(InvariantReport {
        checked: counts.orders + counts.products + counts.creates + counts.cancels,
        violations: found.iter().map(|violations| violations.count).sum(),
        first: first_of(&found),
    })
}

/// The attempt's ranges.
struct Scope {
    first_id: i64,
    last_id: i64,
    /// Business ids from this one on …
    from: String,
    /// … and below this one.
    below: String,
}

impl Scope {
    fn new(range: &AttemptRange) -> Self {
        let last = i128::from(range.first_id) + i128::from(range.ids) - 1;
        Self {
            first_id: range.first_id,
            last_id: i64::try_from(last).unwrap_or(i64::MAX),
            from: range.prefix.clone(),
            below: beyond(&range.prefix),
        }
    }

    async fn query(&self, client: &Client, query: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&self.first_id, Type::INT8),
            (&self.last_id, Type::INT8),
            (&self.from, Type::TEXT),
            (&self.below, Type::TEXT),
        ];
        client.query_typed(query, &parameters).await
    }
}

/// The first text, byte by byte, that is beyond every text with this prefix. Prefixes are ASCII,
/// so the next letter is always there.
fn beyond(prefix: &str) -> String {
    let mut text = prefix.to_owned();
    let last = text.pop().unwrap_or('\0');
    text.push(char::from_u32(u32::from(last) + 1).unwrap_or(char::MAX));
    text
}

#[derive(Clone, Copy, Default)]
struct Counts {
    orders: u64,
    products: u64,
    creates: u64,
    cancels: u64,
}

impl Counts {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let count = |index| row.try_get::<_, i64>(index).map(i64::unsigned_abs);
        Ok(Self { orders: count(0)?, products: count(1)?, creates: count(2)?, cancels: count(3)? })
    }

    /// The receipts against what the client was told: equal, but that each unresolved transaction
    /// may or may not have one.
    fn against(&self, acknowledged: &Acknowledged) -> Violations {
        let Acknowledged { creates, cancels, unresolved } = *acknowledged;
        let kinds = [
            ("create", self.creates, creates),
            ("cancel", self.cancels, cancels),
            ("create and cancel", self.creates + self.cancels, creates + cancels),
        ];
        let mut texts: Vec<String> = kinds
            .into_iter()
            .filter(|(_, found, told)| *found < *told || *found > told + unresolved)
            .map(|(kind, found, told)| {
                format!(
                    "{found} {kind} receipts were found, {told} were acknowledged \
                     ({unresolved} transactions unresolved)"
                )
            })
            .collect();
        // The sum says something of its own only where neither kind alone was wrong.
        if texts.len() > 1 {
            texts.pop_if(|text| text.contains("create and cancel"));
        }
        Violations { count: texts.len() as u64, texts }
    }
}

/// What one check found.
#[derive(Debug, Default)]
struct Violations {
    count: u64,
    /// The first ones.
    texts: Vec<String>,
}

impl Violations {
    fn of(rows: &[Row]) -> Result<Self, tokio_postgres::Error> {
        let Some(first) = rows.first() else { return Ok(Self::default()) };
        let count = first.try_get::<_, i64>(0)?.unsigned_abs();
        let texts = rows.iter().map(|row| row.try_get(1)).collect::<Result<_, _>>()?;
        Ok(Self { count, texts })
    }
}

/// The first violation of each check, then the second of each, and so on: a flood of one kind
/// does not hide the others.
fn first_of(found: &[Violations]) -> Vec<String> {
    (0..FIRST)
        .flat_map(|place| found.iter().filter_map(move |v| v.texts.get(place)))
        .take(FIRST)
        .cloned()
        .collect()
}
