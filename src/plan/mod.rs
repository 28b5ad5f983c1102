//! The operator's TOML, checked into a [`Plan`].

mod types;

pub use types::{
    Budget, ConfigurationPlan, LabPlan, LoadPlan, OptionAction, OptionPlan, Plan, PriceLine,
    PricePer, Source, Stage, StageKind,
};
