//! The SLO: latency of each class, technical failures, and percentiles that failures make
//! unbounded.

use super::{
    CONFIDENCE, Finding, JudgeInput, Weight, binomial::probability_of_at_least, classes_of,
    finding, most_exceedances, percent,
};
use crate::model::{Class, ReasonCode, Recording};

/// How many sqlstates a reason names.
const NAMED_SQLSTATES: usize = 3;

/// A percentile that has a limit. Shares are kept as whole hundredths, so that whether a sample
/// lies above its percentile is counted exactly.
#[derive(Clone, Copy)]
struct Percentile {
    name: &'static str,
    quantile: f64,
    /// The share that may exceed the limit.
    above_percent: u64,
    above_share: f64,
    /// Whether meeting it is claimed with [`CONFIDENCE`]; otherwise the samples' own percentile
    /// decides.
    claimed: bool,
}

const P95: Percentile =
    Percentile { name: "p95", quantile: 0.95, above_percent: 5, above_share: 0.05, claimed: false };
const P99: Percentile =
    Percentile { name: "p99", quantile: 0.99, above_percent: 1, above_share: 0.01, claimed: true };

/// Each class of the mix against its limits.
pub(super) fn latency(input: &JudgeInput<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for class in classes_of(input.mix) {
        let limits = input.slo.of(class);
        let response = &input.result.classes[class].response;
        let p95 = held(class, response, P95, limits.p95_ms);
        let p99 = held(class, response, P99, limits.p99_ms);
        found.extend(p95.into_iter().chain(p99));
    }
    found
}

/// FAIL where the samples' percentile is above its limit, INCONCLUSIVE where it is below and
/// cannot be claimed. A percentile of fewer samples than resolve it (100 for a p99) is no more than
/// their maximum: then it is a FAIL only if so many exceedances would be a rare chance.
fn held(
    class: Class,
    response: &Recording,
    percentile: Percentile,
    limit_ms: f64,
) -> Option<Finding> {
    let n = response.count();
    let exceeding = response.count_above_ms(limit_ms);
    let Percentile { name, quantile, above_percent, above_share, claimed } = percentile;
    let above = exceeding > n * above_percent / 100;
    let resolved = n * above_percent >= 100;
    let beyond_chance = || probability_of_at_least(exceeding, n, above_share) <= 1.0 - CONFIDENCE;
    if above && (resolved || beyond_chance()) {
        let measured = response.quantile_ms(quantile).unwrap_or_default();
        let text = format!("{class} {name} {measured:.1} ms, SLO {limit_ms}");
        return Some(finding(Weight::Failed, ReasonCode::Latency, text));
    }
    if !claimed {
        return None;
    }
    let text = match most_exceedances(n, above_share) {
        None => format!("{class}: {n} successes are too few to claim {name} {limit_ms} ms"),
        Some(most) if exceeding > most => format!(
            "{class}: {exceeding} of {n} above {limit_ms} ms, at most {most} may be to claim the \
             {name} with {:.0} % confidence",
            CONFIDENCE * 100.0
        ),
        Some(_) => return None,
    };
    Some(finding(Weight::Doubtful, ReasonCode::FewSamples, text))
}

/// Transactions that did not come to a known good or business end: failed, unresolved, or still in
/// flight when the drain was given up; and all that were started.
fn without_end(input: &JudgeInput<'_>) -> (u64, u64) {
    let counts = &input.result.counts;
    (counts.failed + counts.unknown + counts.in_flight, counts.completed + counts.in_flight)
}

/// Technical failures against the SLO. Their share itself decides, but not where there were so few
/// transactions that not even a clean cell could claim it (about 3,000 for 0.1 %): that is
/// INCONCLUSIVE. An SLO of no failures at all can be refuted, never proven, and so asks for no
/// number of samples.
pub(super) fn failures(input: &JudgeInput<'_>) -> Option<Finding> {
    let (failed, all) = without_end(input);
    let allowed = input.slo.failed_percent;
    let share = percent(failed, all);
    if share > allowed {
        let counts = &input.result.counts;
        let text = format!(
            "{failed} of {all} failed ({share:.2} %, SLO {allowed} %): {} failed, {} unresolved, {} \
             unfinished{}",
            counts.failed,
            counts.unknown,
            counts.in_flight,
            errors_seen(input)
        );
        return Some(finding(Weight::Failed, ReasonCode::Failures, text));
    }
    if !(allowed > 0.0 && allowed < 100.0) || most_exceedances(all, allowed / 100.0).is_some() {
        return None;
    }
    let text = format!("{all} transactions are too few to claim at most {allowed} % failures");
    Some(finding(Weight::Doubtful, ReasonCode::FewSamples, text))
}

/// The errors that attempts saw most, so that a reader knows whose they are (`pool_timeout` is the
/// runner's own).
fn errors_seen(input: &JudgeInput<'_>) -> String {
    let mut errors: Vec<_> = input.result.sqlstates.iter().filter(|(_, n)| **n > 0).collect();
    errors.sort_by(|a, b| b.1.cmp(a.1));
    let named: Vec<_> =
        errors.iter().take(NAMED_SQLSTATES).map(|(state, n)| format!("{state} × {n}")).collect();
    if named.is_empty() { String::new() } else { format!("; errors seen: {}", named.join(", ")) }
}

/// Percentiles in which what failed counts as having taken for ever: over all classes where they
/// are unbounded, and for each class where they are above the limits that its successes alone keep.
/// Where the p95 is, so is the p99, and only the p95 is told.
pub(super) fn error_adjusted(input: &JudgeInput<'_>) -> Vec<Finding> {
    let counts = &input.result.counts;
    let lost = counts.failed + counts.unknown + counts.in_flight;
    let all = counts.succeeded + lost;
    let unbounded = [P95, P99].into_iter().find(|p| lost * 100 > all * p.above_percent);
    let texts = if let Some(percentile) = unbounded {
        vec![format!(
            "error-adjusted {} is unbounded: {:.1} % of the transactions failed or never ended",
            percentile.name,
            percent(lost, all)
        )]
    } else {
        classes_of(input.mix).filter_map(|class| class_adjusted(input, class)).collect()
    };
    let failed = |text| finding(Weight::Failed, ReasonCode::ErrorAdjusted, text);
    texts.into_iter().map(failed).collect()
}

fn class_adjusted(input: &JudgeInput<'_>, class: Class) -> Option<String> {
    let response = &input.result.classes[class].response;
    let lost = input.result.failed[class] + input.result.unknown[class];
    let all = response.count() + lost;
    let limits = input.slo.of(class);
    [(P95, limits.p95_ms), (P99, limits.p99_ms)].into_iter().find_map(|(percentile, limit_ms)| {
        let Percentile { name, quantile, above_percent, .. } = percentile;
        let exceeding = response.count_above_ms(limit_ms);
        let alone = exceeding * 100 > response.count() * above_percent;
        let with_lost = (exceeding + lost) * 100 > all * above_percent;
        if lost == 0 || alone || !with_lost || all * above_percent < 100 {
            return None;
        }
        let adjusted = response.error_adjusted(lost);
        let adjusted = if quantile < 0.99 { adjusted.p95 } else { adjusted.p99 };
        let measured = adjusted.map_or("unbounded".to_owned(), |ms| format!("{ms:.1} ms"));
        Some(format!(
            "{class} error-adjusted {name} {measured}, SLO {limit_ms}; {lost} of {all} failed"
        ))
    })
}
