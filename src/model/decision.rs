//! Decisions: questions of a plan that wait for the operator, with their prices.

use serde::{Deserialize, Serialize};

use super::{ConfigurationId, Money, UnixMs};

/// What choosing an option does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum DecisionAction {
    /// Go on with the plan's next stage.
    Continue,
    /// Go on, and take these configurations out of the rest of the plan, removing what they bill.
    ContinueWithout { configurations: Vec<ConfigurationId> },
    /// Start no further cells, keep everything, until the operator says otherwise.
    Hold,
    /// End the plan and remove everything.
    Teardown,
}

/// One answer to a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionOption {
    /// Short name for the command line, for example `go`.
    pub key: String,
    pub label: String,
    pub action: DecisionAction,
    /// About how long the rest of the plan takes with this answer, in seconds.
    pub takes_s: u64,
    /// What the rest of the plan adds to the bill with this answer.
    pub spends: Money,
    /// What the run burns an hour after this answer.
    pub burn_per_hour: Money,
}

/// A pending decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The plan's name of the decision stage.
    pub id: String,
    /// What came before, in a sentence with its figures: `12 cells, 12 PASS`.
    pub situation: String,
    pub question: String,
    /// One or more.
    pub options: Vec<DecisionOption>,
    /// Key of the option that is taken at the deadline; never one that spends more.
    pub safe: String,
    pub asked: UnixMs,
    pub deadline: UnixMs,
    /// What waiting costs an hour, in all and by configuration.
    pub burn_per_hour: Money,
    pub burn_by_configuration: Vec<(ConfigurationId, Money)>,
    /// What waiting has cost since it was asked.
    pub waited_cost: Money,
}
