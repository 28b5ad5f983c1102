//! When a connection is replaced because of its age, so that the server never cuts it: databases
//! and proxies end sessions at a fixed age, at once and in the middle of whatever they do.

use super::clock;
use crate::model::ConnectionLife;

/// The fractional part of the golden ratio: multiples of it fall evenly between 0 and 1 whatever
/// their number.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The greatest age of a configuration's connections.
///
/// The worker of a connection does the following. When it opens the connection it notes
/// [`clock::now`] *before* it connects, since the server counts from its own side of the log-in.
/// Between two transactions, and while it waits for an arrival, it compares the clock with
/// [`Age::due`]. Once due, it waits its turn with `Pacer::acquire` and opens the new connection
/// *beside* the old one, which goes on to serve; only when the new one is ready for transactions
/// does it put it in the old one's place, between two transactions, and close the old one. An
/// opening that fails leaves the old one in place and is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Age {
    greatest_s: f64,
}

impl Age {
    /// `None` where connections are kept for ever.
    pub(super) fn of(life: &ConnectionLife) -> Option<Self> {
        life.max_age_s.map(|greatest_s| Self { greatest_s })
    }

    /// When a connection opened at `opened_at` is to be replaced, both in nanoseconds of
    /// [`clock::now`]: at 75 to 95 % of the greatest age, by its `spread` from 0 to 1.
    pub(super) fn due(self, opened_at: u64, spread: f64) -> u64 {
        let age_s = self.greatest_s * ConnectionLife::replaced_at(spread);
        opened_at.saturating_add(clock::from_seconds(age_s))
    }
}

/// The spread of a cell's `index`th connection (from 0, over all threads), from 0 to 1. However
/// many connections are opened at once, their replacements then come evenly one after the other;
/// the same seed spreads them in the same way.
#[allow(clippy::cast_precision_loss)] // a seed only shifts the pattern, an index is small
pub(super) fn spread(seed: u64, index: u32) -> f64 {
    let shift = (seed % 1_000_003) as f64 / 1_000_003.0;
    (f64::from(index) * GOLDEN + shift).fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::clock::SECOND_NS;

    fn hour() -> Age {
        let life = ConnectionLife { max_age_s: Some(3_600.0), ..ConnectionLife::default() };
        Age::of(&life).unwrap()
    }

    #[test]
    fn a_connection_goes_between_three_quarters_and_nineteen_twentieths_of_its_age() {
        let at = 77 * SECOND_NS;
        assert_eq!(hour().due(at, 0.0), at + 2_700 * SECOND_NS);
        assert_eq!(hour().due(at, 0.5), at + 3_060 * SECOND_NS);
        assert_eq!(hour().due(at, 1.0), at + 3_420 * SECOND_NS);
        assert_eq!(Age::of(&ConnectionLife::default()), None);
        for index in 0..10_000 {
            let due = hour().due(at, spread(20_261_130, index));
            assert!((at + 2_700 * SECOND_NS..=at + 3_420 * SECOND_NS).contains(&due));
        }
    }

    #[test]
    fn connections_opened_at_once_are_replaced_evenly() {
        for (seed, connections) in [(1, 16_u32), (7, 256), (u64::MAX, 2_000)] {
            let mut due: Vec<u64> =
                (0..connections).map(|index| hour().due(0, spread(seed, index))).collect();
            due.sort_unstable();
            let even = 720.0 / f64::from(connections);
            let gaps: Vec<f64> = due.windows(2).map(|w| clock::to_seconds(w[1] - w[0])).collect();
            let widest = gaps.iter().copied().fold(0.0, f64::max);
            let closest = gaps.iter().copied().fold(f64::MAX, f64::min);
            assert!(widest < 2.7 * even, "{connections}: {widest} s, even {even} s");
            assert!(closest > 0.3 * even, "{connections}: {closest} s, even {even} s");
        }
        assert_ne!(spread(1, 0).to_bits(), spread(2, 0).to_bits(), "seeds differ");
    }
}
