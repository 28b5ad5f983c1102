//! The engine: the process that owns a run, without a terminal.
//!
//! All of a run's state lives in the [`supervisor`] and changes only in its loop, fed by
//! [`input::Input`]s. Clients, the agent, the setup and the removal are tasks that talk to it
//! through channels; none of them holds run state.

mod agent;
mod calibrate;
mod cells;
mod clients;
mod commands;
mod control;
mod decisions;
mod input;
mod journal;
mod launch;
mod live;
mod machine;
mod notify;
mod queue;
mod rates;
mod records;
mod setup;
mod snapshots;
mod stages;
mod stepping;
mod supervisor;
mod teardown;
mod verdict;

pub use calibrate::{CalibrateError, CalibrateSettings, calibrate};
pub use launch::{EngineError, Launch, run};
pub use machine::machine;
pub use setup::{SchemaTargets, schema_targets, target_of};
pub use verdict::{JudgeInput, judge};

/// Version and commit of this build, as records carry it.
#[must_use]
pub fn build() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), env!("RAMPDECK_COMMIT"))
}
