//! The generator as a suspect: whether it, rather than the database, was the limit.

use super::{Finding, JudgeInput, Weight, classes_of, finding, percent, slowest};
use crate::model::{Mix, ReasonCode, Recording, Slo, TailParts};

/// From here on the agent's processors count as saturated, in percent.
const SATURATED_CPU_PERCENT: f64 = 85.0;
/// How much of the tightest limit the generator's own lateness may take.
const LATENESS_SHARE: f64 = 0.1;
/// How much of what was offered must complete, in percent.
const CARRIED_PERCENT: f64 = 99.0;

/// The signs that the generator was the limit.
pub(super) fn guard(input: &JudgeInput<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let runner = &input.result.runner;
    if runner.cpu_percent >= SATURATED_CPU_PERCENT {
        let text = format!(
            "the load agent used {:.1} % of its {} processors, its limit is {SATURATED_CPU_PERCENT} %",
            runner.cpu_percent, runner.processors
        );
        found.push(finding(Weight::GeneratorLimited, ReasonCode::Generator, text));
    }
    let Some(allowed_ms) = allowed_lateness_ms(input.slo, input.mix) else { return found };
    let mut schedule_lag = Recording::new();
    for (_, class) in input.result.classes.iter() {
        schedule_lag.merge(&class.schedule_lag);
    }
    for (name, recording) in [("schedule lag", &schedule_lag), ("loop lag", &runner.loop_lag)] {
        if let Some(p99) = recording.quantile_ms(0.99).filter(|p99| *p99 > allowed_ms) {
            let text = format!(
                "{name} p99 {p99:.1} ms, the generator may be {allowed_ms:.1} ms late (a tenth of \
                 the tightest SLO)"
            );
            found.push(finding(Weight::GeneratorLimited, ReasonCode::Generator, text));
        }
    }
    found
}

/// A tenth of the tightest limit among the classes of the mix.
fn allowed_lateness_ms(slo: &Slo, mix: &Mix) -> Option<f64> {
    classes_of(mix)
        .flat_map(|class| [slo.of(class).p95_ms, slo.of(class).p99_ms])
        .min_by(f64::total_cmp)
        .map(|tightest| tightest * LATENESS_SHARE)
}

/// Whether the load was carried; where it was not, who is to blame. The generator is where its
/// lateness is the largest part of the tail (its other signs are the guard's): then the shortfall
/// says nothing of the database. Otherwise transactions were waiting for connections or replies,
/// and the load was more than the configuration carries.
pub(super) fn shortfall(input: &JudgeInput<'_>) -> Vec<Finding> {
    let counts = &input.result.counts;
    let mut found = Vec::new();
    let carried = percent(counts.completed, counts.offered);
    let short = counts.offered > 0 && carried < CARRIED_PERCENT;
    if short && slowest(input.result).is_some_and(|tail| generator_leads(&tail)) {
        let text = format!(
            "{} of {} offered completed ({carried:.1} %) and the slowest waited for the generator",
            counts.completed, counts.offered
        );
        found.push(finding(Weight::GeneratorLimited, ReasonCode::Generator, text));
    } else if short {
        let text = format!(
            "{} of {} offered completed ({carried:.1} %, at least {CARRIED_PERCENT} % must); {} \
             shed, {} still in flight at the end",
            counts.completed, counts.offered, counts.shed, counts.in_flight
        );
        found.push(finding(Weight::Failed, ReasonCode::Overload, text));
    } else if counts.shed > 0 {
        let text = format!(
            "{} of {} offered were shed: the backlog was full",
            counts.shed, counts.offered
        );
        found.push(finding(Weight::Failed, ReasonCode::Overload, text));
    }
    found
}

fn generator_leads(tail: &TailParts) -> bool {
    tail.schedule_lag_ms > 0.0
        && tail.schedule_lag_ms >= tail.connection_wait_ms
        && tail.schedule_lag_ms >= tail.service_ms
}
