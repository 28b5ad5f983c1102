//! Amounts of money, exact, and what an amount rests on.

use std::{fmt, iter::Sum};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// An amount in US dollars, kept exactly; written to files as a decimal string.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(#[serde(with = "rust_decimal::serde::str")] Decimal);

impl Money {
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// An exact amount.
    #[must_use]
    pub const fn new(amount: Decimal) -> Self {
        Self(amount)
    }

    /// The amount as an exact decimal number of US dollars.
    #[must_use]
    pub const fn amount(self) -> Decimal {
        self.0
    }

    /// This amount times a quantity (hours, millions of attempts …), rounded to a billionth of a
    /// dollar so that sums over a long run stay short. A quantity that is not finite counts as 0.
    #[must_use]
    pub fn times(self, quantity: f64) -> Self {
        let quantity = Decimal::from_f64_retain(quantity).unwrap_or_default();
        Self((self.0.saturating_mul(quantity)).round_dp(9).normalize())
    }
}

impl fmt::Display for Money {
    /// Two decimals, for the screen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.2}", self.0.round_dp(2)))
    }
}

impl std::ops::Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::Sub for Money {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, |sum, amount| sum + amount)
    }
}

/// What a figure of money rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Read from a meter of the service that bills it.
    Measured,
    /// Computed from what rampdeck knows of the time and the work.
    Estimated,
    /// A rehearsal's pretended price: nothing is billed.
    #[default]
    Simulated,
}
