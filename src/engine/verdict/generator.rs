//! The generator as a suspect: whether it, rather than the database, was the limit.

use super::{Finding, JudgeInput, Weight, classes_of, finding, percent};
use crate::{
    model::{Blamed, Mix, Part, ReasonCode, Slo, ThreadSample},
    report::{TAIL_QUANTILE, tail_words},
};

/// From here on the agent's processors count as saturated, in percent.
const SATURATED_CPU_PERCENT: f64 = 85.0;
/// How much of the tightest limit the generator's own lateness may take.
const LATENESS_SHARE: f64 = 0.1;
/// How much of what was offered must complete, in percent.
const CARRIED_PERCENT: f64 = 99.0;

/// The signs that the generator was the limit.
pub(super) fn guard(input: &JudgeInput<'_>) -> Vec<Finding> {
    let mut texts = Vec::new();
    let runner = &input.result.runner;
    if runner.cpu_percent >= SATURATED_CPU_PERCENT {
        texts.push(format!(
            "the load agent used {:.1} % of its {} processors, its limit is {SATURATED_CPU_PERCENT} %",
            runner.cpu_percent, runner.processors
        ));
    }
    if let Some(allowed_ms) = allowed_lateness_ms(input.slo, input.mix) {
        let schedule_lag = input.result.classes.overall(Part::ScheduleLag);
        texts.extend(late_loop(input, allowed_ms));
        texts.extend(late("schedule lag", schedule_lag.quantile_ms(0.99), allowed_ms));
        texts.extend(late("read lag", runner.read_lag.quantile_ms(0.99), allowed_ms));
    }
    let limited = |text| finding(Weight::GeneratorLimited, ReasonCode::Generator, text);
    texts.into_iter().map(limited).collect()
}

fn late(what: &str, p99_ms: Option<f64>, allowed_ms: f64) -> Option<String> {
    let p99 = p99_ms.filter(|p99| *p99 > allowed_ms)?;
    Some(format!(
        "{what} p99 {p99:.1} ms, the generator may be {allowed_ms:.1} ms late (a tenth of the \
         tightest SLO)"
    ))
}

/// The load threads whose loops were late, each by its own recording: a stall of one of many would
/// be lost in a percentile over all of them.
fn late_loop(input: &JudgeInput<'_>, allowed_ms: f64) -> Option<String> {
    let runner = &input.result.runner;
    let mut late_threads: Vec<&ThreadSample> = runner
        .threads
        .iter()
        .filter(|thread| thread.loop_lag.p99.is_some_and(|p99| p99 > allowed_ms))
        .collect();
    if late_threads.is_empty() {
        return late("loop lag", runner.loop_lag.quantile_ms(0.99), allowed_ms);
    }
    let p99 = |thread: &ThreadSample| thread.loop_lag.p99.unwrap_or_default();
    late_threads.sort_by(|a, b| p99(b).total_cmp(&p99(a)));
    let (worst, others) = (late_threads[0], &late_threads[1..]);
    let what = format!("loop lag of thread {}", worst.thread);
    let mut text = late(&what, worst.loop_lag.p99, allowed_ms)?;
    let longest = worst.loop_lag.max.unwrap_or_default();
    text.push_str(&match worst.stalls {
        0 => String::new(),
        1 => format!(", stalled once for {longest:.0} ms"),
        many => format!(", stalled {many} times, {longest:.0} ms at most"),
    });
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|thread| thread.thread.to_string()).collect();
        text.push_str(&format!("; likewise thread {}", names.join(", ")));
    }
    Some(text)
}

/// A tenth of the tightest limit among the classes of the mix.
fn allowed_lateness_ms(slo: &Slo, mix: &Mix) -> Option<f64> {
    classes_of(mix)
        .flat_map(|class| [slo.of(class).p95_ms, slo.of(class).p99_ms])
        .min_by(f64::total_cmp)
        .map(|tightest| tightest * LATENESS_SHARE)
}

/// Whether the load was carried; where it was not, whose doing the tail was tells whose limit that
/// is. The generator's: the shortfall says nothing of the database. The database's or the pool's:
/// the load was more than the configuration carries. Nobody's, since nothing succeeded: neither.
pub(super) fn shortfall(input: &JudgeInput<'_>) -> Option<Finding> {
    let counts = &input.result.counts;
    // An arrival that never got a connection has ended, but nothing was done for it.
    let served = counts.completed.saturating_sub(counts.never_attempted);
    let carried = percent(served, counts.offered);
    if counts.offered == 0 || carried >= CARRIED_PERCENT {
        let text = format!(
            "{} of {} offered were shed: the backlog was full",
            counts.shed, counts.offered
        );
        return (counts.shed > 0).then(|| finding(Weight::Failed, ReasonCode::Overload, text));
    }
    let words = tail_words(input.result);
    let cause = if words.is_empty() { words } else { format!("; {words}") };
    let tail = input.result.tail.mean_above(TAIL_QUANTILE);
    Some(if tail.is_some_and(|tail| tail.blamed() == Blamed::Generator) {
        let text = format!(
            "{served} of {} offered completed ({carried:.2} %) and the slowest waited for the \
             generator{cause}",
            counts.offered
        );
        finding(Weight::GeneratorLimited, ReasonCode::Generator, text)
    } else {
        let text = format!(
            "{served} of {} offered completed ({carried:.2} %, at least {CARRIED_PERCENT} % must); \
             {} shed, {} still in flight at the end{cause}",
            counts.offered, counts.shed, counts.in_flight
        );
        finding(Weight::Failed, ReasonCode::Overload, text)
    })
}
