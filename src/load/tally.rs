//! What a thread records of a cell in a window, and of the measured span.

use std::collections::BTreeMap;

use crate::{
    model::{Class, Counts, PartRecordings, PerClass, Recording, ResponseParts, TailSums},
    target::ReadLag,
};

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    /// As the business rules say.
    Rejected,
    /// By a technical failure.
    Failed,
    /// COMMIT was sent, and nothing could tell whether it was carried out.
    Unknown,
}

/// A transaction that has ended. The three parts add up to its response time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) class: Class,
    pub(super) outcome: Outcome,
    pub(super) attempts: u32,
    /// The worker whose connection it ran on, from 0 within this thread's part of the cell: what
    /// went before on that connection tells whose doing the connection wait was.
    pub(super) worker: usize,
    pub(super) connection_wait_ns: u64,
    pub(super) schedule_lag_ns: u64,
    pub(super) service_ns: u64,
    /// Of the service: how long replies lay in the kernel before they were read. Without reads
    /// where the kernel does not tell; the thread's own stalls stand for it then.
    pub(super) read_lag: ReadLag,
}

/// Counts and recordings. Its memory is all taken when it is made.
#[derive(Debug)]
pub(super) struct Tally {
    /// `in_flight` is not kept here: it is what the others leave.
    pub(super) counts: Counts,
    pub(super) sqlstates: BTreeMap<String, u64>,
    pub(super) classes: PerClass<PartRecordings>,
    pub(super) failed: PerClass<u64>,
    pub(super) unknown: PerClass<u64>,
    pub(super) tail: TailSums,
    pub(super) read_lag: Recording,
    pub(super) loop_lag: Recording,
    /// How often the loop was stalled.
    pub(super) stalls: u64,
}

impl Tally {
    /// An empty tally, its memory touched, so that the process does not grow while it records.
    pub(super) fn new() -> Self {
        let mut tally = Self {
            counts: Counts::default(),
            sqlstates: BTreeMap::new(),
            classes: PerClass::default(),
            failed: PerClass::default(),
            unknown: PerClass::default(),
            tail: TailSums::default(),
            read_lag: Recording::new(),
            loop_lag: Recording::new(),
            stalls: 0,
        };
        tally.clear();
        tally
    }

    /// Whether nothing was counted or recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.counts == Counts::default()
            && self.sqlstates.is_empty()
            && self.loop_lag.count() == 0
            && self.read_lag.count() == 0
    }

    /// Counts a transaction that has ended, and records a success with the parts of its response
    /// time.
    pub(super) fn end(&mut self, ended: &Ended, parts: &ResponseParts) {
        let counts = &mut self.counts;
        counts.completed += 1;
        counts.attempts += u64::from(ended.attempts);
        counts.retries += u64::from(ended.attempts.saturating_sub(1));
        counts.never_attempted += u64::from(ended.attempts == 0);
        match ended.outcome {
            Outcome::Succeeded => counts.succeeded += 1,
            Outcome::Rejected => counts.business_rejected += 1,
            Outcome::Failed => {
                counts.failed += 1;
                self.failed[ended.class] += 1;
            }
            Outcome::Unknown => {
                counts.unknown += 1;
                self.unknown[ended.class] += 1;
            }
        }
        if ended.read_lag.reads > 0 {
            self.read_lag.record(ended.read_lag.worst_ns);
        }
        if ended.outcome != Outcome::Succeeded {
            return;
        }
        let recordings = &mut self.classes[ended.class];
        recordings.response.record(parts.response_ns());
        recordings.service.record(parts.service_ns);
        recordings.connection_wait.record(parts.connection_wait_ns);
        recordings.schedule_lag.record(parts.schedule_lag_ns);
        self.tail.record(parts);
    }

    /// Counts arrivals that failed because no connection became free in time.
    pub(super) fn expire(&mut self, number: u64) {
        if number > 0 {
            self.counts.completed += number;
            self.counts.failed += number;
            self.counts.never_attempted += number;
            self.count_errors(POOL_TIMEOUT, number);
        }
    }

    /// Counts an error that an attempt saw.
    pub(super) fn count_errors(&mut self, name: &str, number: u64) {
        // Looked up by reference first: only an error of a new kind takes memory.
        if let Some(count) = self.sqlstates.get_mut(name) {
            *count += number;
        } else {
            self.sqlstates.insert(name.to_owned(), number);
        }
    }

    /// Adds another tally.
    pub(super) fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        for (name, number) in &other.sqlstates {
            self.count_errors(name, *number);
        }
        for class in Class::ALL {
            self.classes[class].merge(&other.classes[class]);
            self.failed[class] += other.failed[class];
            self.unknown[class] += other.unknown[class];
        }
        self.tail.merge(&other.tail);
        self.read_lag.merge(&other.read_lag);
        self.loop_lag.merge(&other.loop_lag);
        self.stalls += other.stalls;
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.counts = Counts::default();
        self.sqlstates.clear();
        for class in Class::ALL {
            self.classes[class].clear();
        }
        self.failed = PerClass::default();
        self.unknown = PerClass::default();
        self.tail.clear();
        self.read_lag.clear();
        self.loop_lag.clear();
        self.stalls = 0;
    }
}

/// The name under which an arrival without a connection is counted.
pub(super) const POOL_TIMEOUT: &str = "pool_timeout";

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome, attempts: u32) -> Ended {
        Ended {
            class: Class::OrderCreate,
            outcome,
            attempts,
            worker: 0,
            connection_wait_ns: 2_000_000,
            schedule_lag_ns: 1_000_000,
            service_ns: 7_000_000,
            read_lag: ReadLag::default(),
        }
    }

    fn end(tally: &mut Tally, outcome: Outcome, attempts: u32) {
        let parts = ResponseParts {
            connection_wait_ns: 2_000_000,
            schedule_lag_ns: 1_000_000,
            service_ns: 7_000_000,
            ..ResponseParts::default()
        };
        tally.end(&ended(outcome, attempts), &parts);
    }

    #[test]
    fn the_identities_hold_and_only_successes_are_recorded() {
        let mut tally = Tally::new();
        tally.counts.offered = 6;
        end(&mut tally, Outcome::Succeeded, 3);
        end(&mut tally, Outcome::Failed, 2);
        end(&mut tally, Outcome::Failed, 0);
        end(&mut tally, Outcome::Rejected, 1);
        end(&mut tally, Outcome::Unknown, 1);
        tally.expire(1);
        assert_eq!(tally.counts.violated_identity(0), None);
        assert_eq!(tally.counts.never_attempted, 2);
        let parts = &tally.classes.order_create;
        assert_eq!(parts.response.count(), 1);
        assert!((parts.response.quantile_ms(1.0).unwrap() - 10.0).abs() < 0.01);
        assert_eq!(tally.sqlstates[POOL_TIMEOUT], 1);
        assert_eq!((tally.failed.order_create, tally.unknown.order_create), (2, 1));
        assert_eq!(tally.failed.product_lookup, 0);
    }

    #[test]
    fn merging_adds_and_clearing_forgets() {
        let (mut one, mut two) = (Tally::new(), Tally::new());
        end(&mut one, Outcome::Succeeded, 1);
        end(&mut two, Outcome::Succeeded, 2);
        two.count_errors("40001", 1);
        one.merge(&two);
        assert_eq!((one.counts.succeeded, one.counts.retries), (2, 1));
        assert_eq!(one.sqlstates["40001"], 1);
        one.clear();
        assert_eq!(one.classes.order_create.response.count(), 0);
        assert_eq!(one.counts, Counts::default());
    }
}
