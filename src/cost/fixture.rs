//! Plans for this room's tests.

use rust_decimal::Decimal;

use crate::{
    model::{ConfigurationId, Money},
    plan::{Plan, PlanSource, PriceLine, PricePer, load},
};

pub(super) fn rehearsal() -> Plan {
    load(PlanSource::Rehearse, &[]).unwrap_or_else(|e| panic!("{e}"))
}

pub(super) fn usd(text: &str) -> Money {
    Money::new(Decimal::from_str_exact(text).unwrap())
}

pub(super) fn id(text: &str) -> ConfigurationId {
    ConfigurationId::new(text)
}

pub(super) fn price(per: PricePer, price: &str, quantity: &str) -> PriceLine {
    PriceLine {
        item: "thing".to_owned(),
        per,
        price: usd(price),
        quantity: quantity.to_owned(),
        source: "test".to_owned(),
    }
}

/// The rehearsal with these prices on D1 and none elsewhere.
pub(super) fn priced(prices: Vec<PriceLine>) -> Plan {
    let mut plan = rehearsal();
    plan.configurations.iter_mut().for_each(|c| c.prices.clear());
    plan.configurations[0].prices = prices;
    plan
}
