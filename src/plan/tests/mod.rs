//! Plans as operators write them, well and badly.

mod accepted;
mod refused;
mod targets;
mod traffic;

use std::ffi::OsString;

use super::{Plan, problem::Problems};

/// The shortest plan there is, one configuration of the lab and one stage.
const SMALL: &str = "\
name = \"small\"
[budget]
cap = 10
[configuration]
id = \"D1\"
kind = \"lab\"
[[stage]]
name = \"pilot\"
open = [100]
";

fn load_with(text: &str, overrides: &[&str], environment: &[(&str, &str)]) -> Result<Plan, String> {
    let problems = Problems::new("plan.toml");
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let read = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, v)| OsString::from(v))
    };
    let plan = super::read(text, "plan.toml", &overrides, &read, &problems);
    match plan {
        Some(plan) if problems.is_empty() => Ok(plan),
        _ => Err(problems.into_errors().to_string()),
    }
}

fn load(text: &str) -> Result<Plan, String> {
    load_with(text, &[], &[])
}

/// The small plan with something put before its first line or after its last one.
fn small_with(before: &str, after: &str) -> Result<Plan, String> {
    load(&format!("{before}{SMALL}{after}"))
}
