//! Cells: one configuration at one load level, measured and judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Calibrated, CellId, ConfigurationId, Counts, Load, PartRecordings, PerClass, Reason,
    RunnerSample, Shape, TailSums, UnixMs, Verdict,
};

/// How a cell's load came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum CellEnd {
    /// Warm-up, measured span and drain ran to their ends.
    Complete,
    /// Told to stop before the measured span was over.
    Stopped,
    /// It could not start or go on; why.
    Failed { why: String },
}

/// What the client was told was committed, warm-up and drain included; the database's receipts
/// must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    pub creates: u64,
    pub cancels: u64,
    /// Creates and cancels whose outcome could not be resolved: each may or may not have a receipt.
    pub unresolved: u64,
}

/// What the agent measured of a cell: every arrival intended inside the measured span, drained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    pub cell: CellId,
    pub end: CellEnd,
    pub started: UnixMs,
    /// When the measured span began and how long it was in seconds.
    pub measured_from: UnixMs,
    pub measured_s: f64,
    pub counts: Counts,
    pub sqlstates: BTreeMap<String, u64>,
    pub classes: PerClass<PartRecordings>,
    /// Transactions that failed, by class. An arrival that never had a connection was never drawn:
    /// it has no class, and is in the counts alone.
    #[serde(default)]
    pub failed: PerClass<u64>,
    /// Transactions whose outcome could not be resolved, by class.
    #[serde(default)]
    pub unknown: PerClass<u64>,
    pub tail: TailSums,
    pub acknowledged: Acknowledged,
    /// The generator over the measured span.
    pub runner: RunnerSample,
    /// Median time of an empty round trip on an idle connection, in ms, taken as the connections
    /// were opened.
    pub round_trip_ms: Option<f64>,
}

/// Under which conditions a cell ran; comparisons across differing ones are flagged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Runner type: an instance type, or the machine's processors and system.
    pub runner: String,
    pub zone: Option<String>,
    pub round_trip_ms: Option<f64>,
    /// Version and commit of rampdeck.
    pub build: String,
    /// Configurations that had a cell running on the same runner at the same time.
    pub beside: Vec<ConfigurationId>,
    /// The shape of its traffic.
    #[serde(default)]
    pub shape: Shape,
    /// Its load beside what the runner was calibrated for; `None` without a calibration.
    #[serde(default)]
    pub calibrated: Option<Calibrated>,
}

/// What the checks of the business found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvariantReport {
    /// How many things were checked (orders, products, receipts).
    pub checked: u64,
    pub violations: u64,
    /// The first violations in words.
    pub first: Vec<String>,
}

/// A cell as it stands in the record: what `cells/<cell>.json` and `summary.json` are made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    pub configuration: ConfigurationId,
    pub stage: String,
    /// The attempt's ordinal within the run.
    pub attempt: u64,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
    pub conditions: Conditions,
    pub result: CellResult,
    /// `None` where they could not be checked.
    pub invariants: Option<InvariantReport>,
    pub verdict: Verdict,
    pub reasons: Vec<Reason>,
}
