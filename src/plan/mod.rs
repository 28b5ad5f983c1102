//! The operator's TOML, checked into a [`Plan`].
//!
//! The command line calls [`load`] with a file or a built-in plan and its `--set` overrides; the
//! engine writes the plan as it ran with [`to_toml`]. What is wrong with a plan is told in full,
//! each problem with file, line, key, what was found and what is allowed, and never with a secret.

mod address;
mod basics;
mod check;
mod configuration;
mod overrides;
mod password;
mod problem;
mod section;
mod source;
mod stage;
#[cfg(test)]
mod tests;
mod traffic;
mod tree;
mod types;
mod write;

pub use problem::{PlanErrors, PlanProblem};
pub use source::PlanSource;
pub use types::{
    Budget, ConfigurationPlan, LabPlan, LoadPlan, OptionAction, OptionPlan, Plan, PriceLine,
    PricePer, Source, Stage, StageKind,
};
pub use write::to_toml;

use password::Environment;
use problem::Problems;

/// Reads and checks a plan. `overrides` are the texts after `--set`, each `key=value`: `seed=7`,
/// `load.max_rate=500`, `configuration.D1.url=postgres://…` (the entry by its id, which may be left
/// out where there is only one), `stage.pilot.measure_s=5` (the entry by its name). Values are
/// read as TOML and otherwise as text.
///
/// Passwords come from the URL, else from the variable or file that the plan names, else from
/// `PGPASSWORD`.
///
/// # Errors
/// Every problem found, in the order of the file.
pub fn load(source: PlanSource, overrides: &[String]) -> Result<Plan, PlanErrors> {
    load_in(&source, overrides, &|name| std::env::var_os(name))
}

fn load_in(
    source: &PlanSource,
    overrides: &[String],
    environment: Environment<'_>,
) -> Result<Plan, PlanErrors> {
    let problems = Problems::new(source.name());
    let plan = source
        .read(&problems)
        .and_then(|text| read(&text, &source.argument(), overrides, environment, &problems));
    match plan {
        Some(plan) if problems.is_empty() => Ok(plan),
        _ => Err(problems.into_errors()),
    }
}

/// `argument` is how a shell is told of the plan, for messages that show a command.
fn read(
    text: &str,
    argument: &str,
    overrides: &[String],
    environment: Environment<'_>,
    problems: &Problems,
) -> Option<Plan> {
    let mut root = tree::parse(text, problems)?;
    overrides::apply(&mut root, overrides, problems);
    check::check(&root, argument, environment, problems)
}
