//! Windows of a cell put together from its threads' shares.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    clock,
    course::Course,
    message::ClosedWindow,
    tally::Tally,
    timeline::Span,
    usage::{Meter, thread_sample},
};
use crate::model::{CellOrder, Counts, Phase, RunnerSample, ThreadSample, Window};

/// Collects the shares and gives each window out once it is complete, in order.
pub(super) struct Merger {
    course: Arc<Course>,
    /// By part: the load thread that it is of.
    threads: Vec<usize>,
    /// Shares of windows that are not complete yet.
    pending: BTreeMap<u64, Pending>,
    /// The window to give out next.
    next: u64,
    /// By part: the windows before this one are all in; `u64::MAX` once the part has left.
    delivered: Vec<u64>,
    connections: Vec<u32>,
    in_flight: u64,
    /// Arrivals of the measured span, where the schedule counts them.
    measured: Option<Counts>,
    meter: Meter,
}

struct Pending {
    span: Span,
    tally: Option<Box<Tally>>,
    threads: Vec<ThreadSample>,
}

/// A window that is complete, and the memory of its tally.
pub(super) struct Complete {
    pub(super) window: Window,
    pub(super) spare: Box<Tally>,
}

impl Merger {
    pub(super) fn new(course: Arc<Course>, threads: Vec<usize>) -> Self {
        let parts = threads.len();
        Self {
            course,
            threads,
            pending: BTreeMap::new(),
            next: 0,
            delivered: vec![0; parts],
            connections: vec![0; parts],
            in_flight: 0,
            measured: None,
            meter: Meter::start(),
        }
    }

    /// Takes a share. Gives back its tally if its values went into another one.
    pub(super) fn add(&mut self, share: ClosedWindow) -> Option<Box<Tally>> {
        let ClosedWindow { part, span, connections, tally, .. } = share;
        self.delivered[part] = span.seq + 1;
        self.connections[part] = connections;
        let pending = self.pending.entry(span.seq).or_insert_with(|| Pending {
            span,
            tally: None,
            threads: Vec::new(),
        });
        if let Some(tally) = &tally {
            let thread = self.threads[part];
            pending.threads.push(thread_sample(thread, &tally.loop_lag, tally.stalls));
        }
        // The last window of all is as long as the thread that took longest says.
        pending.span.end = pending.span.end.max(span.end);
        match (&mut pending.tally, tally) {
            (Some(sum), Some(tally)) => {
                sum.merge(&tally);
                Some(tally)
            }
            (sum @ None, tally) => {
                *sum = tally;
                None
            }
            (Some(_), None) => None,
        }
    }

    /// A part will give no more shares.
    pub(super) fn left(&mut self, part: usize) {
        self.delivered[part] = u64::MAX;
        self.connections[part] = 0;
    }

    /// The next window that is complete.
    pub(super) fn next(&mut self, order: &CellOrder) -> Option<Complete> {
        if self.delivered.iter().any(|&seq| seq <= self.next) {
            return None;
        }
        let Pending { span, tally, mut threads } = self.pending.remove(&self.next)?;
        self.next += 1;
        let mut tally = tally.unwrap_or_else(|| Box::new(Tally::new()));
        let in_flight_before = self.in_flight;
        self.close_counts(&span, &mut tally.counts);
        threads.sort_by_key(|sample| sample.thread);
        let runner = RunnerSample {
            loop_lag: tally.loop_lag.clone(),
            read_lag: tally.read_lag.clone(),
            threads,
            ..self.meter.read()
        };
        self.meter = Meter::start();
        let window = Window {
            cell: order.cell.clone(),
            configuration: order.configuration.clone(),
            seq: span.seq,
            phase: span.phase,
            start: self.course.wall(span.start),
            length_s: clock::to_seconds(span.end - span.start),
            in_flight_before,
            counts: tally.counts,
            sqlstates: std::mem::take(&mut tally.sqlstates),
            classes: tally.classes.clone(),
            failed: tally.failed.clone(),
            unknown: tally.unknown.clone(),
            tail: tally.tail.clone(),
            connections: self.connections.iter().sum(),
            runner,
        };
        debug_assert_eq!(window.counts.violated_identity(in_flight_before), None);
        tally.clear();
        Some(Complete { window, spare: tally })
    }

    /// Adds what came in the window, and what is left in flight.
    fn close_counts(&mut self, span: &Span, counts: &mut Counts) {
        if let Some(came) = self.course.came(span.seq, span.end) {
            counts.offered = came.offered;
            counts.shed = came.shed;
            let measured = self.measured.get_or_insert_default();
            if span.phase == Phase::Measure {
                measured.offered += came.offered;
                measured.shed += came.shed;
            }
        }
        // It never underflows: what ended in the window was due in it or before.
        counts.in_flight =
            (self.in_flight + counts.offered).saturating_sub(counts.completed + counts.shed);
        self.in_flight = counts.in_flight;
    }

    /// Arrivals of the measured span that the schedule has counted; `None` in a closed loop.
    pub(super) const fn measured(&self) -> Option<Counts> {
        self.measured
    }
}
