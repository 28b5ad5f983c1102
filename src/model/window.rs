//! Windows: one second of a cell, counted by completion.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    CellId, ConfigurationId, PartRecordings, PerClass, Quantiles, Recording, TailParts, TailSums,
    UnixMs,
};

/// Where a cell is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Connections are being opened; nothing is offered yet.
    Opening,
    WarmUp,
    Measure,
    /// No new arrivals; those in flight come to their end.
    Drain,
}

/// What happened to transactions. In a window they count by completion, in a cell by the arrival's
/// intended time; both obey the identities of [`Counts::violated_identity`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Arrivals: intended starts that fell due (open loop) or were made (closed loop).
    pub offered: u64,
    /// Transactions that came to an end, whatever it was.
    pub completed: u64,
    pub succeeded: u64,
    /// Ended as the business rules say (no stock, nothing to cancel): neither success nor failure.
    pub business_rejected: u64,
    /// Ended by a technical failure.
    pub failed: u64,
    /// COMMIT was sent, its reply was lost, and the look-up could not tell.
    pub unknown: u64,
    /// Completed as failed without a single attempt (no connection within the limit).
    pub never_attempted: u64,
    /// Arrivals refused because the backlog's bound was reached; never completed.
    pub shed: u64,
    /// Arrivals not yet ended when the count was closed.
    pub in_flight: u64,
    /// Tries of transactions that completed, first ones and retries.
    pub attempts: u64,
    pub retries: u64,
}

impl Counts {
    /// Adds another count, leaving `in_flight` as it is (it is a level, not a sum).
    pub const fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.completed += other.completed;
        self.succeeded += other.succeeded;
        self.business_rejected += other.business_rejected;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.never_attempted += other.never_attempted;
        self.shed += other.shed;
        self.attempts += other.attempts;
        self.retries += other.retries;
    }

    /// The first identity that does not hold, in words; `in_flight_before` is what was in flight
    /// when the count was opened (0 for a cell).
    #[must_use]
    pub fn violated_identity(&self, in_flight_before: u64) -> Option<String> {
        let ended = self.succeeded + self.business_rejected + self.failed + self.unknown;
        if self.completed != ended {
            return Some(format!(
                "completed {} is not succeeded + business-rejected + failed + unknown = {ended}",
                self.completed
            ));
        }
        let came = in_flight_before + self.offered;
        let went = self.completed + self.shed + self.in_flight;
        if came != went {
            return Some(format!(
                "in flight before + offered = {came} is not completed + shed + in flight = {went}"
            ));
        }
        let attempts = (self.completed + self.retries).checked_sub(self.never_attempted);
        if attempts != Some(self.attempts) {
            return Some(format!(
                "attempts {} is not completed {} - never attempted {} + retries {}",
                self.attempts, self.completed, self.never_attempted, self.retries
            ));
        }
        None
    }
}

/// The generator's own state over about a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunnerSample {
    /// The agent's CPU time over the processors it may use, in percent (0 to 100).
    pub cpu_percent: f64,
    /// The whole machine's, in percent (0 to 100); `None` where the system does not tell.
    pub host_cpu_percent: Option<f64>,
    /// Resident memory of the agent in MiB.
    pub rss_mib: f64,
    /// How many processors the agent may use.
    pub processors: u32,
    /// How late the load threads' own event loops were.
    pub loop_lag: Recording,
    /// How long each reply lay in the kernel before it was read; empty where the kernel does not
    /// tell.
    #[serde(default)]
    pub read_lag: Recording,
    /// Each load thread by itself: a stall of one of several hardly shows in their sum.
    #[serde(default)]
    pub threads: Vec<ThreadSample>,
}

/// How late one load thread's event loop was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSample {
    /// The thread is named `load-<thread>`, from 0.
    pub thread: u32,
    /// Over all the moments at which the loop should have come round.
    pub loop_lag: Quantiles,
    /// How often the loop came round more than [`ThreadSample::STALL_NS`] late.
    pub stalls: u64,
}

impl ThreadSample {
    /// From here on a loop's lateness counts as a stall: 10 ms, in nanoseconds.
    pub const STALL_NS: u64 = 10_000_000;
}

/// One second of one cell, as the agent gives it to the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub cell: CellId,
    pub configuration: ConfigurationId,
    /// 0 for the cell's first window, then rising by one without a gap.
    pub seq: u64,
    pub phase: Phase,
    pub start: UnixMs,
    /// About one second; the last window of a phase may be shorter.
    pub length_s: f64,
    pub in_flight_before: u64,
    pub counts: Counts,
    /// Errors seen by attempts, SQLSTATE or one of our own names (`pool_timeout`,
    /// `connection_lost`, `timeout`) to count.
    pub sqlstates: BTreeMap<String, u64>,
    pub classes: PerClass<PartRecordings>,
    /// As [`CellResult::failed`](super::CellResult::failed).
    #[serde(default)]
    pub failed: PerClass<u64>,
    /// As [`CellResult::unknown`](super::CellResult::unknown).
    #[serde(default)]
    pub unknown: PerClass<u64>,
    pub tail: TailSums,
    /// Live connections of the cell at the window's end.
    pub connections: u32,
    pub runner: RunnerSample,
}

/// What the console draws of a window: figures only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowPoint {
    pub cell: CellId,
    pub seq: u64,
    pub phase: Phase,
    pub at: UnixMs,
    pub offered: f64,
    pub achieved: f64,
    pub succeeded: f64,
    pub failed: f64,
    /// p95 and p99 response time in ms, `None` where the class had no success in the window.
    pub p95_ms: PerClass<Option<f64>>,
    pub p99_ms: PerClass<Option<f64>>,
    pub connection_wait_p99_ms: Option<f64>,
    /// Means of the parts over the slowest 1 % of the window.
    #[serde(default)]
    pub tail: Option<TailParts>,
    /// Tries beyond the first, per second.
    #[serde(default)]
    pub retries: f64,
    pub runner_cpu_percent: f64,
}
