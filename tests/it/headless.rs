//! Runs without a screen: from the first line to the files they leave.

use std::process::Command;

use crate::{
    contract,
    support::{Place, json, wait_for},
};

/// A rehearsal short enough for a test; every stage is there.
pub const SHORT: &[&str] = &[
    "--set",
    "scale=0.002",
    "--set",
    "stage.pilot.warmup_s=1",
    "--set",
    "stage.pilot.measure_s=4",
    "--set",
    "stage.explore.warmup_s=1",
    "--set",
    "stage.explore.measure_s=3",
    "--set",
    "stage.main.warmup_s=1",
    "--set",
    "stage.main.measure_s=3",
];

/// The short rehearsal's arguments, and more.
pub fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["rehearse"], SHORT, more].concat()
}

#[test]
fn a_headless_rehearsal_ends_by_itself_and_leaves_only_its_record() {
    let place = Place::new();
    let out = place.path("out");
    let arguments = short(&[
        "--headless",
        "--out",
        out.to_str().unwrap(),
        "--set",
        "stage.main-or-stop.decision.deadline_s=3",
    ]);
    let mut run = place.headless(&arguments);
    assert_eq!(run.end(), 0);
    let lines = run.lines();
    let answered = run.event("decision_answered");
    assert_eq!((&answered["option"], &answered["by"]), (&"stop".into(), &"deadline".into()));
    for id in ["D1", "R1", "A1", "A2"] {
        let measuring =
            lines.iter().filter(|l| l["configuration"] == id && l["state"] == "measure");
        assert!(measuring.clone().count() >= 3, "{id} has a line a second while it measures");
        assert!(measuring.clone().all(|l| l["rehearsal"] == "latency added, prices simulated"));
    }

    let summary = json(&out.join("summary.json"));
    contract::assert_holds(&summary);
    let cells = contract::cells(&summary);
    assert_eq!(cells.len(), 8, "pilot and explore on four configurations");
    for cell in &cells {
        contract::assert_invariants(cell);
        assert!(contract::count(cell, "succeeded") > 0);
        let hlog = out.join("cells").join(format!("{}.hlog", cell["id"].as_str().unwrap()));
        let text = std::fs::read_to_string(&hlog).unwrap();
        assert!(text.contains("Tag=order_create.response,"), "{}", hlog.display());
    }
    assert_eq!(summary["teardown"]["remaining_count"], 0);
    assert_eq!(summary["run"]["rehearsal"], true);
    place.assert_nothing_left();

    let run = summary["run"]["id"].as_str().unwrap();
    let verify = place.output(&["verify", run]);
    assert_eq!(verify.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&verify.stdout).contains("remaining 0"));
}

#[test]
fn an_answer_given_beforehand_takes_the_plan_to_its_end() {
    let place = Place::new();
    let mut run = place.headless(&short(&[
        "--headless",
        "--answer",
        "main-or-stop=without-a2",
        "--require",
        "pass",
    ]));
    let code = run.end();
    let answered = run.event("decision_answered");
    assert_eq!((&answered["option"], &answered["by"]), (&"without-a2".into(), &"headless".into()));
    let folder = run.event("run_ended")["folder"].as_str().unwrap().to_owned();
    let summary = json(&std::path::Path::new(&folder).join("summary.json"));
    let main: Vec<String> = contract::cells(&summary)
        .into_iter()
        .filter(|cell| cell["stage"] == "main")
        .inspect(|cell| assert!(contract::count(cell, "succeeded") > 0, "{}", cell["reasons"]))
        .map(|cell| cell["id"].as_str().unwrap().split('-').next().unwrap().to_owned())
        .collect();
    assert_eq!(main, ["D1", "R1", "A1"]);
    let gone =
        run.wait("A2's gate gone", |l| l["event"] == "resource_gone" && l["id"] == "gate A2");
    let torn_down = run.event("teardown_started");
    assert!(gone["seq"].as_u64() < torn_down["seq"].as_u64(), "A2 alone is removed at once");
    // Cells of three seconds have too few samples for a PASS, and that is what was required.
    assert_eq!(code, 3);
    place.assert_nothing_left();
}

#[test]
fn an_interrupt_stops_tears_down_and_reports() {
    let place = Place::new();
    let mut run = place.headless(&short(&["--headless"]));
    run.wait("a measuring cell", |line| line["state"] == "measure");
    let pid = run.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(run.end(), 0);
    assert_eq!(run.event("teardown_ended")["remaining_count"], 0);
    place.assert_nothing_left();
}

#[test]
fn the_guard_ends_a_run_that_would_cost_too_much() {
    let place = Place::new();
    let mut run = place.headless(&short(&["--headless", "--set", "budget.guard=\"0.06\""]));
    assert_eq!(run.end(), 5);
    let guard = run.event("guard");
    assert!(guard["text"].as_str().unwrap().starts_with("GUARD"), "{guard}");
    place.assert_nothing_left();
}

#[test]
fn a_hook_of_the_operators_gets_notable_events_as_json() {
    let place = Place::new();
    let heard = place.path("heard");
    let hook = format!("notify=[\"sh\", \"-c\", \"cat >> {}\"]", heard.display());
    let mut run = place.headless(&short(&[
        "--headless",
        "--set",
        &hook,
        "--set",
        "stage.main-or-stop.decision.deadline_s=2",
    ]));
    assert_eq!(run.end(), 0);
    let events: Vec<String> = wait_for("the end of the run in the hook's file", || {
        let text = std::fs::read_to_string(&heard).ok()?;
        let events: Vec<String> = text
            .lines()
            .map(|line| {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                event["event"].as_str().unwrap().to_owned()
            })
            .collect();
        events.contains(&"run_ended".to_owned()).then_some(events)
    });
    assert!(events.contains(&"decision_asked".to_owned()), "{events:?}");
}

#[test]
fn the_command_line_finds_runs_by_name() {
    let place = Place::new();
    let none = place.output(&["status"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("rampdeck rehearse"));

    let run = place.headless(&short(&["--headless"]));
    run.wait("a measuring cell", |line| line["state"] == "measure");
    let status = place.output(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["going_on"], true);
    let name = status["run"].as_str().unwrap().to_owned();
    let plain = place.output(&["status", &name]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("REHEARSAL"));

    let verify = place.output(&["verify", &name]);
    assert_eq!(verify.status.code(), Some(4), "what a running run holds remains");
    let refused = place.output(&["teardown", &name]);
    assert_eq!(refused.status.code(), Some(2), "without a terminal the name cannot be typed");
    let stopped = place.output(&["stop", &name]);
    assert_eq!(stopped.status.code(), Some(0), "{}", String::from_utf8_lossy(&stopped.stderr));
    assert!(String::from_utf8_lossy(&stopped.stdout).contains("resources kept until"));
    let teardown = place.output(&["teardown", &name, "--yes"]);
    assert_eq!(teardown.status.code(), Some(0), "{}", String::from_utf8_lossy(&teardown.stderr));
    assert!(String::from_utf8_lossy(&teardown.stdout).contains("remaining 0"));
    place.assert_nothing_left();

    let again = place.output(&["teardown", &name, "--yes"]);
    assert_eq!(again.status.code(), Some(0), "a teardown can be repeated");
    let ended = place.output(&["status", &name, "--json"]);
    let ended: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended["summary"]["teardown"]["remaining_count"], 0);
    let attach = place.output(&["attach", &name]);
    assert_eq!(attach.status.code(), Some(1), "an ended run cannot be attached to");
}
