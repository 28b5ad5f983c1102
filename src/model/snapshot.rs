//! The run as a console sees it: everything but the history of the charts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Basis, CellId, ConfigurationId, Decision, Event, Load, Money, PerClass, Phase, Reason,
    Resource, RunId, Slo, TailParts, TeardownStatus, UnixMs, Verdict, WindowPoint,
};

/// What does not change during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    pub id: RunId,
    pub plan: String,
    /// Latency is added and prices are simulated.
    pub rehearsal: bool,
    pub build: String,
    pub seed: u64,
    pub started: UnixMs,
    pub slo: Slo,
    /// Highest rate the plan allows an operator to step to, arrivals per second.
    pub max_rate: f64,
}

/// What the run as a whole is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// Making resources and loading data; what exactly, in words.
    SettingUp {
        step: String,
    },
    Running,
    /// No new cells of the plan start.
    Paused,
    /// The plan is done or was stopped; resources stay until the deadline of the last decision.
    Holding,
    TearingDown,
    Ended {
        exit_code: u8,
    },
}

/// Where the plan is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageStatus {
    pub name: String,
    /// From 1.
    pub index: usize,
    pub of: usize,
}

/// Arrivals or transactions per second over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tps {
    pub offered: f64,
    /// Completed per second.
    pub achieved: f64,
    pub succeeded: f64,
}

/// What one configuration is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConfigurationState {
    /// What is being made, in words.
    SettingUp {
        step: String,
    },
    Idle,
    /// A cell runs: its phase, seconds into it and its whole length (0 where it has none).
    Cell {
        phase: Phase,
        elapsed_s: u64,
        total_s: u64,
    },
    /// The cell's load has ended; its invariants are being checked.
    Checking,
    /// Taken out of the plan.
    Removed,
    Failed {
        why: String,
    },
}

/// Response-time percentiles of a class in ms; `None` where there was no success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassLatency {
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub count: u64,
}

/// A running cell, figures over its last seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveCell {
    pub id: CellId,
    pub stage: String,
    pub attempt: u64,
    pub load: Load,
    /// Over the last window.
    pub tps: Tps,
    /// Over the last ten windows of the cell's current phase.
    pub classes: PerClass<ClassLatency>,
    pub connection_wait_p99_ms: Option<f64>,
    /// Means of the parts over the slowest 1 % of the last ten windows.
    pub tail: Option<TailParts>,
    /// Over the cell so far, in percent of attempts and of completed transactions.
    pub retry_percent: f64,
    pub failed_percent: f64,
    pub rejected_percent: f64,
    /// Errors that attempts saw over the cell so far: SQLSTATE or one of our own names to count.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    pub in_flight: u64,
    /// When the last window ended; older figures look stale.
    pub window_at: Option<UnixMs>,
}

/// The last cell that ended on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastCell {
    pub id: CellId,
    pub stage: String,
    pub load: Load,
    pub tps: Tps,
    pub classes: PerClass<ClassLatency>,
    pub connection_wait_p99_ms: Option<f64>,
    pub tail: Option<TailParts>,
    pub retry_percent: f64,
    pub failed_percent: f64,
    /// Errors that attempts saw, as in [`LiveCell::errors`].
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    pub verdict: Verdict,
    pub reasons: Vec<Reason>,
}

/// A gate's own state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GateStatus {
    /// Percent of one processor.
    pub cpu_percent: f64,
    /// The round trip it adds, in ms.
    pub round_trip_ms: f64,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationStatus {
    pub id: ConfigurationId,
    pub title: String,
    /// `lab` or `postgres`.
    pub kind: String,
    pub state: ConfigurationState,
    pub cell: Option<LiveCell>,
    pub last: Option<LastCell>,
    /// Cells that wait for this configuration.
    pub queued: u32,
    pub cells_done: u32,
    pub accrued: Money,
    pub per_hour: Money,
    pub gate: Option<GateStatus>,
    /// A ramp under way.
    #[serde(default)]
    pub ramp: Option<RampStatus>,
    /// The rate before the last step, which an undo goes back to.
    #[serde(default)]
    pub undo_rate: Option<f64>,
    /// The newest window, for the charts; the console appends it to its history by cell and `seq`.
    pub point: Option<WindowPoint>,
}

/// What the guard has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardState {
    #[default]
    Ok,
    /// Four fifths of the guard's threshold are reached.
    Warn,
    /// No new cells start.
    NoNewCells,
    /// The guard's threshold is reached: teardown.
    Teardown,
}

/// Money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostStatus {
    pub accrued: Money,
    /// What meters have not yet published, lowest and highest.
    pub unpublished: (Money, Money),
    pub per_hour: Money,
    /// At the end of the plan.
    pub projected: Money,
    pub guard: Money,
    pub cap: Money,
    pub basis: Basis,
    pub state: GuardState,
}

/// The load agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentStatus {
    pub pid: Option<u32>,
    pub processors: u32,
    pub cpu_percent: f64,
    pub host_cpu_percent: Option<f64>,
    pub rss_mib: f64,
    /// Of the load thread that was latest over the last second.
    pub loop_lag_p99_ms: Option<f64>,
    pub at: Option<UnixMs>,
}

/// A rate on its way to another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampStatus {
    pub to: f64,
    /// Steps done, of how many.
    pub step: u32,
    pub of: u32,
    pub next_at: UnixMs,
}

/// A cell that waits for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedCell {
    /// Unique within the run.
    pub number: u64,
    pub configuration: ConfigurationId,
    pub stage: String,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
    /// About how long it takes with opening, drain and checks, in seconds.
    pub takes_s: f64,
    /// About what its attempts and its configuration's time add to the bill.
    pub spends: Money,
    /// Whether the plan wants it; otherwise an operator asked for it.
    pub planned: bool,
}

/// A console that is attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleStatus {
    /// From 1, unique within the run.
    pub number: u32,
    /// Who is there, for example `anna on pts/3`.
    pub name: String,
    pub since: UnixMs,
}

/// Who drives the run, and who watches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlStatus {
    pub consoles: Vec<ConsoleStatus>,
    /// Number of the console that drives; the first one to come.
    pub holder: Option<u32>,
    /// Number of the console that asks for control, and when it gets it without an answer.
    pub asked: Option<(u32, UnixMs)>,
}

/// The run at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub header: RunHeader,
    /// Rising by one.
    pub seq: u64,
    pub at: UnixMs,
    pub engine_pid: u32,
    pub engine_rss_mib: f64,
    pub state: RunState,
    pub stage: Option<StageStatus>,
    pub configurations: Vec<ConfigurationStatus>,
    pub decision: Option<Decision>,
    pub cost: CostStatus,
    pub agent: AgentStatus,
    pub resources: Vec<Resource>,
    pub teardown: Option<TeardownStatus>,
    pub control: ControlStatus,
    /// Cells that wait, in the order in which they are to start; the plan's later stages too.
    pub queue: Vec<QueuedCell>,
    /// The newest events, oldest first, at most 50.
    pub recent: Vec<Event>,
}
