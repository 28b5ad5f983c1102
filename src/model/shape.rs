//! How a cell's transactions reach the database, and how its connections live.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Load;

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

impl fmt::Display for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Prepared => "prepared",
            Self::Unnamed => "unnamed",
            Self::Simple => "simple",
        })
    }
}

impl fmt::Display for RoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sequential => "sequential",
            Self::Pipelined => "pipelined",
        })
    }
}

impl fmt::Display for PoolShape {
    /// `claim`, or `pool 16 × 16 (30000 ms)`: partitions, connections of each, wait timeout.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim => f.write_str("claim"),
            Self::Pool { size, partitions, wait_timeout_ms } => {
                write!(f, "pool {partitions} × {size} ({wait_timeout_ms} ms)")
            }
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

impl fmt::Display for Shape {
    /// `prepared, sequential, claim`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.statements, self.round_trips, self.pool)
    }
}

impl Shape {
    /// Pools side by side; 1 where connections are claimed.
    #[must_use]
    pub const fn partitions(self) -> u32 {
        match self.pool {
            PoolShape::Claim => 1,
            PoolShape::Pool { partitions, .. } => partitions,
        }
    }

    /// A plan's load as it is put on in this shape: with a pool, an open loop has the pool's
    /// connections, whatever the level says.
    #[must_use]
    pub const fn applied_to(self, load: Load) -> Load {
        match (load, self.pool.connections()) {
            (Load::Open { rate, arrivals, .. }, Some(connections)) => {
                Load::Open { rate, arrivals, connections }
            }
            (load, _) => load,
        }
    }

    /// Connections that a cell of this load opens: a pool's, which the clients of a closed loop
    /// share, else one for each of the load.
    #[must_use]
    pub const fn connections(self, load: Load) -> u32 {
        match self.pool.connections() {
            Some(connections) => connections,
            None => load.connections(),
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

impl ConnectionLife {
    /// Between these shares of the greatest age a connection is replaced: early enough that a
    /// transaction that has just begun, and an opening that has to wait for its turn, still fit in.
    const REPLACED_FROM: f64 = 0.75;
    const REPLACED_TO: f64 = 0.95;

    /// The share of the greatest age (0.75 to 0.95) at which a connection is replaced, by its
    /// `spread` from 0 to 1: those that were opened together go one after the other.
    #[must_use]
    pub fn replaced_at(spread: f64) -> f64 {
        Self::REPLACED_FROM + (Self::REPLACED_TO - Self::REPLACED_FROM) * spread.clamp(0.0, 1.0)
    }

    /// DSQL's documented limits: 100 connections a second after a burst of 1,000. Below them no
    /// database is known to refuse.
    pub const DOCUMENTED: Self =
        Self { open_per_second: 100.0, open_burst: 1_000, max_age_s: None };
}

impl Default for ConnectionLife {
    fn default() -> Self {
        Self::DOCUMENTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Arrivals;

    #[test]
    fn a_pool_says_how_many_connections_an_open_loop_has() {
        let pool = PoolShape::Pool { size: 16, partitions: 16, wait_timeout_ms: 30_000 };
        let shape = Shape { pool, ..Shape::default() };
        let open = Load::Open { rate: 9.0, arrivals: Arrivals::Poisson, connections: 4 };
        let pooled = Load::Open { rate: 9.0, arrivals: Arrivals::Poisson, connections: 256 };
        assert_eq!(shape.applied_to(open), pooled);
        assert_eq!(Shape::default().applied_to(open), open);
        let closed = Load::Closed { connections: 1_000 };
        assert_eq!(shape.applied_to(closed), closed, "its clients compete for the pool");
        assert_eq!((shape.connections(closed), Shape::default().connections(closed)), (256, 1_000));
        assert_eq!(shape.to_string(), "prepared, sequential, pool 16 × 16 (30000 ms)");
    }
}
