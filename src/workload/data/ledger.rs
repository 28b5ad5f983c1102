//! The loader's book in the database: which data set is being loaded, which chunks are there, and
//! how long it took.
//!
//! On PostgreSQL a chunk's line is written by the transaction that copies its rows, so that both are
//! there or neither: a second copy of a chunk, even beside one whose loader has been killed and whose
//! COMMIT is still under way, waits for the first one and is then refused by the key. On DSQL the
//! line is written once all the chunk's batches are committed; the batches of a chunk without one are
//! inserted again, and rows that are there already are passed over by their keys.

use std::collections::HashSet;

use tokio_postgres::{Client, types::Type};

use super::{
    part::{Chunk, Part},
    rows::DataSet,
};
use crate::workload::{
    error::{Doing, WorkloadError},
    schema::{LOAD_CHUNKS, Names},
};

/// What a load that has ended says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    /// Rows that the process loaded which ended the load, and what all that it did took it.
    pub(super) rows: u64,
    pub(super) ms: u64,
}

/// Facts of a data set by which another one is told from it.
const DESIGN: [&str; 3] = ["design seed", "design products", "design orders"];
const ENDED_ROWS: &str = "loaded rows";
const ENDED_MS: &str = "loaded ms";

/// The name of a part's chunks in the book.
fn name(part: Part) -> &'static str {
    part.table().name
}

/// The statement that enters a chunk.
pub(super) fn enter(names: &Names, chunk: &Chunk) -> String {
    line(names, name(chunk.part), chunk.number)
}

fn line(names: &Names, part: &str, number: i64) -> String {
    format!("INSERT INTO {} (part, chunk) VALUES ('{part}', {number})", names.of(&LOAD_CHUNKS))
}

/// What the book says.
#[derive(Debug, Default)]
pub(super) struct Book(HashSet<(String, i64)>);

impl Book {
    /// Reads it; `None` where there is none: no load has begun.
    pub(super) async fn read(
        client: &Client,
        names: &Names,
    ) -> Result<Option<Self>, WorkloadError> {
        let table = names.of(&LOAD_CHUNKS);
        let doing = || format!("reading {table}");
        let there = client
            .query_typed_one("SELECT to_regclass($1) IS NOT NULL", &[(&table, Type::TEXT)])
            .await
            .doing(doing)?;
        if !there.get::<_, bool>(0) {
            return Ok(None);
        }
        let rows = client.query_typed(&format!("SELECT part, chunk FROM {table}"), &[]).await;
        let rows = rows.doing(doing)?;
        Ok(Some(Self(rows.iter().map(|row| (row.get(0), row.get(1))).collect())))
    }

    pub(super) fn has(&self, chunk: &Chunk) -> bool {
        self.0.contains(&(name(chunk.part).to_owned(), chunk.number))
    }

    fn fact(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(part, _)| part == name).map(|(_, number)| *number)
    }

    /// `None` where no load has ended.
    pub(super) fn loaded(&self) -> Option<Loaded> {
        let rows = self.fact(ENDED_ROWS)?.unsigned_abs();
        Some(Loaded { rows, ms: self.fact(ENDED_MS)?.unsigned_abs() })
    }

    /// Whether it is of this data set, or of none yet.
    pub(super) fn is_of(&self, data: &DataSet) -> bool {
        let mut facts = DESIGN.iter().zip(design(data));
        facts.all(|(name, number)| self.fact(name).is_none_or(|found| found == number))
    }
}

fn design(data: &DataSet) -> [i64; 3] {
    let counts = &data.counts;
    [data.seed.cast_signed(), counts.products.cast_signed(), counts.orders.cast_signed()]
}

/// The statements that say which data set is loaded; they may be repeated.
pub(super) fn begin(names: &Names, data: &DataSet) -> Vec<String> {
    let lines = DESIGN.iter().zip(design(data));
    lines.map(|(name, number)| repeatable(line(names, name, number))).collect()
}

/// The statements that say that a load has ended; they may be repeated.
pub(super) fn end(names: &Names, loaded: Loaded) -> [String; 2] {
    let lines = [(ENDED_MS, loaded.ms), (ENDED_ROWS, loaded.rows)];
    lines.map(|(name, number)| repeatable(line(names, name, number.cast_signed())))
}

/// The same for what is there already.
pub(super) fn repeatable(insert: String) -> String {
    insert + " ON CONFLICT DO NOTHING"
}
