//! Verdicts and their reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a cell says about its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// The SLO held, with enough samples to say so, and no invariant was violated.
    Pass,
    /// The SLO did not hold, or an invariant was violated.
    Fail,
    /// Too few samples to say.
    Inconclusive,
    /// The figures do not describe the database: the generator was the limit, or the cell was cut.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Invalid => "INVALID",
        })
    }
}

/// Why a verdict is what it is, or what a reader of the cell must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: ReasonCode,
    /// One sentence for people, with the figures.
    pub text: String,
}

impl Reason {
    /// What tells a cell from the others of its run, empty where nothing does.
    #[must_use]
    pub fn first_text(reasons: &[Self]) -> &str {
        let own = reasons.iter().find(|reason| !reason.code.is_of_the_run());
        own.map_or("", |reason| reason.text.as_str())
    }
}

/// The stable name of a reason, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// A latency percentile is above its SLO.
    Latency,
    /// More technical failures than the SLO allows.
    Failures,
    /// An error-adjusted percentile is unbounded or above its SLO.
    ErrorAdjusted,
    /// Arrivals were shed, or fewer than 99 % of the offered ones completed.
    Overload,
    /// A business invariant is violated.
    Invariant,
    /// The invariants could not be checked.
    Unchecked,
    /// Too few samples in a class.
    FewSamples,
    /// Outcomes that could not be resolved.
    Unknown,
    /// The generator was the limit.
    Generator,
    /// The operator stopped or replaced the cell before its end.
    StoppedByOperator,
    /// The run was stopped, torn down or guarded while the cell ran.
    RunEnded,
    /// The load agent died or stopped answering.
    AgentLost,
    /// The engine died while the cell ran.
    EngineLost,
    /// An identity between the counts does not hold.
    Identity,
    /// The cell could not be run at all.
    NotRun,
    /// Information: other cells ran on the same runner at the same time.
    SideBySide,
    /// Information: close to what the runner was calibrated for.
    Calibration,
    /// Information: latency is added and prices are simulated.
    Rehearsal,
}

impl ReasonCode {
    /// Whether it is true of every cell of its run, so that it tells none from another.
    #[must_use]
    pub const fn is_of_the_run(self) -> bool {
        matches!(self, Self::Rehearsal)
    }
}
