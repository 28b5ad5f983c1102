//! Rows 1 to 4: rampdeck beside a peer on the same PostgreSQL, pair by pair.

use rampdeck::model::{Mix, RoundTrips, Shape};

use super::{
    Failure,
    agent::{Agent, LOOKUPS},
    endpoint::{Endpoint, Latency},
    options::Options,
    pgbench::Pgbench,
    postgres::Postgres,
    psycopg::Psycopg,
    report::Report,
    sample::{Load, Peer, Sample, Spread},
};

/// Arrivals per second of the reads.
const READS: f64 = 2_000.0;
/// Arrivals per second of the mix: what a small machine's server carries.
const MIX: f64 = 800.0;
/// What psycopg carries on one interpreter of a server whose rows conflict.
const MIX_IN_PYTHON: f64 = 800.0;
/// On the null endpoint, which has no conflicts, it is measured at this rate and at the highest one
/// that it carries, which is looked for in steps up to where it surely fails.
const NULL_MIX_IN_PYTHON: f64 = 1_200.0;
const STEP_IN_PYTHON: f64 = 100.0;
const MOST_IN_PYTHON: f64 = 4_000.0;
/// Length of each step of the search, in seconds.
const STEP_SECONDS: u32 = 5;
const MIX_CONNECTIONS: u32 = 64;
const READ_CONNECTIONS: [u32; 2] = [64, 256];

pub fn pipelined() -> Shape {
    Shape { round_trips: RoundTrips::Pipelined, ..Shape::default() }
}

pub fn reads(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let postgres = Postgres::start(options)?;
    for connections in READ_CONNECTIONS {
        let mut agent = Agent::new(postgres.target(), LOOKUPS, Shape::default());
        let mut peer = Pgbench::reads(postgres.server())?;
        let load = Load { rate: READS, connections, seconds: options.seconds };
        let what = format!("reads, {connections} connections");
        pairs(1, &what, options, report, load, (&mut agent, &mut peer), || Ok(()))?;
    }
    Ok(())
}

pub fn pipelined_reads(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let postgres = Postgres::start(options)?;
    for connections in READ_CONNECTIONS {
        let mut agent = Agent::new(postgres.target(), LOOKUPS, pipelined());
        let mut peer = Pgbench::pipelined_reads(postgres.server())?;
        let load = Load { rate: READS, connections, seconds: options.seconds };
        let what = format!("reads pipelined, {connections} connections");
        pairs(2, &what, options, report, load, (&mut agent, &mut peer), || Ok(()))?;
    }
    Ok(())
}

pub fn mix(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let postgres = Postgres::start(options)?;
    let mut peer = Pgbench::mix(postgres.server(), Some(&postgres))?;
    mix_beside(3, MIX, options, report, &postgres, &mut peer)
}

pub fn mix_in_python(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let endpoint = Endpoint::start(Latency::default())?;
    let mut agent = Agent::new(endpoint.target(), Mix::default(), Shape::default());
    let mut peer = Psycopg::new(endpoint.server(), None)?;
    let highest = highest_carried(&mut peer, report)?;
    for (rate, which) in [(NULL_MIX_IN_PYTHON, ""), (highest, ", the most that psycopg carries")] {
        let connections = MIX_CONNECTIONS;
        let load = Load { rate, connections, seconds: options.seconds };
        let what =
            format!("order mix on the null endpoint, {connections} connections, {rate}/s{which}");
        pairs(4, &what, options, report, load, (&mut agent, &mut peer), || Ok(()))?;
    }
    drop(endpoint);
    let postgres = Postgres::start(options)?;
    let mut peer = Psycopg::new(postgres.server(), Some(&postgres))?;
    mix_beside(4, MIX_IN_PYTHON, options, report, &postgres, &mut peer)
}

/// The highest rate, in steps, that psycopg carries twice in a row.
fn highest_carried(peer: &mut dyn Peer, report: &Report) -> Result<f64, Failure> {
    let carries = |peer: &mut dyn Peer, rate: f64| -> Result<bool, Failure> {
        let load = Load { rate, connections: MIX_CONNECTIONS, seconds: STEP_SECONDS };
        let carried = peer.run(load)?.check(load);
        let said = carried.as_ref().map_or_else(ToString::to_string, |()| "carried".into());
        report.step(&format!("{} at {rate}/s: {said}", peer.name()));
        Ok(carried.is_ok())
    };
    let mut highest = NULL_MIX_IN_PYTHON;
    while highest < MOST_IN_PYTHON {
        let next = highest + STEP_IN_PYTHON;
        if !(carries(peer, next)? && carries(peer, next)?) {
            break;
        }
        highest = next;
    }
    Ok(highest)
}

fn mix_beside(
    row: u8,
    rate: f64,
    options: &Options,
    report: &mut Report,
    postgres: &Postgres,
    peer: &mut dyn Peer,
) -> Result<(), Failure> {
    let mut agent = Counted {
        peer: &mut Agent::new(postgres.target(), Mix::default(), Shape::default()),
        postgres,
    };
    let mut peer = Counted { peer, postgres };
    let load = Load { rate, connections: MIX_CONNECTIONS, seconds: options.seconds };
    let what = format!("order mix, {MIX_CONNECTIONS} connections, {rate}/s");
    pairs(row, &what, options, report, load, (&mut agent, &mut peer), || postgres.settle())
}

/// Says what a peer left in the database, so that one can see that both did the same work.
struct Counted<'a> {
    peer: &'a mut dyn Peer,
    postgres: &'a Postgres,
}

impl Peer for Counted<'_> {
    fn name(&self) -> &'static str {
        self.peer.name()
    }

    fn run(&mut self, load: Load) -> Result<Sample, Failure> {
        let before = self.postgres.written()?;
        let sample = self.peer.run(load)?;
        let after = self.postgres.written()?;
        let [ledger, creates, cancels] = [0, 1, 2].map(|at| after[at] - before[at]);
        println!(
            "    {:9} committed {creates} creates and {cancels} cancels: {:.3} cancels for each \
             create, {:.3} ledger entries each",
            self.name(),
            cancels as f64 / creates as f64,
            ledger as f64 / (creates + cancels) as f64,
        );
        Ok(sample)
    }
}

/// Measures both of a pair in turn, the first one first every other time, and gives the ratio of
/// their processor time for each transaction.
pub fn pairs(
    row: u8,
    what: &str,
    options: &Options,
    report: &mut Report,
    load: Load,
    (ours, theirs): (&mut dyn Peer, &mut dyn Peer),
    before_each: impl Fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut ratio, mut our_us, mut their_us) =
        (Spread::default(), Spread::default(), Spread::default());
    for pair in 0..options.pairs {
        let measure = |peer: &mut dyn Peer| {
            before_each()?;
            let sample = peer.run(load)?;
            report.step(&format!(
                "{:9} {:7.1} µs a transaction, {} transactions at {:.0}/s, {} failed",
                peer.name(),
                sample.cpu_us(),
                sample.transactions,
                sample.rate(),
                sample.failed
            ));
            sample.check(load).map(|()| sample.cpu_us())
        };
        let pair = if pair % 2 == 0 {
            measure(ours).and_then(|our| Ok((our, measure(theirs)?)))
        } else {
            measure(theirs).and_then(|their| Ok((measure(ours)?, their)))
        };
        match pair {
            Ok((our, their)) => {
                ratio.add(our / their);
                our_us.add(our);
                their_us.add(their);
            }
            Err(failure) => report.note(row, &format!("{what}: a pair does not count: {failure}")),
        }
    }
    let figures = format!(
        "**{}** × {}, {} pairs; {} µs against {} µs a transaction",
        ratio.show(2),
        theirs.name(),
        ratio.len(),
        our_us.show(1),
        their_us.show(1)
    );
    report.line(row, what, &figures);
    Ok(())
}
