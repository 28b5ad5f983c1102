//! Orders that a cancel may take: created and acknowledged in this attempt, not yet picked.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How many orders are kept; older ones are forgotten and stay placed. At 8,000 arrivals a second
/// this is some 40 s of creates.
const SLOTS: u64 = 1 << 16;
/// How many slots a pick looks at. Cancels come half as often as creates, so about every other
/// slot is filled: that 64 in a row are empty does not happen by chance.
const PROBES: u64 = 64;
/// Order ids are above 0.
const EMPTY: i64 = 0;

/// A ring of order ids without a lock: every thread of the load adds and takes.
#[derive(Debug)]
pub(super) struct OpenOrders {
    slots: Box<[AtomicI64]>,
    added: AtomicU64,
}

impl OpenOrders {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicI64::new(EMPTY)).collect(),
            added: AtomicU64::new(0),
        }
    }

    /// Adds an order; the oldest one makes room where the ring is full.
    pub(super) fn add(&self, order_id: i64) {
        let turn = self.added.fetch_add(1, Ordering::Relaxed);
        self.slot(turn).store(order_id, Ordering::Relaxed);
    }

    /// Takes an order out, beginning to look at a place that `random` chooses. Each order is taken
    /// at most once.
    pub(super) fn take(&self, random: u64) -> Option<i64> {
        let filled = self.added.load(Ordering::Relaxed).min(SLOTS);
        let first = random.checked_rem(filled)?;
        (0..filled.min(PROBES)).find_map(|probe| {
            let slot = self.slot((first + probe) % filled);
            // Reading first keeps the slots that are empty shared between the processors' caches.
            if slot.load(Ordering::Relaxed) == EMPTY {
                return None;
            }
            let taken = slot.swap(EMPTY, Ordering::Relaxed);
            (taken != EMPTY).then_some(taken)
        })
    }

    fn slot(&self, turn: u64) -> &AtomicI64 {
        // The remainder is below the number of slots, which fits any `usize`.
        #[allow(clippy::cast_possible_truncation)]
        &self.slots[(turn % SLOTS) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_order_is_taken_once_and_none_is_invented() {
        let open = OpenOrders::new();
        assert_eq!(open.take(7), None);
        (1..=10).for_each(|id| open.add(id));
        let taken: HashSet<_> = (0..10).map(|random| open.take(random * 31).unwrap()).collect();
        assert_eq!(taken, (1..=10).collect());
        assert_eq!(open.take(3), None);
    }

    #[test]
    fn a_full_ring_forgets_the_oldest() {
        let open = OpenOrders::new();
        let slots = SLOTS.cast_signed();
        (1..=slots + 5).for_each(|id| open.add(id));
        let mut taken = HashSet::new();
        for random in 0..SLOTS {
            taken.extend(open.take(random));
        }
        assert_eq!(taken, (6..=slots + 5).collect());
    }

    #[test]
    fn threads_never_take_the_same_order() {
        let open = OpenOrders::new();
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let open = &open;
                    scope.spawn(move || {
                        let mut taken = Vec::new();
                        for i in 0..5_000 {
                            open.add((thread * 5_000 + i + 1).cast_signed());
                            taken.extend(open.take(i * 17));
                        }
                        taken
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(!taken.is_empty());
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), taken.len());
    }
}
