//! Whose doing a wait for a connection was.
//!
//! Connections run one transaction after another, so an arrival waits for what its connection did
//! before. The wait is walked back from its end, and each stretch of it laid to what went on then:
//!
//! 1. no connection was open: the database (it had cut the one before, or let none in);
//! 2. the transaction before had its last replies in the kernel, unread: the generator;
//! 3. the transaction before was in service beyond what nine of ten of its class need: the
//!    database;
//! 4. the transaction before was in service for as long as that: the pool, since with enough
//!    connections there would have been a free one;
//! 5. the transaction before could have started and did not yet: the generator;
//! 6. the transaction before was waiting as well: whoever it waited for, in the same proportions.
//!
//! So the queue that a freeze leaves behind is laid to the freeze, although each of its
//! transactions is quick, and a pool is blamed only where it is too small for ordinary service
//! times.

/// Stretches of a wait in nanoseconds; what is left of the wait is the pool's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Causes {
    pub(super) database: u64,
    pub(super) generator: u64,
}

/// A connection's last transaction, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holder {
    /// When it ended on the monotonic clock; 0: there was none.
    pub(super) done: u64,
    pub(super) service: u64,
    /// Of the service: replies lay unread.
    pub(super) unread: u64,
    /// What its class ordinarily needs at most.
    pub(super) ordinary: u64,
    pub(super) schedule_lag: u64,
    pub(super) wait: u64,
    pub(super) causes: Causes,
}

impl Holder {
    /// Who made an arrival wait so long for the connection, which it took at `free`.
    pub(super) fn causes_of(&self, wait: u64, free: u64) -> Causes {
        if self.done == 0 {
            return Causes::default();
        }
        let mut left = wait;
        let mut stretch = |length: u64| {
            let taken = length.min(left);
            left -= taken;
            taken
        };
        let unread = self.unread.min(self.service);
        let needed = self.service - unread;
        let excess = needed.saturating_sub(self.ordinary);
        let closed = stretch(free.saturating_sub(self.done));
        let unread = stretch(unread);
        let excess = stretch(excess);
        stretch(needed.min(self.ordinary));
        let late = stretch(self.schedule_lag);
        Causes {
            database: closed + excess + share(left, self.causes.database, self.wait),
            generator: unread + late + share(left, self.causes.generator, self.wait),
        }
    }
}

/// The part of `length` that `part` is of `whole`.
fn share(length: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let share = u128::from(length) * u128::from(part) / u128::from(whole);
    u64::try_from(share).unwrap_or(u64::MAX).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs quick transactions behind `first` on one connection until `number` have run, all of
    /// arrivals that came in the millisecond after each other; gives the causes of each wait.
    fn drained(first: Holder, first_wait: u64, number: usize) -> Vec<(u64, Causes)> {
        let (mut holder, mut wait, mut all) = (first, first_wait, Vec::new());
        for _ in 0..number {
            let free = holder.done;
            let causes = holder.causes_of(wait, free);
            all.push((wait, causes));
            holder = Holder {
                done: free + MS,
                service: MS,
                ordinary: 2 * MS,
                wait,
                causes,
                ..Holder::default()
            };
            wait = wait.saturating_sub(MS);
        }
        all
    }

    #[test]
    fn a_freeze_is_the_databases_for_the_whole_queue_it_leaves() {
        let frozen = Holder {
            done: 20_000 * MS,
            service: 15_000 * MS,
            ordinary: 2 * MS,
            ..Holder::default()
        };
        for (wait, causes) in drained(frozen, 14_000 * MS, 100) {
            assert!(causes.database > wait / 100 * 98, "{causes:?} of {wait}");
            assert_eq!(causes.generator, 0);
        }
    }

    #[test]
    fn steady_service_with_too_few_connections_is_the_pools() {
        let busy = Holder { done: 1_000 * MS, service: MS, ordinary: 2 * MS, ..Holder::default() };
        for (_, causes) in drained(busy, 500 * MS, 100) {
            assert_eq!(causes, Causes::default());
        }
    }

    #[test]
    fn a_reply_left_unread_and_a_late_start_are_the_generators() {
        let unread = Holder {
            done: 1_000 * MS,
            service: 251 * MS,
            unread: 250 * MS,
            ordinary: 2 * MS,
            ..Holder::default()
        };
        let late = Holder {
            done: 1_000 * MS,
            service: MS,
            ordinary: 2 * MS,
            schedule_lag: 250 * MS,
            ..Holder::default()
        };
        for holder in [unread, late] {
            for (wait, causes) in drained(holder, 245 * MS, 20) {
                assert!(causes.generator > wait / 10 * 8, "{causes:?} of {wait}");
                assert_eq!(causes.database, 0);
            }
        }
    }

    #[test]
    fn only_what_overlaps_the_wait_is_laid_to_anybody() {
        let frozen =
            Holder { done: 1_000 * MS, service: 500 * MS, ordinary: 100 * MS, ..Holder::default() };
        let database = |wait: u64, free: u64| frozen.causes_of(wait * MS, free * MS).database / MS;
        assert_eq!(database(50, 1_000), 50, "it came in the middle of the freeze");
        assert_eq!(database(450, 1_000), 400, "it came before it");
        assert_eq!(database(30, 1_020), 30, "20 ms without a connection, 10 of the freeze");
        assert_eq!(Holder::default().causes_of(MS, MS), Causes::default(), "nobody was before it");
    }
}
