//! The guard: when a run must start no more cells, and when it must end.

use rust_decimal::Decimal;

use crate::model::{GuardState, Money};

/// What a run has spent and cannot help spending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// What the meters say.
    pub accrued: Money,
    /// The most that meters may not have published yet.
    pub unpublished_high: Money,
    /// What the running cells' rest, or the next cell, will take.
    pub next_cell: Money,
    /// What everything costs until teardown has removed it.
    pub teardown: Money,
}

/// Watches a run's money. Teardown is final: a figure that falls again does not take it back.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    threshold: Money,
    state: GuardState,
}

impl Guard {
    /// A guard that ends the run when it would come to `guard`, or to `cap` where that is less.
    #[must_use]
    pub fn new(guard: Money, cap: Money) -> Self {
        Self { threshold: guard.min(cap), state: GuardState::Ok }
    }

    /// What the guard last said.
    #[must_use]
    pub const fn state(&self) -> GuardState {
        self.state
    }

    /// Judges what is spent and bound to be spent:
    ///
    /// - `Teardown` when accrued, unpublished and teardown come to the threshold,
    /// - `NoNewCells` when the running or next cell would bring them there,
    /// - `Warn` when accrued and unpublished are at four fifths of it.
    pub fn assess(&mut self, exposure: &Exposure) -> GuardState {
        let spent = exposure.accrued + exposure.unpublished_high;
        let bound = spent + exposure.teardown;
        let four_fifths = Money::new(self.threshold.amount() * Decimal::new(8, 1));
        self.state = if self.state == GuardState::Teardown || bound >= self.threshold {
            GuardState::Teardown
        } else if bound + exposure.next_cell >= self.threshold {
            GuardState::NoNewCells
        } else if spent >= four_fifths {
            GuardState::Warn
        } else {
            GuardState::Ok
        };
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Money {
        Money::new(Decimal::from_str_exact(text).unwrap())
    }

    fn at(accrued: &str) -> Exposure {
        Exposure {
            accrued: usd(accrued),
            unpublished_high: usd("1"),
            next_cell: usd("2"),
            teardown: usd("0.5"),
        }
    }

    #[test]
    fn it_counts_what_is_unpublished_and_what_is_still_bound_to_come() {
        let mut guard = Guard::new(usd("54"), usd("60"));
        assert_eq!(guard.assess(&at("10")), GuardState::Ok);
        assert_eq!(guard.assess(&at("42.19")), GuardState::Ok);
        assert_eq!(guard.assess(&at("42.20")), GuardState::Warn);
        assert_eq!(guard.assess(&at("50.49")), GuardState::Warn);
        assert_eq!(guard.assess(&at("50.50")), GuardState::NoNewCells);
        assert_eq!(guard.assess(&at("52.499")), GuardState::NoNewCells);
        assert_eq!(guard.assess(&at("52.50")), GuardState::Teardown);
    }

    #[test]
    fn only_teardown_is_final() {
        let mut guard = Guard::new(usd("54"), usd("60"));
        assert_eq!(guard.assess(&at("51")), GuardState::NoNewCells);
        assert_eq!(guard.assess(&at("43")), GuardState::Warn);
        assert_eq!(guard.assess(&at("99")), GuardState::Teardown);
        assert_eq!(guard.assess(&at("1")), GuardState::Teardown);
        assert_eq!(guard.state(), GuardState::Teardown);
    }

    #[test]
    fn the_cap_holds_whatever_the_guard_is() {
        let mut guard = Guard::new(usd("100"), usd("10"));
        assert_eq!(guard.assess(&at("9")), GuardState::Teardown);
    }
}
