//! A cell as it runs: its windows folded into the figures that an operator watches, and what is
//! kept in case the agent dies.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use crate::model::{
    Acknowledged, CellEnd, CellOrder, CellResult, ClassLatency, ConfigurationId, Counts, LiveCell,
    Part, PartRecordings, PerClass, Phase, Recording, RunnerSample, TailSums, Tps, UnixMs, Window,
    WindowPoint,
};

/// Windows that the live percentiles are taken over.
const SLIDING_WINDOWS: usize = 10;

/// The part of a window that the live figures need.
struct Recent {
    response: PerClass<Recording>,
    connection_wait: Recording,
    tail: TailSums,
}

/// What is known of the measured span before the agent's own result comes.
#[derive(Default)]
struct Measured {
    from: Option<UnixMs>,
    seconds: f64,
    counts: Counts,
    sqlstates: BTreeMap<String, u64>,
    classes: PerClass<PartRecordings>,
    failed: PerClass<u64>,
    unknown: PerClass<u64>,
    tail: TailSums,
    runner: RunnerSample,
}

/// A running cell.
pub struct Tracker {
    pub order: CellOrder,
    pub stage: String,
    pub started: UnixMs,
    pub beside: BTreeSet<ConfigurationId>,
    phase: Phase,
    phase_since: Instant,
    recent: VecDeque<Recent>,
    whole: Counts,
    measured: Measured,
    live: LiveCell,
}

impl Tracker {
    pub fn new(order: CellOrder, stage: String, beside: BTreeSet<ConfigurationId>) -> Self {
        let live = LiveCell {
            id: order.cell.clone(),
            stage: stage.clone(),
            attempt: order.attempt.ordinal,
            load: order.load,
            tps: Tps::default(),
            classes: PerClass::default(),
            connection_wait_p99_ms: None,
            tail: None,
            retry_percent: 0.0,
            failed_percent: 0.0,
            rejected_percent: 0.0,
            errors: BTreeMap::new(),
            in_flight: 0,
            window_at: None,
        };
        Self {
            order,
            stage,
            started: UnixMs::now(),
            beside,
            phase: Phase::Opening,
            phase_since: Instant::now(),
            recent: VecDeque::with_capacity(SLIDING_WINDOWS),
            whole: Counts::default(),
            measured: Measured::default(),
            live,
        }
    }

    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Seconds into the phase and its whole length (0 where it has no fixed one).
    pub fn progress(&self) -> (u64, u64) {
        let total = match self.phase {
            Phase::WarmUp => self.order.warmup_s,
            Phase::Measure => self.order.measure_s,
            Phase::Opening | Phase::Drain => 0.0,
        };
        (self.phase_since.elapsed().as_secs(), whole_seconds(total))
    }

    /// Seconds until the cell's load ends, as planned.
    pub fn seconds_left(&self) -> f64 {
        let spent = self.phase_since.elapsed().as_secs_f64();
        match self.phase {
            Phase::Opening => self.order.warmup_s + self.order.measure_s,
            Phase::WarmUp => (self.order.warmup_s - spent).max(0.0) + self.order.measure_s,
            Phase::Measure => (self.order.measure_s - spent).max(0.0),
            Phase::Drain => 0.0,
        }
    }

    pub fn enter(&mut self, phase: Phase) {
        if self.phase != phase {
            self.phase = phase;
            self.phase_since = Instant::now();
            if phase != Phase::Drain {
                self.recent.clear();
            }
        }
    }

    /// Takes in a window and gives the point that the charts draw.
    pub fn window(&mut self, window: Window) -> WindowPoint {
        let point = point(&window);
        self.whole.add(&window.counts);
        self.whole.in_flight = window.counts.in_flight;
        if window.phase == Phase::Measure {
            self.measured.take_in(&window);
        }
        self.live.tps =
            Tps { offered: point.offered, achieved: point.achieved, succeeded: point.succeeded };
        self.live.window_at = Some(point.at);
        self.live.in_flight = window.counts.in_flight;
        self.live.retry_percent = percent(self.whole.retries, self.whole.attempts);
        self.live.failed_percent =
            percent(self.whole.failed + self.whole.unknown, self.whole.completed);
        self.live.rejected_percent = percent(self.whole.business_rejected, self.whole.completed);
        for (name, count) in &window.sqlstates {
            *self.live.errors.entry(name.clone()).or_default() += count;
        }
        if self.recent.len() == SLIDING_WINDOWS {
            self.recent.pop_front();
        }
        self.recent.push_back(recent(window));
        self.slide();
        point
    }

    fn slide(&mut self) {
        let mut wait = Recording::new();
        let mut tail = TailSums::default();
        for recent in &self.recent {
            wait.merge(&recent.connection_wait);
            tail.merge(&recent.tail);
        }
        self.live.connection_wait_p99_ms = wait.quantile_ms(0.99);
        self.live.tail = tail.mean_above(0.99);
        self.live.classes = PerClass::from_fn(|class| {
            let mut response = Recording::new();
            for recent in &self.recent {
                response.merge(&recent.response[class]);
            }
            latency(&response)
        });
    }

    pub const fn live(&self) -> &LiveCell {
        &self.live
    }

    /// What is known of a cell whose agent died: its measured windows, counted by completion.
    pub fn partial_result(&self, why: String) -> CellResult {
        CellResult {
            cell: self.order.cell.clone(),
            end: CellEnd::Failed { why },
            started: self.started,
            measured_from: self.measured.from.unwrap_or(self.started),
            measured_s: self.measured.seconds,
            counts: self.measured.counts,
            sqlstates: self.measured.sqlstates.clone(),
            classes: self.measured.classes.clone(),
            failed: self.measured.failed.clone(),
            unknown: self.measured.unknown.clone(),
            tail: self.measured.tail.clone(),
            acknowledged: Acknowledged::default(),
            runner: self.measured.runner.clone(),
            round_trip_ms: None,
        }
    }
}

impl Measured {
    fn take_in(&mut self, window: &Window) {
        if self.from.is_none() {
            // What was in flight when the span began completes in it, and counts as offered in it.
            self.counts.offered = window.in_flight_before;
        }
        self.from.get_or_insert(window.start);
        self.seconds += window.length_s;
        self.counts.add(&window.counts);
        self.counts.in_flight = window.counts.in_flight;
        for (code, count) in &window.sqlstates {
            *self.sqlstates.entry(code.clone()).or_default() += count;
        }
        for class in crate::model::Class::ALL {
            self.classes[class].merge(&window.classes[class]);
            self.failed[class] += window.failed[class];
            self.unknown[class] += window.unknown[class];
        }
        self.tail.merge(&window.tail);
        self.runner = window.runner.clone();
    }
}

fn recent(window: Window) -> Recent {
    let connection_wait = window.classes.overall(Part::ConnectionWait);
    let PerClass { product_lookup, order_history, order_create, order_cancel } = window.classes;
    Recent {
        response: PerClass {
            product_lookup: product_lookup.response,
            order_history: order_history.response,
            order_create: order_create.response,
            order_cancel: order_cancel.response,
        },
        connection_wait,
        tail: window.tail,
    }
}

/// p95, p99 and the number of successes of a class.
pub fn latency(response: &Recording) -> ClassLatency {
    ClassLatency {
        p95_ms: response.quantile_ms(0.95),
        p99_ms: response.quantile_ms(0.99),
        count: response.count(),
    }
}

#[allow(clippy::cast_precision_loss)] // counts of one run are far below 2^53
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

#[allow(clippy::cast_precision_loss)] // as above
pub fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn whole_seconds(seconds: f64) -> u64 {
    std::time::Duration::try_from_secs_f64(seconds).map_or(0, |d| d.as_secs())
}

fn point(window: &Window) -> WindowPoint {
    let rate = |count| per_second(count, window.length_s);
    let wait = window.classes.overall(Part::ConnectionWait);
    WindowPoint {
        cell: window.cell.clone(),
        seq: window.seq,
        phase: window.phase,
        at: window.start.plus_seconds(window.length_s),
        offered: rate(window.counts.offered),
        achieved: rate(window.counts.completed),
        succeeded: rate(window.counts.succeeded),
        failed: rate(window.counts.failed + window.counts.unknown),
        p95_ms: PerClass::from_fn(|class| window.classes[class].response.quantile_ms(0.95)),
        p99_ms: PerClass::from_fn(|class| window.classes[class].response.quantile_ms(0.99)),
        connection_wait_p99_ms: wait.quantile_ms(0.99),
        tail: window.tail.mean_above(0.99),
        retries: rate(window.counts.retries),
        runner_cpu_percent: window.runner.cpu_percent,
    }
}
