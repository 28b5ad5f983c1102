//! When a load thread was stalled, as far as its beat tells: what stands for the read lag where
//! the kernel does not tell it.

use crate::model::ThreadSample;

/// The last stall of a thread, and the one that may be going on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    /// From when the loop should have come round until it did.
    last: (u64, u64),
    /// When it should come round next; 0: not known yet.
    next_beat: u64,
}

impl Stalls {
    /// Takes the beats since the last time: when each should have been, and by how much it was
    /// missed; `period` is the time between two. Whether the thread was stalled.
    pub(super) fn beats(&mut self, lags: &[(u64, u64)], period: u64) -> bool {
        let (Some(&(first, lag)), Some(&(last, _))) = (lags.first(), lags.last()) else {
            return false;
        };
        self.next_beat = last + period;
        let stalled = lag >= ThreadSample::STALL_NS;
        if stalled {
            self.last = (first, first + lag);
        }
        stalled
    }

    /// For how much of the time from `start` to `done`, which is now, the thread was stalled, in
    /// nanoseconds. Earlier stalls than the last one are not known any more: a reply that came
    /// before them was read after them.
    pub(super) fn within(&self, start: u64, done: u64) -> u64 {
        let overlap = |(from, to): (u64, u64)| done.min(to).saturating_sub(start.max(from));
        let is_late = self.next_beat != 0 && done >= self.next_beat + ThreadSample::STALL_NS;
        let going_on = if is_late { overlap((self.next_beat, done)) } else { 0 };
        overlap(self.last) + going_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_stall_counts_as_far_as_it_overlaps() {
        let mut stalls = Stalls::default();
        assert_eq!(stalls.within(0, 5_000 * MS), 0, "nothing is known yet");
        assert!(!stalls.beats(&[(100 * MS, MS)], 10 * MS));
        assert_eq!(stalls.within(90 * MS, 119 * MS), 0, "9 ms late is no stall");
        assert_eq!(stalls.within(90 * MS, 360 * MS), 250 * MS, "the beat itself is still to come");
        assert!(stalls.beats(&[(110 * MS, 250 * MS), (120 * MS, 240 * MS)], 10 * MS));
        assert!(!stalls.beats(&[(360 * MS, 0)], 10 * MS));
        assert!(!stalls.beats(&[], 10 * MS));
        assert_eq!(stalls.within(90 * MS, 361 * MS), 250 * MS);
        assert_eq!(stalls.within(350 * MS, 361 * MS), 10 * MS);
        assert_eq!(stalls.within(360 * MS, 365 * MS), 0);
    }
}
