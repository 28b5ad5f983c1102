//! `summary.json`: what the report and other programs read of a run. A contract: fields are added,
//! never renamed or removed, within one [`SCHEMA`].
//!
//! Times are in milliseconds and other figures in the unit their name tells, all rounded to three
//! decimals; money is a decimal string; moments are RFC 3339 in UTC. What was not measured is
//! `null`. Percentiles are of successes.

mod build;

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use super::{ReportError, folder::read_json};
use crate::model::{
    Arrivals, Basis, Blamed, Calibrated, CellId, ConfigurationId, CostLine, Counts, Money,
    PerClass, Quantiles, Reason, ResourceKind, RunId, Shape, Slo, Tps, Verdict,
};

pub(super) use build::place_cells;
pub use build::{ConfigurationInfo, SummaryInputs, build, cell_summary};

/// The version of `summary.json` that is written and read.
pub const SCHEMA: u32 = 1;

/// A run, its cells, its costs and its removal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub schema: u32,
    pub run: RunSummary,
    pub configurations: Vec<ConfigurationSummary>,
    pub cost: CostSummary,
    /// `None` before the teardown starts.
    pub teardown: Option<TeardownSummary>,
}

/// The run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    pub id: RunId,
    pub plan: String,
    pub seed: u64,
    pub started: String,
    /// `None` while the run goes on.
    pub ended: Option<String>,
    pub rehearsal: bool,
    pub build: String,
    pub slo: Slo,
}

/// One configuration and its cells, in the order in which they started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationSummary {
    pub id: ConfigurationId,
    pub kind: String,
    #[serde(default)]
    pub title: String,
    pub cost: ConfigurationCost,
    pub cells: Vec<CellSummary>,
}

/// What a configuration has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationCost {
    pub accrued: Money,
    pub basis: Basis,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    pub id: CellId,
    pub stage: String,
    pub attempt: u64,
    pub started: String,
    pub load: LoadSummary,
    pub warmup_s: f64,
    /// The measured span as planned, in seconds; rates are over what was measured of it.
    pub measure_s: f64,
    pub conditions: ConditionsSummary,
    pub counts: Counts,
    pub sqlstates: BTreeMap<String, u64>,
    pub tps: Tps,
    pub classes: PerClass<ClassSummary>,
    /// The classes merged.
    pub all: ClassSummary,
    pub tail: TailSummary,
    pub runner: RunnerSummary,
    pub invariants: InvariantSummary,
    pub verdict: Verdict,
    pub reasons: Vec<Reason>,
}

/// Which kind of loop a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    Closed,
    Open,
}

/// A cell's load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    pub kind: LoadKind,
    pub connections: u32,
    /// Arrivals per second; `None` for a closed loop.
    pub rate: Option<f64>,
    /// `None` for a closed loop.
    pub arrivals: Option<Arrivals>,
}

/// Under which conditions a cell ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConditionsSummary {
    pub runner: String,
    pub zone: Option<String>,
    pub round_trip_ms: Option<f64>,
    pub build: String,
    #[serde(default)]
    pub beside: Vec<ConfigurationId>,
    #[serde(default)]
    pub shape: Shape,
    /// `None` where the runner had no calibration.
    #[serde(default)]
    pub calibrated: Option<Calibrated>,
}

/// Latency of one transaction class, or of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// Successes.
    pub count: u64,
    pub response_ms: Quantiles,
    pub service_ms: Quantiles,
    pub connection_wait_ms: Quantiles,
    pub schedule_lag_ms: Quantiles,
    /// Response times above the recordings' ceiling, which are kept at it.
    pub overflow: u64,
    /// Technical failures. An arrival that never had a connection has no class: it is in `all`.
    #[serde(default)]
    pub failed: u64,
    /// Outcomes that could not be resolved.
    #[serde(default)]
    pub unknown: u64,
    /// Response times in which each transaction that failed, was not resolved or, in `all`, had
    /// not ended counts as one that took for ever.
    #[serde(default)]
    pub error_adjusted_ms: AdjustedQuantiles,
    /// Error-adjusted percentiles above this quantile (0 to 1) are unbounded and so `null`; `null`
    /// where none is.
    #[serde(default)]
    pub unbounded_from: Option<f64>,
}

/// Error-adjusted percentiles; `None` where unbounded or nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdjustedQuantiles {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// Means of the parts over the slowest transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailSummary {
    /// The slowest from this quantile on.
    pub percentile: f64,
    pub schedule_lag_ms: Option<f64>,
    pub connection_wait_ms: Option<f64>,
    pub service_ms: Option<f64>,
    /// Of `service_ms`: replies lay in the kernel before they were read or, where the kernel does
    /// not tell, the load thread was stalled.
    #[serde(default)]
    pub read_lag_ms: Option<f64>,
    /// Of `connection_wait_ms`: the database held the connection longer than it ordinarily does.
    #[serde(default)]
    pub wait_on_database_ms: Option<f64>,
    /// Of `connection_wait_ms`: the generator was late to use or to free the connection.
    #[serde(default)]
    pub wait_on_generator_ms: Option<f64>,
    /// Whoever made the largest part: the generator `schedule_lag_ms`, `read_lag_ms` and
    /// `wait_on_generator_ms`; the database the rest of `service_ms` and `wait_on_database_ms`; the
    /// pool the rest of `connection_wait_ms`.
    pub blamed: Blamed,
    /// The same in words; empty where there is no tail.
    #[serde(default)]
    pub words: String,
}

/// The generator over the measured span.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunnerSummary {
    /// Of the processors that the agent may use, 0 to 100.
    pub cpu_percent: f64,
    pub host_cpu_percent: Option<f64>,
    pub loop_lag_ms: Quantiles,
    /// Of every reply that was read; all `null` where the kernel does not tell.
    #[serde(default)]
    pub read_lag_ms: Quantiles,
    pub rss_mib: f64,
    #[serde(default)]
    pub processors: u32,
    #[serde(default)]
    pub threads: Vec<ThreadSummary>,
}

/// One load thread over the measured span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// The thread is named `load-<thread>`.
    pub thread: u32,
    pub loop_lag_ms: Quantiles,
    /// How often its loop came round 10 ms late or more.
    pub stalls: u64,
}

/// What the checks of the business found; `checked` is 0 where they could not be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvariantSummary {
    pub checked: u64,
    pub violations: u64,
    pub first: Vec<String>,
}

/// Money over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostSummary {
    pub currency: String,
    pub accrued: Money,
    /// What meters have not yet published, lowest and highest.
    pub unpublished: (Money, Money),
    pub projected: Money,
    pub guard: Money,
    pub cap: Money,
    pub basis: Basis,
    pub lines: Vec<CostLine>,
}

/// The removal of what the run made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeardownSummary {
    pub started: String,
    /// `None` while it runs, or where its engine did not live to the end of it.
    pub ended: Option<String>,
    pub remaining_count: u64,
    pub remaining: Vec<RemainingItem>,
}

/// A thing that a teardown has not removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingItem {
    pub kind: ResourceKind,
    pub id: String,
    pub state: String,
    /// Empty where nothing is known.
    pub why: String,
}

/// Reads a `summary.json`.
///
/// # Errors
/// When it cannot be read, is not a summary, or has a schema that is not ours.
pub fn read(path: &Path) -> Result<Summary, ReportError> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let Versioned { schema } = read_json(path)?;
    if schema != SCHEMA {
        return Err(ReportError::Schema { path: path.to_owned(), found: schema, allowed: SCHEMA });
    }
    read_json(path)
}

#[cfg(test)]
mod tests;
