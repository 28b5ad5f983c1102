//! What an operator can ask of the engine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CellId, ConfigurationId, Load};

/// When a cell that the operator starts begins, if its configuration is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At once: the running cell is stopped (and kept as INVALID where it had not measured fully).
    #[default]
    Now,
    /// After the running cell.
    After,
}

/// A change of an open loop's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum RateStep {
    /// Multiply (1.1 for 10 % up, 2 for doubling, 0.5 for halving).
    Times { factor: f64 },
    /// Go to a rate, arrivals per second.
    To { rate: f64 },
}

/// A command. The engine answers each with done or a refusal that says why and what is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    StartCell {
        configuration: ConfigurationId,
        load: Load,
        warmup_s: f64,
        measure_s: f64,
        when: When,
    },
    StopCell {
        configuration: ConfigurationId,
    },
    /// Ends the running open cell and starts the next one at the new rate.
    StepRate {
        configuration: ConfigurationId,
        step: RateStep,
    },
    /// Moves the running open cell's rate to `to` arrivals per second within `over_s` seconds, in
    /// equal steps, each a cell of its own.
    Ramp {
        configuration: ConfigurationId,
        to: f64,
        over_s: f64,
    },
    /// Ends a ramp at the rate that it has reached.
    HoldRate {
        configuration: ConfigurationId,
    },
    /// Goes back to the rate before the last step.
    UndoStep {
        configuration: ConfigurationId,
    },
    /// Runs a cell that has ended or runs once more, after what waits on its configuration.
    RepeatCell {
        cell: CellId,
    },
    /// Changes places with the cell that waits before (or after) it.
    MoveCell {
        /// Its number in [`super::QueuedCell`].
        cell: u64,
        earlier: bool,
    },
    /// Takes a cell that waits out of the queue.
    DropCell {
        cell: u64,
    },
    /// A watching console wants to drive the run.
    AskControl,
    /// The console that holds control hands it to the one that asked.
    GiveControl,
    /// The console that holds control keeps it.
    KeepControl,
    /// No new cells of the plan start; running ones go on.
    Pause,
    Resume,
    /// Answer a pending decision with one of its options' keys.
    Answer {
        decision: String,
        option: String,
    },
    /// Put a pending decision's deadline off by this many seconds.
    Extend {
        decision: String,
        seconds: u64,
    },
    /// End every cell and the plan, keep the resources.
    Stop,
    /// Remove everything the run made. `confirm` is the run's name, typed.
    Teardown {
        confirm: String,
    },
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartCell { configuration, load, when, .. } => {
                write!(f, "start {configuration} {load}")?;
                if *when == When::After { f.write_str(" after the running cell") } else { Ok(()) }
            }
            Self::StopCell { configuration } => write!(f, "stop cell on {configuration}"),
            Self::StepRate { configuration, step: RateStep::Times { factor } } => {
                write!(f, "step rate of {configuration} × {factor}")
            }
            Self::StepRate { configuration, step: RateStep::To { rate } } => {
                write!(f, "rate of {configuration} to {rate}/s")
            }
            Self::Ramp { configuration, to, over_s } => {
                write!(f, "ramp {configuration} to {to}/s over {over_s} s")
            }
            Self::HoldRate { configuration } => write!(f, "hold the rate of {configuration}"),
            Self::UndoStep { configuration } => write!(f, "undo the last step of {configuration}"),
            Self::RepeatCell { cell } => write!(f, "repeat {cell}"),
            Self::MoveCell { cell, earlier } => {
                write!(f, "move queued cell {cell} {}", if *earlier { "earlier" } else { "later" })
            }
            Self::DropCell { cell } => write!(f, "drop queued cell {cell}"),
            Self::AskControl => f.write_str("ask for control"),
            Self::GiveControl => f.write_str("give control"),
            Self::KeepControl => f.write_str("keep control"),
            Self::Pause => f.write_str("pause the plan"),
            Self::Resume => f.write_str("resume the plan"),
            Self::Answer { decision, option } => write!(f, "answer {decision} with {option}"),
            Self::Extend { decision, seconds } => write!(f, "extend {decision} by {seconds} s"),
            Self::Stop => f.write_str("stop the run, keep its resources"),
            Self::Teardown { .. } => f.write_str("teardown"),
        }
    }
}
