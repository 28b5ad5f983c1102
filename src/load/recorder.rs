//! A thread's recordings of a cell: the running window and the measured span.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::{
    course::Course,
    holder::{Causes, Holder},
    message::{CellTally, ClosedWindow, ThreadReport},
    schedule::Expired,
    stalls::Stalls,
    tally::{Ended, Tally},
    thread::TICK_NS,
    timeline::Span,
};
use crate::{
    model::{Acknowledged, Class, PerClass, Phase, ResponseParts},
    target::ReadLag,
};

/// Tallies kept beside the one that is being filled: one on its way, one for a collector that is
/// late. All are there from the beginning, so that a busy moment does not make the process larger.
const SPARES: usize = 2;
/// What most transactions of a class need: nine of ten are served within it.
const ORDINARY_QUANTILE: f64 = 0.9;
/// So many successes tell it.
const ORDINARY_FROM: u64 = 10;

/// Records, and sends each window to the collector when it is over.
pub(super) struct Recorder {
    key: u64,
    part: usize,
    course: Arc<Course>,
    reports: UnboundedSender<ThreadReport>,
    span: Span,
    window: Box<Tally>,
    /// Tallies that the collector gave back: recording takes no new memory.
    spares: Vec<Tally>,
    cell: Box<Tally>,
    /// By worker: its connection's last transaction.
    holders: Vec<Holder>,
    /// The ordinary service time of each class in nanoseconds, from the windows that are over;
    /// without end until there is one.
    ordinary: PerClass<u64>,
    stalls: Stalls,
    pub(super) acknowledged: Acknowledged,
    /// Live connections, for the windows.
    pub(super) live: u32,
}

impl Recorder {
    pub(super) fn new(
        key: u64,
        part: usize,
        workers: usize,
        course: Arc<Course>,
        reports: UnboundedSender<ThreadReport>,
    ) -> Self {
        Self {
            key,
            part,
            span: course.first(),
            course,
            reports,
            window: Box::new(Tally::new()),
            spares: (0..SPARES).map(|_| Tally::new()).collect(),
            cell: Box::new(Tally::new()),
            holders: vec![Holder::default(); workers],
            ordinary: PerClass::from_fn(|_| u64::MAX),
            stalls: Stalls::default(),
            acknowledged: Acknowledged::default(),
            live: 0,
        }
    }

    /// Closes the windows that are over at `now`.
    pub(super) fn rotate(&mut self, now: u64, live: u32) {
        self.live = live;
        self.rotate_to(now);
    }

    fn rotate_to(&mut self, now: u64) {
        while let Some((end, next)) = self.course.after(&self.span, now) {
            self.learn_ordinary();
            self.send(end);
            self.span = next;
        }
    }

    /// Learns what is ordinary from the whole of what was measured, or, before the measured span,
    /// from the window that is over. Once a window and not with each transaction: those that a
    /// freeze has held all end at once, and would pass for ordinary.
    fn learn_ordinary(&mut self) {
        if self.window.counts.succeeded == 0 {
            return;
        }
        for class in Class::ALL {
            let measured = &self.cell.classes[class].service;
            let window = &self.window.classes[class].service;
            let most = if measured.count() < window.count() { window } else { measured };
            if most.count() >= ORDINARY_FROM
                && let Some(ordinary) = most.quantile_ns(ORDINARY_QUANTILE)
            {
                self.ordinary[class] = ordinary;
            }
        }
    }

    fn send(&mut self, end: u64) {
        // A thread that was stalled closes many windows at once: empty ones carry nothing.
        let tally = if self.window.is_empty() {
            None
        } else {
            let fresh = Box::new(self.spares.pop().unwrap_or_else(Tally::new));
            Some(std::mem::replace(&mut self.window, fresh))
        };
        let window = ClosedWindow {
            key: self.key,
            part: self.part,
            span: Span { end, ..self.span },
            connections: self.live,
            tally,
        };
        // Nobody listens only when the process is about to end.
        let _ = self.reports.send(ThreadReport::Window(window));
    }

    pub(super) fn give_spare(&mut self, tally: Tally) {
        if self.spares.len() < SPARES {
            self.spares.push(tally);
        }
    }

    /// How late the thread's loop was: when it should have run, and by how much it missed it.
    pub(super) fn loop_lags(&mut self, lags: &[(u64, u64)]) {
        let (from, to) = self.course.measured();
        if self.stalls.beats(lags, TICK_NS) {
            self.window.stalls += 1;
            let began = lags.first().is_some_and(|(expected, _)| (from..to).contains(expected));
            self.cell.stalls += u64::from(began);
        }
        for &(expected, lag) in lags {
            self.window.loop_lag.record(lag);
            if (from..to).contains(&expected) {
                self.cell.loop_lag.record(lag);
            }
        }
    }

    pub(super) fn offer(&mut self, measured: bool, now: u64) {
        self.rotate_to(now);
        self.window.counts.offered += 1;
        self.cell.counts.offered += u64::from(measured);
    }

    pub(super) fn shed(&mut self, measured: bool, now: u64) {
        self.rotate_to(now);
        self.window.counts.shed += 1;
        self.cell.counts.shed += u64::from(measured);
    }

    pub(super) fn end(&mut self, ended: &Ended, measured: bool, done: u64) {
        self.rotate_to(done);
        let parts = self.parts(ended, done);
        self.window.end(ended, &parts);
        if measured {
            self.cell.end(ended, &parts);
        }
    }

    /// The parts of a response time, with whose doing they were; from now on the transaction is
    /// what its connection was held by.
    fn parts(&mut self, ended: &Ended, done: u64) -> ResponseParts {
        let (wait, lag, service) =
            (ended.connection_wait_ns, ended.schedule_lag_ns, ended.service_ns);
        let start = done.saturating_sub(service);
        let unread = match ended.read_lag {
            ReadLag { reads: 0, .. } => self.stalls.within(start, done),
            ReadLag { sum_ns, .. } => sum_ns,
        };
        let unread = unread.min(service);
        let mut causes = Causes::default();
        if let Some(holder) = self.holders.get_mut(ended.worker) {
            causes = holder.causes_of(wait, start.saturating_sub(lag));
            *holder = Holder {
                done,
                service,
                unread,
                ordinary: self.ordinary[ended.class],
                schedule_lag: lag,
                wait,
                causes,
            };
        }
        ResponseParts {
            schedule_lag_ns: lag,
            connection_wait_ns: wait,
            service_ns: service,
            read_lag_ns: unread,
            wait_on_database_ns: causes.database,
            wait_on_generator_ns: causes.generator,
        }
    }

    pub(super) fn expire(&mut self, expired: Expired, now: u64) {
        self.rotate_to(now);
        self.window.expire(expired.all);
        self.cell.expire(expired.measured);
    }

    pub(super) fn count_error(&mut self, name: &str, measured: bool, now: u64) {
        self.rotate_to(now);
        self.window.count_errors(name, 1);
        if measured {
            self.cell.count_errors(name, 1);
        }
    }

    /// Sends what is left and gives what was measured.
    pub(super) fn close(mut self, now: u64, live: u32) -> Box<CellTally> {
        self.rotate(now, live);
        let after_the_end = self.span.phase == Phase::Drain;
        debug_assert!(after_the_end, "a cell is closed in its drain");
        self.send(now);
        Box::new(CellTally { tally: self.cell, acknowledged: self.acknowledged })
    }
}
