//! What is lost and what is not: a terminal, an engine, an agent.

use std::process::Command;

use serde_json::Value;

use crate::{
    contract,
    headless::short,
    support::{Place, json, wait_for},
};

fn kill(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

fn snapshot(place: &Place) -> Value {
    let output = place.output(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["snapshot"].clone()
}

/// The newest window of the first configuration: its cell and number.
fn newest_window(place: &Place) -> (String, u64) {
    let point = &snapshot(place)["configurations"][0]["point"];
    (point["cell"].as_str().unwrap_or_default().to_owned(), point["seq"].as_u64().unwrap_or(0))
}

#[test]
fn a_lost_terminal_ends_the_console_and_not_the_run() {
    let place = Place::new();
    let arguments = short(&["--set", "stage.pilot.measure_s=40"]);
    for hang_up in [true, false] {
        let mut terminal = if hang_up {
            place.terminal(120, 36, &arguments)
        } else {
            place.terminal(120, 36, &["attach"])
        };
        terminal.wait_text("MEASURING");
        let (cell, before) = wait_for("a window", || {
            Some(newest_window(&place)).filter(|(cell, _)| !cell.is_empty())
        });
        let pid = terminal.child.process_id().unwrap();
        if hang_up {
            kill("-HUP", &pid.to_string());
        } else {
            terminal.close();
        }
        terminal.end();
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the console is gone");
        wait_for("three more windows of the same cell", || {
            let (now, seq) = newest_window(&place);
            assert_eq!(now, cell, "the cell never stopped");
            (seq >= before + 3).then_some(())
        });
    }
    let run = place.newest_run().unwrap();
    let teardown = place.output(&["teardown", run["run"].as_str().unwrap(), "--yes"]);
    assert_eq!(teardown.status.code(), Some(0));

    // Every second of the cell is in its log: windows are numbered without a gap.
    let folder = std::path::PathBuf::from(run["folder"].as_str().unwrap());
    let summary = json(&folder.join("summary.json"));
    let cell = contract::cells(&summary)[0]["id"].as_str().unwrap().to_owned();
    let log = std::fs::read_to_string(folder.join("cells").join(format!("{cell}.hlog"))).unwrap();
    let numbers: Vec<u64> = log
        .lines()
        .filter_map(|line| line.split_once("\"seq\":"))
        .map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap())
        .collect();
    assert!(numbers.len() >= 6, "{numbers:?}");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    place.assert_nothing_left();
}

#[test]
fn a_killed_engine_leaves_everything_to_be_found_removed_and_reported() {
    let place = Place::new();
    let run = place.headless(&short(&["--headless", "--set", "stage.pilot.measure_s=40"]));
    let started = run.event("run_started");
    let name = started["run"].as_str().unwrap().to_owned();
    run.wait("some measured seconds", |line| {
        line["state"] == "measure" && line["succeeded"].as_f64().is_some_and(|n| n > 0.0)
    });
    wait_for("two measured windows", || (newest_window(&place).1 >= 4).then_some(()));
    kill("-KILL", &started["pid"].to_string());
    let verify = wait_for("the engine's death to be seen", || {
        let verify = place.output(&["verify", &name]);
        (verify.status.code() == Some(4)).then_some(verify)
    });
    let text = String::from_utf8_lossy(&verify.stdout).into_owned();
    assert!(text.contains("PostgreSQL server"), "{text}");

    let teardown = place.output(&["teardown", &name, "--yes"]);
    assert_eq!(teardown.status.code(), Some(0), "{}", String::from_utf8_lossy(&teardown.stdout));
    let verify = place.output(&["verify", &name]);
    assert_eq!(verify.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&verify.stdout).contains("remaining 0"));
    place.assert_nothing_left();

    let listed = place.newest_run().unwrap();
    assert_eq!(listed["state"], "ended, exit code 1", "it need not be torn down any more");
    let folder = listed["folder"].as_str().unwrap().to_owned();
    let summary = json(&std::path::Path::new(&folder).join("summary.json"));
    assert_eq!(summary["teardown"]["remaining_count"], 0);
    let cells = contract::cells(&summary);
    assert_eq!(cells.len(), 4, "the partial cells are kept");
    let accrued = summary["cost"]["accrued"].as_str().unwrap().parse::<f64>().unwrap();
    assert!(accrued > 0.0, "what was there until the teardown has cost something");
    assert_eq!(summary["cost"]["accrued"], summary["cost"]["projected"]);
    for cell in cells {
        assert_eq!(cell["verdict"], "INVALID");
        assert_eq!(cell["reasons"][0]["code"], "engine_lost");
        assert!(contract::count(cell, "succeeded") > 0, "{cell}");
    }
}

#[test]
fn a_run_of_which_no_file_is_left_is_removed_by_its_mark() {
    let place = Place::new();
    let run = place.headless(&short(&["--headless"]));
    let started = run.event("run_started");
    let name = started["run"].as_str().unwrap().to_owned();
    run.wait("a measuring cell", |line| line["state"] == "measure");
    kill("-KILL", &started["pid"].to_string());
    drop(run);
    std::fs::remove_dir_all(place.path("data")).unwrap();

    let asked = place.output(&["teardown", &name]);
    assert_eq!(asked.status.code(), Some(1), "not without its name, typed or confirmed");
    let teardown = place.output(&["teardown", &name, "--yes"]);
    let text = String::from_utf8_lossy(&teardown.stdout).into_owned();
    assert_eq!(teardown.status.code(), Some(0), "{text}");
    assert!(text.contains("PostgreSQL server") && text.contains("remaining 0"), "{text}");
    place.assert_nothing_left();
    let again = place.output(&["teardown", &name, "--yes"]);
    let text = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(1), "no such run, no success: {text}");
    assert!(text.contains("nothing carries the mark"), "{text}");
}

#[test]
fn a_killed_agent_makes_its_cells_invalid_and_the_run_goes_on() {
    let place = Place::new();
    let mut run = place.headless(&short(&[
        "--headless",
        "--set",
        "stage.main-or-stop.decision.deadline_s=2",
    ]));
    let agent = run.event("agent_started");
    run.wait("a measuring cell", |line| {
        line["state"] == "measure" && line["succeeded"].as_f64().is_some_and(|n| n > 0.0)
    });
    kill("-KILL", &agent["pid"].to_string());
    run.event("agent_lost");
    assert_eq!(run.end(), 0);
    let folder = run.event("run_ended")["folder"].as_str().unwrap().to_owned();
    let summary = json(&std::path::Path::new(&folder).join("summary.json"));
    let verdict = |cell: &Value| cell["verdict"].as_str().unwrap().to_owned();
    let lost: Vec<_> = contract::cells(&summary)
        .into_iter()
        .filter(|cell| cell["reasons"][0]["code"] == "agent_lost")
        .map(verdict)
        .collect();
    assert!(!lost.is_empty() && lost.iter().all(|v| v == "INVALID"), "{lost:?}");
    let explored = contract::cells(&summary)
        .into_iter()
        .filter(|cell| cell["stage"] == "explore" && contract::count(cell, "succeeded") > 0);
    assert_eq!(explored.count(), 4, "the run went on with a new agent");
    place.assert_nothing_left();
}
