//! Plain values that cross a boundary between rooms or processes.
//!
//! Everything here can be written to a frame, the journal or `summary.json`. This room knows no
//! other room of ours: every other room knows it.

mod calibration;
mod cell;
mod class;
mod command;
mod cost;
mod decision;
mod dialect;
mod event;
mod ids;
mod load;
mod money;
mod null;
mod order;
mod profile;
mod recording;
mod resource;
mod secret;
mod shape;
mod slo;
mod snapshot;
mod tail;
mod time;
mod verdict;
mod window;

pub use calibration::{Calibrated, Calibration, ConnectionCost, Machine, StartLag, Throughput};
pub use cell::{Acknowledged, CellEnd, CellRecord, CellResult, Conditions, InvariantReport};
pub use class::{Class, PerClass};
pub use command::{Command, RateStep, When};
pub use cost::CostLine;
pub use decision::{Decision, DecisionAction, DecisionOption};
pub use dialect::Dialect;
pub use event::{Event, EventKind, Level};
pub use ids::{CellId, ConfigurationId, RunId};
pub use load::{Arrivals, Load};
pub use money::{Basis, Money};
pub use null::{
    NullAnswer, NullColumn, NullConfig, NullListening, NullReport, NullRows, NullStatement,
    NullType, NullValue,
};
pub use order::{
    AgentCommand, AgentReport, AttemptRange, AwsCredential, CellOrder, DsqlToken, Mix,
    PasswordCommand, PasswordSource, RetryPolicy, TargetAddress, TargetSpec, TlsMode, WorkloadSpec,
};
pub use profile::{Fault, FaultKind, GateConfig, GateListening, GateProfile, GateReport};
pub use recording::{
    ErrorAdjusted, HIGHEST_TRACKABLE_NS, LOWEST_DISCERNIBLE_NS, Part, PartRecordings, Quantiles,
    Recording, SIGNIFICANT_DIGITS,
};
pub use resource::{
    ProcessIdentity, Resource, ResourceKind, ResourceState, TeardownItem, TeardownStatus,
};
pub use secret::Secret;
pub use shape::{ConnectionLife, PoolShape, RoundTrips, Shape, Statements};
pub use slo::{LatencyObjective, Slo};
pub use snapshot::{
    AgentStatus, ClassLatency, ConfigurationState, ConfigurationStatus, ConsoleStatus,
    ControlStatus, CostStatus, GateStatus, GuardState, LastCell, LiveCell, QueuedCell, RampStatus,
    RunHeader, RunState, Snapshot, StageStatus, Tps,
};
pub use tail::{Blamed, ResponseParts, TailParts, TailSums};
pub use time::{UnixMs, format_clock, format_duration, monotonic_ns};
pub use verdict::{Reason, ReasonCode, Verdict};
pub use window::{Counts, Phase, RunnerSample, ThreadSample, Window, WindowPoint};
