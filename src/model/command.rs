//! What an operator can ask of the engine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ConfigurationId, Load};

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
            Self::Pause => f.write_str("pause the plan"),
            Self::Resume => f.write_str("resume the plan"),
            Self::Answer { decision, option } => write!(f, "answer {decision} with {option}"),
            Self::Extend { decision, seconds } => write!(f, "extend {decision} by {seconds} s"),
            Self::Stop => f.write_str("stop the run, keep its resources"),
            Self::Teardown { .. } => f.write_str("teardown"),
        }
    }
}
