//! The stages of a plan: cells to measure and questions to the operator.

use super::{
    basics::{
        MEASURE, WARMUP, WEEK_S, arrivals, connections_range, rate_span, short_name, warmup_fits,
    },
    overrides::label,
    problem::did_you_mean,
    section::{Item, Section, Whole},
    tree::{Value, quoted},
    types::{ConfigurationPlan, LoadPlan, OptionAction, OptionPlan, Stage, StageKind},
};
use crate::model::{ConfigurationId, Load, PoolShape};

const CELL_KEYS: [&str; 8] = [
    "configurations",
    "open",
    "closed",
    "connections",
    "arrivals",
    "warmup_s",
    "measure_s",
    "side_by_side",
];
const KEYS: [&str; 10] = [
    "name",
    "configurations",
    "open",
    "closed",
    "connections",
    "arrivals",
    "warmup_s",
    "measure_s",
    "side_by_side",
    "decision",
];
const MOST_LEVELS: usize = 64;
const MOST_STAGES: usize = 64;
const MOST_OPTIONS: usize = 9;
const DEFAULT_DEADLINE_S: u64 = 900;

/// The stages; `None` with problems reported.
pub(super) fn stages(
    root: &Section<'_>,
    load: &LoadPlan,
    ids: &[ConfigurationId],
    known: &[ConfigurationPlan],
) -> Option<Vec<Stage>> {
    const ALLOWED: &str = "1 to 64 tables [[stage]]";
    let item = root.required("stage", ALLOWED)?;
    let entries = item.entries(ALLOWED, label)?;
    if entries.is_empty() || entries.len() > MOST_STAGES {
        item.report(format!("found {} stages, allowed: {ALLOWED}", entries.len()));
    }
    let mut seen: Vec<String> = Vec::new();
    let stages: Vec<_> = entries
        .iter()
        .map(|entry| {
            let section = entry.section(&KEYS)?;
            let name = name_of(&section, &mut seen);
            let kind = match section.item("decision") {
                Some(decision_item) => {
                    section.refuse(&CELL_KEYS, "in a stage without [stage.decision]");
                    decision(&decision_item, ids)
                }
                None => cells(&section, load, ids, known),
            };
            Some(Stage { name: name?, kind: kind? })
        })
        .collect();
    stages.into_iter().collect()
}

fn name_of(section: &Section<'_>, seen: &mut Vec<String>) -> Option<String> {
    let item = section.required("name", "a short name such as \"pilot\"")?;
    let name = short_name(&item, 24, true, "-_")?;
    if seen.contains(&name) {
        item.report(format!("found \"{name}\" a second time, allowed: a name of its own"));
        return None;
    }
    seen.push(name.clone());
    Some(name)
}

fn cells(
    section: &Section<'_>,
    load: &LoadPlan,
    ids: &[ConfigurationId],
    known: &[ConfigurationPlan],
) -> Option<StageKind> {
    let configurations = match section.item("configurations") {
        Some(item) => known_ids(&item, ids),
        None => Some(ids.to_vec()),
    };
    let levels = levels(section, load);
    if let Some(configurations) = &configurations {
        let pooled = known.iter().filter(|known| configurations.contains(&known.id));
        pooled.for_each(|configuration| pool_fits(section, configuration));
    }
    let warmup_s = section.number_or("warmup_s", &WARMUP, load.warmup_s);
    let measure_s = section.number_or("measure_s", &MEASURE, load.measure_s);
    let side_by_side = section.item("side_by_side").map_or(Some(false), |item| item.flag());
    let (warmup_s, measure_s) = (warmup_s?, measure_s?);
    if section.has("warmup_s") || section.has("measure_s") {
        warmup_fits(section, warmup_s, measure_s)?;
    }
    Some(StageKind::Cells {
        configurations: configurations?,
        levels: levels?,
        warmup_s,
        measure_s,
        side_by_side: side_by_side?,
    })
}

/// A stage may say again how many connections a pool has, and nothing else.
fn pool_fits(section: &Section<'_>, configuration: &ConfigurationPlan) {
    let PoolShape::Pool { size, partitions, .. } = configuration.shape.pool else { return };
    let Some(item) = section.item("connections") else { return };
    let Value::Integer(found) = item.node.value else { return };
    let of_pool = u64::from(size) * u64::from(partitions);
    if found != i128::from(of_pool) {
        item.report(format!(
            "found {found}, allowed: {of_pool}, the connections of {}'s pool ({size} × \
             {partitions}), or no connections in a stage with it",
            configuration.id
        ));
    }
}

/// The levels of a stage in the plan's order: the open ones, then the closed ones.
fn levels(section: &Section<'_>, load: &LoadPlan) -> Option<Vec<Load>> {
    let open = section.item("open");
    let closed = section.item("closed");
    if open.is_none() && closed.is_none() {
        section.report(
            "found nothing to do, allowed: open = [arrivals/s, …], closed = [connections, …] or \
             [stage.decision]",
        );
        return None;
    }
    if open.is_none() {
        section.refuse(&["connections", "arrivals"], "with open = [arrivals/s, …]");
    }
    let range = connections_range(load.max_connections);
    let connections =
        section.whole_or("connections", &range, u64::from(load.open_connections).min(range.to));
    let arrivals = arrivals(section, load.arrivals);
    let rates =
        open.map(|item| list_of(&item, "arrivals/s", |i| i.number(&rate_span(load.max_rate))));
    let counts = closed.map(|item| list_of(&item, "connections", |i| i.whole(&range)));
    let connections = u32::try_from(connections?).ok()?;
    let arrivals = arrivals?;
    let open = rates.map_or(Some(Vec::new()), |rates| rates)?;
    let closed = counts.map_or(Some(Vec::new()), |counts| counts)?;
    let open = open.into_iter().map(|rate| Load::Open { rate, arrivals, connections });
    let closed = closed
        .into_iter()
        .filter_map(|count| Some(Load::Closed { connections: u32::try_from(count).ok()? }));
    Some(open.chain(closed).collect())
}

fn list_of<'a, T>(
    item: &Item<'a>,
    unit: &str,
    read: impl Fn(&Item<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let allowed = format!("a list of 1 to {MOST_LEVELS} {unit}");
    let entries = item.entries(&allowed, |_| None)?;
    if entries.is_empty() || entries.len() > MOST_LEVELS {
        item.report(format!("found a list of {}, allowed: {allowed}", entries.len()));
        return None;
    }
    let read: Vec<_> = entries.iter().map(read).collect();
    read.into_iter().collect()
}

/// A list of one or more of the plan's configurations, each once.
fn known_ids(item: &Item<'_>, ids: &[ConfigurationId]) -> Option<Vec<ConfigurationId>> {
    let names: Vec<&str> = ids.iter().map(ConfigurationId::as_str).collect();
    let allowed = format!("a list of configurations of this plan: {}", names.join(", "));
    let entries = item.entries(&allowed, |_| None)?;
    if entries.is_empty() {
        item.report(format!("found an empty list, allowed: {allowed}"));
        return None;
    }
    let mut read: Vec<Option<ConfigurationId>> = Vec::new();
    for entry in &entries {
        let id = entry.text(&names.join(", ")).map(ConfigurationId::new);
        read.push(id.and_then(|id| {
            if !ids.contains(&id) {
                let hint = did_you_mean(id.as_str(), names.iter().copied());
                let found = quoted(id.as_str());
                entry.report(format!("found {found}, allowed: {}{hint}", names.join(", ")));
                return None;
            }
            if read.contains(&Some(id.clone())) {
                entry.report(format!("found \"{id}\" a second time, allowed: each once"));
                return None;
            }
            Some(id)
        }));
    }
    read.into_iter().collect()
}

fn decision(item: &Item<'_>, ids: &[ConfigurationId]) -> Option<StageKind> {
    const OPTIONS: &str = "1 to 9 tables [[stage.decision.options]]";
    let section = item.section(&["question", "safe", "deadline_s", "options"])?;
    let question = section
        .required("question", "the question in words")
        .and_then(|item| item.text("the question in words"));
    let range = Whole { from: 1, to: WEEK_S, unit: "seconds" };
    let deadline_s = section.whole_or("deadline_s", &range, DEFAULT_DEADLINE_S);
    let options = section.required("options", OPTIONS).and_then(|item| {
        let entries = item.entries(OPTIONS, label)?;
        if entries.is_empty() || entries.len() > MOST_OPTIONS {
            item.report(format!("found {} options, allowed: {OPTIONS}", entries.len()));
            return None;
        }
        let mut seen = Vec::new();
        let options: Vec<_> = entries.iter().map(|e| option(e, ids, &mut seen)).collect();
        options.into_iter().collect::<Option<Vec<_>>>()
    });
    let safe = section
        .required("safe", "the key of the option that is taken at the deadline")
        .and_then(|item| safe_key(&item, options.as_deref()?));
    Some(StageKind::Decision {
        question: question?,
        options: options?,
        safe: safe?,
        deadline_s: deadline_s?,
    })
}

/// The safe default is taken when nobody answers: never the option that goes on spending.
fn safe_key(item: &Item<'_>, options: &[OptionPlan]) -> Option<String> {
    let safe = |option: &&OptionPlan| option.action != OptionAction::Continue;
    let keys: Vec<&str> = options.iter().filter(safe).map(|o| o.key.as_str()).collect();
    let allowed = if keys.is_empty() {
        "an option with action hold, teardown or continue_without, of which there is none"
            .to_owned()
    } else {
        keys.join(", ")
    };
    let key = item.text(&allowed)?;
    match options.iter().find(|option| option.key == key) {
        Some(option) if safe(&option) => Some(key),
        Some(_) => {
            item.report(format!(
                "found \"{key}\", which goes on with everything and so spends the most when nobody \
                 answers, allowed: {allowed}"
            ));
            None
        }
        None => {
            let hint = did_you_mean(&key, keys.iter().copied());
            let found = quoted(&key);
            item.report(format!("found {found}, which is no option, allowed: {allowed}{hint}"));
            None
        }
    }
}

fn option(item: &Item<'_>, ids: &[ConfigurationId], seen: &mut Vec<String>) -> Option<OptionPlan> {
    const ACTIONS: [&str; 4] = ["continue", "continue_without", "hold", "teardown"];
    let section = item.section(&["key", "label", "action", "without"])?;
    let key = section.required("key", "a short name such as \"go\"").and_then(|item| {
        let key = short_name(&item, 24, true, "-_")?;
        if seen.contains(&key) {
            item.report(format!("found \"{key}\" a second time, allowed: a key of its own"));
            return None;
        }
        seen.push(key.clone());
        Some(key)
    });
    let label = section
        .required("label", "what the option does, in words")
        .and_then(|item| item.text("what the option does, in words"));
    let action = section
        .required("action", &super::section::one_of(&ACTIONS))
        .and_then(|item| item.choice(&ACTIONS))?;
    if action != "continue_without" {
        section.refuse(&["without"], "with action = \"continue_without\"");
    }
    let action = match action {
        "continue" => OptionAction::Continue,
        "hold" => OptionAction::Hold,
        "teardown" => OptionAction::Teardown,
        _ => without(&section, ids)?,
    };
    Some(OptionPlan { key: key?, label: label?, action })
}

fn without(section: &Section<'_>, ids: &[ConfigurationId]) -> Option<OptionAction> {
    let item = section.required("without", "the configurations that are taken out of the plan")?;
    let without = known_ids(&item, ids)?;
    if without.len() == ids.len() {
        item.report("found every configuration, allowed: some of them (or action = \"teardown\")");
        return None;
    }
    Some(OptionAction::ContinueWithout { without })
}
