//! The arrival schedule of an open-loop cell: one for the whole runner, shared by all threads.
//!
//! Arrivals fall due by the clock alone. A due arrival is taken by whichever connection is free,
//! on any thread, in the order of the intended starts; none is ever skipped, and none waits while
//! a connection is idle. This is pure logic: the time is given, locks and timers are the
//! caller's.
//!
//! So that an arrival finds a thread awake without waking all of them, each thread that has idle
//! connections sets its alarm to the first future arrival that no other such thread is set to.
//! Should a thread be stalled, the others wake at the latest [`RESCUE_NS`] after the arrival that it
//! left lying, and from then on they do not count on it: only that first one is late.

use std::collections::VecDeque;

use super::{
    arrivals::Gaps,
    clock::MS_NS,
    timeline::{Span, Timeline},
};

/// How long an arrival may lie because the thread that was to wake for it is stalled, while
/// another thread has an idle connection.
const RESCUE_NS: u64 = MS_NS;

/// An arrival that a connection has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// When it should have started.
    pub(super) intended: u64,
    /// From 0 within the cell; names the transaction.
    pub(super) ordinal: u64,
    /// Whether its intended start lies in the measured span.
    pub(super) measured: bool,
}

/// Arrivals that waited for a connection longer than they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Expired {
    pub(super) all: u64,
    pub(super) measured: u64,
}

/// What a connection that has become free gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Take(Arrival),
    /// Nothing is due: it is counted as idle now.
    Idle,
    /// Nothing is due, and nothing will be.
    Over,
}

/// What the caller has to do for the others after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wake {
    /// Set this thread's alarm to this time.
    pub(super) alarm: Option<u64>,
    /// Have this other thread look at the schedule now.
    pub(super) poke: Option<usize>,
}

/// Arrivals that fell due and arrivals shed, by intended start, of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) offered: u64,
    pub(super) shed: u64,
}

/// One thread, as the schedule sees it.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// Connections that wait for an arrival.
    idle: usize,
    /// When its alarm will wake it; `u64::MAX`: not at all.
    alarm: u64,
}

impl Thread {
    /// Whether its alarm went off so long ago that it would have looked if it could.
    const fn is_stalled(&self, now: u64) -> bool {
        self.alarm.saturating_add(RESCUE_NS) < now
    }
}

/// Bounds of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most arrivals that may wait.
    pub(super) backlog: u64,
    /// How long one may wait, in nanoseconds.
    pub(super) wait_ns: u64,
}

/// The schedule.
#[derive(Debug)]
pub(super) struct Schedule {
    gaps: Gaps,
    origin: u64,
    limits: Limits,
    /// Intended starts that are still to come, a few ahead, so that threads can share them out.
    future: VecDeque<u64>,
    /// Due and not taken: intended start and ordinal. Bounded by the backlog, or else by the rate
    /// times the longest wait.
    due: VecDeque<(u64, u64)>,
    /// Ordinal of the next arrival to fall due.
    ordinal: u64,
    threads: Vec<Thread>,
    /// The window that arrivals fall into now, what came in it, and the closed ones not yet
    /// collected.
    span: Span,
    came: Came,
    closed: VecDeque<(u64, Came)>,
}

impl Schedule {
    /// A schedule that begins with the timeline's first window, for `threads` threads.
    pub(super) fn new(gaps: Gaps, timeline: &Timeline, threads: usize, limits: Limits) -> Self {
        let span = timeline.first();
        let mut schedule = Self {
            gaps,
            origin: span.start,
            limits,
            future: VecDeque::with_capacity(threads + 1),
            due: VecDeque::new(),
            ordinal: 0,
            threads: vec![Thread { idle: 0, alarm: u64::MAX }; threads],
            span,
            came: Came::default(),
            closed: VecDeque::new(),
        };
        schedule.look_ahead(timeline);
        schedule
    }

    /// Moves to `now`: arrivals whose time has come fall due or, beyond the bound, are shed, and
    /// windows that are over close.
    pub(super) fn advance(&mut self, timeline: &Timeline, now: u64) {
        while let Some(&intended) = self.future.front()
            && intended <= now
        {
            self.close_windows(timeline, intended);
            self.future.pop_front();
            self.look_ahead(timeline);
            self.came.offered += 1;
            if (self.due.len() as u64) < self.limits.backlog.saturating_add(self.idle() as u64) {
                self.due.push_back((intended, self.ordinal));
            } else {
                self.came.shed += 1;
            }
            self.ordinal += 1;
        }
        self.close_windows(timeline, now);
    }

    /// Forgets the arrivals intended from the timeline's end on; those that are due stay.
    pub(super) fn stop(&mut self, timeline: &Timeline) {
        while self.future.back().is_some_and(|&at| at >= timeline.end()) {
            self.future.pop_back();
        }
    }

    /// Takes the due arrivals that have waited too long out of the schedule.
    pub(super) fn expire(&mut self, timeline: &Timeline, now: u64) -> Expired {
        let mut expired = Expired::default();
        while let Some(&(intended, _)) = self.due.front()
            && now.saturating_sub(intended) > self.limits.wait_ns
        {
            self.due.pop_front();
            expired.all += 1;
            expired.measured += u64::from(intended >= timeline.measure_from());
        }
        expired
    }

    /// A connection of `thread` is free: it takes the next due arrival or is idle from now on.
    pub(super) fn claim(&mut self, timeline: &Timeline, thread: usize, now: u64) -> (Claim, Wake) {
        if let Some(arrival) = self.take(timeline) {
            return (Claim::Take(arrival), Wake { alarm: None, poke: self.cover(thread, now) });
        }
        if self.future.is_empty() {
            return (Claim::Over, Wake::default());
        }
        self.threads[thread].idle += 1;
        (Claim::Idle, Wake { alarm: self.set_alarm(thread, now), poke: None })
    }

    /// Gives a due arrival to one of `thread`'s idle connections.
    pub(super) fn take_idle(&mut self, timeline: &Timeline, thread: usize) -> Option<Arrival> {
        if self.threads[thread].idle == 0 {
            return None;
        }
        let arrival = self.take(timeline)?;
        self.threads[thread].idle -= 1;
        Some(arrival)
    }

    /// `thread` has looked at the schedule: what its alarm is set to, and who else must look.
    pub(super) fn looked(&mut self, thread: usize, now: u64) -> Wake {
        self.threads[thread].alarm = u64::MAX;
        let alarm = if self.threads[thread].idle > 0 { self.set_alarm(thread, now) } else { None };
        Wake { alarm, poke: self.cover(thread, now) }
    }

    /// An idle connection of `thread` is gone.
    pub(super) fn leave_idle(&mut self, thread: usize, now: u64) -> Wake {
        self.threads[thread].idle = self.threads[thread].idle.saturating_sub(1);
        Wake { alarm: None, poke: self.cover(thread, now) }
    }

    /// Whether nothing is due and nothing will be.
    pub(super) fn is_over(&self) -> bool {
        self.future.is_empty() && self.due.is_empty()
    }

    /// What came in a window that is over, once: windows must be asked for in order.
    pub(super) fn collect(&mut self, seq: u64) -> Came {
        while let Some(&(closed, came)) = self.closed.front() {
            if closed > seq {
                break;
            }
            self.closed.pop_front();
            if closed == seq {
                return came;
            }
        }
        if self.span.seq == seq { std::mem::take(&mut self.came) } else { Came::default() }
    }

    fn take(&mut self, timeline: &Timeline) -> Option<Arrival> {
        let (intended, ordinal) = self.due.pop_front()?;
        Some(Arrival { intended, ordinal, measured: intended >= timeline.measure_from() })
    }

    fn idle(&self) -> usize {
        self.threads.iter().map(|thread| thread.idle).sum()
    }

    fn look_ahead(&mut self, timeline: &Timeline) {
        // A stop may have emptied the future: what is beyond the end never comes back, as the
        // starts only rise.
        while self.future.len() <= self.threads.len() {
            match self.gaps.next().map(|gap| self.origin.saturating_add(gap)) {
                Some(at) if at < timeline.end() => self.future.push_back(at),
                _ => break,
            }
        }
    }

    fn close_windows(&mut self, timeline: &Timeline, now: u64) {
        while let Some((_, next)) = timeline.after(&self.span, now) {
            if self.came != Came::default() {
                self.closed.push_back((self.span.seq, std::mem::take(&mut self.came)));
            }
            self.span = next;
        }
    }

    /// The new time of a thread's alarm, if it has to be set: the first future arrival that the
    /// alarms of the other threads with idle connections leave open.
    fn set_alarm(&mut self, thread: usize, now: u64) -> Option<u64> {
        let first = *self.future.front()?;
        let others = |at: u64| {
            self.threads
                .iter()
                .enumerate()
                .filter(|(i, t)| *i != thread && t.idle > 0 && t.alarm <= at && !t.is_stalled(now))
                .count()
        };
        let rescue = first.saturating_add(RESCUE_NS);
        let own = self
            .future
            .iter()
            .enumerate()
            .find(|&(place, &at)| at >= rescue || others(at) <= place)
            .map_or(rescue, |(_, &at)| at.min(rescue));
        let alarm = &mut self.threads[thread].alarm;
        if *alarm <= own && *alarm > now {
            return None;
        }
        *alarm = own;
        Some(own)
    }

    /// A thread to poke, if no thread with an idle connection will wake for what is due or next.
    fn cover(&mut self, thread: usize, now: u64) -> Option<usize> {
        let wanted = if self.due.is_empty() { *self.future.front()? } else { now };
        let watched = |t: &Thread| t.idle > 0 && t.alarm <= wanted && !t.is_stalled(now);
        if self.threads.iter().any(watched) {
            return None;
        }
        let of = self.threads.len();
        let can_take = |i: &usize| self.threads[*i].idle > 0 && !self.threads[*i].is_stalled(now);
        let other = (1..of).map(|step| (thread + step) % of).find(can_take)?;
        self.threads[other].alarm = wanted;
        Some(other)
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
