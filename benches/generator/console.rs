//! Row 12: whether a console that watches a run changes what the run measures.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;

use super::{
    Failure,
    endpoint::{Latency, PUBLISHED},
    options::Options,
    process::Owned,
    report::Report,
    sample::Spread,
};

const RATE: u32 = 1_000;
/// Pairs for each that is asked for: what is looked for is smaller than what a pair scatters.
const PAIRS_EACH: u32 = 3;
/// Seconds that a console may take to come, and to be gone.
const SETTLE_S: u32 = 3;
/// A console draws at most every 33 ms; a new size has it draw everything.
const RESIZE_EVERY: Duration = Duration::from_millis(33);
const END_LIMIT: Duration = Duration::from_secs(120);

/// Whether a console that watches costs the generator anything: its processor time within one cell
/// to which a console comes and goes, and the response times of cells with and without one.
pub fn attached(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let (cpu, drawn_within) = processor_time(options, report)?;
    let (p99, drawn) = response_times(options, report)?;
    let what = format!("a console at full redraw, order mix at {RATE}/s");
    for (name, spread) in [("processor time", cpu), ("response p99", p99)] {
        let figures = format!(
            "**{}** × alone, the median of {} pairs with its 95 % interval; all within {}",
            spread.show_interval(3),
            spread.len(),
            spread.show(2)
        );
        report.line(12, &format!("{what}: {name}"), &figures);
    }
    if drawn_within == 0 || drawn == 0 {
        return Err("the console has drawn nothing".into());
    }
    Ok(())
}

/// One cell, with a console for half of its spans: what differs from process to process (where the
/// system has put its memory and its threads) is then the same in both halves of a pair. The first
/// half of a pair is watched in every other pair, so that what drifts falls on both.
fn processor_time(options: &Options, report: &mut Report) -> Result<(Spread, u64), Failure> {
    let pairs = options.pairs * PAIRS_EACH;
    let span = options.seconds + SETTLE_S;
    let place = tempfile::Builder::new().prefix("rd-bench-").tempdir()?;
    let plan = place.path().join("plan.toml");
    fs::write(&plan, plan_text(pairs * 2 * span + SETTLE_S))?;
    let mut engine = rampdeck(place.path())
        .arg("run")
        .arg(&plan)
        .args(["--headless", "--out"])
        .arg(place.path().join("out"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = BufReader::new(engine.stdout.take().ok_or("the run has no output")?).lines();
    let mut engine = Owned(engine);
    let mut seconds = lines.filter_map(|line| measured(&line.ok()?));
    let (mut ratios, mut drawn) = (Spread::default(), 0);
    for pair in 0..pairs {
        let mut half = |watched: bool| -> Result<f64, Failure> {
            let console = watched.then(|| Console::start(place.path()));
            let all: Vec<Second> = seconds.by_ref().take(span as usize).collect();
            drawn += console.map_or(Ok(0), Console::end)?;
            if all.len() < span as usize {
                return Err("the cell ended early".into());
            }
            // The console's start, or its end, is in the first ones.
            let steady = &all[SETTLE_S as usize..];
            let cpu: f64 = steady.iter().map(|second| second.cpu_percent).sum();
            let achieved: f64 = steady.iter().map(|second| second.achieved).sum();
            Ok(cpu / achieved * 1e4)
        };
        let (alone, watched) = if pair.is_multiple_of(2) {
            let alone = half(false)?;
            (alone, half(true)?)
        } else {
            let watched = half(true)?;
            (half(false)?, watched)
        };
        report.step(&format!("within a cell: alone {alone:.1} µs, watched {watched:.1} µs"));
        ratios.add(watched / alone);
    }
    // Its output is read to its end, so that the run is not held up by it.
    seconds.by_ref().for_each(drop);
    let status = engine.ended_within(END_LIMIT)?;
    if status.success() { Ok((ratios, drawn)) } else { Err(format!("the run: {status}").into()) }
}

/// What a line of the run's output says of a second of the measured span.
struct Second {
    cpu_percent: f64,
    achieved: f64,
}

fn measured(line: &str) -> Option<Second> {
    let line: Value = serde_json::from_str(line).ok()?;
    let figure = |name: &str| line.get(name).and_then(Value::as_f64);
    (line.get("state")?.as_str()? == "measure").then_some(())?;
    Some(Second { cpu_percent: figure("runner_cpu_percent")?, achieved: figure("achieved")? })
}

/// Runs the same cell with and without a console in turn.
fn response_times(options: &Options, report: &mut Report) -> Result<(Spread, u64), Failure> {
    let (mut p99, mut drawn) = (Spread::default(), 0);
    for pair in 0..options.pairs * PAIRS_EACH {
        let run = |watched| Watched::run(options, watched);
        let (alone, watched) = if pair.is_multiple_of(2) {
            let alone = run(false)?;
            (alone, run(true)?)
        } else {
            let watched = run(true)?;
            (run(false)?, watched)
        };
        report.step(&format!(
            "alone p99 {:.2} ms; watched p99 {:.2} ms, {} KiB drawn",
            alone.p99_ms,
            watched.p99_ms,
            watched.drawn / 1024
        ));
        p99.add(watched.p99_ms / alone.p99_ms);
        drawn += watched.drawn;
    }
    Ok((p99, drawn))
}

/// What one cell came to.
struct Watched {
    p99_ms: f64,
    /// Bytes that the console wrote to its terminal.
    drawn: u64,
}

impl Watched {
    fn run(options: &Options, watched: bool) -> Result<Self, Failure> {
        let place = tempfile::Builder::new().prefix("rd-bench-").tempdir()?;
        let (plan, out) = (place.path().join("plan.toml"), place.path().join("out"));
        fs::write(&plan, plan_text(options.seconds))?;
        let engine = rampdeck(place.path())
            .arg("run")
            .arg(&plan)
            .args(["--headless", "--out"])
            .arg(&out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut engine = Owned(engine);
        let console = watched.then(|| Console::start(place.path()));
        let status = engine.ended_within(END_LIMIT)?;
        let drawn = console.map_or(Ok(0), Console::end)?;
        if !status.success() {
            return Err(format!("the run ended with {status}").into());
        }
        let summary: Value = serde_json::from_slice(&fs::read(out.join("summary.json"))?)?;
        let cell = &summary["configurations"][0]["cells"][0];
        let figure = |path: &str| {
            cell.pointer(path).and_then(Value::as_f64).ok_or(format!("no {path} in the summary"))
        };
        Ok(Self { p99_ms: figure("/all/response_ms/p99")?, drawn })
    }
}

/// A cell on a database with the published latencies: what an operator watches.
fn plan_text(seconds: u32) -> String {
    let Latency { round_trip_ms, commit_write_ms } = PUBLISHED;
    format!(
        "name = \"console\"\nscale = 0.001\nhold_s = 0\n\n[load]\nwarmup_s = 3\nmeasure_s = {seconds}\n\n\
         [budget]\ncap = 1\n\n[[configuration]]\nid = \"L1\"\nkind = \"lab\"\n\
         gate = {{ round_trip_ms = {round_trip_ms}, commit_write_ms = {commit_write_ms} }}\n\n\
         [[stage]]\nname = \"main\"\nopen = [{RATE}]\nconnections = 64\n"
    )
}

/// The program, with a data folder of its own.
fn rampdeck(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rampdeck"));
    command.env("XDG_DATA_HOME", place);
    command
}

/// A console in a terminal that changes its size all the time.
struct Console {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Console {
    fn start(place: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, place) = (Arc::clone(&stop), place.to_owned());
        let thread = std::thread::spawn(move || {
            attach(&place, &stopping).map_err(|failure| failure.to_string())
        });
        Self { stop, thread }
    }

    fn end(self) -> Result<u64, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let drawn = self.thread.join().map_err(|_| "the console's thread panicked")?;
        Ok(drawn?)
    }
}

fn attach(place: &Path, stop: &AtomicBool) -> Result<u64, Failure> {
    let size = |cols| PtySize { rows: 50, cols, pixel_width: 0, pixel_height: 0 };
    let began = Instant::now();
    // The run is there a moment after its command was started.
    while Command::new(env!("CARGO_BIN_EXE_rampdeck"))
        .arg("status")
        .env("XDG_DATA_HOME", place)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_or(true, |status| !status.success())
    {
        if began.elapsed() > Duration::from_secs(20) {
            return Err("there is no run to attach to".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let pair = native_pty_system().openpty(size(200))?;
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_rampdeck"));
    command.arg("attach");
    command.env("XDG_DATA_HOME", place);
    command.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(command)?;
    drop(pair.slave);
    let mut screen = pair.master.try_clone_reader()?;
    let reading = std::thread::spawn(move || {
        let (mut drawn, mut buffer) = (0, vec![0; 64 * 1024]);
        // It ends with an error once the other side is closed.
        while let Ok(length @ 1..) = screen.read(&mut buffer) {
            drawn += length as u64;
        }
        drawn
    });
    let mut wide = false;
    while !stop.load(Ordering::Relaxed) && child.try_wait()?.is_none() {
        pair.master.resize(size(if wide { 200 } else { 199 }))?;
        wide = !wide;
        std::thread::sleep(RESIZE_EVERY);
    }
    // It may have ended with its run.
    let _ = child.kill();
    child.wait()?;
    drop(pair.master);
    Ok(reading.join().map_err(|_| "the screen's reader panicked")?)
}
