//! The console in a pseudo-terminal, driven with keys.

use std::path::PathBuf;

use crate::{
    contract,
    headless::short,
    support::{Place, Terminal, json, wait_for},
};

/// The run's name and folder.
fn newest(place: &Place) -> (String, PathBuf) {
    let run = wait_for("a run", || place.newest_run());
    let text = |name: &str| run[name].as_str().unwrap().to_owned();
    (text("run"), text("folder").into())
}

/// A rehearsal whose plan leaves the operator time.
fn rehearse(place: &Place, columns: u16, rows: u16, more: &[&str]) -> Terminal {
    place.terminal(columns, rows, &short(more))
}

fn tear_down(terminal: &mut Terminal, run: &str) {
    terminal.keys("T");
    terminal.wait_text("TEARDOWN");
    terminal.keys(run);
    terminal.keys("\r");
    terminal.wait_text("remaining 0");
}

#[test]
fn the_whole_circuit_start_step_ramp_look_decide_and_tear_down() {
    let place = Place::new();
    let mut terminal = rehearse(
        &place,
        120,
        36,
        &["--set", "stage.pilot.measure_s=2", "--set", "stage.main.measure_s=30"],
    );
    let screen = terminal.wait("four panes at work", |screen| {
        screen.matches("MEASURING").count() + screen.matches("WARM-UP").count() >= 2
    });
    assert!(screen.contains("REHEARSAL"), "{screen}");
    for id in ["D1", "R1", "A1", "A2"] {
        assert!(screen.contains(id), "{screen}");
    }
    let (run, folder) = newest(&place);

    // The plan comes to its question and waits, with what waiting costs.
    let screen = terminal.wait_text("While you wait");
    assert!(screen.contains("safe default"), "{screen}");
    assert!(screen.contains("USD"), "{screen}");
    // It opened by itself: it takes answers once the line at the bottom offers them.
    terminal.wait_text("choose");
    terminal.keys("1\r");
    wait_for("the main stage", || {
        let journal = std::fs::read_to_string(folder.join("journal.jsonl")).unwrap();
        journal.contains(r#""event":"decision_answered""#).then_some(())
    });

    // An open cell at 50/s on D1, stepped to 100/s.
    terminal.keys("s");
    terminal.wait_text("START A CELL on D1");
    fill_open_cell(&mut terminal, "50");
    terminal.wait("D1 at 50/s", |screen| screen.contains("open 50/s"));
    wait_for("D1 measures at 50/s", || measuring(&folder, "\"rate\":50.0").then_some(()));
    terminal.keys("x");
    wait_for("D1 measures at 100/s", || measuring(&folder, "\"rate\":100.0").then_some(()));
    terminal.wait("the achieved rate follows", |screen| screen.contains("open 100/s"));

    // A ramp to 200/s within 6 s.
    terminal.keys("m");
    terminal.wait_text("RAMP of D1");
    terminal.keys("200\t6\r");
    wait_for("D1 measures at 200/s", || measuring(&folder, "\"rate\":200.0").then_some(()));

    // Every view; the picture held still and let go.
    terminal.keys("\r");
    terminal.wait_text("60 s ago");
    terminal.keys("f");
    terminal.wait_text("FROZEN");
    terminal.keys("f");
    terminal.wait("live again", |screen| !screen.contains("FROZEN"));
    terminal.keys("c");
    terminal.wait_text("a letter each");
    terminal.keys("u");
    terminal.wait_text("QUEUE");
    terminal.keys("i");
    terminal.wait_text("PostgreSQL server");
    terminal.keys("l");
    terminal.wait_text("LOG");
    terminal.keys("o");
    terminal
        .wait("four panes", |screen| ["D1", "R1", "A1", "A2"].iter().all(|id| screen.contains(id)));

    // By its name.
    terminal.keys(":");
    terminal.wait_text("COMMAND");
    terminal.keys("rate 60\r");
    wait_for("D1 measures at 60/s", || measuring(&folder, "\"rate\":60.0").then_some(()));

    tear_down(&mut terminal, &run);
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.is_alternate(), "the terminal is given back");
    place.assert_nothing_left();

    let summary = json(&folder.join("summary.json"));
    contract::assert_holds(&summary);
    let rates: Vec<f64> = contract::cells(&summary)
        .iter()
        .filter(|cell| cell["stage"] == "operator")
        .map(|cell| cell["load"]["rate"].as_f64().unwrap())
        .collect();
    assert_eq!(rates[..2], [50.0, 100.0], "a step makes a cell of its own");
    assert!(rates.contains(&200.0), "a ramp comes to its target: {rates:?}");
    assert_eq!(rates.last(), Some(&60.0), "{rates:?}");
}

/// Whether the journal has a cell with this load that measures.
fn measuring(folder: &std::path::Path, load: &str) -> bool {
    let journal = std::fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let started = events.iter().find(|event| {
        event["event"] == "cell_started"
            && event["stage"] == "operator"
            && event["load"].to_string().contains(load)
    });
    started.is_some_and(|started| {
        events.iter().any(|event| {
            event["event"] == "cell_phase"
                && event["cell"] == started["cell"]
                && event["phase"] == "measure"
        })
    })
}

/// Fills the form in: an open loop at this rate, long enough to be stepped.
fn fill_open_cell(terminal: &mut Terminal, rate: &str) {
    if !terminal.text().contains("[open]") {
        terminal.keys(" ");
        terminal.wait_text("[open]");
    }
    // What is typed takes the place of what stood there.
    terminal.keys(&format!("\t{rate}"));
    terminal.wait("the rate typed", |screen| {
        screen.lines().any(|line| line.contains("rate /s") && line.contains(&format!(" {rate} ")))
    });
    terminal.keys("\r");
}

#[test]
fn an_unanswered_decision_takes_its_safe_default() {
    let place = Place::new();
    let mut terminal = rehearse(
        &place,
        80,
        24,
        &[
            "--set",
            "stage.pilot.measure_s=2",
            "--set",
            "stage.explore.measure_s=2",
            "--set",
            "stage.main-or-stop.decision.deadline_s=4",
        ],
    );
    terminal.wait_text("DECISION");
    terminal.wait_text("remaining 0");
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_detached_run_goes_on_and_is_attached_to_again() {
    let place = Place::new();
    let mut terminal = rehearse(&place, 120, 36, &["--set", "stage.pilot.measure_s=30"]);
    terminal.wait_text("MEASURING");
    let (run, _) = newest(&place);
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("rampdeck attach"), "{}", terminal.text());

    let mut again = place.terminal(120, 36, &["attach"]);
    again.wait_text("MEASURING");
    for (columns, rows) in [(80, 24), (40, 10), (10, 3), (1, 1), (200, 50)] {
        again.resize(columns, rows);
    }
    again.wait_text("MEASURING");
    tear_down(&mut again, &run);
    again.keys("q");
    assert_eq!(again.end(), 0);
    place.assert_nothing_left();
}
