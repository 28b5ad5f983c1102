//! What a configuration's data is now: loaded rows against the design, and what cells have added.

use tokio_postgres::Client;

use super::{
    RowCounts, expected,
    ledger::{Book, Loaded},
    part::{Part, chunks, ids_of_a_chunk},
};
use crate::{
    model::{Dialect, TargetSpec},
    target::session,
    workload::{
        error::{Doing, WorkloadError},
        schema::{Names, RECEIPTS},
    },
};

/// One table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatus {
    pub table: &'static str,
    /// Rows that a load of the scale has.
    pub due: u64,
    /// Rows of the load's own ranges that are there.
    pub loaded: u64,
    /// Rows beyond those ranges: what cells have written.
    pub grown: u64,
}

/// How a data set stands.
#[derive(Clone, Debug, PartialEq)]
pub struct DataStatus {
    /// In the order of the tables; empty where the schema has none of them.
    pub tables: Vec<TableStatus>,
    /// Whether a load has come to its end there, counts and checksums verified.
    pub is_loaded: bool,
    /// How long a fresh load takes, in seconds, at the pace of the one that ended there; `None` where
    /// none has.
    pub fresh_load_s: Option<f64>,
}

impl DataStatus {
    /// Rows that cells have added, in percent of the rows that a load has; 0 where nothing is due.
    #[must_use]
    pub fn growth_percent(&self) -> f64 {
        let sum = |of: fn(&TableStatus) -> u64| self.tables.iter().map(of).sum::<u64>();
        let (grown, due) = (sum(|table| table.grown), sum(|table| table.due));
        #[expect(clippy::cast_precision_loss, reason = "rows of ours fit 53 bits")]
        let percent = 100.0 * grown as f64 / (due.max(1)) as f64;
        percent
    }
}

/// Counts in the database what a load of this scale and what cells have put there.
///
/// # Errors
/// When the scale is out of range, or the database cannot be reached or fails.
pub async fn status(target: &TargetSpec, scale: f64) -> Result<DataStatus, WorkloadError> {
    let counts = expected(scale)?;
    let names = Names::new(&target.schema);
    let client = session(target).await?;
    let Some(book) = Book::read(&client, &names).await? else {
        return Ok(DataStatus { tables: Vec::new(), is_loaded: false, fresh_load_s: None });
    };
    let counter = Counter { client: &client, names: &names, target, counts };
    let mut tables = Vec::new();
    for part in Part::ALL {
        tables.push(counter.part(part).await?);
    }
    tables.push(counter.receipts().await?);
    let loaded = book.loaded();
    Ok(DataStatus {
        tables,
        is_loaded: loaded.is_some(),
        fresh_load_s: loaded.and_then(|loaded| fresh_load_s(&counts, loaded)),
    })
}

/// `None` where the load that ended did nothing but look.
fn fresh_load_s(counts: &RowCounts, loaded: Loaded) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "rows and milliseconds of ours fit 53 bits")]
    let [ms, rows, of] = [loaded.ms, loaded.rows, counts.total()].map(|number| number as f64);
    (rows > 0.0).then(|| ms / 1e3 * of / rows)
}

struct Counter<'a> {
    client: &'a Client,
    names: &'a Names,
    target: &'a TargetSpec,
    counts: RowCounts,
}

impl Counter<'_> {
    async fn part(&self, part: Part) -> Result<TableStatus, WorkloadError> {
        let (table, key) = (self.names.of(part.table()), part.key());
        let (first, last) = part.keys(1, part.last_id(&self.counts));
        let all = self.count(&format!("SELECT count(*) FROM {table} WHERE {key} > {last}")).await?;
        let below = format!("SELECT count(*) FROM {table} WHERE {key} < {first}");
        let grown = all + self.count(&below).await?;
        let loaded = match self.target.dialect {
            Dialect::Postgres => {
                let within = format!("{key} BETWEEN {first} AND {last}");
                self.count(&format!("SELECT count(*) FROM {table} WHERE {within}")).await?
            }
            Dialect::Dsql => self.by_chunks(part).await?,
        };
        Ok(TableStatus { table: part.table().name, due: part.rows(&self.counts), loaded, grown })
    }

    /// No query may come near DSQL's time limit.
    async fn by_chunks(&self, part: Part) -> Result<u64, WorkloadError> {
        let (table, key) = (self.names.of(part.table()), part.key());
        let mut rows = 0;
        for chunk in chunks(part, &self.counts, ids_of_a_chunk(&self.counts)) {
            let (first, last) = part.keys(chunk.first, chunk.last);
            let within = format!("{key} BETWEEN {first} AND {last}");
            rows += self.count(&format!("SELECT count(*) FROM {table} WHERE {within}")).await?;
        }
        Ok(rows)
    }

    async fn receipts(&self) -> Result<TableStatus, WorkloadError> {
        let table = self.names.of(&RECEIPTS);
        let grown = self.count(&format!("SELECT count(*) FROM {table}")).await?;
        Ok(TableStatus { table: RECEIPTS.name, due: 0, loaded: 0, grown })
    }

    async fn count(&self, query: &str) -> Result<u64, WorkloadError> {
        let row = self.client.query_typed_one(query, &[]).await;
        let row = row.doing(|| format!("counting rows of schema {}", self.target.schema))?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }
}
