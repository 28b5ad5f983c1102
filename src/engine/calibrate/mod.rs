//! What this machine can generate: the load agent, as it is in a run, against a database that is
//! none and answers at once.

mod bench;
mod compare;
mod search;

use std::{path::Path, time::Duration};

use crate::{
    model::{
        Arrivals, Calibration, CellEnd, CellResult, ConnectionCost, Load, Mix, Part, RoundTrips,
        Shape, StartLag, Throughput, UnixMs,
    },
    provider,
};
use bench::{Bench, Step};
pub use compare::{compare, remark};
use search::Search;

/// Connections of the steps that are about something else.
const CONNECTIONS: u32 = 64;
const CONNECTION_COUNTS: [u32; 5] = [16, 64, 256, 1_024, 4_096];
const START_LAG_RATES: [f64; 3] = [100.0, 1_000.0, 10_000.0];
/// A rate counts as carried up to this p99 of the schedule lag, in ms, and as much again of the wait
/// for a connection: the endpoint answers at once, so that who waits, waits for the generator.
const MOST_LAG_MS: f64 = 1.0;
/// A rate counts as carried from this share of it that completed.
const LEAST_COMPLETED: f64 = 0.99;
/// From here on a transaction costs so much more that connections are to be kept fewer.
const BEND: f64 = 1.5;
/// Below it the machine counts as free, in percent of all its processors.
const FREE_BELOW: f64 = 15.0;
/// Above it the endpoint may have been the limit, in percent of its threads.
const ENDPOINT_BUSY: f64 = 85.0;
/// Files that are open beside the connections.
const FILES_BESIDE: u64 = 128;
/// Product lookups alone.
const READS: Mix = Mix { product_lookup: 100, order_history: 0, order_create: 0, order_cancel: 0 };

/// Why a machine could not be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error(
        "this machine lets rampdeck use {0} processor, and a calibration needs 2 or more: one for \
         the generator and one for the endpoint that answers it"
    )]
    Processors(u32),
    #[error("the null endpoint does not work: {0}")]
    Endpoint(String),
    #[error("the load agent does not work: {0}")]
    Agent(String),
    #[error("{what} said nothing for {} s", limit.as_secs())]
    Silent { what: &'static str, limit: Duration },
    #[error("the step {what} did not run: {why}")]
    Step { what: String, why: String },
}

/// How to calibrate.
#[derive(Clone, Copy, Debug)]
pub struct CalibrateSettings<'a> {
    /// rampdeck's own program, whose processes are started.
    pub exe: &'a Path,
    /// What the load agent has in its environment in a run.
    pub environment: &'a [(&'a str, &'a str)],
    /// Length of each step's measured span, in seconds (1 or more).
    pub seconds: f64,
}

/// Calibrates this machine; `tell` gets a line for each step that is over.
///
/// # Errors
/// When the machine has too few processors, or a process or a step fails.
pub async fn calibrate(
    settings: CalibrateSettings<'_>,
    tell: impl FnMut(&str),
) -> Result<Calibration, CalibrateError> {
    let machine = super::machine::machine();
    if machine.processors < 2 {
        return Err(CalibrateError::Processors(machine.processors));
    }
    let mut remarks = Vec::new();
    let counts = connection_counts(&mut remarks);
    let threads = usize::try_from(machine.processors / 2).unwrap_or(1).max(1);
    let bench = Bench::start(settings.exe, settings.environment, threads).await?;
    let mut course =
        Course { bench, seconds: settings.seconds, endpoint_threads: threads, remarks, tell };
    course.look_around().await?;
    let read = course.throughput("reads", READS).await?;
    let order_mix = course.throughput("order mix", Mix::default()).await?;
    let start_lag = course.start_lag().await?;
    let connections = course.connections(&counts).await?;
    Ok(Calibration {
        machine,
        made: UnixMs::now().rfc3339(),
        step_s: settings.seconds,
        read,
        order_mix,
        start_lag,
        bends_at: bend(&connections),
        connections,
        remarks: course.remarks,
    })
}

/// The numbers of connections that the limit of open files lets this machine have.
fn connection_counts(remarks: &mut Vec<String>) -> Vec<u32> {
    let fits = |count: &u32| {
        let needs =
            provider::Needs { open_files: u64::from(*count) + FILES_BESIDE, folders: Vec::new() };
        let found = provider::checks(&needs).into_iter().find(|check| check.name == "open files");
        found.is_none_or(|check| check.ok)
    };
    let counts: Vec<u32> = CONNECTION_COUNTS.into_iter().take_while(fits).collect();
    if counts.len() < CONNECTION_COUNTS.len() {
        remarks.push(format!(
            "no more than {} connections were tried: the limit of open files (ulimit -Hn) is too \
             low for {}",
            counts.last().copied().unwrap_or(0),
            CONNECTION_COUNTS[counts.len()]
        ));
    }
    counts
}

/// The first count with which a transaction costs more than it should, by the cost with the least.
fn bend(costs: &[ConnectionCost]) -> Option<u32> {
    let least = costs.first()?.cpu_us;
    costs.iter().find(|cost| cost.cpu_us > BEND * least).map(|cost| cost.connections)
}

struct Course<T> {
    bench: Bench,
    seconds: f64,
    endpoint_threads: usize,
    remarks: Vec<String>,
    tell: T,
}

impl<T: FnMut(&str)> Course<T> {
    /// Whether anything else is going on here, which the figures would suffer from.
    async fn look_around(&mut self) -> Result<(), CalibrateError> {
        // The first sample begins with the processes' own start.
        self.bench.runner().await?;
        let busy = self.bench.runner().await?.host_cpu_percent.unwrap_or(0.0);
        if busy > FREE_BELOW {
            let text = format!(
                "other programs took {busy:.0} % of this machine's processors as it began: it can do \
                 more than these figures when it is left alone"
            );
            (self.tell)(&text);
            self.remarks.push(text);
        }
        Ok(())
    }

    async fn step(
        &mut self,
        what: &str,
        mix: Mix,
        shape: Shape,
        load: Load,
    ) -> Result<CellResult, CalibrateError> {
        let step = Step { mix, shape, load, seconds: self.seconds };
        let result = self.bench.cell(&step).await?;
        let failed = |why: String| CalibrateError::Step { what: format!("{what}, {load}"), why };
        match &result.end {
            CellEnd::Complete => {}
            CellEnd::Stopped => return Err(failed("it was stopped".to_owned())),
            CellEnd::Failed { why } => return Err(failed(why.clone())),
        }
        if result.counts.failed + result.counts.unknown > result.counts.completed / 100 {
            let errors: Vec<_> =
                result.sqlstates.iter().map(|(name, count)| format!("{count} × {name}")).collect();
            return Err(failed(format!("its transactions failed: {}", errors.join(", "))));
        }
        let p99 = |part| result.classes.overall(part).quantile_ms(0.99).unwrap_or(0.0);
        let on = load.rate().map(|_| format!(" on {}", load.connections())).unwrap_or_default();
        (self.tell)(&format!(
            "{what}, {load}{on}: {:.0}/s, {:.1} µs of CPU each, p99 of schedule lag \
             {:.3} ms, of connection wait {:.3} ms",
            per_second(&result),
            cpu_us(&result).unwrap_or(0.0),
            p99(Part::ScheduleLag),
            p99(Part::ConnectionWait)
        ));
        Ok(result)
    }

    async fn throughput(&mut self, what: &str, mix: Mix) -> Result<Throughput, CalibrateError> {
        let closed = Load::Closed { connections: CONNECTIONS };
        let flat_out = self.step(what, mix, Shape::default(), closed).await?;
        let mut busiest = self.bench.endpoint_cpu_percent();
        let closed_loop_s = per_second(&flat_out);
        let mut cost = cpu_us(&flat_out);
        let mut search = Search::below(closed_loop_s.max(1.0));
        while let Some(rate) = search.next() {
            let load = open(rate, CONNECTIONS);
            let mut result = self.step(what, mix, Shape::default(), load).await?;
            if !is_carried(&result) {
                // Something else on this machine may have got in its way for a moment.
                result = self.step(what, mix, Shape::default(), load).await?;
            }
            let carried = is_carried(&result);
            search.tried(rate, carried);
            if carried && search.carried() == Some(rate) {
                cost = cpu_us(&result);
            } else {
                busiest = busiest.max(self.bench.endpoint_cpu_percent());
            }
        }
        if busiest > ENDPOINT_BUSY * count(self.endpoint_threads) {
            self.remarks.push(format!(
                "{what}: the endpoint was busy too ({busiest:.0} % of {} threads): the generator \
                 alone may carry more",
                self.endpoint_threads
            ));
        }
        let cpu_us = cost.ok_or_else(|| CalibrateError::Step {
            what: what.to_owned(),
            why: "nothing completed".to_owned(),
        })?;
        Ok(Throughput {
            cpu_us,
            per_processor_s: 1e6 / cpu_us,
            closed_loop_s,
            highest_rate: search.carried(),
            not_carried: search.not_carried(),
        })
    }

    async fn start_lag(&mut self) -> Result<Vec<StartLag>, CalibrateError> {
        let shape = Shape { round_trips: RoundTrips::Pipelined, ..Shape::default() };
        let mut found = Vec::new();
        for rate in START_LAG_RATES {
            let load = open(rate, CONNECTIONS);
            let result = self.step("start lag, one round trip", READS, shape, load).await?;
            let lag = result.classes.overall(Part::ScheduleLag);
            found.push(StartLag {
                rate,
                achieved: per_second(&result),
                p50_ms: lag.quantile_ms(0.5).unwrap_or(0.0),
                p99_ms: lag.quantile_ms(0.99).unwrap_or(0.0),
            });
        }
        Ok(found)
    }

    async fn connections(&mut self, counts: &[u32]) -> Result<Vec<ConnectionCost>, CalibrateError> {
        let mut costs = Vec::new();
        for &connections in counts {
            let load = open(Calibration::CONNECTIONS_RATE, connections);
            let result = self.step("connections, reads", READS, Shape::default(), load).await?;
            costs.extend(cpu_us(&result).map(|cpu_us| ConnectionCost { connections, cpu_us }));
        }
        Ok(costs)
    }
}

const fn open(rate: f64, connections: u32) -> Load {
    Load::Open { rate, arrivals: Arrivals::Poisson, connections }
}

/// Whether the rate was carried, and on time.
fn is_carried(result: &CellResult) -> bool {
    let counts = &result.counts;
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let completed = counts.completed as f64 >= counts.offered as f64 * LEAST_COMPLETED;
    let on_time =
        |part| result.classes.overall(part).quantile_ms(0.99).is_some_and(|p99| p99 < MOST_LAG_MS);
    completed
        && counts.in_flight == 0
        && on_time(Part::ScheduleLag)
        && on_time(Part::ConnectionWait)
}

/// Completed per second of the measured span; 0 where there was none.
fn per_second(result: &CellResult) -> f64 {
    super::live::per_second(result.counts.completed, result.measured_s)
}

/// CPU time of the generator for each transaction that completed, in µs; `None` where none did.
fn cpu_us(result: &CellResult) -> Option<f64> {
    let rate = per_second(result);
    let processors = result.runner.cpu_percent / 100.0 * f64::from(result.runner.processors);
    (rate > 0.0 && processors > 0.0).then(|| processors * 1e6 / rate)
}

#[allow(clippy::cast_precision_loss)] // a few threads
const fn count(threads: usize) -> f64 {
    threads as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(us: [f64; 4]) -> Vec<ConnectionCost> {
        let counts = CONNECTION_COUNTS.into_iter().zip(us);
        counts.map(|(connections, cpu_us)| ConnectionCost { connections, cpu_us }).collect()
    }

    #[test]
    fn it_bends_where_a_transaction_first_costs_half_as_much_again() {
        assert_eq!(bend(&costs([40.0, 50.0, 59.0, 60.0])), None);
        assert_eq!(bend(&costs([40.0, 50.0, 61.0, 55.0])), Some(256));
        assert_eq!(bend(&[]), None);
    }
}
