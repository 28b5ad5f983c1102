//! A thread's recordings of a cell: the running window and the measured span.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::{
    course::Course,
    message::{CellTally, ClosedWindow, ThreadReport},
    schedule::Expired,
    tally::{Ended, Tally},
    timeline::Span,
};
use crate::model::{Acknowledged, Phase};

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
    pub(super) acknowledged: Acknowledged,
    /// Live connections, for the windows.
    pub(super) live: u32,
}

impl Recorder {
    pub(super) fn new(
        key: u64,
        part: usize,
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
            spares: vec![Tally::new()],
            cell: Box::new(Tally::new()),
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
            self.send(end);
            self.span = next;
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
        // Two are enough: one is being filled, one is on its way.
        if self.spares.len() < 2 {
            self.spares.push(tally);
        }
    }

    /// How late the thread's loop was: when it should have run, and by how much it missed it.
    pub(super) fn loop_lags(&mut self, lags: &[(u64, u64)]) {
        let (from, to) = self.course.measured();
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

    pub(super) fn end(&mut self, ended: &Ended, measured: bool, done: u64) {
        self.rotate_to(done);
        self.window.end(ended);
        if measured {
            self.cell.end(ended);
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
