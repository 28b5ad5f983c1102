use super::{
    super::fixture::{id, price, priced, rehearsal, usd},
    *,
};
use crate::plan::{PlanSource, load};

const HOUR: u64 = MS_PER_HOUR;

/// The bill of something that took `hours` at these prices.
fn bill_of_hours(prices: Vec<PriceLine>, milliseconds: u64) -> Money {
    let mut meter = Meter::new(&priced(prices));
    meter.exists_from(&id("D1"), UnixMs(1_000));
    meter.accrued(UnixMs(1_000 + milliseconds))
}

fn bill_of_units(unit_price: &str, units: u64) -> Money {
    // One unit an attempt.
    let plan = priced(vec![price(PricePer::MillionAttempts, unit_price, "1000000")]);
    let mut meter = Meter::new(&plan);
    meter.attempts(&id("D1"), units);
    meter.accrued(UnixMs(0))
}

#[test]
fn published_bills_are_reproduced() {
    // DPU at 10.00 per million: billed 11.49 and 17.84.
    assert_eq!(bill_of_units("0.00001", 1_148_488), usd("11.48488"));
    assert_eq!(bill_of_units("0.00001", 1_784_023), usd("17.84023"));
    // I/O at 0.24 per million: billed 6.53.
    assert_eq!(bill_of_units("0.00000024", 27_200_000), usd("6.528"));
    // 119.9 ACU-hours at 0.20: billed 23.99; one ACU for 119.9 h.
    let hour = |price_, quantity| vec![price(PricePer::Hour, price_, quantity)];
    assert_eq!(bill_of_hours(hour("0.20", "1"), 1_199 * HOUR / 10), usd("23.98"));
    // 3.90 instance-hours at 0.627: billed 2.43; two instances for 1.95 h.
    assert_eq!(bill_of_hours(hour("0.627", "2"), 195 * HOUR / 100), usd("2.4453"));
    // 13.95 runner-hours at 0.1204: billed 1.68.
    assert_eq!(bill_of_hours(hour("0.1204", "1"), 1_395 * HOUR / 100), usd("1.67958"));
    // 1.72 h Multi-AZ with 400 GiB gp3 at 0.262 a GB-month of 730 h: billed 2.12.
    let mut both = hour("1.079", "1");
    both.extend(hour("0.000359", "400"));
    assert_eq!(bill_of_hours(both, 172 * HOUR / 100), usd("2.102872"));
}

#[test]
fn a_configuration_bills_while_it_exists_and_again_when_it_comes_back() {
    let mut meter = Meter::new(&priced(vec![price(PricePer::Hour, "3", "2")]));
    let d1 = id("D1");
    assert_eq!((meter.per_hour(), meter.accrued(UnixMs(HOUR))), (Money::ZERO, Money::ZERO));
    meter.exists_from(&d1, UnixMs(HOUR));
    meter.exists_from(&d1, UnixMs(2 * HOUR));
    assert_eq!((meter.per_hour(), meter.per_hour_of(&d1)), (usd("6"), usd("6")));
    assert_eq!(meter.accrued(UnixMs(0)), Money::ZERO);
    meter.gone_at(&d1, UnixMs(2 * HOUR));
    meter.gone_at(&d1, UnixMs(3 * HOUR));
    assert_eq!((meter.per_hour(), meter.accrued(UnixMs(9 * HOUR))), (Money::ZERO, usd("6")));
    meter.exists_from(&d1, UnixMs(9 * HOUR));
    assert_eq!(meter.accrued_of(&d1, UnixMs(10 * HOUR)), usd("12"));
    assert_eq!(meter.accrued_of(&id("R1"), UnixMs(10 * HOUR)), Money::ZERO);
    assert_eq!(meter.accrued_of(&id("XX"), UnixMs(10 * HOUR)), Money::ZERO);
}

#[test]
fn a_bill_shows_its_quantities_and_adds_up() {
    let plan = rehearsal();
    let mut meter = Meter::new(&plan);
    for configuration in &plan.configurations {
        meter.exists_from(&configuration.id, UnixMs(0));
        meter.attempts(&configuration.id, 12_345);
    }
    let now = UnixMs(1_234_567);
    let lines = meter.lines(now);
    assert_eq!(lines.iter().map(|l| l.amount).sum::<Money>(), meter.accrued(now));
    let dpu = &lines[0];
    assert_eq!((dpu.item.as_str(), dpu.quantity.as_str()), ("DPU", "370.35"));
    assert_eq!((dpu.unit.as_str(), dpu.amount), ("units", usd("0.0037035")));
    assert_eq!(dpu.basis, Basis::Simulated);
    assert_eq!(lines[1].quantity, "0.342935");
    assert_eq!(plan.configurations.iter().map(hourly).sum::<Money>(), meter.per_hour());
    assert_eq!(per_million_attempts(&plan.configurations[0]), usd("0.3"));
}

#[test]
fn a_plan_without_prices_costs_nothing_and_says_estimated() {
    let url = ["configuration.url=postgres://me@localhost/d".to_owned()];
    let plan = load(PlanSource::Quick, &url).unwrap();
    let meter = Meter::new(&plan);
    assert_eq!(meter.basis(), Basis::Estimated);
    assert_eq!((meter.accrued(UnixMs::now()), meter.lines(UnixMs::now()).len()), (Money::ZERO, 0));
}
