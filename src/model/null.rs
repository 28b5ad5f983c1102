//! What the null endpoint is told: how late it answers, and with which rows.

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// All that a null endpoint needs to run as a process: its parent writes it as one line of JSON to
/// its standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullConfig {
    /// A loopback address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to listen on a Unix socket as well: `directory/.s.PGSQL.port`.
    #[serde(default)]
    pub unix_directory: Option<PathBuf>,
    /// From a request's arrival to its reply, each round trip, in ms.
    #[serde(default)]
    pub round_trip_ms: f64,
    /// Added to the COMMIT of a transaction that has written, in ms.
    #[serde(default)]
    pub commit_write_ms: f64,
    /// Event loops, each on a thread of its own; `None`: one for each processor.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Tried in order, the first that fits is given. A statement that none fits has no rows.
    #[serde(default)]
    pub answers: Vec<NullAnswer>,
}

/// The null endpoint's first line on its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NullListening {
    /// The port it listens on.
    pub listening: u16,
}

/// The null endpoint's further lines on its standard output, one a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NullReport {
    /// Over the last second, in percent of one processor.
    pub cpu_percent: f64,
    /// Connections that have begun a session since the endpoint started.
    pub sessions: u64,
    /// Round trips answered since the endpoint started.
    pub round_trips: u64,
    /// Transactions committed since the endpoint started.
    pub commits: u64,
}

/// The rows of one statement.
///
/// Its *arguments* are what stands in the statement's text after the fragment that was matched, in
/// this order and counted from 0: parameters (`$1`), whole numbers, and lists of both
/// (`ARRAY[1, $2]`, `'{1,2}'`). So the same answer serves a statement that is prepared and one
/// with its values written in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullAnswer {
    pub to: NullStatement,
    pub columns: Vec<NullColumn>,
    pub rows: NullRows,
}

/// Which statements an answer is for, by a part of their text, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NullStatement {
    StartsWith(String),
    Contains(String),
}

/// How many rows an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NullRows {
    Fixed(u32),
    /// `rows` for each element of a list.
    PerElement {
        /// The argument that is the list. Where it is none, it counts as one element.
        argument: usize,
        rows: u32,
    },
}

/// One column of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: NullType,
    pub value: NullValue,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NullType {
    Int4,
    Int8,
    Text,
    Timestamptz,
}

/// Where a column's value comes from. What should be a whole number and is not, or is not there,
/// is 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NullValue {
    /// Always this; for a `timestamptz` a time such as `2026-01-31 12:00:00+00`.
    Fixed(String),
    /// The argument with this number, a whole number. Not for a `timestamptz`.
    Argument(usize),
    /// The element of the list that the row belongs to. Not for a `timestamptz`.
    Element,
    /// The row's number, from 1 on, among those of its element. Not for a `timestamptz`.
    RowNumber,
}
