//! A cell as the collector sees it, from its order to its result.

use std::sync::Arc;

use super::{
    clock,
    course::Course,
    merge::{Complete, Merger},
    message::{CellShared, CellTally, ClosedWindow},
    tally::Tally,
    usage::{Meter, thread_sample},
};
use crate::model::{
    Acknowledged, CellEnd, CellId, CellResult, Phase, RunnerSample, ThreadSample, UnixMs,
};

/// Where a cell's opening stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// So many connections are open.
    Connecting(u32),
    /// All are open, the round trip is being measured.
    Probing,
}

enum State {
    Opening(Opening),
    Running(Box<Running>),
    /// It will not begin: how it ended, once every thread has left.
    Abandoned(CellEnd),
}

struct Running {
    course: Arc<Course>,
    merger: Merger,
    phase: Phase,
    stopped: bool,
    /// CPU use from the beginning of the measured span, and what it came to at its end.
    meter: Option<Meter>,
    used: Option<RunnerSample>,
    total: Tally,
    /// The threads that have left: how late each was in the measured span.
    lateness: Vec<ThreadSample>,
    acknowledged: Acknowledged,
}

/// A cell that is on its way.
pub(super) struct Run<W> {
    pub(super) shared: Arc<CellShared<W>>,
    /// The load threads that have a part in it, by part.
    pub(super) threads: Vec<usize>,
    started: UnixMs,
    round_trip_ms: Option<f64>,
    state: State,
    parts_left: usize,
}

/// What the collector has to do after a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Do {
    Nothing,
    Probe,
    Abandon,
}

impl<W> Run<W> {
    pub(super) fn new(shared: Arc<CellShared<W>>, threads: Vec<usize>) -> Self {
        Self {
            shared,
            threads,
            started: UnixMs::now(),
            round_trip_ms: None,
            state: State::Opening(Opening::Connecting(0)),
            parts_left: 0,
        }
    }

    /// One more connection is open.
    pub(super) fn opened(&mut self) -> Do {
        let wanted = self.shared.order.connections();
        match &mut self.state {
            State::Opening(opening @ Opening::Connecting(_)) => {
                if let Opening::Connecting(open) = opening {
                    *open += 1;
                    if *open < wanted {
                        return Do::Nothing;
                    }
                }
                *opening = Opening::Probing;
                Do::Probe
            }
            _ => Do::Nothing,
        }
    }

    /// A connection could not be opened.
    pub(super) fn open_failed(&mut self, why: &str) -> Do {
        let State::Opening(opening) = &self.state else { return Do::Nothing };
        let of = self.shared.order.connections();
        let why = match opening {
            Opening::Connecting(open) => {
                format!("{open} of {of} connections were open, then {why}")
            }
            Opening::Probing => why.to_owned(),
        };
        self.state = State::Abandoned(CellEnd::Failed { why });
        Do::Abandon
    }

    /// The round trip is known: the cell begins, unless it was given up meanwhile.
    pub(super) fn begin(&mut self, round_trips: &mut [u64]) -> Option<Arc<Course>> {
        if !matches!(self.state, State::Opening(_)) {
            return None;
        }
        self.round_trip_ms = median_ms(round_trips);
        let course = Arc::new(Course::new(&self.shared.order, self.threads.len()));
        self.state = State::Running(Box::new(Running {
            merger: Merger::new(Arc::clone(&course), self.threads.clone()),
            course: Arc::clone(&course),
            phase: Phase::Opening,
            stopped: false,
            meter: None,
            used: None,
            total: Tally::new(),
            lateness: Vec::new(),
            acknowledged: Acknowledged::default(),
        }));
        Some(course)
    }

    /// Told to stop.
    pub(super) fn stop(&mut self) -> Do {
        match &mut self.state {
            State::Opening(_) => {
                self.state = State::Abandoned(CellEnd::Stopped);
                Do::Abandon
            }
            State::Running(running) => {
                running.stopped |= running.course.stop();
                Do::Nothing
            }
            State::Abandoned(_) => Do::Nothing,
        }
    }

    /// When the next phase begins.
    pub(super) fn next_change(&self) -> Option<u64> {
        let State::Running(running) = &self.state else { return None };
        let (measure_from, end) = running.course.measured();
        match running.phase {
            Phase::Opening => Some(0),
            Phase::WarmUp => Some(measure_from),
            Phase::Measure => Some(end),
            Phase::Drain => None,
        }
    }

    /// The phase that has begun since the last time.
    pub(super) fn changed(&mut self, now: u64) -> Option<Phase> {
        let State::Running(running) = &mut self.state else { return None };
        let (measure_from, end) = running.course.measured();
        let phase = if now >= end {
            Phase::Drain
        } else if now >= measure_from {
            Phase::Measure
        } else {
            Phase::WarmUp
        };
        if phase == running.phase {
            return None;
        }
        if phase == Phase::Measure {
            running.meter = Some(Meter::start());
        }
        if phase == Phase::Drain {
            running.used = running.meter.map(|meter| meter.read());
        }
        running.phase = phase;
        Some(phase)
    }

    /// Takes a thread's share of a window. Gives the memory back that is free again.
    pub(super) fn window(&mut self, share: ClosedWindow) -> Option<Box<Tally>> {
        let State::Running(running) = &mut self.state else { return share.tally };
        running.merger.add(share)
    }

    /// The next window that is complete, and memory that is free again.
    pub(super) fn next_window(&mut self) -> Option<Complete> {
        let State::Running(running) = &mut self.state else { return None };
        running.merger.next(&self.shared.order)
    }

    /// A thread has no more part in it. Whether that was the last one.
    pub(super) fn left(&mut self, part: usize, cell: Option<Box<CellTally>>) -> bool {
        self.parts_left += 1;
        if let State::Running(running) = &mut self.state {
            running.merger.left(part);
            if let Some(cell) = cell {
                let CellTally { tally, .. } = &*cell;
                let late = thread_sample(self.threads[part], &tally.loop_lag, tally.stalls);
                running.lateness.push(late);
                running.total.merge(tally);
                let acknowledged = &mut running.acknowledged;
                acknowledged.creates += cell.acknowledged.creates;
                acknowledged.cancels += cell.acknowledged.cancels;
                acknowledged.unresolved += cell.acknowledged.unresolved;
            }
        }
        self.parts_left == self.threads.len()
    }

    /// The result, once every thread has left and every window is out.
    pub(super) fn result(self) -> CellResult {
        let cell = self.shared.order.cell.clone();
        match self.state {
            State::Running(running) => running.result(cell, self.started, self.round_trip_ms),
            State::Abandoned(end) => empty(cell, end, self.started),
            State::Opening(_) => {
                let why = "its threads ended while it was opening".to_owned();
                empty(cell, CellEnd::Failed { why }, self.started)
            }
        }
    }
}

impl Running {
    fn result(mut self, cell: CellId, started: UnixMs, round_trip_ms: Option<f64>) -> CellResult {
        let (from, end) = self.course.measured();
        let mut total = self.total;
        self.lateness.sort_by_key(|sample| sample.thread);
        if let Some(came) = self.merger.measured() {
            total.counts.offered = came.offered;
            total.counts.shed = came.shed;
        }
        let counts = &mut total.counts;
        counts.in_flight = counts.offered.saturating_sub(counts.completed + counts.shed);
        debug_assert_eq!(counts.violated_identity(0), None);
        CellResult {
            cell,
            end: if self.stopped { CellEnd::Stopped } else { CellEnd::Complete },
            started,
            measured_from: self.course.wall(from),
            measured_s: clock::to_seconds(end - from),
            counts: total.counts,
            sqlstates: total.sqlstates,
            classes: total.classes,
            failed: total.failed,
            unknown: total.unknown,
            tail: total.tail,
            acknowledged: self.acknowledged,
            runner: RunnerSample {
                loop_lag: total.loop_lag,
                read_lag: total.read_lag,
                threads: self.lateness,
                ..self.used.unwrap_or_default()
            },
            round_trip_ms,
        }
    }
}

/// The result of a cell that could not even be opened.
pub(super) fn failed(cell: CellId, why: String) -> CellResult {
    empty(cell, CellEnd::Failed { why }, UnixMs::now())
}

fn empty(cell: CellId, end: CellEnd, started: UnixMs) -> CellResult {
    let none = Tally::new();
    CellResult {
        cell,
        end,
        started,
        measured_from: UnixMs::now(),
        measured_s: 0.0,
        counts: none.counts,
        sqlstates: none.sqlstates,
        classes: none.classes,
        failed: none.failed,
        unknown: none.unknown,
        tail: none.tail,
        acknowledged: Acknowledged::default(),
        runner: RunnerSample::default(),
        round_trip_ms: None,
    }
}

#[allow(clippy::cast_precision_loss)] // a round trip, not a century
fn median_ms(times: &mut [u64]) -> Option<f64> {
    times.sort_unstable();
    times.get(times.len() / 2).map(|ns| *ns as f64 / 1e6)
}
