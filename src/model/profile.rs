//! What a gate adds in front of a database, and what it and its parent say to each other.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::TargetAddress;

/// The delays of one gate. Every delay is in milliseconds and is added once for each round trip of
/// the protocol (a Sync or Query to its `ReadyForQuery`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateProfile {
    /// Network round trip, added to every round trip.
    pub round_trip_ms: f64,
    /// Added to a COMMIT of a transaction that has written.
    pub commit_write_ms: f64,
    /// Added to a COMMIT of a transaction that has only read.
    pub commit_read_ms: f64,
    /// Added to every other statement.
    pub statement_ms: f64,
    /// Spread of each added delay as a share of it (0 to 1): each is drawn uniformly from
    /// `delay * (1 - jitter)` to `delay * (1 + jitter)`.
    pub jitter: f64,
}

impl Default for GateProfile {
    fn default() -> Self {
        Self {
            round_trip_ms: 0.0,
            commit_write_ms: 0.0,
            commit_read_ms: 0.0,
            statement_ms: 0.0,
            jitter: 0.0,
        }
    }
}

/// A fault that a gate makes on purpose, to rehearse it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Seconds after the gate first saw a transaction of a cell (its first BEGIN) until the fault
    /// is in force.
    pub after_s: f64,
    /// How long it is in force, in seconds; `None`: to the end.
    pub for_s: Option<f64>,
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// What a fault does while it is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// No reply leaves until the fault is over.
    Freeze,
    /// A writing COMMIT is carried out, then the connection is cut before its reply; one in
    /// `every` of them (1: each).
    CutAfterCommit { every: u64 },
    /// A writing COMMIT is rolled back and answered with this SQLSTATE; one in `every` of them.
    FailCommit { sqlstate: String, every: u64 },
}

/// All that a gate needs to run: its parent writes it as one line of JSON to its standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The database behind the gate.
    pub upstream: TargetAddress,
    pub profile: GateProfile,
    pub faults: Vec<Fault>,
    /// Same seed, same jitter for the same order of connections.
    pub seed: u64,
}

/// A gate's first line on its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateListening {
    /// The port it listens on.
    pub listening: u16,
}

/// A gate's further lines on its standard output, one a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// Over the last second, in percent of one processor.
    pub cpu_percent: f64,
    /// Client connections open now.
    pub connections: u64,
    /// Round trips answered since the gate started.
    pub round_trips: u64,
}
