//! Row 6: how late transactions start, beside a bare loop that does nothing but wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use rampdeck::model::{Part, Recording};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::{
    thread::{ClockId as SleepClock, clock_nanosleep_absolute},
    time::{ClockId, Timespec, clock_gettime},
};

use super::{
    Failure,
    agent::{Agent, LOOKUPS},
    endpoint::{Endpoint, Latency},
    options::Options,
    pairs::pipelined,
    published::ms,
    report::Report,
    sample::{Load, Peer, Spread},
};

const RATE: f64 = 10_000.0;
const IDLE_RATE: f64 = 10.0;
const CONNECTIONS: u32 = 64;

pub fn beside_a_bare_loop(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let endpoint = Endpoint::start(Latency::default())?;
    let mut agent = Agent::new(endpoint.target(), LOOKUPS, pipelined());
    let load = Load { rate: RATE, connections: CONNECTIONS, seconds: options.seconds };
    let [mut ours, mut bare, mut more] =
        [const { Vec::new() }; 3].map(|_: Vec<f64>| Spread::default());
    for pair in 0..options.pairs {
        let waiting = BareLoop::start(RATE, pair.into())?;
        let sample = agent.run(load)?;
        let loop_ms = ms(&waiting.stop()?, 0.99);
        sample.check(load)?;
        let result = sample.result.as_ref().ok_or("the agent gave no result")?;
        let our_ms = ms(&result.classes.overall(Part::ScheduleLag), 0.99);
        report.step(&format!("schedule lag p99 {our_ms:.3} ms, the bare loop's {loop_ms:.3} ms"));
        ours.add(our_ms);
        bare.add(loop_ms);
        more.add(our_ms - loop_ms);
    }
    let what = "schedule lag p99 at 10,000/s over the bare loop's, ms";
    let figures = format!("**{}**; {} against {}", more.show(3), ours.show(3), bare.show(3));
    report.line(6, what, &figures);
    let idle = Load { rate: IDLE_RATE, ..load };
    let mut percent = Spread::default();
    for _ in 0..options.pairs {
        percent.add(100.0 * agent.run(idle)?.processors());
    }
    report.line(6, "the agent at 10/s, percent of one processor", &percent.show(2));
    Ok(())
}

/// A thread that sleeps until each arrival of a schedule and records how late it woke.
struct BareLoop {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Recording>,
}

impl BareLoop {
    fn start(rate: f64, seed: u64) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("bare loop".into())
            .spawn(move || wait_for_arrivals(rate, seed, &stopped))?;
        Ok(Self { stop, thread })
    }

    fn stop(self) -> Result<Recording, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the bare loop panicked".into())
    }
}

fn wait_for_arrivals(rate: f64, seed: u64, stopped: &AtomicBool) -> Recording {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut lateness = Recording::new();
    let mut due = now();
    while !stopped.load(Ordering::Relaxed) {
        // Exponential gaps: Poisson arrivals. The draw is above 0.
        let gap_s = -(1.0 - random.random::<f64>()).ln() / rate;
        due += (gap_s * 1e9) as u64;
        if due > now() {
            // What wakes it early is no arrival: the time is asked for below.
            while clock_nanosleep_absolute(SleepClock::Monotonic, &timespec(due)).is_err() {}
        }
        lateness.record(now().saturating_sub(due));
    }
    lateness
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
