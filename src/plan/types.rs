//! A plan that has been checked: every value is in range, every name it refers to exists.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

use crate::model::{
    Arrivals, ConfigurationId, ConnectionLife, Dialect, Fault, GateProfile, Load, Mix, Money,
    RetryPolicy, Shape, Slo, TargetSpec,
};

/// A checked plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Lower-case letters, digits and `-`, at most 24 characters: the run's name begins with it.
    pub name: String,
    pub seed: u64,
    pub slo: Slo,
    pub mix: Mix,
    /// Share of the full data set, above 0 and at most 1.
    pub scale: f64,
    pub retry: RetryPolicy,
    pub lab: LabPlan,
    /// One to eight.
    pub configurations: Vec<ConfigurationPlan>,
    pub stages: Vec<Stage>,
    pub budget: Budget,
    pub load: LoadPlan,
    /// How long the resources are kept after the last stage while a console is attached, in
    /// seconds; without one, teardown follows at once.
    pub hold_s: u64,
    /// A command of the operator's that gets each notable event as JSON on its standard input.
    pub notify: Option<Vec<String>>,
    /// Where the runner stands, for the record.
    pub zone: Option<String>,
}

impl Plan {
    /// Whether latency is added and prices are simulated: any configuration of the lab makes the
    /// run a rehearsal.
    #[must_use]
    pub fn is_rehearsal(&self) -> bool {
        self.configurations.iter().any(|c| matches!(c.source, Source::Lab { .. }))
    }
}

impl Plan {
    /// Connections of a configuration's largest cell in the plan.
    #[must_use]
    pub fn largest_cell(&self, configuration: &ConfigurationPlan) -> u32 {
        let levels = |stage: &Stage| match &stage.kind {
            StageKind::Cells { configurations, levels, .. }
                if configurations.contains(&configuration.id) =>
            {
                levels.iter().map(|load| configuration.shape.connections(*load)).max()
            }
            _ => None,
        };
        self.stages.iter().filter_map(levels).max().unwrap_or(0)
    }
}

/// How the lab's server is found and set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LabPlan {
    /// Folder with `initdb` and `postgres`; searched for where `None`.
    pub bin_dir: Option<PathBuf>,
    /// Server settings on top of the lab's own.
    pub settings: BTreeMap<String, String>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigurationPlan {
    pub id: ConfigurationId,
    pub title: String,
    pub source: Source,
    pub shape: Shape,
    pub life: ConnectionLife,
    pub prices: Vec<PriceLine>,
}

/// Where a configuration's database comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A database of the lab's server behind a gate of its own.
    Lab { gate: GateProfile, faults: Vec<Fault> },
    /// A database of the operator's, reached by its URL. The schema in `target` is filled in by
    /// the engine from the run's name.
    Postgres {
        /// The URL without its password, as it may be shown and stored.
        url: String,
        #[serde(skip)]
        target: Box<TargetSpec>,
    },
}

impl Source {
    /// `lab` or `postgres`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Lab { .. } => "lab",
            Self::Postgres { .. } => "postgres",
        }
    }

    /// Which SQL the database speaks: the lab's is PostgreSQL.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Lab { .. } => Dialect::Postgres,
            Self::Postgres { target, .. } => target.dialect,
        }
    }
}

/// One line of a configuration's price book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PriceLine {
    pub item: String,
    pub per: PricePer,
    /// Price of one unit.
    pub price: Money,
    /// How many units an hour or a million attempts takes (4 ACU, 0.03 DPU an attempt …).
    pub quantity: String,
    /// Where the price comes from.
    pub source: String,
}

/// What a price is charged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PricePer {
    /// Each hour that the configuration exists.
    Hour,
    /// Each million attempts of transactions.
    MillionAttempts,
}

/// One stage of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Unique within the plan.
    pub name: String,
    pub kind: StageKind,
}

/// What a stage does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StageKind {
    /// Cells, level by level: every configuration at the first level, then the next level. A
    /// configuration with a pool takes an open level with the pool's connections
    /// ([`Shape::applied_to`]).
    Cells {
        configurations: Vec<ConfigurationId>,
        levels: Vec<Load>,
        warmup_s: f64,
        measure_s: f64,
        /// The configurations of one level run at the same time; otherwise one cell at a time.
        side_by_side: bool,
    },
    /// A question to the operator.
    Decision {
        question: String,
        options: Vec<OptionPlan>,
        /// Key of the option taken at the deadline.
        safe: String,
        deadline_s: u64,
    },
}

/// One answer to a decision, as planned; the engine prices it when it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OptionPlan {
    pub key: String,
    pub label: String,
    pub action: OptionAction,
}

/// What an answer does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum OptionAction {
    Continue,
    ContinueWithout { without: Vec<ConfigurationId> },
    Hold,
    Teardown,
}

/// Money limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Never to be exceeded.
    pub cap: Money,
    /// Teardown starts here; at most the cap.
    pub guard: Money,
}

/// How load is put on, unless a stage or an operator says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadPlan {
    pub arrivals: Arrivals,
    /// Connections of an open loop without a pool.
    pub open_connections: u32,
    pub warmup_s: f64,
    pub measure_s: f64,
    /// Settling time after a step of the rate, in place of the warm-up.
    pub settle_s: f64,
    pub drain_s: f64,
    /// Highest rate that an operator may step to, arrivals per second.
    pub max_rate: f64,
    /// Most connections of one cell.
    pub max_connections: u32,
    pub backlog: Option<u64>,
    /// What a configuration has unless it says otherwise.
    pub shape: Shape,
    /// What a configuration has unless it says otherwise.
    pub life: ConnectionLife,
}
