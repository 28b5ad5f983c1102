//! Rows 7 and 8: what many connections cost, and whether memory grows with time.

use rampdeck::model::{AgentReport, Mix, Phase, Shape};

use super::{
    Failure,
    agent::{Agent, LOOKUPS},
    endpoint::{Endpoint, Latency},
    options::Options,
    process::resident_mib,
    report::Report,
    sample::{Load, Peer, Spread},
};

const CONNECTIONS: [u32; 5] = [16, 64, 256, 1_024, 4_096];
const RATE: f64 = 2_000.0;

pub fn connections(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let endpoint = Endpoint::start(Latency::default())?;
    let mut agent = Agent::new(endpoint.target(), LOOKUPS, Shape::default());
    let mut spreads = CONNECTIONS.map(|_| (Spread::default(), Spread::default()));
    for _ in 0..options.pairs {
        let mut fewest = None;
        for (connections, (cpu_us, ratio)) in CONNECTIONS.into_iter().zip(&mut spreads) {
            let load = Load { rate: RATE, connections, seconds: options.seconds };
            let sample = agent.run(load)?;
            sample.check(load)?;
            let us = sample.cpu_us();
            report.step(&format!("{connections} connections: {us:.1} µs a transaction"));
            cpu_us.add(us);
            ratio.add(us / *fewest.get_or_insert(us));
        }
    }
    for (connections, (cpu_us, ratio)) in CONNECTIONS.into_iter().zip(&spreads) {
        let figures =
            format!("**{}** × 16 connections; {} µs a transaction", ratio.show(2), cpu_us.show(1));
        report.line(7, &format!("reads at 2,000/s on {connections} connections"), &figures);
    }
    Ok(())
}

const MEMORY_RATE: f64 = 5_000.0;
const EARLY_S: f64 = 60.0;
const LATE_S: u32 = 600;

pub fn memory(_: &Options, report: &mut Report) -> Result<(), Failure> {
    let endpoint = Endpoint::start(Latency::default())?;
    let mut agent = Agent::new(endpoint.target(), Mix::default(), Shape::default());
    let load = Load { rate: MEMORY_RATE, connections: 64, seconds: LATE_S };
    let mut running = agent.start(load)?;
    let pid = running.process.pid();
    let (mut measured_s, mut early, mut late) = (0.0, None, None);
    let result = running.watch(|said| {
        if let AgentReport::Window(window) = said
            && window.phase == Phase::Measure
        {
            measured_s += window.length_s;
            if measured_s >= EARLY_S && early.is_none() {
                early = Some(resident_mib(pid)?);
            }
            late = Some(resident_mib(pid)?);
        }
        Ok(())
    })?;
    running.end()?;
    let (early, late) = (early.ok_or("it ended within a minute")?, late.ok_or("no windows")?);
    let figures = format!(
        "{early:.2} MiB after 1 min, {late:.2} MiB after {:.0} min: {:+.2} MiB; {} transactions",
        measured_s / 60.0,
        late - early,
        result.counts.completed
    );
    report.line(8, "resident memory of the agent at 5,000/s", &figures);
    Ok(())
}
