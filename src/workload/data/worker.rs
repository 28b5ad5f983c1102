//! The workers: each takes one chunk after the other and has it in the database, whatever happens to
//! its connection.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::SinkExt;
use tokio_postgres::Client;

use super::{
    encode::{CopyRows, InsertRows},
    ledger,
    link::{Link, is_there},
    part::Chunk,
    pressure::Pressure,
    rows::DataSet,
};
use crate::{
    model::{Dialect, TargetSpec},
    workload::{
        error::{Doing, WorkloadError},
        schema::{Names, Table},
    },
};

/// What is sent of a COPY at once.
const COPY_BYTES: usize = 64 * 1024;
/// An INSERT is not longer, far below the 10 MiB that DSQL takes in a transaction.
const INSERT_BYTES: usize = 1024 * 1024;
/// How long another loader's transaction on the same chunk is waited for at once, as the server reads
/// it: one whose machine has gone may stay for hours.
const PATIENCE: &str = "20s";
/// How often a worker that has to wait looks whether it may go on.
const LOOK: Duration = Duration::from_millis(50);

/// What the workers of a load share.
pub(super) struct Work<'a> {
    target: &'a TargetSpec,
    names: Names,
    data: DataSet,
    queue: Mutex<VecDeque<Chunk>>,
    pressure: Mutex<Pressure>,
    /// Rows that this load has put into the database.
    pub(super) rows: AtomicU64,
    pub(super) retries: AtomicU64,
}

impl<'a> Work<'a> {
    /// The chunks that are still to be loaded, by at most so many workers (1 or more).
    pub(super) fn new(
        target: &'a TargetSpec,
        data: DataSet,
        chunks: impl Iterator<Item = Chunk>,
        workers: usize,
    ) -> Self {
        Self {
            target,
            names: Names::new(&target.schema),
            data,
            queue: Mutex::new(chunks.collect()),
            pressure: Mutex::new(Pressure::new(workers)),
            rows: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        }
    }

    /// How many workers may take a further chunk now.
    pub(super) fn workers(&self) -> usize {
        locked(&self.pressure).workers()
    }

    /// What one worker does: it ends when no chunk is left. `told` is called whenever rows are in the
    /// database.
    pub(super) async fn run(
        &self,
        worker: usize,
        told: &(impl Fn() + Sync),
    ) -> Result<(), WorkloadError> {
        let mut link = Link::new(self.target);
        while let Some(chunk) = self.next(worker).await {
            match self.target.dialect {
                Dialect::Postgres => self.copy_chunk(&mut link, &chunk, told).await?,
                Dialect::Dsql => self.insert_chunk(&mut link, &chunk, told).await?,
            }
        }
        Ok(())
    }

    async fn next(&self, worker: usize) -> Option<Chunk> {
        while !locked(&self.queue).is_empty() {
            if locked(&self.pressure).allows(worker) {
                return locked(&self.queue).pop_front();
            }
            tokio::time::sleep(LOOK).await;
        }
        None
    }

    fn loaded(&self, link: &mut Link<'_>, rows: u64, told: &impl Fn()) {
        link.worked();
        locked(&self.pressure).eased();
        self.rows.fetch_add(rows, Ordering::Relaxed);
        told();
    }

    async fn recover(
        &self,
        link: &mut Link<'_>,
        error: WorkloadError,
    ) -> Result<(), WorkloadError> {
        link.recover(error).await?;
        locked(&self.pressure).strained();
        self.retries.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The whole chunk with its line in the book by one transaction.
    async fn copy_chunk(
        &self,
        link: &mut Link<'_>,
        chunk: &Chunk,
        told: &impl Fn(),
    ) -> Result<(), WorkloadError> {
        loop {
            let copied = match link.client().await {
                Ok(client) => self.copy(client, chunk).await,
                Err(error) => Err(error),
            };
            match copied {
                Ok(rows) => {
                    self.loaded(link, rows, told);
                    return Ok(());
                }
                Err(error) => self.recover(link, error).await?,
            }
        }
    }

    /// The number of rows, whether this call or an earlier one has copied them.
    async fn copy(&self, client: &Client, chunk: &Chunk) -> Result<u64, WorkloadError> {
        let doing = || doing(self.target, chunk.part.table());
        // Who else is copying this chunk is waited for here.
        let enter = ledger::enter(&self.names, chunk);
        let begin = format!("BEGIN; SET LOCAL lock_timeout = '{PATIENCE}'; {enter}");
        let entered = client.batch_execute(&begin).await;
        let done = match entered {
            Err(error) if is_there(&error) => Err(Ok(chunk.rows())),
            Err(error) => Err(Err(error)),
            Ok(()) => self.copy_rows(client, chunk).await.map_err(Err),
        };
        match done {
            Ok(rows) => {
                client.batch_execute("COMMIT").await.doing(doing)?;
                Ok(rows)
            }
            Err(outcome) => {
                // Where the connection is gone, so is its transaction.
                let _ = client.batch_execute("ROLLBACK").await;
                outcome.doing(doing)
            }
        }
    }

    async fn copy_rows(
        &self,
        client: &Client,
        chunk: &Chunk,
    ) -> Result<u64, tokio_postgres::Error> {
        let table = chunk.part.table();
        let statement = format!(
            "COPY {} ({}) FROM STDIN WITH (FORMAT binary)",
            self.names.of(table),
            columns(table)
        );
        let mut sink = pin!(client.copy_in(&statement).await?);
        let (mut buffer, mut rows) = (CopyRows::new(), 0);
        for id in chunk.first..=chunk.last {
            rows += self.data.write(chunk.part, id, &mut buffer);
            if buffer.len() >= COPY_BYTES {
                sink.send(buffer.take()).await?;
            }
        }
        buffer.trailer();
        sink.send(buffer.take()).await?;
        sink.finish().await?;
        Ok(rows)
    }

    /// The chunk by batches that may each be repeated, then its line in the book.
    async fn insert_chunk(
        &self,
        link: &mut Link<'_>,
        chunk: &Chunk,
        told: &impl Fn(),
    ) -> Result<(), WorkloadError> {
        let mut next = chunk.first;
        while next <= chunk.last {
            // Made anew for each try: a batch that was too much is followed by a smaller one.
            let batch = self.batch(chunk, next);
            match self.execute(link, chunk, &batch.statement).await {
                Ok(()) => {
                    next = batch.next;
                    self.loaded(link, batch.rows, told);
                }
                Err(error) => self.recover(link, error).await?,
            }
        }
        let enter = ledger::repeatable(ledger::enter(&self.names, chunk));
        while let Err(error) = self.execute(link, chunk, &enter).await {
            self.recover(link, error).await?;
        }
        Ok(())
    }

    async fn execute(
        &self,
        link: &mut Link<'_>,
        chunk: &Chunk,
        statement: &str,
    ) -> Result<(), WorkloadError> {
        let client = link.client().await?;
        let done = client.batch_execute(statement).await;
        done.doing(|| doing(self.target, chunk.part.table()))
    }

    fn batch(&self, chunk: &Chunk, first: i64) -> Batch {
        let table = chunk.part.table();
        let insert = format!("INSERT INTO {} ({}) VALUES", self.names.of(table), columns(table));
        let most = locked(&self.pressure).rows() as u64;
        let (mut values, mut rows, mut next) = (InsertRows::new(insert), 0, first);
        while next <= chunk.last && rows < most && values.len() < INSERT_BYTES {
            rows += self.data.write(chunk.part, next, &mut values);
            next += 1;
        }
        Batch { statement: values.into_statement(" ON CONFLICT DO NOTHING"), rows, next }
    }
}

struct Batch {
    statement: String,
    rows: u64,
    /// The id that the next batch begins with.
    next: i64,
}

fn columns(table: &Table) -> String {
    table.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn doing(target: &TargetSpec, table: &Table) -> String {
    format!("loading table {} of schema {}", table.name, target.schema)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
