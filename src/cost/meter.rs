//! Meters: how long each configuration existed, how many attempts it was given, and what that
//! comes to.

use rust_decimal::Decimal;

use crate::{
    model::{Basis, ConfigurationId, CostLine, Money, UnixMs},
    plan::{ConfigurationPlan, Plan, PriceLine, PricePer},
};

const MS_PER_HOUR: u64 = 3_600_000;
const MILLION: u64 = 1_000_000;
/// Money is rounded to a billionth of a dollar, as [`Money::times`] does.
const MONEY_DIGITS: u32 = 9;
const QUANTITY_DIGITS: u32 = 6;

/// The meters of one run.
#[derive(Clone, Debug)]
pub struct Meter {
    basis: Basis,
    configurations: Vec<Configuration>,
}

#[derive(Clone, Debug)]
struct Configuration {
    id: ConfigurationId,
    prices: Vec<Price>,
    /// Time of existences that are over.
    past_ms: u64,
    since: Option<UnixMs>,
    attempts: u64,
}

#[derive(Clone, Debug)]
struct Price {
    item: String,
    per: PricePer,
    unit: Money,
    quantity: Decimal,
}

impl Price {
    fn of(line: &PriceLine) -> Self {
        Self { item: line.item.clone(), per: line.per, unit: line.price, quantity: quantity(line) }
    }
}

/// A checked plan has only quantities that are decimal numbers.
fn quantity(line: &PriceLine) -> Decimal {
    Decimal::from_str_exact(&line.quantity).unwrap_or_default()
}

fn rate(configuration: &ConfigurationPlan, per: PricePer) -> Money {
    let lines = configuration.prices.iter().filter(|line| line.per == per);
    lines.map(|line| product(line.price, quantity(line))).sum()
}

fn product(price: Money, quantity: Decimal) -> Money {
    Money::new(price.amount().saturating_mul(quantity).normalize())
}

/// What a configuration costs each hour that it exists.
#[must_use]
pub fn hourly(configuration: &ConfigurationPlan) -> Money {
    rate(configuration, PricePer::Hour)
}

/// What a million attempts on a configuration cost on top.
#[must_use]
pub fn per_million_attempts(configuration: &ConfigurationPlan) -> Money {
    rate(configuration, PricePer::MillionAttempts)
}

impl Meter {
    /// Meters at zero: nothing exists yet. What they say is simulated in a rehearsal and estimated
    /// otherwise.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let basis = if plan.is_rehearsal() { Basis::Simulated } else { Basis::Estimated };
        let configurations = plan
            .configurations
            .iter()
            .map(|planned| Configuration {
                id: planned.id.clone(),
                prices: planned.prices.iter().map(Price::of).collect(),
                past_ms: 0,
                since: None,
                attempts: 0,
            })
            .collect();
        Self { basis, configurations }
    }

    /// What the figures rest on.
    #[must_use]
    pub const fn basis(&self) -> Basis {
        self.basis
    }

    /// A configuration exists, and bills, from this time. It may come back after it was gone; a
    /// time later than one that it already exists from changes nothing.
    pub fn exists_from(&mut self, configuration: &ConfigurationId, at: UnixMs) {
        if let Some(found) = self.find_mut(configuration) {
            found.since = Some(found.since.map_or(at, |since| since.min(at)));
        }
    }

    /// A configuration is gone, and bills no longer, from this time.
    pub fn gone_at(&mut self, configuration: &ConfigurationId, at: UnixMs) {
        if let Some(found) = self.find_mut(configuration)
            && let Some(since) = found.since.take()
        {
            found.past_ms += at.0.saturating_sub(since.0);
        }
    }

    /// This many further attempts were made on a configuration.
    pub fn attempts(&mut self, configuration: &ConfigurationId, attempts: u64) {
        if let Some(found) = self.find_mut(configuration) {
            found.attempts = found.attempts.saturating_add(attempts);
        }
    }

    /// The bill at a time: a line for each price of each configuration, in the plan's order. Its
    /// quantity is in hours or attempts times the price's own quantity, rounded to six digits; its
    /// amount is computed before that rounding.
    #[must_use]
    pub fn lines(&self, now: UnixMs) -> Vec<CostLine> {
        let lines = |c| Configuration::lines(c, now, self.basis);
        self.configurations.iter().flat_map(lines).collect()
    }

    /// What the run has cost until a time: the sum of the bill's amounts.
    #[must_use]
    pub fn accrued(&self, now: UnixMs) -> Money {
        self.configurations.iter().map(|c| c.accrued(now)).sum()
    }

    /// What one configuration has cost until a time; nothing where the plan does not have it.
    #[must_use]
    pub fn accrued_of(&self, configuration: &ConfigurationId, now: UnixMs) -> Money {
        self.find(configuration).map_or(Money::ZERO, |c| c.accrued(now))
    }

    /// What the configurations that exist cost an hour, attempts apart.
    #[must_use]
    pub fn per_hour(&self) -> Money {
        self.configurations.iter().map(Configuration::per_hour).sum()
    }

    /// What one configuration costs an hour while it exists, attempts apart; nothing while it does
    /// not.
    #[must_use]
    pub fn per_hour_of(&self, configuration: &ConfigurationId) -> Money {
        self.find(configuration).map_or(Money::ZERO, Configuration::per_hour)
    }

    fn find(&self, id: &ConfigurationId) -> Option<&Configuration> {
        self.configurations.iter().find(|c| c.id == *id)
    }

    fn find_mut(&mut self, id: &ConfigurationId) -> Option<&mut Configuration> {
        self.configurations.iter_mut().find(|c| c.id == *id)
    }
}

impl Configuration {
    fn existed_ms(&self, now: UnixMs) -> u64 {
        self.past_ms + self.since.map_or(0, |since| now.0.saturating_sub(since.0))
    }

    fn per_hour(&self) -> Money {
        if self.since.is_none() {
            return Money::ZERO;
        }
        let hourly = self.prices.iter().filter(|price| price.per == PricePer::Hour);
        hourly.map(|price| product(price.unit, price.quantity)).sum()
    }

    fn accrued(&self, now: UnixMs) -> Money {
        self.prices.iter().map(|price| self.amount(price, now)).sum()
    }

    /// Units used, as a numerator and what to divide it by: divided last, so that it stays exact.
    fn used(&self, price: &Price, now: UnixMs) -> (Decimal, Decimal) {
        let (count, whole) = match price.per {
            PricePer::Hour => (self.existed_ms(now), MS_PER_HOUR),
            PricePer::MillionAttempts => (self.attempts, MILLION),
        };
        (price.quantity.saturating_mul(Decimal::from(count)), Decimal::from(whole))
    }

    fn amount(&self, price: &Price, now: UnixMs) -> Money {
        let (units, whole) = self.used(price, now);
        let amount = units.saturating_mul(price.unit.amount()) / whole;
        Money::new(amount.round_dp(MONEY_DIGITS).normalize())
    }

    fn lines(&self, now: UnixMs, basis: Basis) -> Vec<CostLine> {
        let line = |price: &Price| {
            let (units, whole) = self.used(price, now);
            CostLine {
                configuration: Some(self.id.clone()),
                item: price.item.clone(),
                quantity: (units / whole).round_dp(QUANTITY_DIGITS).normalize().to_string(),
                unit: match price.per {
                    PricePer::Hour => "unit-hours",
                    PricePer::MillionAttempts => "units",
                }
                .to_owned(),
                unit_price: price.unit,
                amount: self.amount(price, now),
                basis,
            }
        };
        self.prices.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests;
