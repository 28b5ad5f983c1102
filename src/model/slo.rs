//! Service level objectives.

use serde::{Deserialize, Serialize};

use super::Class;

/// The latency limits of one kind of transaction, in milliseconds of response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyObjective {
    pub p95_ms: f64,
    pub p99_ms: f64,
}

/// What a cell must hold to pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    pub read: LatencyObjective,
    pub write: LatencyObjective,
    /// The largest share of technical failures among completed transactions, in percent.
    pub failed_percent: f64,
}

impl Slo {
    /// The limits that a class is held to.
    #[must_use]
    pub const fn of(&self, class: Class) -> LatencyObjective {
        if class.is_write() { self.write } else { self.read }
    }
}

impl Default for Slo {
    /// The SLO of the published experiments: reads 50/100 ms, writes 100/200 ms, 0.1 % failures.
    fn default() -> Self {
        Self {
            read: LatencyObjective { p95_ms: 50.0, p99_ms: 100.0 },
            write: LatencyObjective { p95_ms: 100.0, p99_ms: 200.0 },
            failed_percent: 0.1,
        }
    }
}
