//! Loading: tables, rows, then keys and indexes, then statistics, then counts and checksums. A load
//! that was cut off is gone on with from what the database holds.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use tokio_postgres::error::SqlState;

use super::{
    RowCounts, expected,
    index::{make_indexes, settle},
    ledger::{self, Book, Loaded},
    link::Link,
    part::{Chunk, all_chunks},
    rows::DataSet,
    verify::verify,
    worker::Work,
};
use crate::{
    model::{Dialect, TargetSpec},
    workload::{
        error::{Doing, WorkloadError},
        schema::{
            CUSTOMERS, LEDGER, Names, ORDER_ITEMS, ORDERS, PRODUCTS, RECEIPTS, Table,
            first_table_there,
        },
    },
};

/// Two connections index side by side; each has about half of the bytes.
const LANES: [&[&Table]; 2] =
    [&[&ORDER_ITEMS, &CUSTOMERS], &[&PRODUCTS, &ORDERS, &LEDGER, &RECEIPTS]];

/// Workers where nothing else is said. A server of one's own has its processors busy with a few
/// copies; DSQL takes many small transactions at once.
const WORKERS: usize = 4;
const DSQL_WORKERS: usize = 16;
/// Most workers.
const MOST_WORKERS: usize = 256;

/// What a load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    Rows,
    Indexes,
    Statistics,
    /// Counts and checksums; `rows` are those verified so far.
    Verify,
}

/// How far a load has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadProgress {
    pub step: LoadStep,
    /// Rows of all tables that the database has, or that are verified.
    pub rows: u64,
    /// Rows there will be, of all tables.
    pub of: u64,
    /// Rows each second since the step began.
    pub rows_per_s: f64,
    /// How long the step will still take at that rate, in seconds; `None` where nothing is known.
    pub eta_s: Option<f64>,
    /// Workers that may load now: fewer than there are while the database pushes back.
    pub workers: usize,
    /// Batches and chunks that were tried again.
    pub retries: u64,
}

/// What a load did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadReport {
    /// As counted in the database.
    pub rows: RowCounts,
    pub seconds: f64,
    /// Rows that this call has loaded, and how long their loading alone took, in seconds.
    pub loaded: u64,
    pub loading_s: f64,
    pub retries: u64,
}

/// What is loaded, and by how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadOrder {
    /// Share of the full data set, above 0 and at most 1.
    pub scale: f64,
    /// The same scale and seed give the same rows.
    pub seed: u64,
    /// Connections that load side by side, 1 to 256; `None`: as suits the dialect.
    pub workers: Option<usize>,
}

/// Makes the target's schema and tables and fills them; the same scale and seed give the same
/// rows. `progress` is called at each step and whenever rows are in the database, from the task that
/// polls the future.
///
/// # Errors
/// As [`load_with`].
pub async fn load(
    target: &TargetSpec,
    scale: f64,
    seed: u64,
    progress: impl Fn(LoadProgress) + Send + Sync,
) -> Result<LoadReport, WorkloadError> {
    load_with(target, LoadOrder { scale, seed, workers: None }, progress).await
}

/// The same, by as many workers as asked for. Where a load of the same data set was cut off, the rest
/// is loaded.
///
/// # Errors
/// When the scale is out of range, the schema already holds one of the tables (but for a load that
/// was cut off) or another data set's beginning, the database fails for longer than is waited, or it
/// holds other rows than are due.
pub async fn load_with(
    target: &TargetSpec,
    order: LoadOrder,
    progress: impl Fn(LoadProgress) + Send + Sync,
) -> Result<LoadReport, WorkloadError> {
    let started = Instant::now();
    let data = DataSet { seed: order.seed, counts: expected(order.scale)? };
    let workers = order.workers.unwrap_or(match target.dialect {
        Dialect::Postgres => WORKERS,
        Dialect::Dsql => DSQL_WORKERS,
    });
    let workers = workers.clamp(1, MOST_WORKERS);
    let book = begin(target, &data).await?;

    let left: Vec<Chunk> = all_chunks(&data.counts, target.dialect == Dialect::Dsql)
        .into_iter()
        .filter(|chunk| !book.has(chunk))
        .collect();
    let load = Load { target, data, workers, there: rows_there(&data, &left), progress: &progress };
    let (loaded, loading_s, retries) = load.rows(left).await?;
    load.indexes().await?;
    load.verified().await?;
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    run(target, &ledger::end(&Names::new(&target.schema), Loaded { rows: loaded, ms })).await?;
    Ok(LoadReport {
        // What has been verified is what was due.
        rows: data.counts,
        seconds: started.elapsed().as_secs_f64(),
        loaded,
        loading_s,
        retries,
    })
}

/// Verifies a data set that is loaded: counts and checksums of every table.
///
/// # Errors
/// When the scale is out of range, the database fails, or it holds other rows than are due.
pub async fn verify_rows(
    target: &TargetSpec,
    scale: f64,
    seed: u64,
) -> Result<RowCounts, WorkloadError> {
    let data = DataSet { seed, counts: expected(scale)? };
    verify(target, &data, 2, &|_| ()).await?;
    Ok(data.counts)
}

/// Makes the tables, or finds those of a load that was cut off; what it has done so far.
async fn begin(target: &TargetSpec, data: &DataSet) -> Result<Book, WorkloadError> {
    let schema = &target.schema;
    let names = Names::new(schema);
    let mut link = Link::new(target);
    let client = link.first().await?;
    let book = Book::read(client, &names).await?;
    if book.as_ref().is_none_or(|book| book.loaded().is_some()) {
        let there = first_table_there(client, schema).await;
        if let Some(table) = there.doing(|| format!("looking for tables of schema {schema}"))? {
            return Err(WorkloadError::AlreadyThere { schema: schema.to_owned(), table });
        }
    }
    if !book.unwrap_or_default().is_of(data) {
        return Err(WorkloadError::OtherDesign { schema: schema.to_owned() });
    }
    run(target, &names.create_tables(target.dialect)).await?;
    run(target, &ledger::begin(&names, data)).await?;
    let book = Book::read(link.first().await?, &names).await?.unwrap_or_default();
    if book.is_of(data) {
        Ok(book)
    } else {
        Err(WorkloadError::OtherDesign { schema: schema.to_owned() })
    }
}

/// Runs statements that may be repeated, each in a transaction of its own.
async fn run(target: &TargetSpec, statements: &[String]) -> Result<(), WorkloadError> {
    let mut link = Link::new(target);
    for statement in statements {
        loop {
            let done = match link.client().await {
                Ok(client) => client.batch_execute(statement).await.doing(|| statement.clone()),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => break link.worked(),
                // Another loader that was killed in the middle of it has made it after all.
                Err(error) if is_made(&error) => tokio::task::yield_now().await,
                Err(error) => link.recover(error).await.map(|_| ())?,
            }
        }
    }
    Ok(())
}

/// `IF NOT EXISTS` looks first and makes then: who is quicker in between leaves it with this.
fn is_made(error: &WorkloadError) -> bool {
    let WorkloadError::Database { source, .. } = error else { return false };
    source.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Rows of the chunks that are not left to be loaded.
fn rows_there(data: &DataSet, left: &[Chunk]) -> u64 {
    let left: u64 = left.iter().map(|chunk| chunk.rows()).sum();
    data.counts.total() - left
}

struct Load<'a, P> {
    target: &'a TargetSpec,
    data: DataSet,
    workers: usize,
    /// Rows that were there before.
    there: u64,
    progress: &'a P,
}

impl<P: Fn(LoadProgress) + Send + Sync> Load<'_, P> {
    /// Loads what is left; how many rows, in how many seconds, with how many retries.
    async fn rows(&self, left: Vec<Chunk>) -> Result<(u64, f64, u64), WorkloadError> {
        let began = Instant::now();
        let work = Work::new(self.target, self.data, left.into_iter(), self.workers);
        let told = || {
            let rows = work.rows.load(Ordering::Relaxed);
            let retries = work.retries.load(Ordering::Relaxed);
            let progress = self.paced(LoadStep::Rows, self.there, rows, began.elapsed());
            (self.progress)(LoadProgress { workers: work.workers(), retries, ..progress });
        };
        told();
        try_join_all((0..self.workers).map(|worker| work.run(worker, &told))).await?;
        let loaded = work.rows.load(Ordering::Relaxed);
        Ok((loaded, began.elapsed().as_secs_f64(), work.retries.load(Ordering::Relaxed)))
    }

    async fn indexes(&self) -> Result<(), WorkloadError> {
        self.tell(LoadStep::Indexes);
        try_join_all(LANES.map(|tables| make_indexes(self.target, tables))).await?;
        self.tell(LoadStep::Statistics);
        try_join_all(LANES.map(|tables| settle(self.target, tables))).await?;
        Ok(())
    }

    async fn verified(&self) -> Result<(), WorkloadError> {
        let (began, verified) = (Instant::now(), std::sync::atomic::AtomicU64::new(0));
        let told = |more| {
            let rows = verified.fetch_add(more, Ordering::Relaxed) + more;
            (self.progress)(self.paced(LoadStep::Verify, 0, rows, began.elapsed()));
        };
        verify(self.target, &self.data, self.workers, &told).await
    }

    fn tell(&self, step: LoadStep) {
        let of = self.data.counts.total();
        (self.progress)(LoadProgress { eta_s: None, ..self.paced(step, of, 0, Duration::ZERO) });
    }

    /// The progress of a step that had `before` rows and has done `rows` more since it began.
    fn paced(&self, step: LoadStep, before: u64, rows: u64, took: Duration) -> LoadProgress {
        let of = self.data.counts.total();
        #[expect(clippy::cast_precision_loss, reason = "rows of ours fit 53 bits")]
        let [done, left] = [rows as f64, of.saturating_sub(before + rows) as f64];
        let rows_per_s = done / took.as_secs_f64().max(1e-9);
        LoadProgress {
            step,
            rows: before + rows,
            of,
            rows_per_s,
            eta_s: (rows > 0).then(|| left / rows_per_s),
            workers: self.workers,
            retries: 0,
        }
    }
}
