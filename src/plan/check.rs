//! From a tree to a checked plan.

use super::{
    basics, configuration,
    password::Environment,
    problem::Problems,
    section::{Section, Span, Whole},
    stage,
    tree::{Node, Value},
    types::{ConfigurationPlan, Plan, Stage, StageKind},
};
use crate::model::ConnectionLife;

const KEYS: [&str; 14] = [
    "name",
    "seed",
    "scale",
    "hold_s",
    "notify",
    "zone",
    "slo",
    "mix",
    "retry",
    "lab",
    "budget",
    "load",
    "configuration",
    "stage",
];
/// TOML's integers end here.
const HIGHEST_SEED: u64 = i64::MAX as u64;
const DEFAULT_SEED: u64 = 1;
const DEFAULT_SCALE: f64 = 0.01;
const DEFAULT_HOLD_S: u64 = 600;

/// The plan that a tree describes; `None` with every problem reported.
pub(super) fn check(
    root: &Node,
    plan_argument: &str,
    environment: Environment<'_>,
    problems: &Problems,
) -> Option<Plan> {
    let section = Section::root(root, &KEYS, problems)?;
    if matches!(&root.value, Value::Table(table) if table.is_empty()) {
        section.report(
            "found an empty plan, allowed: a plan with name, [budget], [[configuration]] and \
             [[stage]]",
        );
        return None;
    }
    let name = section
        .required("name", "a short name such as \"nightly\"")
        .and_then(|item| basics::short_name(&item, 24, false, "-"));
    let seeds = Whole { from: 0, to: HIGHEST_SEED, unit: "" };
    let seed = section.whole_or("seed", &seeds, DEFAULT_SEED);
    let shares = Span::from_to(0.0001, 1.0, "(a share of the full data set)");
    let scale = section.number_or("scale", &shares, DEFAULT_SCALE);
    let holds = Whole { from: 0, to: basics::WEEK_S, unit: "seconds" };
    let hold_s = section.whole_or("hold_s", &holds, DEFAULT_HOLD_S);
    let notify = basics::notify(&section);
    let zone = section.item("zone").map(|item| item.text("where the runner stands, in words"));
    let slo = basics::slo(&section);
    let mix = basics::mix(&section);
    let retry = basics::retry(&section);
    let lab = basics::lab(&section);
    let budget = basics::budget(&section);
    let load = basics::load(&section);
    let usual = load.as_ref().unwrap_or(&basics::DEFAULT_LOAD);
    let configurations = configuration::configurations(&section, plan_argument, environment, usual);
    let ids = configuration::ids(&section);
    let stages = stage::stages(&section, usual, &ids, configurations.as_deref().unwrap_or(&[]));
    if let (Some(configurations), Some(stages)) = (&configurations, &stages) {
        replacements(&section, configurations, stages);
    }
    Some(Plan {
        name: name?,
        seed: seed?,
        slo: slo?,
        mix: mix?,
        scale: scale?,
        retry: retry?,
        lab: lab?,
        configurations: configurations?,
        stages: stages?,
        budget: budget?,
        load: load?,
        hold_s: hold_s?,
        notify: notify?,
        zone: zone.map_or(Some(None), |found| found.map(Some))?,
    })
}

/// Reports a configuration whose connections would have to be replaced faster than they may be
/// opened: they would pass their age, and the cell would run dry.
fn replacements(root: &Section<'_>, configurations: &[ConfigurationPlan], stages: &[Stage]) {
    let Some(item) = root.item("configuration") else { return };
    for configuration in configurations {
        let Some(age_s) = configuration.life.max_age_s else { continue };
        let (most, pace) =
            (most_connections(configuration, stages), configuration.life.open_per_second);
        // They leave evenly between the two ends of the span, so its middle is their mean age.
        let needed = f64::from(most) / (age_s * ConnectionLife::replaced_at(0.5));
        if needed > pace {
            let least = f64::from(most) / (pace * ConnectionLife::replaced_at(0.5));
            item.report(format!(
                "found max_age_s = {age_s} for {}, whose {most} connections would need {needed:.1} \
                 replacements a second with open_per_second = {pace}, allowed: max_age_s of \
                 {least:.1} or more, a higher open_per_second, or fewer connections",
                configuration.id
            ));
        }
    }
}

/// The most connections of any cell of a configuration.
fn most_connections(configuration: &ConfigurationPlan, stages: &[Stage]) -> u32 {
    let of_stage = |stage: &Stage| match &stage.kind {
        StageKind::Cells { configurations, levels, .. }
            if configurations.contains(&configuration.id) =>
        {
            let levels = levels.iter().map(|load| configuration.shape.applied_to(*load));
            levels.map(|load| load.connections()).max()
        }
        _ => None,
    };
    stages.iter().filter_map(of_stage).max().unwrap_or(0)
}
