//! Counts and checksums: what the database holds against what the generator says it should.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use futures_util::future::try_join_all;
use tokio_postgres::Client;

use super::{
    encode::{Checksum, ChecksumRows},
    link::Link,
    part::{Chunk, Part, chunks, ids_of_a_chunk},
    rows::DataSet,
};
use crate::{
    model::{Dialect, TargetSpec},
    workload::{
        error::{Doing, WorkloadError},
        schema::{Kind, Names, Table},
    },
};

/// Chunks that PostgreSQL adds up by one query. DSQL does one at a time: no query may come near its
/// limits of time and memory.
const CHUNKS_AT_ONCE: i64 = 25;
/// After how many ids the checksum lets others do something.
const IDS_AT_ONCE: i64 = 4_096;

/// Verifies every part, by so many connections (1 or more). `told` hears of the rows as they are
/// verified.
pub(super) async fn verify(
    target: &TargetSpec,
    data: &DataSet,
    connections: usize,
    told: &(impl Fn(u64) + Sync),
) -> Result<(), WorkloadError> {
    let ids = ids_of_a_chunk(&data.counts)
        * if target.dialect == Dialect::Dsql { 1 } else { CHUNKS_AT_ONCE };
    let spans = Part::ALL.into_iter().flat_map(|part| chunks(part, &data.counts, ids));
    let found = Tally::new(spans.collect());
    let workers = (0..connections.max(1)).map(|_| add_up(target, data, &found, told));
    try_join_all(workers).await?;
    let mut link = Link::new(target);
    let sums = found.sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (part, sums) in Part::ALL.into_iter().zip(sums) {
        let beyond = retried(&mut link, target, &beyond_query(target, data, part)).await?;
        judge(target, data, part, sums, beyond)?;
    }
    Ok(())
}

/// The spans that are still to be added up, and the sums so far: in the database, and as due.
struct Tally {
    spans: Vec<Chunk>,
    next: AtomicU64,
    sums: Mutex<[(Checksum, Checksum); 5]>,
}

impl Tally {
    fn new(spans: Vec<Chunk>) -> Self {
        Self { spans, next: AtomicU64::new(0), sums: Mutex::default() }
    }

    fn take(&self) -> Option<Chunk> {
        let at = usize::try_from(self.next.fetch_add(1, Ordering::Relaxed)).ok()?;
        self.spans.get(at).copied()
    }

    fn add(&self, part: Part, found: Checksum, due: Checksum) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = Part::ALL.iter().position(|one| *one == part) {
            sums[at].0.add(found);
            sums[at].1.add(due);
        }
    }
}

async fn add_up(
    target: &TargetSpec,
    data: &DataSet,
    tally: &Tally,
    told: &(impl Fn(u64) + Sync),
) -> Result<(), WorkloadError> {
    let mut link = Link::new(target);
    while let Some(span) = tally.take() {
        let query = sum_query(target, span);
        // The generator's sum is made while the database makes its own.
        let (found, due) = futures_util::join!(retried(&mut link, target, &query), due(data, span));
        let found = found?;
        tally.add(span.part, found, due);
        told(found.rows);
    }
    Ok(())
}

/// What the rows of a span should add up to.
async fn due(data: &DataSet, span: Chunk) -> Checksum {
    let mut rows = ChecksumRows::default();
    for id in span.first..=span.last {
        data.write(span.part, id, &mut rows);
        if id % IDS_AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
    }
    rows.made
}

/// A row as the text that its checksum is made of; see [`Checksum`].
fn row_as_text(table: &Table) -> String {
    let columns = table.columns.iter().map(|(name, kind)| match kind {
        Kind::Text | Kind::Bytewise => (*name).to_owned(),
        Kind::Time => format!("(extract(epoch FROM {name}) * 1000000)::bigint::text"),
        Kind::Id | Kind::Ordinal | Kind::Pieces | Kind::Cents => format!("{name}::text"),
    });
    columns.collect::<Vec<_>>().join(" || '|' || ")
}

fn sum_query(target: &TargetSpec, span: Chunk) -> String {
    let table = span.part.table();
    let (first, last) = span.part.keys(span.first, span.last);
    format!(
        "SELECT count(*), coalesce(sum(('x' || left(md5({}), 15))::bit(60)::bigint), 0)::text \
         FROM {} WHERE {} BETWEEN {first} AND {last}",
        row_as_text(table),
        Names::new(&target.schema).of(table),
        span.part.key(),
    )
}

/// Rows that are not the load's.
fn beyond_query(target: &TargetSpec, data: &DataSet, part: Part) -> String {
    let (first, last) = part.keys(1, part.last_id(&data.counts));
    let (table, key) = (Names::new(&target.schema).of(part.table()), part.key());
    // Two counts, each by the index: an OR would have the whole table read.
    format!(
        "SELECT (SELECT count(*) FROM {table} WHERE {key} < {first}) + \
         (SELECT count(*) FROM {table} WHERE {key} > {last}), '0'"
    )
}

async fn retried(
    link: &mut Link<'_>,
    target: &TargetSpec,
    query: &str,
) -> Result<Checksum, WorkloadError> {
    loop {
        let asked = match link.client().await {
            Ok(client) => ask(client, target, query).await,
            Err(error) => Err(error),
        };
        match asked {
            Ok(found) => {
                link.worked();
                return Ok(found);
            }
            Err(error) => link.recover(error).await.map(|_| ())?,
        }
    }
}

async fn ask(client: &Client, target: &TargetSpec, query: &str) -> Result<Checksum, WorkloadError> {
    let row = client.query_typed_one(query, &[]).await;
    let row = row.doing(|| format!("verifying the rows of schema {}", target.schema))?;
    let sum: &str = row.get(1);
    // The server's own sum of whole numbers.
    Ok(Checksum {
        rows: row.get::<_, i64>(0).unsigned_abs(),
        sum: sum.parse().unwrap_or(u128::MAX),
    })
}

fn judge(
    target: &TargetSpec,
    data: &DataSet,
    part: Part,
    (found, due): (Checksum, Checksum),
    beyond: Checksum,
) -> Result<(), WorkloadError> {
    let (schema, table) = (target.schema.clone(), part.table().name);
    let (rows, expected) = (found.rows + beyond.rows, part.rows(&data.counts));
    if rows != expected {
        return Err(WorkloadError::Count { schema, table, found: rows, expected });
    }
    if found != due {
        return Err(WorkloadError::Checksum { schema, table });
    }
    Ok(())
}
