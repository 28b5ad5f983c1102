//! Intended starts of an open loop, one after another: seeded exponential gaps or equal ones.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::model::Arrivals;

/// Gives the intended start of each arrival, in nanoseconds since the schedule's beginning,
/// never falling. The same seed and rate give the same starts.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    kind: Arrivals,
    gap_ns: f64,
    random: Pcg64Mcg,
    /// How many were given, and the sum of the exponential gaps so far.
    given: u64,
    sum_ns: f64,
    shift_ns: f64,
}

impl Gaps {
    /// Arrivals at `rate` per second; a rate that is not positive has none.
    pub(super) fn new(kind: Arrivals, rate: f64, seed: u64) -> Self {
        let gap_ns = if rate > 0.0 { 1e9 / rate } else { f64::INFINITY };
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self { kind, gap_ns, random, given: 0, sum_ns: 0.0, shift_ns: 0.0 }
    }

    /// The same, equal gaps being shifted by `shift_s` seconds.
    pub(super) fn shifted(kind: Arrivals, rate: f64, seed: u64, shift_s: f64) -> Self {
        Self { shift_ns: shift_s * 1e9, ..Self::new(kind, rate, seed) }
    }
}

impl Iterator for Gaps {
    type Item = u64;

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn next(&mut self) -> Option<u64> {
        if self.gap_ns.is_infinite() {
            return None;
        }
        let at = match self.kind {
            // A product, not a sum: rounding must not drift over a long cell.
            Arrivals::Constant => self.given as f64 * self.gap_ns + self.shift_ns,
            Arrivals::Poisson => {
                let uniform: f64 = self.random.random();
                self.sum_ns -= (1.0 - uniform).ln() * self.gap_ns;
                self.sum_ns
            }
        };
        self.given += 1;
        Some(at as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_arrivals_are_equally_spaced_and_do_not_drift() {
        let starts: Vec<u64> =
            Gaps::new(Arrivals::Constant, 3.0, 1).step_by(3).take(1_000_001).collect();
        assert_eq!(starts[0], 0);
        assert_eq!(starts[1_000_000], 1_000_000_000_000_000);
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_and_the_spread_and_follow_the_seed() {
        let starts = |seed| Gaps::new(Arrivals::Poisson, 1_000.0, seed).take(100_000);
        let last = starts(7).last().unwrap();
        assert!((99_000_000_000..101_000_000_000).contains(&last), "{last}");
        // Among exponential gaps a share of 1/e is longer than the mean.
        let all: Vec<u64> = starts(7).collect();
        let long = all.windows(2).filter(|w| w[1] - w[0] > 1_000_000).count();
        assert!((36_000..37_600).contains(&long), "{long}");
        assert!(starts(7).eq(starts(7)));
        assert!(!starts(7).eq(starts(8)));
    }

    #[test]
    fn a_rate_of_zero_has_no_arrivals() {
        assert_eq!(Gaps::new(Arrivals::Poisson, 0.0, 1).next(), None);
    }
}
