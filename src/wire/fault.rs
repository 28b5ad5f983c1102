//! The faults of a gate: which are in force, and on whom they fall.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::model::{Fault, FaultKind};

/// Whether and how long a fault is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InForce {
    No,
    Until(Instant),
    ForEver,
}

/// The faults of one gate, shared by its connections.
pub(super) struct Faults {
    /// Empty for most gates: then nothing is locked.
    none: bool,
    state: Mutex<State>,
}

struct State {
    first_begin: Option<Instant>,
    faults: Vec<Counted>,
}

struct Counted {
    fault: Fault,
    /// Writing COMMITs seen while it was in force.
    commits: u64,
}

impl Faults {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        let none = faults.is_empty();
        let faults = faults.into_iter().map(|fault| Counted { fault, commits: 0 }).collect();
        Self { none, state: Mutex::new(State { first_begin: None, faults }) }
    }

    /// Tells that a transaction begins: the first one starts the clock of every fault.
    pub(super) fn begin(&self, now: Instant) {
        if !self.none {
            self.state().first_begin.get_or_insert(now);
        }
    }

    /// Whether replies are held back at `now`.
    pub(super) fn frozen(&self, now: Instant) -> InForce {
        if self.none {
            return InForce::No;
        }
        let state = self.state();
        let freezes = state.faults.iter().filter(|c| c.fault.kind == FaultKind::Freeze);
        let longest = freezes.map(|c| in_force(&c.fault, state.first_begin, now)).max();
        longest.unwrap_or(InForce::No)
    }

    /// Whether this writing COMMIT, which the server has carried out, is to be cut off from its
    /// reply.
    pub(super) fn cut(&self, now: Instant) -> bool {
        self.falls(now, |kind| match kind {
            FaultKind::CutAfterCommit { every } => Some((*every, ())),
            FaultKind::Freeze | FaultKind::FailCommit { .. } => None,
        })
        .is_some()
    }

    /// The SQLSTATE with which this writing COMMIT is to fail, if it is.
    pub(super) fn fail(&self, now: Instant) -> Option<String> {
        self.falls(now, |kind| match kind {
            FaultKind::FailCommit { every, sqlstate } => Some((*every, sqlstate.clone())),
            FaultKind::Freeze | FaultKind::CutAfterCommit { .. } => None,
        })
    }

    /// Counts a COMMIT with every fault in force that `concerns` it; what the first one says that
    /// falls on it.
    fn falls<T>(
        &self,
        now: Instant,
        concerns: impl Fn(&FaultKind) -> Option<(u64, T)>,
    ) -> Option<T> {
        if self.none {
            return None;
        }
        let mut state = self.state();
        let first_begin = state.first_begin;
        let mut falls = None;
        for counted in &mut state.faults {
            let Some((every, what)) = concerns(&counted.fault.kind) else { continue };
            if in_force(&counted.fault, first_begin, now) == InForce::No {
                continue;
            }
            counted.commits += 1;
            if counted.commits % every.max(1) == 0 {
                falls.get_or_insert(what);
            }
        }
        falls
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_force(fault: &Fault, first_begin: Option<Instant>, now: Instant) -> InForce {
    let starts = first_begin.and_then(|begin| begin.checked_add(seconds(fault.after_s)));
    if starts.is_none_or(|starts| now < starts) {
        return InForce::No;
    }
    let ends = starts.zip(fault.for_s).and_then(|(at, s)| at.checked_add(seconds(s)));
    match ends {
        Some(ends) if now >= ends => InForce::No,
        Some(ends) => InForce::Until(ends),
        None => InForce::ForEver,
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(after_s: f64, for_s: Option<f64>, kind: FaultKind) -> Fault {
        Fault { after_s, for_s, kind }
    }

    fn later(start: Instant, s: f64) -> Instant {
        start + Duration::from_secs_f64(s)
    }

    #[test]
    fn the_clock_starts_with_the_first_transaction() {
        let faults = Faults::new(vec![fault(1.0, Some(2.0), FaultKind::Freeze)]);
        let start = Instant::now();
        assert_eq!(faults.frozen(later(start, 100.0)), InForce::No);
        let begun = later(start, 100.0);
        faults.begin(begun);
        faults.begin(later(begun, 50.0));
        assert_eq!(faults.frozen(later(begun, 0.9)), InForce::No);
        assert_eq!(faults.frozen(later(begun, 1.0)), InForce::Until(later(begun, 3.0)));
        assert_eq!(faults.frozen(later(begun, 3.0)), InForce::No);
    }

    #[test]
    fn a_freeze_without_an_end_holds_for_ever() {
        let faults = Faults::new(vec![
            fault(0.0, Some(1.0), FaultKind::Freeze),
            fault(0.5, None, FaultKind::Freeze),
        ]);
        let start = Instant::now();
        faults.begin(start);
        assert_eq!(faults.frozen(start), InForce::Until(later(start, 1.0)));
        assert_eq!(faults.frozen(later(start, 0.6)), InForce::ForEver);
    }

    #[test]
    fn one_in_so_many_commits_falls() {
        let kind = FaultKind::FailCommit { sqlstate: "40001".into(), every: 3 };
        let faults = Faults::new(vec![fault(0.0, None, kind)]);
        let start = Instant::now();
        assert_eq!(faults.fail(start), None, "not before the first transaction");
        faults.begin(start);
        let falls: Vec<_> = (0..6).map(|_| faults.fail(start).is_some()).collect();
        assert_eq!(falls, [false, false, true, false, false, true]);
        assert!(!faults.cut(start));
    }
}
