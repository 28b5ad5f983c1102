//! What a console costs its terminal and its run: bytes over SSH, a terminal that stops reading, an
//! engine that stalls or goes.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    headless::short,
    support::{Place, Terminal, wait_for},
};

/// As long as the terminal that stalls does not read.
const STALL: Duration = Duration::from_secs(60);
/// What a busy overview may write over SSH, in bytes a second.
const MOST_BYTES: f64 = 8.0 * 1024.0;
/// What a stalled console may grow by, in KiB: a few frames of the link.
const MOST_GROWTH_KIB: u64 = 4 * 1024;

fn snapshot(place: &Place) -> Value {
    let output = place.output(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["snapshot"].clone()
}

fn run_of(place: &Place) -> String {
    wait_for("a run", || place.newest_run())["run"].as_str().unwrap().to_owned()
}

fn tear_down(place: &Place, terminals: impl IntoIterator<Item = Terminal>) {
    let run = run_of(place);
    assert_eq!(place.output(&["teardown", &run, "--yes"]).status.code(), Some(0));
    for mut terminal in terminals {
        terminal.wait_text("RUN ENDED");
        terminal.keys("q");
        assert_eq!(terminal.end(), 0);
    }
    place.assert_nothing_left();
}

fn four_at_work(terminal: &Terminal) {
    terminal.wait("four panes at work", |screen| screen.matches("MEASURING").count() == 4);
}

/// What the system says a process holds in memory, in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn window_of(snapshot: &Value) -> u64 {
    snapshot["configurations"][0]["point"]["seq"].as_u64().unwrap_or(0)
}

#[test]
fn four_busy_panes_cost_little_over_ssh() {
    let place = Place::new();
    let arguments = short(&["--set", "stage.pilot.measure_s=60"]);
    let ssh = [("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")];
    let terminal = place.terminal_with(120, 36, &arguments, &ssh);
    four_at_work(&terminal);
    let (began, before) = (Instant::now(), terminal.drawn());
    let from = window_of(&snapshot(&place));
    wait_for("ten more windows", || {
        let now = window_of(&snapshot(&place));
        (now >= from + 10).then_some(())
    });
    let written = (terminal.drawn() - before) as f64 / began.elapsed().as_secs_f64();
    assert!(written > 50.0, "nothing is drawn: {written:.0} bytes a second");
    assert!(written < MOST_BYTES, "{written:.0} bytes a second");
    tear_down(&place, [terminal]);
}

#[test]
fn a_terminal_that_stops_reading_holds_nobody_up_and_catches_up() {
    let place = Place::new();
    let arguments = short(&["--set", "stage.pilot.measure_s=100"]);
    let stalled = place.terminal(120, 36, &arguments);
    four_at_work(&stalled);
    let watching = place.terminal(120, 36, &["attach"]);
    four_at_work(&watching);
    let console = stalled.child.process_id().unwrap();
    // The engine keeps the last ten windows of each cell: until then it grows in any case.
    let full = |snapshot: &Value| window_of(snapshot) >= 15;
    let before = wait_for("fifteen windows", || Some(snapshot(&place)).filter(full));
    let engine = u32::try_from(before["engine_pid"].as_u64().unwrap()).unwrap();
    let sizes = (resident_kib(console), resident_kib(engine));
    stalled.hold(true);
    let (began, mut windows, mut drawn) = (Instant::now(), window_of(&before), watching.drawn());
    // Whole frames, so that the terminal's own buffers are full within a moment.
    let mut wide = false;
    while began.elapsed() < STALL {
        stalled.resize(if wide { 120 } else { 119 }, 36);
        wide = !wide;
        // The engine and the other console go on all the while.
        wait_for("the next window", || {
            let now = window_of(&snapshot(&place));
            (now > windows).then(|| windows = now)
        });
        wait_for("the other console's next second", || {
            (watching.drawn() > drawn).then(|| drawn = watching.drawn())
        });
    }
    let seconds = began.elapsed().as_secs();
    let grown = (resident_kib(console), resident_kib(engine));
    assert!(grown.0 < sizes.0 + MOST_GROWTH_KIB, "console: {} to {} KiB", sizes.0, grown.0);
    assert!(grown.1 < sizes.1 + MOST_GROWTH_KIB, "engine: {} to {} KiB", sizes.1, grown.1);
    assert!(windows >= window_of(&before) + seconds * 3 / 4, "{windows} windows in {seconds} s");
    stalled.resize(120, 36);
    stalled.hold(false);
    let clock = |screen: &str| {
        let at = screen.find("engine live")?;
        screen[..at].rsplit("00:").next().map(|clock| clock[..5].to_owned())
    };
    stalled.wait("the newest state", |screen| {
        let newest = clock(&watching.text());
        newest.is_some() && clock(screen) == newest
    });
    tear_down(&place, [stalled, watching]);
}

#[test]
fn a_hung_engine_makes_the_figures_look_stale_and_a_lost_one_is_torn_down_without_it() {
    let place = Place::new();
    let mut terminal = place.terminal(120, 36, &short(&["--set", "stage.pilot.measure_s=60"]));
    four_at_work(&terminal);
    let engine = snapshot(&place)["engine_pid"].as_u64().unwrap().to_string();
    let kill = |signal: &str| {
        assert!(Command::new("kill").args([signal, &engine]).status().unwrap().success());
    };
    kill("-STOP");
    terminal.wait("the age of the figures", |screen| screen.contains("ENGINE SILENT for"));
    kill("-CONT");
    terminal.wait_text("engine live");
    kill("-KILL");
    terminal.wait_text("ENGINE LOST");
    // One key, then the name, as with an engine.
    terminal.keys("T");
    terminal.wait_text("The engine does not answer");
    terminal.keys(&run_of(&place));
    terminal.keys("\r");
    terminal.wait_text("remaining 0");
    terminal.wait_text("RUN ENDED");
    terminal.keys("q");
    terminal.end();
    place.assert_nothing_left();
}
