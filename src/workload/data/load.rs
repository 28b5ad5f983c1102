//! Loading: tables, rows, then keys and indexes, then statistics, then the count.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio_postgres::Client;

use super::{RowCounts, copy::copy_table, count, expected, rows::DataSet, verify};
use crate::{
    model::TargetSpec,
    target::pool,
    workload::{
        error::{Doing, WorkloadError},
        schema::{
            CUSTOMERS, LEDGER, Names, ORDER_ITEMS, ORDERS, PRODUCTS, RECEIPTS, Table,
            first_table_there,
        },
    },
};

/// Two connections load side by side; each has about half of the bytes.
const LANES: [&[&Table]; 2] =
    [&[&ORDER_ITEMS, &CUSTOMERS], &[&PRODUCTS, &ORDERS, &LEDGER, &RECEIPTS]];

/// How long a lane may wait for its connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(30);

/// What a load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    Rows,
    Indexes,
    Statistics,
    Count,
}

/// How far a load has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    pub step: LoadStep,
    /// Rows sent so far, of all tables.
    pub rows: u64,
    /// Rows there will be, of all tables.
    pub of: u64,
}

/// What a load did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadReport {
    /// As counted in the database.
    pub rows: RowCounts,
    pub seconds: f64,
}

/// Makes the target's schema and tables and fills them; the same scale and seed give the same
/// rows. `progress` is called at each step and about once for every 4,096 rows, from the
/// task that polls the future.
///
/// # Errors
/// When the scale is out of range, the schema already holds one of the tables, the database
/// fails, or it counts other rows than are due.
pub async fn load(
    target: &TargetSpec,
    scale: f64,
    seed: u64,
    progress: impl Fn(LoadProgress) + Send + Sync,
) -> Result<LoadReport, WorkloadError> {
    let started = Instant::now();
    let data = DataSet { seed, counts: expected(scale)? };
    let schema = &target.schema;
    let pool = pool(target, LANES.len(), CONNECTION_WAIT).await?;
    let (first, second) = tokio::try_join!(pool.get(), pool.get())?;
    create_tables(&first, schema).await?;

    let sent = AtomicU64::new(0);
    let of = data.counts.total();
    let tell = |step| progress(LoadProgress { step, rows: sent.load(Ordering::Relaxed), of });
    let copied = |more| {
        sent.fetch_add(more, Ordering::Relaxed);
        tell(LoadStep::Rows);
    };
    tell(LoadStep::Rows);
    tokio::try_join!(
        copy_lane(&first, schema, LANES[0], &data, &copied),
        copy_lane(&second, schema, LANES[1], &data, &copied),
    )?;
    tell(LoadStep::Indexes);
    tokio::try_join!(index_lane(&first, schema, LANES[0]), index_lane(&second, schema, LANES[1]),)?;
    tell(LoadStep::Statistics);
    tokio::try_join!(
        settle_lane(&first, schema, LANES[0]),
        settle_lane(&second, schema, LANES[1]),
    )?;
    tell(LoadStep::Count);
    let rows = count(&first, schema).await?;
    verify(schema, &rows, &data.counts)?;
    Ok(LoadReport { rows, seconds: started.elapsed().as_secs_f64() })
}

async fn create_tables(client: &Client, schema: &str) -> Result<(), WorkloadError> {
    let there = first_table_there(client, schema).await;
    if let Some(table) = there.doing(|| format!("looking for tables of schema {schema}"))? {
        return Err(WorkloadError::AlreadyThere { schema: schema.to_owned(), table });
    }
    for statement in Names::new(schema).create_tables() {
        client.batch_execute(&statement).await.doing(|| statement)?;
    }
    Ok(())
}

async fn copy_lane<P: Fn(u64) + Sync>(
    client: &Client,
    schema: &str,
    tables: &[&Table],
    data: &DataSet,
    copied: &P,
) -> Result<(), WorkloadError> {
    let names = Names::new(schema);
    for table in tables {
        copy_table(client, &names, table, data, copied)
            .await
            .doing(|| format!("loading table {} of schema {schema}", table.name))?;
    }
    Ok(())
}

async fn index_lane(client: &Client, schema: &str, tables: &[&Table]) -> Result<(), WorkloadError> {
    let names = Names::new(schema);
    for statement in tables.iter().flat_map(|table| names.create_indexes(table)) {
        client.batch_execute(&statement).await.doing(|| statement)?;
    }
    Ok(())
}

/// Vacuums as well as analyses: otherwise the first reads of a cell would pay for marking every
/// loaded row as committed, and reads of an index alone would still visit the table.
async fn settle_lane(
    client: &Client,
    schema: &str,
    tables: &[&Table],
) -> Result<(), WorkloadError> {
    let names = Names::new(schema);
    for table in tables {
        let statement = format!("VACUUM (ANALYZE) {}", names.of(table));
        client.batch_execute(&statement).await.doing(|| statement)?;
    }
    Ok(())
}
