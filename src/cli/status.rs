//! How runs stand, and what a plan would do.

use color_eyre::eyre::Result;
use serde_json::json;

use super::{
    client::Client,
    registry::{self, Entry},
};
use crate::{
    link::Role,
    model::{
        ConfigurationState, ConfigurationStatus, RunState, Snapshot, format_clock, format_duration,
    },
    plan::{self, PlanSource, StageKind},
    report::RunFolder,
};

/// Prints how a run stands.
pub async fn print(name: Option<&str>, as_json: bool) -> Result<u8> {
    let entry = registry::find_or_newest(name)?;
    if entry.is_going_on()
        && let Ok(mut client) = Client::connect(&entry.socket, Role::CommandLine).await
    {
        let snapshot = client.snapshot().await?;
        if as_json {
            let status = json!({ "run": entry.run, "going_on": true, "folder": entry.folder, "snapshot": snapshot });
            say!("{status}");
        } else {
            print_snapshot(&entry, &snapshot);
        }
        return Ok(0);
    }
    let folder = RunFolder::open(entry.folder.clone())?;
    let journal = folder.read_journal()?;
    let summary = folder.read_summary().ok();
    let state = state_of(&entry);
    if as_json {
        let status = json!({
            "run": entry.run, "going_on": false, "state": state, "folder": entry.folder,
            "exit_code": journal.exit_code(), "summary": summary,
        });
        say!("{status}");
        return Ok(0);
    }
    say!("run {} of plan {}: {state}", entry.run, entry.plan);
    say!("folder {}", entry.folder.display());
    match summary {
        Some(summary) => print!("{}", crate::report::markdown(&summary)),
        None => say!("no summary yet; `rampdeck teardown {}` writes it", entry.run),
    }
    Ok(0)
}

/// `going on`, `ended`, `torn down`, or that the engine was lost.
fn state_of(entry: &Entry) -> String {
    if entry.is_going_on() {
        return "going on".to_owned();
    }
    let journal = RunFolder::open(entry.folder.clone())
        .and_then(|folder| folder.read_journal())
        .unwrap_or_default();
    if let Some(code) = journal.exit_code() {
        return format!("ended, exit code {code}");
    }
    match journal.teardown().and_then(|teardown| teardown.ended) {
        Some(end) => format!("torn down, remaining {}", end.remaining_count),
        None if !entry.folder.is_dir() => "its folder is gone".to_owned(),
        None => "engine lost: tear it down".to_owned(),
    }
}

fn print_snapshot(entry: &Entry, snapshot: &Snapshot) {
    let header = &snapshot.header;
    let rehearsal =
        if header.rehearsal { " · REHEARSAL latency added, prices simulated" } else { "" };
    say!("run {}{rehearsal}", header.id);
    let stage = snapshot
        .stage
        .as_ref()
        .map_or_else(|| "plan done".to_owned(), |s| format!("{} {}/{}", s.name, s.index, s.of));
    say!(
        "{} · {stage} · {} · {} consoles · folder {}",
        run_state(&snapshot.state),
        format_clock(snapshot.at.seconds_since(header.started)),
        snapshot.control.consoles.len(),
        entry.folder.display()
    );
    let cost = &snapshot.cost;
    say!(
        "{} USD accrued · {}/h · guard {} · cap {}",
        cost.accrued,
        cost.per_hour,
        cost.guard,
        cost.cap
    );
    for configuration in &snapshot.configurations {
        say!("  {:<6} {}", configuration.id, configuration_state(configuration));
    }
    if let Some(decision) = &snapshot.decision {
        let left = decision.deadline.seconds_since(snapshot.at);
        say!(
            "DECISION {} · safe default {} in {}",
            decision.question,
            decision.safe,
            format_duration(left)
        );
        for option in &decision.options {
            say!("  {:<10} {} · + {} USD", option.key, option.label, option.spends);
        }
    }
}

fn run_state(state: &RunState) -> String {
    match state {
        RunState::SettingUp { step } => format!("setting up: {step}"),
        RunState::Running => "running".to_owned(),
        RunState::Paused => "PAUSED".to_owned(),
        RunState::Holding => "holding".to_owned(),
        RunState::TearingDown => "tearing down".to_owned(),
        RunState::Ended { exit_code } => format!("ended, exit code {exit_code}"),
    }
}

fn configuration_state(configuration: &ConfigurationStatus) -> String {
    if let Some(cell) = &configuration.cell {
        return format!(
            "{} {} · offered {:.1}/s achieved {:.1}/s ok {:.1}/s · failed {:.2} %",
            cell.id,
            cell.load,
            cell.tps.offered,
            cell.tps.achieved,
            cell.tps.succeeded,
            cell.failed_percent
        );
    }
    match (&configuration.state, &configuration.last) {
        (ConfigurationState::SettingUp { step }, _) => format!("setting up: {step}"),
        (ConfigurationState::Failed { why }, _) => format!("failed: {why}"),
        (ConfigurationState::Removed, _) => "removed".to_owned(),
        (_, Some(last)) => {
            format!("idle · last {} {} · ok {:.1}/s", last.load, last.verdict, last.tps.succeeded)
        }
        (_, None) => "idle".to_owned(),
    }
}

/// Lists the runs of this machine.
pub fn list(as_json: bool) -> Result<u8> {
    let entries = registry::all()?;
    if entries.is_empty() && !as_json {
        say!("there is no run yet: begin with `rampdeck rehearse`");
    }
    for entry in entries {
        let state = state_of(&entry);
        if as_json {
            say!(
                "{}",
                json!({ "run": entry.run, "plan": entry.plan, "started": entry.started.rfc3339(), "state": state, "folder": entry.folder })
            );
        } else {
            say!(
                "{:<32} {:<20} {state:<28} {}",
                entry.run,
                entry.started.rfc3339().get(..19).unwrap_or_default(),
                entry.folder.display()
            );
        }
    }
    Ok(0)
}

/// Checks a plan and says what it would do.
pub fn check_plan(source: &PlanSource, overrides: &[String]) -> Result<u8> {
    let plan = plan::load(source.clone(), overrides)?;
    say!("plan {} is good: scale {}, seed {}", plan.name, plan.scale, plan.seed);
    for configuration in &plan.configurations {
        say!(
            "  {:<6} {} ({}), {}",
            configuration.id,
            configuration.title,
            configuration.source.kind(),
            configuration.shape
        );
    }
    for stage in &plan.stages {
        match &stage.kind {
            StageKind::Cells { configurations, levels, warmup_s, measure_s, side_by_side } => {
                let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
                let how = if *side_by_side { "side by side" } else { "one at a time" };
                say!(
                    "  {:<10} {} × {} configurations, {how}, {warmup_s} s warm-up + {measure_s} s measured",
                    stage.name,
                    levels.join(", "),
                    configurations.len()
                );
            }
            StageKind::Decision { question, safe, deadline_s, .. } => {
                say!("  {:<10} {question} (safe default {safe} after {deadline_s} s)", stage.name);
            }
        }
    }
    say!("  budget: guard {} USD, cap {} USD", plan.budget.guard, plan.budget.cap);
    Ok(0)
}
