//! Faults on the way, made on purpose: by the gate, or by restarting the server.

use serde_json::Value;

use crate::{
    contract::{self, count},
    headless::short,
    programs, server,
    support::{Place, json},
};

/// A plan of one lab configuration with faults, and one open cell.
fn plan(faults: &str, rate: u32, measure_s: u32, more: &str) -> String {
    format!(
        r#"name = "faults"
seed = 7
scale = 0.002
{more}
[budget]
cap = 10
guard = 9
[load]
drain_s = 20
[[configuration]]
id = "D1"
title = "with faults"
kind = "lab"
gate = {{ round_trip_ms = 0.1 }}
{faults}
[[stage]]
name = "cell"
open = [{rate}]
connections = 8
warmup_s = 0
measure_s = {measure_s}
"#
    )
}

/// Runs the plan to its end and gives its one cell and its lines.
fn run(plan: &str) -> (Value, Vec<Value>) {
    let place = Place::new();
    let file = place.file("faults.toml", plan);
    let out = place.path("out");
    let arguments = ["run", file.to_str().unwrap(), "--headless", "--out", out.to_str().unwrap()];
    let mut run = place.headless(&arguments);
    assert_eq!(run.end(), 0);
    place.assert_nothing_left();
    let summary = json(&out.join("summary.json"));
    contract::assert_holds(&summary);
    let cell = contract::cells(&summary)[0].clone();
    assert_eq!(cell["invariants"]["violations"], 0, "{}", cell["invariants"]);
    (cell, run.lines())
}

/// On a machine that does much else the generator may be late, and then says so first.
fn generator_was_the_limit(cell: &Value) -> bool {
    cell["reasons"][0]["code"] == "generator"
}

/// The cell fails for this reason, whatever else is wrong with it.
fn assert_fails(cell: &Value, code: &str) {
    assert!(cell["verdict"] == "FAIL" || generator_was_the_limit(cell), "{}", cell["reasons"]);
    let reasons = cell["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["code"] == code), "{reasons:?}");
}

/// C3: the database freezes in the middle of a cell.
#[test]
fn a_freeze_is_in_the_timeline_and_all_its_arrivals_in_the_percentiles() {
    let faults = "[[configuration.faults]]\nkind = \"freeze\"\nafter_s = 7\nfor_s = 15\n";
    let (cell, lines) = run(&plan(faults, 40, 30, ""));
    assert_fails(&cell, "latency");
    let silent = lines.iter().filter(|line| line["state"] == "measure" && line["succeeded"] == 0.0);
    assert!(silent.count() >= 12, "the freeze is visible second by second");
    contract::assert_invariants(&cell);
    // 40/s for 30 s, none skipped: the arrivals of the freeze wait, and none of them fails.
    let offered = count(&cell, "offered");
    assert!((1000..1400).contains(&offered), "{offered}");
    assert_eq!(count(&cell, "completed") + count(&cell, "in_flight"), offered);
    assert_eq!(cell["tail"]["blamed"], "database", "{}", cell["tail"]);
    // Half of the arrivals fell into the freeze, and waited 7.5 s on average.
    let p95 = cell["all"]["response_ms"]["p95"].as_f64().unwrap();
    assert!((10_000.0..16_000.0).contains(&p95), "{p95}");
    let p50 = cell["all"]["response_ms"]["p50"].as_f64().unwrap();
    assert!((1.0..5_000.0).contains(&p50), "{p50}");
}

/// C11: every attempt of a transaction ends in 40001 until the retries are used up.
#[test]
fn conflicts_without_end_are_attempts_and_one_failure_each() {
    let faults = "[[configuration.faults]]\nkind = \"fail_commit\"\nafter_s = 0\nsqlstate = \"40001\"\nevery = 1\n";
    let more = "[mix]\nproduct_lookup = 0\norder_history = 0\norder_create = 100\norder_cancel = 0\n[retry]\nmax_attempts = 3\nbase_ms = 1\ncap_ms = 2\n";
    let (cell, _) = run(&plan(faults, 20, 5, more));
    let failed = count(&cell, "failed");
    assert!(failed > 50, "{}", cell["counts"]);
    assert_eq!(count(&cell, "succeeded"), 0);
    // Three attempts each; what the business rejects has one and never comes to COMMIT.
    assert_eq!(count(&cell, "attempts"), 3 * failed + count(&cell, "business_rejected"));
    assert_eq!(cell["sqlstates"]["40001"].as_u64().unwrap(), 3 * failed);
    assert_fails(&cell, "failures");
}

/// C15: the server commits, the socket is cut before the reply.
#[test]
fn a_commit_whose_reply_is_lost_is_looked_up_and_counted_once() {
    let faults = "[[configuration.faults]]\nkind = \"cut_after_commit\"\nafter_s = 0\nevery = 3\n";
    let (cell, _) = run(&plan(faults, 60, 8, ""));
    let lost = cell["sqlstates"]["connection_lost"].as_u64().unwrap();
    contract::assert_invariants(&cell);
    assert!(lost > 10, "{}", cell["sqlstates"]);
    assert_eq!(count(&cell, "unknown"), 0, "{}", cell["counts"]);
    assert_eq!(count(&cell, "failed"), 0, "{}", cell["counts"]);
}

#[test]
fn a_restarted_server_is_survived_by_the_cell() {
    let place = Place::new();
    let out = place.path("out");
    let mut run = place.headless(&short(&[
        "--headless",
        "--out",
        out.to_str().unwrap(),
        "--set",
        "stage.pilot.measure_s=12",
        "--set",
        "stage.main-or-stop.decision.deadline_s=1",
    ]));
    run.wait("a measured second", |line| {
        line["state"] == "measure" && line["succeeded"].as_f64().is_some_and(|n| n > 0.0)
    });
    let server = run.wait("the server", |line| {
        line["event"] == "resource_made" && line["resource"]["kind"] == "server"
    });
    let data = server["resource"]["path"].as_str().unwrap();
    let restart = programs::unprivileged(&server::program("pg_ctl"))
        .args(["restart", "-m", "immediate", "-w", "-D", data, "-l", "/dev/null"])
        .output()
        .unwrap();
    assert!(restart.status.success(), "{}", String::from_utf8_lossy(&restart.stdout));
    assert_eq!(run.end(), 0);
    place.assert_nothing_left();
    let summary = json(&out.join("summary.json"));
    contract::assert_holds(&summary);
    let pilot: Vec<&Value> =
        contract::cells(&summary).into_iter().filter(|cell| cell["stage"] == "pilot").collect();
    assert_eq!(pilot.len(), 4);
    for cell in pilot {
        contract::assert_invariants(cell);
        assert!(
            cell["verdict"] != "INVALID" || generator_was_the_limit(cell),
            "{}",
            cell["reasons"]
        );
        let classes = cell["sqlstates"].as_object().unwrap();
        let seen = ["57P01", "57P02", "57P03", "connection_lost", "connect_failed"];
        assert!(seen.iter().any(|class| classes.contains_key(*class)), "{classes:?}");
    }
}

#[test]
fn a_killed_gate_takes_its_configuration_out_and_the_run_goes_on() {
    let place = Place::new();
    let out = place.path("out");
    let mut run = place.headless(&short(&[
        "--headless",
        "--out",
        out.to_str().unwrap(),
        "--set",
        "stage.main-or-stop.decision.deadline_s=1",
    ]));
    let gate = run.wait("D1's gate", |line| {
        line["event"] == "resource_made" && line["resource"]["id"] == "gate D1"
    });
    run.wait("a measured second", |line| {
        line["state"] == "measure" && line["succeeded"].as_f64().is_some_and(|n| n > 0.0)
    });
    let pid = gate["resource"]["process"]["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    run.wait("the loss told", |line| {
        line["event"] == "note" && line["text"].as_str().unwrap().contains("gate died")
    });
    assert_eq!(run.end(), 1);
    assert!(run.event("run_ended")["text"].as_str().unwrap().contains("gate died"));
    place.assert_nothing_left();
    let summary = json(&out.join("summary.json"));
    let explored: Vec<&Value> =
        contract::cells(&summary).into_iter().filter(|cell| cell["stage"] == "explore").collect();
    assert_eq!(explored.len(), 3, "the others go on");
}
