//! The highest rate that is carried, found in a few steps. Pure: it is told what each rate came to.

/// Steps that narrow the bounds.
const STEPS: usize = 4;
/// Further steps down, where no rate has been carried yet.
const MORE_STEPS: usize = 4;
/// The bounds are narrow enough when they are less than this factor apart.
const NARROW: f64 = 1.1;

/// A search between the highest rate carried and the lowest one not carried.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    carried: Option<f64>,
    not_carried: Option<f64>,
    /// What the machine does flat out: no rate above it is carried.
    most: f64,
    steps: usize,
}

impl Search {
    /// `most` is the rate of a closed loop, transactions per second.
    pub const fn below(most: f64) -> Self {
        Self { carried: None, not_carried: None, most, steps: 0 }
    }

    /// The rate to try next, whole arrivals per second; `None` when it is over.
    pub fn next(&self) -> Option<f64> {
        self.exact_next().map(|rate| rate.round().max(1.0))
    }

    fn exact_next(&self) -> Option<f64> {
        let ceiling = self.not_carried.unwrap_or(self.most * 1.2);
        match self.carried {
            None if self.steps < STEPS + MORE_STEPS => Some(ceiling.min(self.most) / 2.0),
            Some(carried) if self.steps < STEPS && ceiling / carried > NARROW => {
                Some((carried * ceiling).sqrt())
            }
            _ => None,
        }
    }

    /// What came of trying a rate.
    pub fn tried(&mut self, rate: f64, was_carried: bool) {
        self.steps += 1;
        if was_carried {
            self.carried = Some(self.carried.map_or(rate, |best| best.max(rate)));
        } else {
            self.not_carried = Some(self.not_carried.map_or(rate, |least| least.min(rate)));
        }
    }

    pub const fn carried(&self) -> Option<f64> {
        self.carried
    }

    pub const fn not_carried(&self) -> Option<f64> {
        self.not_carried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(most: f64, limit: f64) -> (Search, usize) {
        let mut search = Search::below(most);
        let mut tries = 0;
        while let Some(rate) = search.next() {
            search.tried(rate, rate <= limit);
            tries += 1;
        }
        (search, tries)
    }

    #[test]
    fn it_closes_in_on_the_limit_from_both_sides_in_few_steps() {
        for limit in [5_500.0, 7_000.0, 9_900.0] {
            let (found, tries) = search(10_000.0, limit);
            let carried = found.carried().unwrap();
            let ceiling = found.not_carried().unwrap_or(12_000.0);
            assert!(carried <= limit && ceiling > limit, "{found:?}");
            assert!(ceiling / carried < 1.25 && tries <= 4, "{found:?} in {tries}");
        }
    }

    #[test]
    fn a_machine_that_carries_little_is_followed_down_and_one_that_carries_nothing_ends_it() {
        let (found, _) = search(10_000.0, 700.0);
        assert_eq!(found.carried(), Some(625.0));
        assert_eq!(found.not_carried(), Some(1_250.0));
        let (found, tries) = search(10_000.0, 0.0);
        assert_eq!((found.carried(), tries), (None, 8));
    }
}
