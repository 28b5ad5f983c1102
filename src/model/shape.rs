//! How a cell's transactions reach the database, and how its connections live.

use serde::{Deserialize, Serialize};

/// How a statement goes over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statements {
    /// Prepared once on each connection, then bound and executed.
    #[default]
    Prepared,
    /// Parsed, bound and executed each time: what a pooler that multiplexes transactions and a
    /// driver without a statement cache do.
    Unnamed,
    /// As text with its values written in it, in the simple protocol.
    Simple,
}

/// How many statements travel together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundTrips {
    /// Each statement waits for the reply to the one before it, as most applications do.
    #[default]
    Sequential,
    /// Statements that do not need each other's results travel in one round trip.
    Pipelined,
}

/// How an arrival gets its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PoolShape {
    /// A connection that is free takes the next arrival, whichever thread it is on.
    #[default]
    Claim,
    /// An application's pool: each arrival belongs to one of `partitions` and waits for one of the
    /// `size` connections of that partition, however idle the others are.
    Pool {
        /// Connections of one partition (1 or more).
        size: u32,
        /// Pools side by side, such as one in each process of an application (1 or more).
        partitions: u32,
        /// How long an arrival waits for a connection before it fails as `pool_timeout`, in ms.
        wait_timeout_ms: u64,
    },
}

impl PoolShape {
    /// Connections of all partitions together; `None` where a cell's load says how many.
    #[must_use]
    pub const fn connections(self) -> Option<u32> {
        match self {
            Self::Claim => None,
            Self::Pool { size, partitions, .. } => Some(size.saturating_mul(partitions)),
        }
    }
}

/// The shape of a cell's traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub statements: Statements,
    pub round_trips: RoundTrips,
    pub pool: PoolShape,
}

impl Shape {
    /// Pools side by side; 1 where connections are claimed.
    #[must_use]
    pub const fn partitions(&self) -> u32 {
        match self.pool {
            PoolShape::Claim => 1,
            PoolShape::Pool { partitions, .. } => partitions,
        }
    }
}

/// How a configuration's connections are opened, replaced and retired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionLife {
    /// Connections opened per second, once the burst is used up (above 0).
    pub open_per_second: f64,
    /// Connections opened at once before the rate applies (1 or more).
    pub open_burst: u32,
    /// A connection is replaced before it gets this old, in seconds; `None`: it is kept.
    pub max_age_s: Option<f64>,
}

impl Default for ConnectionLife {
    /// DSQL's documented limits: 100 connections a second after a burst of 1,000. Below them no
    /// database is known to refuse.
    fn default() -> Self {
        Self { open_per_second: 100.0, open_burst: 1_000, max_age_s: None }
    }
}
