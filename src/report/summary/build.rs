//! Making a summary from what the engine knows.

use super::{
    AdjustedQuantiles, CellSummary, ClassSummary, ConditionsSummary, ConfigurationCost,
    ConfigurationSummary, CostSummary, InvariantSummary, LoadKind, LoadSummary, RemainingItem,
    RunSummary, RunnerSummary, SCHEMA, Summary, TailSummary, TeardownSummary, ThreadSummary,
};
use crate::{
    model::{
        Basis, Blamed, Calibrated, CellRecord, CellResult, Class, ConfigurationId, CostLine,
        CostStatus, Counts, Load, Money, Part, PartRecordings, PerClass, Quantiles, RunHeader,
        RunnerSample, TeardownItem, TeardownStatus, ThreadSample, Tps, UnixMs,
    },
    report::{TAIL_QUANTILE, tail_words},
};

/// What a summary says of a configuration beside its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationInfo {
    pub id: ConfigurationId,
    /// `lab` or `postgres`.
    pub kind: String,
    pub title: String,
    pub accrued: Money,
    pub basis: Basis,
}

/// All that a summary is made from.
#[derive(Clone, Copy, Debug)]
pub struct SummaryInputs<'a> {
    pub header: &'a RunHeader,
    pub ended: Option<UnixMs>,
    /// In the plan's order.
    pub configurations: &'a [ConfigurationInfo],
    /// In the order in which they started.
    pub cells: &'a [(ConfigurationId, CellSummary)],
    pub cost: &'a CostStatus,
    pub cost_lines: &'a [CostLine],
    pub teardown: Option<&'a TeardownStatus>,
}

/// Makes the summary of a run, whether it is over or not.
#[must_use]
pub fn build(inputs: &SummaryInputs<'_>) -> Summary {
    let header = inputs.header;
    let mut configurations: Vec<_> =
        inputs.configurations.iter().map(configuration_summary).collect();
    place_cells(&mut configurations, inputs.cells.iter().cloned());
    Summary {
        schema: SCHEMA,
        run: RunSummary {
            id: header.id.clone(),
            plan: header.plan.clone(),
            seed: header.seed,
            started: header.started.rfc3339(),
            ended: inputs.ended.map(UnixMs::rfc3339),
            rehearsal: header.rehearsal,
            build: header.build.clone(),
            slo: header.slo,
        },
        configurations,
        cost: cost_summary(inputs.cost, inputs.cost_lines),
        teardown: inputs.teardown.map(teardown_summary),
    }
}

fn configuration_summary(info: &ConfigurationInfo) -> ConfigurationSummary {
    ConfigurationSummary {
        id: info.id.clone(),
        kind: info.kind.clone(),
        title: info.title.clone(),
        cost: ConfigurationCost { accrued: info.accrued, basis: info.basis },
        cells: Vec::new(),
    }
}

/// Puts each cell under its configuration. One that the summary does not have is added, so that no
/// cell is ever left out.
pub(in crate::report) fn place_cells(
    configurations: &mut Vec<ConfigurationSummary>,
    cells: impl IntoIterator<Item = (ConfigurationId, CellSummary)>,
) {
    for (id, summary) in cells {
        match configurations.iter_mut().find(|c| c.id == id) {
            Some(configuration) => configuration.cells.push(summary),
            None => configurations.push(ConfigurationSummary {
                id,
                kind: "unknown".to_owned(),
                title: String::new(),
                cost: ConfigurationCost::default(),
                cells: vec![summary],
            }),
        }
    }
}

fn calibrated(exact: Calibrated) -> Calibrated {
    Calibrated {
        rate: rounded(exact.rate),
        highest_rate: rounded(exact.highest_rate),
        cpu_us: rounded(exact.cpu_us),
        calibrated_cpu_us: rounded(exact.calibrated_cpu_us),
    }
}

/// Makes the summary of one cell.
#[must_use]
pub fn cell_summary(record: &CellRecord) -> CellSummary {
    let result = &record.result;
    let all = result.classes.all();
    let conditions = &record.conditions;
    let invariants = record.invariants.clone().unwrap_or_default();
    CellSummary {
        id: result.cell.clone(),
        stage: record.stage.clone(),
        attempt: record.attempt,
        started: result.started.rfc3339(),
        load: load_summary(record.load),
        warmup_s: rounded(record.warmup_s),
        measure_s: rounded(record.measure_s),
        conditions: ConditionsSummary {
            runner: conditions.runner.clone(),
            zone: conditions.zone.clone(),
            round_trip_ms: conditions.round_trip_ms.or(result.round_trip_ms).map(rounded),
            build: conditions.build.clone(),
            beside: conditions.beside.clone(),
            shape: conditions.shape,
            calibrated: conditions.calibrated.map(calibrated),
        },
        counts: result.counts,
        sqlstates: result.sqlstates.clone(),
        tps: rates(result),
        classes: PerClass::from_fn(|class: Class| {
            let (failed, unknown) = (result.failed[class], result.unknown[class]);
            class_summary(&result.classes[class], failed, unknown, 0)
        }),
        all: {
            let Counts { failed, unknown, in_flight, .. } = result.counts;
            class_summary(&all, failed, unknown, in_flight)
        },
        tail: tail_summary(result),
        runner: runner_summary(&result.runner),
        invariants: InvariantSummary {
            checked: invariants.checked,
            violations: invariants.violations,
            first: invariants.first,
        },
        verdict: record.verdict,
        reasons: record.reasons.clone(),
    }
}

fn load_summary(load: Load) -> LoadSummary {
    match load {
        Load::Closed { connections } => {
            LoadSummary { kind: LoadKind::Closed, connections, rate: None, arrivals: None }
        }
        Load::Open { rate, arrivals, connections } => LoadSummary {
            kind: LoadKind::Open,
            connections,
            rate: Some(rounded(rate)),
            arrivals: Some(arrivals),
        },
    }
}

/// Rates over the measured span; all 0 where nothing was measured.
fn rates(result: &CellResult) -> Tps {
    if result.measured_s <= 0.0 {
        return Tps::default();
    }
    #[allow(clippy::cast_precision_loss)] // a cell never counts up to 2^53
    let rate = |count: u64| rounded(count as f64 / result.measured_s);
    Tps {
        offered: rate(result.counts.offered),
        achieved: rate(result.counts.completed),
        succeeded: rate(result.counts.succeeded),
    }
}

fn class_summary(
    recordings: &PartRecordings,
    failed: u64,
    unknown: u64,
    in_flight: u64,
) -> ClassSummary {
    let adjusted = recordings.response.error_adjusted(failed + unknown + in_flight);
    let quantiles = |part| rounded_quantiles(recordings.part(part).quantiles());
    ClassSummary {
        count: recordings.response.count(),
        response_ms: quantiles(Part::Response),
        service_ms: quantiles(Part::Service),
        connection_wait_ms: quantiles(Part::ConnectionWait),
        schedule_lag_ms: quantiles(Part::ScheduleLag),
        overflow: recordings.response.overflow(),
        failed,
        unknown,
        error_adjusted_ms: AdjustedQuantiles {
            p50: adjusted.p50.map(rounded),
            p95: adjusted.p95.map(rounded),
            p99: adjusted.p99.map(rounded),
        },
        // Downwards: what is unbounded must lie above it.
        unbounded_from: adjusted.unbounded_from.map(|from| (from * 1e6).floor() / 1e6),
    }
}

fn tail_summary(result: &CellResult) -> TailSummary {
    let tail = result.tail.mean_above(TAIL_QUANTILE);
    TailSummary {
        percentile: TAIL_QUANTILE,
        schedule_lag_ms: tail.map(|t| rounded(t.schedule_lag_ms)),
        connection_wait_ms: tail.map(|t| rounded(t.connection_wait_ms)),
        service_ms: tail.map(|t| rounded(t.service_ms)),
        read_lag_ms: tail.map(|t| rounded(t.read_lag_ms)),
        wait_on_database_ms: tail.map(|t| rounded(t.wait_on_database_ms)),
        wait_on_generator_ms: tail.map(|t| rounded(t.wait_on_generator_ms)),
        blamed: tail.map_or(Blamed::None, |tail| tail.blamed()),
        words: tail_words(result),
    }
}

fn runner_summary(runner: &RunnerSample) -> RunnerSummary {
    RunnerSummary {
        cpu_percent: rounded(runner.cpu_percent),
        host_cpu_percent: runner.host_cpu_percent.map(rounded),
        loop_lag_ms: rounded_quantiles(runner.loop_lag.quantiles()),
        read_lag_ms: rounded_quantiles(runner.read_lag.quantiles()),
        rss_mib: rounded(runner.rss_mib),
        processors: runner.processors,
        threads: runner.threads.iter().map(thread_summary).collect(),
    }
}

fn thread_summary(sample: &ThreadSample) -> ThreadSummary {
    ThreadSummary {
        thread: sample.thread,
        loop_lag_ms: rounded_quantiles(sample.loop_lag),
        stalls: sample.stalls,
    }
}

fn cost_summary(cost: &CostStatus, lines: &[CostLine]) -> CostSummary {
    CostSummary {
        currency: "USD".to_owned(),
        accrued: cost.accrued,
        unpublished: cost.unpublished,
        projected: cost.projected,
        guard: cost.guard,
        cap: cost.cap,
        basis: cost.basis,
        lines: lines.to_vec(),
    }
}

fn teardown_summary(teardown: &TeardownStatus) -> TeardownSummary {
    TeardownSummary {
        started: teardown.started.rfc3339(),
        ended: teardown.ended.map(UnixMs::rfc3339),
        remaining_count: teardown.remaining_count,
        remaining: teardown.items.iter().filter(|item| !item.gone).map(remaining_item).collect(),
    }
}

fn remaining_item(item: &TeardownItem) -> RemainingItem {
    let (state, why) = item.state.split_once(':').unwrap_or((&item.state, ""));
    RemainingItem {
        kind: item.kind,
        id: item.id.clone(),
        state: state.trim().to_owned(),
        why: why.trim().to_owned(),
    }
}

fn rounded_quantiles(quantiles: Quantiles) -> Quantiles {
    Quantiles {
        p50: quantiles.p50.map(rounded),
        p95: quantiles.p95.map(rounded),
        p99: quantiles.p99.map(rounded),
        p999: quantiles.p999.map(rounded),
        max: quantiles.max.map(rounded),
    }
}

/// To three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
