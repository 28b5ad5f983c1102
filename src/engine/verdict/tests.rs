use std::{collections::BTreeMap, sync::LazyLock};

use super::*;
use crate::model::{
    Acknowledged, CellId, Counts, PartRecordings, PerClass, Quantiles, ResponseParts, RunnerSample,
    TailSums, ThreadSample, UnixMs,
};

const MS: u64 = 1_000_000;

/// A cell of the default mix in which every success took 5 ms, all of it service time.
fn cell(succeeded: u64) -> CellResult {
    let mut result = CellResult {
        cell: CellId::new("D1-001"),
        end: CellEnd::Complete,
        started: UnixMs(0),
        measured_from: UnixMs(60_000),
        measured_s: 120.0,
        counts: Counts::default(),
        sqlstates: BTreeMap::new(),
        classes: PerClass::default(),
        failed: PerClass::default(),
        unknown: PerClass::default(),
        tail: TailSums::default(),
        acknowledged: Acknowledged {
            creates: succeeded / 5,
            cancels: succeeded / 10,
            unresolved: 0,
        },
        runner: RunnerSample { cpu_percent: 40.0, processors: 16, ..RunnerSample::default() },
        round_trip_ms: Some(1.7),
    };
    for (class, tenths) in [
        (Class::ProductLookup, 4),
        (Class::OrderHistory, 3),
        (Class::OrderCreate, 2),
        (Class::OrderCancel, 1),
    ] {
        succeed(&mut result, class, succeeded * tenths / 10, [0, 0, 5 * MS]);
    }
    result
}

/// Adds successes with these parts: schedule lag, connection wait, service, in ns.
fn succeed(result: &mut CellResult, class: Class, times: u64, parts: [u64; 3]) {
    let [schedule_lag_ns, connection_wait_ns, service_ns] = parts;
    let parts = ResponseParts {
        schedule_lag_ns,
        connection_wait_ns,
        service_ns,
        ..ResponseParts::default()
    };
    succeed_with(result, class, times, &parts);
}

fn succeed_with(result: &mut CellResult, class: Class, times: u64, parts: &ResponseParts) {
    for _ in 0..times {
        let recordings: &mut PartRecordings = &mut result.classes[class];
        recordings.response.record(parts.response_ns());
        recordings.schedule_lag.record(parts.schedule_lag_ns);
        recordings.connection_wait.record(parts.connection_wait_ns);
        recordings.service.record(parts.service_ns);
        result.tail.record(parts);
    }
    result.counts.offered += times;
    result.counts.completed += times;
    result.counts.succeeded += times;
    result.counts.attempts += times;
}

fn fail(result: &mut CellResult, times: u64, sqlstate: &str) {
    result.counts.offered += times;
    result.counts.completed += times;
    result.counts.failed += times;
    result.counts.attempts += times;
    *result.sqlstates.entry(sqlstate.to_owned()).or_default() += times;
}

static DEFAULTS: LazyLock<(Slo, Mix)> = LazyLock::new(Default::default);
static SOUND: InvariantReport =
    InvariantReport { checked: 1_000, violations: 0, first: Vec::new() };

fn judged(result: &CellResult) -> (Verdict, Vec<Reason>) {
    judged_with(result, |_| {})
}

fn judged_with<'a>(
    result: &'a CellResult,
    change: impl FnOnce(&mut JudgeInput<'a>),
) -> (Verdict, Vec<Reason>) {
    let mut input = JudgeInput {
        slo: &DEFAULTS.0,
        mix: &DEFAULTS.1,
        result,
        invariants: Some(&SOUND),
        beside: &[],
        rehearsal: false,
        cut: None,
        stepped: None,
    };
    change(&mut input);
    judge(&input)
}

fn codes(reasons: &[Reason]) -> Vec<ReasonCode> {
    reasons.iter().map(|reason| reason.code).collect()
}

#[test]
fn a_sound_cell_passes_without_a_reason() {
    assert_eq!(judged(&cell(10_000)), (Verdict::Pass, Vec::new()));
}

#[test]
fn a_class_above_its_percentile_fails_with_its_figures() {
    let mut result = cell(10_000);
    succeed(&mut result, Class::OrderHistory, 40, [0, 0, 178 * MS]);
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(codes(&reasons), [ReasonCode::Latency]);
    assert!(reasons[0].text.starts_with("order history p99 178."), "{}", reasons[0].text);
    assert!(reasons[0].text.ends_with("SLO 100"), "{}", reasons[0].text);
}

#[test]
fn a_sample_exactly_at_its_limit_does_not_exceed_it() {
    let mut result = cell(10_000);
    succeed(&mut result, Class::ProductLookup, 4_000, [0, 0, 50 * MS]);
    assert_eq!(judged(&result).0, Verdict::Pass);
    succeed(&mut result, Class::ProductLookup, 4_000, [0, 0, 51 * MS]);
    assert_eq!(codes(&judged(&result).1), [ReasonCode::Latency]);
}

#[test]
fn a_p99_that_is_met_by_luck_is_inconclusive() {
    let mut result = cell(10_000);
    // 1,000 cancels and these: 8 of 1,008 exceed, the point estimate passes, 4 may be to claim it.
    succeed(&mut result, Class::OrderCancel, 8, [0, 0, 201 * MS]);
    let (verdict, reasons) = judged(&result);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Inconclusive, vec![ReasonCode::FewSamples]));
    assert!(reasons[0].text.contains("8 of 1008 above 200 ms"), "{}", reasons[0].text);
}

#[test]
fn too_few_samples_are_inconclusive_however_fast() {
    let (verdict, reasons) = judged(&cell(2_980));
    assert_eq!(verdict, Verdict::Inconclusive);
    assert_eq!(codes(&reasons), [ReasonCode::FewSamples, ReasonCode::FewSamples]);
    assert!(reasons[0].text.contains("298 successes are too few"), "{}", reasons[0].text);
    assert!(reasons[1].text.contains("2980 transactions are too few"), "{}", reasons[1].text);
}

#[test]
fn one_slow_sample_of_few_is_no_failure_but_many_are() {
    let mut result = cell(500);
    succeed(&mut result, Class::OrderCancel, 1, [0, 0, 300 * MS]);
    assert_eq!(judged(&result).0, Verdict::Inconclusive);
    succeed(&mut result, Class::OrderCancel, 9, [0, 0, 300 * MS]);
    assert_eq!(judged(&result).0, Verdict::Fail);
}

#[test]
fn a_class_outside_the_mix_is_not_judged() {
    let mut result = cell(0);
    succeed(&mut result, Class::ProductLookup, 10_000, [0, 0, MS]);
    let mix = Mix { product_lookup: 100, order_history: 0, order_create: 0, order_cancel: 0 };
    let slo = Slo::default();
    let input = JudgeInput {
        slo: &slo,
        mix: &mix,
        result: &result,
        invariants: Some(&InvariantReport::default()),
        beside: &[],
        rehearsal: false,
        cut: None,
        stepped: None,
    };
    assert_eq!(judge(&input), (Verdict::Pass, Vec::new()));
    assert_eq!(judged(&result).0, Verdict::Inconclusive);
}

#[test]
fn a_contradiction_in_the_counts_is_invalid() {
    let mut result = cell(10_000);
    result.counts.succeeded -= 1;
    result.counts.failed += 1;
    assert_eq!(codes(&judged(&result).1), [ReasonCode::Identity]);
    result.counts.offered += 1;
    let (verdict, reasons) = judged(&result);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Invalid, vec![ReasonCode::Identity]));
}

#[test]
fn a_cut_cell_is_invalid_for_the_reason_of_the_cut() {
    let mut result = cell(100);
    result.end = CellEnd::Stopped;
    assert_eq!(judged(&result).0, Verdict::Invalid);
    assert_eq!(codes(&judged(&result).1), [ReasonCode::StoppedByOperator]);
    let cut = Reason { code: ReasonCode::RunEnded, text: "the guard ended the run".to_owned() };
    let (verdict, reasons) = judged_with(&result, |input| input.cut = Some(&cut));
    assert_eq!((verdict, reasons), (Verdict::Invalid, vec![cut.clone()]));
    result.end = CellEnd::Failed { why: "no connection could be opened".to_owned() };
    assert_eq!(codes(&judged(&result).1), [ReasonCode::NotRun]);
    let (verdict, _) = judged_with(&cell(10_000), |input| input.cut = Some(&cut));
    assert_eq!(verdict, Verdict::Pass, "it had run to its end");
}

#[test]
fn a_saturated_generator_makes_even_a_slow_cell_invalid() {
    let mut result = cell(10_000);
    succeed(&mut result, Class::OrderCreate, 1_000, [0, 0, 500 * MS]);
    result.runner.cpu_percent = 84.9;
    assert_eq!(judged(&result).0, Verdict::Fail);
    result.runner.cpu_percent = 85.0;
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Invalid);
    assert_eq!(reasons[0].code, ReasonCode::Generator);
    assert!(reasons[0].text.contains("85.0 % of its 16 processors"), "{}", reasons[0].text);
    assert!(codes(&reasons).contains(&ReasonCode::Latency), "the rest is told too");
}

#[test]
fn a_late_generator_is_invalid_by_schedule_or_loop_lag() {
    let mut late = cell(10_000);
    succeed(&mut late, Class::ProductLookup, 200, [6 * MS, 0, MS]);
    assert_eq!(codes(&judged(&late).1), [ReasonCode::Generator]);
    let mut stalled = cell(10_000);
    (0..100).for_each(|_| stalled.runner.loop_lag.record(6 * MS));
    let (verdict, reasons) = judged(&stalled);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Invalid, vec![ReasonCode::Generator]));
    assert!(reasons[0].text.contains("the generator may be 5.0 ms late"), "{}", reasons[0].text);
}

#[test]
fn one_stalled_thread_of_many_is_found_and_named() {
    let mut result = cell(10_000);
    let lag = |p99, max| Quantiles { p99: Some(p99), max: Some(max), ..Quantiles::default() };
    let thread = |thread, loop_lag, stalls| ThreadSample { thread, loop_lag, stalls };
    result.runner.threads = (0..15).map(|n| thread(n, lag(0.4, 2.0), 0)).collect();
    result.runner.threads.push(thread(15, lag(152.3, 250.1), 12));
    // Over all threads it does not show: 0.2 % of the beats.
    (0..9_980).for_each(|_| result.runner.loop_lag.record(MS / 10));
    (0..20).for_each(|_| result.runner.loop_lag.record(200 * MS));
    let (verdict, reasons) = judged(&result);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Invalid, vec![ReasonCode::Generator]));
    let text = &reasons[0].text;
    assert!(text.starts_with("loop lag of thread 15 p99 152.3 ms"), "{text}");
    assert!(text.ends_with("stalled 12 times, 250 ms at most"), "{text}");
    result.runner.threads[3] = thread(3, lag(9.0, 30.0), 1);
    assert!(judged(&result).1[0].text.ends_with("at most; likewise thread 3"));
}

#[test]
fn replies_that_lay_unread_are_the_generators() {
    let mut result = cell(10_000);
    (0..980).for_each(|_| result.runner.read_lag.record(MS));
    (0..20).for_each(|_| result.runner.read_lag.record(6 * MS));
    let (verdict, reasons) = judged(&result);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Invalid, vec![ReasonCode::Generator]));
    assert!(reasons[0].text.starts_with("read lag p99 6.0 ms"), "{}", reasons[0].text);
}

#[test]
fn a_shortfall_is_laid_to_whoever_made_the_connections_wait() {
    let short = |database, generator| {
        let mut result = cell(10_000);
        let parts = ResponseParts {
            connection_wait_ns: 400 * MS,
            service_ns: 5 * MS,
            wait_on_database_ns: database,
            wait_on_generator_ns: generator,
            ..ResponseParts::default()
        };
        succeed_with(&mut result, Class::ProductLookup, 300, &parts);
        result.counts.offered += 400;
        result.counts.shed += 400;
        let (verdict, reasons) = judged(&result);
        let reason = reasons.into_iter().find(|reason| reason.text.contains("offered completed"));
        (verdict, reason.unwrap())
    };
    let (verdict, reason) = short(0, 0);
    assert_eq!((verdict, reason.code), (Verdict::Fail, ReasonCode::Overload));
    assert!(reason.text.contains("400 ms pool"), "{}", reason.text);
    let (verdict, reason) = short(390 * MS, 0);
    assert_eq!((verdict, reason.code), (Verdict::Fail, ReasonCode::Overload));
    assert!(reason.text.contains("395 ms database"), "{}", reason.text);
    let (verdict, reason) = short(0, 390 * MS);
    assert_eq!((verdict, reason.code), (Verdict::Invalid, ReasonCode::Generator));
    assert!(reason.text.contains("390 ms generator"), "{}", reason.text);
}

#[test]
fn a_class_that_its_failures_push_over_a_limit_fails_although_its_successes_keep_it() {
    let mut result = cell(40_000);
    // 4,000 cancels of 40,000 transactions: 60 failures are 0.15 % of all and 1.5 % of them.
    fail(&mut result, 60, "40001");
    result.failed.order_cancel = 60;
    let slo = Slo { failed_percent: 1.0, ..Slo::default() };
    let (verdict, reasons) = judged_with(&result, |input| input.slo = &slo);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Fail, vec![ReasonCode::ErrorAdjusted]));
    let expected = "order cancel error-adjusted p99 unbounded, SLO 200; 60 of 4060 failed";
    assert_eq!(reasons[0].text, expected);
    // 20 slow ones and 30 failures together are more than a hundredth, and then there is a figure.
    let mut result = cell(40_000);
    succeed(&mut result, Class::OrderCancel, 30, [0, 0, 250 * MS]);
    fail(&mut result, 20, "40001");
    result.unknown.order_cancel = 20;
    let (_, reasons) = judged_with(&result, |input| input.slo = &slo);
    let text = &reasons.iter().find(|r| r.code == ReasonCode::ErrorAdjusted).unwrap().text;
    assert!(text.starts_with("order cancel error-adjusted p99 250."), "{text}");
}

#[test]
fn a_shortfall_is_the_generators_only_where_it_made_the_tail() {
    let mut result = cell(10_000);
    result.counts.offered += 200;
    result.counts.in_flight += 200;
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(reasons[0].code, ReasonCode::Overload);
    // Late by less than the guard allows, and yet the largest part of the slowest.
    succeed(&mut result, Class::ProductLookup, 200, [4 * MS, 0, 2 * MS]);
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Invalid);
    assert_eq!(reasons[0].code, ReasonCode::Generator);
}

#[test]
fn a_violated_invariant_fails_whatever_the_generator_did() {
    let mut result = cell(10_000);
    result.runner.cpu_percent = 99.0;
    let broken = InvariantReport {
        checked: 500,
        violations: 2,
        first: vec!["product 17: stock 3, ledger says 4".to_owned()],
    };
    let (verdict, reasons) = judged_with(&result, |input| input.invariants = Some(&broken));
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(codes(&reasons), [ReasonCode::Invariant, ReasonCode::Generator]);
    assert!(
        reasons[0].text.ends_with(
            "2 of 500 checks of the business violated: product 17: stock 3, ledger says 4"
        )
    );
}

#[test]
fn what_was_not_checked_does_not_pass() {
    let result = cell(10_000);
    let (verdict, reasons) = judged_with(&result, |input| input.invariants = None);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Inconclusive, vec![ReasonCode::Unchecked]));
    let nothing = InvariantReport::default();
    let (verdict, reasons) = judged_with(&result, |input| input.invariants = Some(&nothing));
    assert_eq!((verdict, codes(&reasons)), (Verdict::Inconclusive, vec![ReasonCode::Unchecked]));
}

#[test]
fn failures_count_with_the_unresolved_and_the_unfinished() {
    let mut result = cell(10_000);
    fail(&mut result, 10, "XX000");
    assert_eq!(judged(&result).0, Verdict::Pass, "10 of 10,010 is below 0.1 %");
    result.counts.offered += 1;
    result.counts.in_flight += 1;
    let (verdict, reasons) = judged(&result);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Fail, vec![ReasonCode::Failures]));
    assert!(reasons[0].text.contains("XX000 × 10"), "{}", reasons[0].text);
    result.counts.in_flight = 0;
    result.counts.completed += 1;
    result.counts.attempts += 1;
    result.counts.unknown += 1;
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(codes(&reasons), [ReasonCode::Failures, ReasonCode::Unknown]);
}

#[test]
fn business_rejections_are_no_failures() {
    let mut result = cell(10_000);
    result.counts.offered += 2_000;
    result.counts.completed += 2_000;
    result.counts.business_rejected += 2_000;
    result.counts.attempts += 2_000;
    assert_eq!(judged(&result), (Verdict::Pass, Vec::new()));
}

#[test]
fn shedding_alone_is_overload() {
    let mut result = cell(10_000);
    result.counts.offered += 3;
    result.counts.shed += 3;
    let (verdict, reasons) = judged(&result);
    assert_eq!((verdict, codes(&reasons)), (Verdict::Fail, vec![ReasonCode::Overload]));
}

#[test]
fn what_a_reader_must_know_comes_last() {
    let mut result = cell(10_000);
    result.runner.cpu_percent = 90.0;
    let beside = [ConfigurationId::new("R1"), ConfigurationId::new("A2")];
    let (_, reasons) = judged_with(&result, |input| {
        input.beside = &beside;
        input.rehearsal = true;
    });
    let expected = [ReasonCode::Generator, ReasonCode::SideBySide, ReasonCode::Rehearsal];
    assert_eq!(codes(&reasons), expected);
    assert!(reasons[1].text.contains("R1, A2"));
}

/// A database that froze for half of the cell: the arrivals of the freeze waited for it.
#[test]
fn a_frozen_database_fails() {
    let mut result = cell(10_000);
    for waited_ms in (10..15_000).step_by(10) {
        let class = Class::ALL[usize::try_from(waited_ms / 10 % 4).unwrap()];
        succeed(&mut result, class, 5, [0, (waited_ms - 5) * MS, 5 * MS]);
    }
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(codes(&reasons), vec![ReasonCode::Latency; 8]);
}

/// Ten times the capacity: what the backlog could not hold was shed, the rest waited long.
#[test]
fn ten_times_the_capacity_is_overload() {
    let mut result = cell(0);
    for class in Class::ALL {
        succeed(&mut result, class, 2_500, [0, 900 * MS, 5 * MS]);
    }
    result.counts.offered += 90_000;
    result.counts.shed += 90_000;
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(reasons[0].code, ReasonCode::Overload);
    assert!(reasons[0].text.starts_with("10000 of 100000 offered completed (10.00 %"));
}

/// Fast errors beside slow successes must not improve the percentiles.
#[test]
fn fast_errors_do_not_hide_slow_successes() {
    let mut result = cell(0);
    succeed(&mut result, Class::ProductLookup, 100, [0, 0, 1_000 * MS]);
    fail(&mut result, 20, "XX000");
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert!(reasons.iter().any(|r| r.text.contains("product lookup p99 1000")), "{reasons:?}");
    assert!(reasons.iter().any(|r| r.text.contains("20 of 120 failed (16.67 %")), "{reasons:?}");
}

/// A tenth of the transactions time out: the successes alone look fine.
#[test]
fn timeouts_do_not_vanish_from_the_tail() {
    let mut result = cell(9_000);
    fail(&mut result, 1_000, "timeout");
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(codes(&reasons), [ReasonCode::Failures, ReasonCode::ErrorAdjusted]);
    assert!(reasons[1].text.starts_with("error-adjusted p95 is unbounded: 10.0 %"));
    let mut fewer = cell(9_800);
    fail(&mut fewer, 200, "timeout");
    let (_, reasons) = judged(&fewer);
    assert!(reasons[1].text.starts_with("error-adjusted p99 is unbounded: 2.0 %"));
}
