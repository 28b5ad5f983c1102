//! Rows 5 and 10: the rates and latencies of the published runs, on the null endpoint.

use rampdeck::{
    engine::{JudgeInput, judge},
    model::{CellResult, Mix, Part, PoolShape, ReasonCode, Recording, Shape, Slo, Verdict},
};

use super::{
    Failure,
    agent::Agent,
    endpoint::{Endpoint, PUBLISHED},
    options::Options,
    pairs::pairs,
    pgbench::Pgbench,
    report::Report,
    sample::{Load, Peer, Sample, Spread},
};

const CONNECTIONS: u32 = 256;
const RATES: [f64; 2] = [4_000.0, 8_100.0];
/// So long pgbench takes to prepare some 90 statements for each of 256 clients at 1.7 ms each, two
/// at a time; and some more.
const PREPARED_AFTER_S: u32 = 26;
/// The rate at which the published generator used 12.9 of 16 processors.
const HIGHEST: f64 = 24_541.0;

pub fn ms(recording: &Recording, quantile: f64) -> f64 {
    recording.quantile_ms(quantile).unwrap_or(f64::NAN)
}

pub fn carried(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let endpoint = Endpoint::start(PUBLISHED)?;
    for rate in RATES {
        let load = Load { rate, connections: CONNECTIONS, seconds: options.seconds };
        let what = format!("D1's latencies, {CONNECTIONS} connections, order mix at {rate}/s");
        let agent = Agent::new(endpoint.target(), Mix::default(), Shape::default());
        let mut agent = Watched { agent, figures: Figures::default() };
        let mut peer = Pgbench::mix(endpoint.server(), None)?.warmed_up(PREPARED_AFTER_S);
        pairs(5, &what, options, report, load, (&mut agent, &mut peer), || Ok(()))?;
        agent.figures.tell(&what, report);
    }
    Ok(())
}

/// An agent whose own figures are gathered.
struct Watched {
    agent: Agent,
    figures: Figures,
}

impl Peer for Watched {
    fn name(&self) -> &'static str {
        self.agent.name()
    }

    fn run(&mut self, load: Load) -> Result<Sample, Failure> {
        let sample = self.agent.run(load)?;
        self.figures.add(&sample);
        Ok(sample)
    }
}

#[derive(Default)]
struct Figures {
    connection_wait: Spread,
    schedule_lag: Spread,
    carried: Spread,
    cpu_us: Spread,
    failed: u64,
    rejected: u64,
    invalid: Vec<String>,
    judged: usize,
}

impl Figures {
    fn add(&mut self, sample: &Sample) {
        let Some(result) = &sample.result else { return };
        self.connection_wait.add(ms(&result.classes.overall(Part::ConnectionWait), 0.99));
        self.schedule_lag.add(ms(&result.classes.overall(Part::ScheduleLag), 0.99));
        self.carried.add(sample.rate());
        self.cpu_us.add(sample.cpu_us());
        self.failed += result.counts.failed + result.counts.unknown;
        self.rejected += result.counts.business_rejected;
        self.judged += 1;
        self.invalid.extend(invalid(result));
    }

    fn tell(&self, what: &str, report: &mut Report) {
        let mut line = |name: &str, figures: String| {
            report.line(5, &format!("{what}: {name}"), &figures);
        };
        line("connection wait p99, ms", self.connection_wait.show(3));
        line("schedule lag p99, ms", self.schedule_lag.show(3));
        line("completed per second", self.carried.show(0));
        line("failed and rejected", format!("{} and {}", self.failed, self.rejected));
        let processors = self.cpu_us.median() * HIGHEST / 1e6;
        line("processors that 24,541/s would take", format!("{processors:.1} (published: 12.9)"));
        let verdict = match self.invalid.first() {
            None => format!("no, of {} cells none", self.judged),
            Some(why) => format!("{} of {} cells: {why}", self.invalid.len(), self.judged),
        };
        line("INVALID raised", verdict);
    }
}

/// Why the engine would call the cell INVALID, if it would.
fn invalid(result: &CellResult) -> Option<String> {
    let (verdict, reasons) = judge(&JudgeInput {
        slo: &Slo::default(),
        mix: &Mix::default(),
        result,
        // There is no database to check: that is no reason to call it INVALID.
        invariants: None,
        beside: &[],
        rehearsal: false,
        cut: None,
        stepped: None,
    });
    if verdict != Verdict::Invalid {
        return None;
    }
    let reasons: Vec<_> = reasons
        .into_iter()
        .filter(|reason| reason.code != ReasonCode::Unchecked)
        .map(|reason| reason.text)
        .collect();
    Some(reasons.join("; "))
}

pub fn partitions(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let endpoint = Endpoint::start(PUBLISHED)?;
    let pool = PoolShape::Pool { size: 16, partitions: 16, wait_timeout_ms: 30_000 };
    for rate in RATES {
        let load = Load { rate, connections: CONNECTIONS, seconds: options.seconds };
        let mut arrangements =
            [("1 × 256", PoolShape::Claim), ("16 × 16", pool)].map(|(name, pool)| {
                let shape = Shape { pool, ..Shape::default() };
                (name, Agent::new(endpoint.target(), Mix::default(), shape), Arrangement::default())
            });
        for _ in 0..options.pairs {
            for (_, agent, figures) in &mut arrangements {
                figures.add(&agent.run(load)?);
            }
        }
        for (name, _, figures) in &arrangements {
            report.line(10, &format!("{name}, order mix at {rate}/s"), &figures.show());
        }
    }
    Ok(())
}

#[derive(Default)]
struct Arrangement {
    connection_wait: [Spread; 3],
    schedule_lag: Spread,
    service: Spread,
    carried: Spread,
}

impl Arrangement {
    fn add(&mut self, sample: &Sample) {
        let Some(result) = &sample.result else { return };
        let wait = result.classes.overall(Part::ConnectionWait);
        for (spread, quantile) in self.connection_wait.iter_mut().zip([0.5, 0.99, 0.999]) {
            spread.add(ms(&wait, quantile));
        }
        self.schedule_lag.add(ms(&result.classes.overall(Part::ScheduleLag), 0.99));
        self.service.add(ms(&result.classes.overall(Part::Service), 0.99));
        self.carried.add(sample.rate());
    }

    fn show(&self) -> String {
        let [p50, p99, p999] = self.connection_wait.each_ref().map(|spread| spread.show(3));
        format!(
            "connection wait p50 {p50}, p99 {p99}, p99.9 {p999} ms; schedule lag p99 {} ms; \
             service p99 {} ms; {} completed per second",
            self.schedule_lag.show(3),
            self.service.show(1),
            self.carried.show(0)
        )
    }
}
