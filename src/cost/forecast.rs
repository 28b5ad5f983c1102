//! What is still to come: how long the rest of a plan takes and what it adds to the bill, as it
//! stands and for each answer to a decision.
//!
//! Forecasts are estimates: time by the plan's own spans and a stated overhead, attempts by rates
//! that were observed or, before that, assumed.

use std::collections::BTreeMap;

use super::meter::{hourly, per_million_attempts};
use crate::{
    model::{ConfigurationId, Load, Money},
    plan::{ConfigurationPlan, OptionAction, Plan, Stage, StageKind},
};

const SECONDS_PER_HOUR: f64 = 3600.0;

/// What is ahead of a run.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    /// Stages that have not begun.
    pub stages: &'a [Stage],
    /// Configurations that exist and are still in the plan.
    pub configurations: &'a [ConfigurationId],
    /// What is left of the stage that runs, in seconds.
    pub current_s: f64,
    /// What a cell takes beside its warm-up and measured span (opening, drain, checks), in
    /// seconds.
    pub cell_overhead_s: f64,
    /// How long teardown takes, in seconds.
    pub teardown_s: f64,
}

/// How many attempts a second a load makes.
#[derive(Clone, Debug)]
pub struct AttemptRates {
    /// Attempts a second that one connection of a closed loop is taken to make before any was
    /// observed.
    assumed_per_connection: f64,
    per_connection: BTreeMap<ConfigurationId, f64>,
    per_arrival: BTreeMap<ConfigurationId, f64>,
}

impl AttemptRates {
    /// Rates before anything was observed: `per_connection` attempts a second for each connection
    /// of a closed loop, and one attempt for each arrival of an open one.
    #[must_use]
    pub const fn assuming(per_connection: f64) -> Self {
        Self {
            assumed_per_connection: per_connection,
            per_connection: BTreeMap::new(),
            per_arrival: BTreeMap::new(),
        }
    }

    /// Takes over what a cell was seen to do, in attempts a second; the last one counts.
    pub fn observe(&mut self, configuration: &ConfigurationId, load: Load, per_second: f64) {
        let (known, by) = match load {
            Load::Closed { connections } => (&mut self.per_connection, f64::from(connections)),
            Load::Open { rate, .. } => (&mut self.per_arrival, rate),
        };
        let ratio = per_second / by;
        if ratio.is_finite() && ratio >= 0.0 {
            known.insert(configuration.clone(), ratio);
        }
    }

    /// Attempts a second of a load on a configuration.
    #[must_use]
    pub fn of(&self, configuration: &ConfigurationId, load: Load) -> f64 {
        match load {
            Load::Closed { connections } => {
                let known = self.per_connection.get(configuration);
                f64::from(connections) * known.copied().unwrap_or(self.assumed_per_connection)
            }
            Load::Open { rate, .. } => {
                rate * self.per_arrival.get(configuration).copied().unwrap_or(1.0)
            }
        }
    }
}

/// The rest of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// How long it takes, teardown included, in seconds.
    pub takes_s: f64,
    /// What it adds to the bill.
    pub spends: Money,
}

/// What an answer to a decision comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionPrice {
    /// How long the rest of the plan takes, in seconds; for a hold, how long it may last.
    pub takes_s: u64,
    /// What that adds to the bill.
    pub spends: Money,
    /// What the run burns an hour after the answer, attempts apart.
    pub burn_per_hour: Money,
}

/// How long a stage takes on these configurations, in seconds, with `cell_overhead_s` for each
/// cell. A decision counts as answered at once.
#[must_use]
pub fn stage_seconds(
    stage: &Stage,
    configurations: &[ConfigurationId],
    cell_overhead_s: f64,
) -> f64 {
    let StageKind::Cells { configurations: planned, levels, warmup_s, measure_s, side_by_side } =
        &stage.kind
    else {
        return 0.0;
    };
    let present = planned.iter().filter(|id| configurations.contains(id)).count();
    let in_a_row = if *side_by_side { present.min(1) } else { present };
    #[expect(clippy::cast_precision_loss, reason = "a plan has a few hundred cells")]
    let rounds = (in_a_row * levels.len()) as f64;
    rounds * (warmup_s + measure_s + cell_overhead_s)
}

/// The rest of a plan: every configuration bills until teardown is over, and every cell's attempts
/// bill on top. `accrued` plus what it spends is the projected bill.
#[must_use]
pub fn projection(plan: &Plan, ahead: &Ahead<'_>, rates: &AttemptRates) -> Forecast {
    let stages = |stage| stage_seconds(stage, ahead.configurations, ahead.cell_overhead_s);
    let takes_s = ahead.current_s + ahead.stages.iter().map(stages).sum::<f64>() + ahead.teardown_s;
    let time = burn(plan, ahead.configurations).times(takes_s / SECONDS_PER_HOUR);
    let attempts = ahead.stages.iter().map(|stage| stage_attempts(plan, stage, ahead, rates)).sum();
    Forecast { takes_s, spends: time + attempts }
}

/// What an option of a decision comes to. A hold is priced for the plan's `hold_s`; teardown for
/// the time that it takes.
#[must_use]
pub fn price_option(
    plan: &Plan,
    action: &OptionAction,
    ahead: &Ahead<'_>,
    rates: &AttemptRates,
) -> OptionPrice {
    let here = burn(plan, ahead.configurations);
    let waiting = |seconds: f64, burn_per_hour| OptionPrice {
        takes_s: whole_seconds(seconds),
        spends: here.times(seconds / SECONDS_PER_HOUR),
        burn_per_hour,
    };
    match action {
        OptionAction::Continue => going_on(plan, ahead, rates),
        OptionAction::ContinueWithout { without } => {
            let stay = |id: &&ConfigurationId| !without.contains(id);
            let kept: Vec<_> = ahead.configurations.iter().filter(stay).cloned().collect();
            going_on(plan, &Ahead { configurations: &kept, ..*ahead }, rates)
        }
        #[expect(clippy::cast_precision_loss, reason = "a week of seconds at most")]
        OptionAction::Hold => waiting(plan.hold_s as f64, here),
        OptionAction::Teardown => waiting(ahead.teardown_s, Money::ZERO),
    }
}

fn going_on(plan: &Plan, ahead: &Ahead<'_>, rates: &AttemptRates) -> OptionPrice {
    let forecast = projection(plan, ahead, rates);
    OptionPrice {
        takes_s: whole_seconds(forecast.takes_s),
        spends: forecast.spends,
        burn_per_hour: burn(plan, ahead.configurations),
    }
}

fn burn(plan: &Plan, configurations: &[ConfigurationId]) -> Money {
    plan.configurations.iter().filter(|c| configurations.contains(&c.id)).map(hourly).sum()
}

fn stage_attempts(plan: &Plan, stage: &Stage, ahead: &Ahead<'_>, rates: &AttemptRates) -> Money {
    let StageKind::Cells { configurations, levels, warmup_s, measure_s, .. } = &stage.kind else {
        return Money::ZERO;
    };
    let present = |c: &&ConfigurationPlan| {
        configurations.contains(&c.id) && ahead.configurations.contains(&c.id)
    };
    let spends = |c: &ConfigurationPlan| {
        let per_second: f64 = levels.iter().map(|level| rates.of(&c.id, *level)).sum();
        per_million_attempts(c).times(per_second * (warmup_s + measure_s) / 1e6)
    };
    plan.configurations.iter().filter(present).map(spends).sum()
}

fn whole_seconds(seconds: f64) -> u64 {
    std::time::Duration::try_from_secs_f64(seconds.ceil()).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{id, price, priced, usd},
        *,
    };
    use crate::{model::Arrivals, plan::PricePer};

    const OPEN: Load = Load::Open { rate: 100.0, arrivals: Arrivals::Poisson, connections: 4 };

    /// D1 at 36 an hour and 1 per million attempts; one stage of 100 s a cell, one that asks.
    fn plan(side_by_side: bool) -> Plan {
        let prices =
            vec![price(PricePer::Hour, "36", "1"), price(PricePer::MillionAttempts, "1", "1")];
        let mut plan = priced(prices);
        let question = plan.stages.iter().find(|s| matches!(s.kind, StageKind::Decision { .. }));
        let question = question.unwrap().clone();
        let kind = StageKind::Cells {
            configurations: vec![id("D1"), id("R1")],
            levels: vec![OPEN, Load::Closed { connections: 10 }],
            warmup_s: 20.0,
            measure_s: 80.0,
            side_by_side,
        };
        plan.stages = vec![question, Stage { name: "cells".to_owned(), kind }];
        plan
    }

    fn ahead<'a>(plan: &'a Plan, configurations: &'a [ConfigurationId]) -> Ahead<'a> {
        Ahead {
            stages: &plan.stages,
            configurations,
            current_s: 7.0,
            cell_overhead_s: 5.0,
            teardown_s: 13.0,
        }
    }

    #[test]
    fn the_rest_is_priced_by_time_and_attempts() {
        let both = [id("D1"), id("R1")];
        let mut rates = AttemptRates::assuming(50.0);
        let in_a_row = plan(false);
        let forecast = projection(&in_a_row, &ahead(&in_a_row, &both), &rates);
        // 2 levels × 2 configurations × 105 s, what runs, and teardown.
        assert!((forecast.takes_s - 440.0).abs() < 1e-9);
        // 440 s at 36/h, and (100 + 10 × 50) attempts/s for 100 s on D1.
        assert_eq!(forecast.spends, usd("4.40") + usd("0.06"));
        let side_by_side = plan(true);
        let forecast = projection(&side_by_side, &ahead(&side_by_side, &both), &rates);
        assert!((forecast.takes_s - 230.0).abs() < 1e-9);
        rates.observe(&id("D1"), Load::Closed { connections: 2 }, 200.0);
        rates.observe(&id("D1"), OPEN, 110.0);
        rates.observe(&id("D1"), OPEN, f64::NAN);
        let forecast = projection(&side_by_side, &ahead(&side_by_side, &both), &rates);
        assert_eq!(forecast.spends, usd("2.30") + usd("0.111"));
        let none = projection(&side_by_side, &ahead(&side_by_side, &[]), &rates);
        assert_eq!((none.spends, none.takes_s), (Money::ZERO, 20.0));
    }

    #[test]
    fn each_answer_has_its_price() {
        let plan = plan(false);
        let both = [id("D1"), id("R1")];
        let rates = AttemptRates::assuming(50.0);
        let ahead = Ahead { current_s: 0.0, ..ahead(&plan, &both) };
        let price_of = |action| price_option(&plan, &action, &ahead, &rates);
        let go = price_of(OptionAction::Continue);
        assert_eq!((go.takes_s, go.burn_per_hour), (433, usd("36")));
        assert_eq!(go.spends, usd("4.33") + usd("0.06"));
        let without_d1 = price_of(OptionAction::ContinueWithout { without: vec![id("D1")] });
        assert_eq!((without_d1.takes_s, without_d1.spends), (223, Money::ZERO));
        assert_eq!(without_d1.burn_per_hour, Money::ZERO);
        let hold = price_of(OptionAction::Hold);
        assert_eq!((hold.takes_s, hold.spends), (plan.hold_s, usd("6")));
        assert_eq!(hold.burn_per_hour, usd("36"));
        let stop = price_of(OptionAction::Teardown);
        assert_eq!((stop.takes_s, stop.spends), (13, usd("0.13")));
        assert_eq!(stop.burn_per_hour, Money::ZERO);
    }
}
