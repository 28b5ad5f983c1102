//! What all threads of a running cell share: its timeline and, in an open loop, its schedule.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    arrivals::Gaps,
    clock::{self, Anchor, MS_NS, SECOND_NS},
    schedule::{Came, Limits, Schedule},
    timeline::{Span, Timeline},
};
use crate::model::{CellOrder, Load, Phase, PoolShape, UnixMs};

/// Warm-up and measured span begin this long after the command, so that every thread has it.
const LEAD_NS: u64 = MS_NS;

/// A cell's course from its warm-up on.
pub(super) struct Course {
    /// One short critical section for each arrival: some tens of nanoseconds, no system call in
    /// it.
    plan: Mutex<Plan>,
    /// When the drain begins; may fall, once, when the cell is stopped. Kept outside of the lock
    /// for the check that each completion makes.
    end: AtomicU64,
    drain_ns: u64,
    /// One for each thread, to have it look at the schedule.
    pokes: Vec<Notify>,
    anchor: Anchor,
}

/// What the lock guards.
pub(super) struct Plan {
    pub(super) timeline: Timeline,
    /// `None` in a closed loop, and where the partitions of a pool have their own.
    pub(super) schedule: Option<Schedule>,
}

impl Course {
    /// The course of an order for as many threads, beginning now.
    pub(super) fn new(order: &CellOrder, threads: usize) -> Self {
        let anchor = Anchor::new();
        let timeline = Timeline::new(
            clock::now() + LEAD_NS,
            clock::from_seconds(order.warmup_s),
            clock::from_seconds(order.measure_s),
        );
        let schedule = match order.load {
            // A pool's partitions have streams of their own.
            _ if order.shape.pool != PoolShape::Claim => None,
            Load::Closed { .. } => None,
            Load::Open { rate, arrivals, .. } => {
                let gaps = Gaps::new(arrivals, rate, order.seed);
                let limits = Limits {
                    backlog: order.backlog.unwrap_or(u64::MAX),
                    wait_ns: order.retry.connection_wait_timeout_ms.saturating_mul(MS_NS),
                };
                Some(Schedule::new(gaps, &timeline, threads, limits))
            }
        };
        Self {
            end: AtomicU64::new(timeline.end()),
            plan: Mutex::new(Plan { timeline, schedule }),
            drain_ns: clock::from_seconds(order.drain_s),
            pokes: (0..threads).map(|_| Notify::new()).collect(),
            anchor,
        }
    }

    /// Timeline and schedule, locked.
    pub(super) fn plan(&self) -> MutexGuard<'_, Plan> {
        // The guarded values are whole after each step: a panic elsewhere does not spoil them.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the drain begins.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// When the drain is given up.
    pub(super) fn drain_end(&self) -> u64 {
        self.end().saturating_add(self.drain_ns)
    }

    /// Lets the drain begin now. Returns whether that cut the cell short.
    pub(super) fn stop(&self) -> bool {
        let mut plan = self.plan();
        let now = clock::now();
        if now >= plan.timeline.end() {
            return false;
        }
        let Plan { timeline, schedule } = &mut *plan;
        if let Some(schedule) = schedule {
            schedule.advance(timeline, now);
        }
        timeline.stop(now);
        if let Some(schedule) = schedule {
            schedule.stop(timeline);
        }
        self.end.store(timeline.end(), Ordering::Release);
        true
    }

    /// When a window ended and the one after it, if it is over at `now`.
    pub(super) fn after(&self, span: &Span, now: u64) -> Option<(u64, Span)> {
        // The lock is taken once a second; the check before it, at each completion.
        let over = now >= span.end || (span.phase != Phase::Drain && now >= self.end());
        if over { self.plan().timeline.after(span, now) } else { None }
    }

    /// The first window.
    pub(super) fn first(&self) -> Span {
        self.plan().timeline.first()
    }

    /// Where the measured span begins and ends.
    pub(super) fn measured(&self) -> (u64, u64) {
        let plan = self.plan();
        (plan.timeline.measure_from(), plan.timeline.end())
    }

    /// Arrivals that fell due in a window that is over at `now`; `None` in a closed loop, where
    /// the threads count them.
    pub(super) fn came(&self, seq: u64, now: u64) -> Option<Came> {
        let mut plan = self.plan();
        let Plan { timeline, schedule } = &mut *plan;
        let schedule = schedule.as_mut()?;
        schedule.advance(timeline, now);
        Some(schedule.collect(seq))
    }

    /// Has a thread look at the schedule.
    pub(super) fn poke(&self, thread: usize) {
        self.pokes[thread].notify_one();
    }

    /// Waits until this thread is to look at the schedule.
    pub(super) async fn poked(&self, thread: usize) {
        self.pokes[thread].notified().await;
    }

    /// The wall-clock time of a moment.
    pub(super) fn wall(&self, at: u64) -> UnixMs {
        self.anchor.wall(at)
    }
}

/// From now to a moment on the monotonic clock, for the runtime's timer.
pub(super) fn until(at: u64) -> Duration {
    Duration::from_nanos(at.saturating_sub(clock::now()).min(3600 * SECOND_NS))
}
