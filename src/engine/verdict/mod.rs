//! Judging a cell: pure, from what was measured and what the SLO asks.
//!
//! The order of precedence, highest first:
//!
//! 1. INVALID where the record itself cannot be trusted: the cell was cut, could not run, or its
//!    counts contradict each other. Such a cell is judged no further.
//! 2. FAIL where an invariant of the business is violated: no load excuses a lost order.
//! 3. INVALID where the generator was the limit: the other figures are then not the database's.
//! 4. FAIL where the SLO did not hold or the load was not carried.
//! 5. INCONCLUSIVE where too little was seen to say that it held.
//! 6. PASS.
//!
//! All reasons found are given, those that made the verdict first; what a reader must merely know
//! comes last.

mod binomial;
mod generator;
mod slo;

use crate::model::{
    CellEnd, CellResult, Class, ConfigurationId, InvariantReport, Mix, Reason, ReasonCode, Slo,
    Verdict,
};

pub use binomial::most_exceedances;

/// Confidence with which a PASS claims that a percentile or a share of failures was met.
pub const CONFIDENCE: f64 = 0.95;

/// What a cell is judged by.
#[derive(Clone, Copy, Debug)]
pub struct JudgeInput<'a> {
    pub slo: &'a Slo,
    /// Classes without a share are not judged.
    pub mix: &'a Mix,
    pub result: &'a CellResult,
    /// `None` where they could not be checked.
    pub invariants: Option<&'a InvariantReport>,
    /// Configurations that had a cell running on the same runner at the same time.
    pub beside: &'a [ConfigurationId],
    /// Latency is added and prices are simulated.
    pub rehearsal: bool,
    /// Why the cell did not run to its end, where the engine knows (the operator, the end of the
    /// run, a lost agent); without effect on a cell that did.
    pub cut: Option<&'a Reason>,
    /// The operator went on to another rate before the measured span was over: what was measured
    /// stands as far as it goes, but is no PASS.
    pub stepped: Option<&'a Reason>,
}

/// Judges a cell.
#[must_use]
pub fn judge(input: &JudgeInput<'_>) -> (Verdict, Vec<Reason>) {
    let (verdict, mut reasons) = match untrusted(input) {
        Some(reason) => (Verdict::Invalid, vec![reason]),
        None => weigh(findings(input)),
    };
    reasons.extend(remarks(input));
    (verdict, reasons)
}

/// A reason and what it weighs.
struct Finding {
    weight: Weight,
    reason: Reason,
}

/// Heaviest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    InvariantViolated,
    GeneratorLimited,
    Failed,
    Doubtful,
}

impl Weight {
    const fn verdict(self) -> Verdict {
        match self {
            Self::InvariantViolated | Self::Failed => Verdict::Fail,
            Self::GeneratorLimited => Verdict::Invalid,
            Self::Doubtful => Verdict::Inconclusive,
        }
    }
}

fn finding(weight: Weight, code: ReasonCode, text: String) -> Finding {
    Finding { weight, reason: Reason { code, text } }
}

/// Why the cell's record cannot be trusted at all.
fn untrusted(input: &JudgeInput<'_>) -> Option<Reason> {
    match &input.result.end {
        CellEnd::Stopped if input.stepped.is_some() && input.result.measured_s > 0.0 => {}
        CellEnd::Stopped | CellEnd::Failed { .. } if input.cut.is_some() => {
            return input.cut.cloned();
        }
        CellEnd::Failed { why } => {
            return Some(Reason { code: ReasonCode::NotRun, text: why.clone() });
        }
        CellEnd::Stopped => {
            return Some(Reason {
                code: ReasonCode::StoppedByOperator,
                text: format!(
                    "stopped {:.1} s into the measured span, before its end",
                    input.result.measured_s
                ),
            });
        }
        CellEnd::Complete => {}
    }
    contradiction(input.result).map(|text| Reason { code: ReasonCode::Identity, text })
}

/// The first of the cell's counts that contradicts another.
fn contradiction(result: &CellResult) -> Option<String> {
    if let Some(text) = result.counts.violated_identity(0) {
        return Some(text);
    }
    let by_class: u64 = result.classes.iter().map(|(_, c)| c.response.count()).sum();
    (by_class != result.counts.succeeded).then(|| {
        format!(
            "the classes' successes add up to {by_class}, the cell's are {}",
            result.counts.succeeded
        )
    })
}

fn findings(input: &JudgeInput<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(invariants(input));
    found.extend(generator::guard(input));
    found.extend(generator::shortfall(input));
    found.extend(slo::latency(input));
    found.extend(slo::failures(input));
    found.extend(slo::error_adjusted(input));
    found.extend(stepped(input));
    found
}

/// A PASS claims that no invariant is violated, so a cell that could not be checked does not pass;
/// its latencies stand all the same, so it is INCONCLUSIVE rather than INVALID.
fn invariants(input: &JudgeInput<'_>) -> Option<Finding> {
    let acknowledged = input.result.acknowledged.creates + input.result.acknowledged.cancels;
    match input.invariants {
        Some(report) if report.violations > 0 => {
            let first = report.first.first().map(|text| format!(": {text}")).unwrap_or_default();
            let text = format!(
                "{} of {} checks of the business violated{first}",
                report.violations, report.checked
            );
            Some(finding(Weight::InvariantViolated, ReasonCode::Invariant, text))
        }
        Some(report) if report.checked == 0 && acknowledged > 0 => {
            let text = format!(
                "nothing was checked although {acknowledged} creates and cancels were acknowledged"
            );
            Some(finding(Weight::Doubtful, ReasonCode::Unchecked, text))
        }
        Some(_) => None,
        None => {
            let text = "the invariants of the business could not be checked".to_owned();
            Some(finding(Weight::Doubtful, ReasonCode::Unchecked, text))
        }
    }
}

/// A shorter span than planned can show that the SLO does not hold, and not that it does.
fn stepped(input: &JudgeInput<'_>) -> Option<Finding> {
    let reason = input.stepped.filter(|_| input.result.end == CellEnd::Stopped)?;
    Some(finding(Weight::Doubtful, reason.code, reason.text.clone()))
}

fn weigh(mut found: Vec<Finding>) -> (Verdict, Vec<Reason>) {
    found.sort_by_key(|finding| finding.weight);
    let verdict = found.first().map_or(Verdict::Pass, |finding| finding.weight.verdict());
    (verdict, found.into_iter().map(|finding| finding.reason).collect())
}

/// What a reader of the cell must know, whatever the verdict.
fn remarks(input: &JudgeInput<'_>) -> Vec<Reason> {
    let mut told = Vec::new();
    let unknown = input.result.counts.unknown;
    if unknown > 0 {
        let text = format!("{unknown} outcomes could not be resolved and count as failures");
        told.push(Reason { code: ReasonCode::Unknown, text });
    }
    if !input.beside.is_empty() {
        let names: Vec<_> = input.beside.iter().map(ConfigurationId::as_str).collect();
        let text = format!("ran beside {} on the same runner", names.join(", "));
        told.push(Reason { code: ReasonCode::SideBySide, text });
    }
    if input.rehearsal {
        let text = "rehearsal: latency is added and prices are simulated".to_owned();
        told.push(Reason { code: ReasonCode::Rehearsal, text });
    }
    told
}

/// The classes that the mix has a share for.
fn classes_of(mix: &Mix) -> impl Iterator<Item = Class> {
    let mix = *mix;
    Class::ALL.into_iter().filter(move |class| {
        let share = match class {
            Class::ProductLookup => mix.product_lookup,
            Class::OrderHistory => mix.order_history,
            Class::OrderCreate => mix.order_create,
            Class::OrderCancel => mix.order_cancel,
        };
        share > 0
    })
}

#[allow(clippy::cast_precision_loss)] // a cell never counts up to 2^53
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
