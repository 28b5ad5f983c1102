//! Values for the tests of this room.

use std::collections::BTreeMap;

use super::{CellHeader, ConfigurationInfo, SummaryInputs};
use crate::model::{
    Acknowledged, Arrivals, AttemptRange, Basis, CellEnd, CellId, CellRecord, CellResult, Class,
    Conditions, ConfigurationId, CostLine, CostStatus, Counts, Event, EventKind, GuardState,
    InvariantReport, Load, Money, PartRecordings, PerClass, Phase, Quantiles, ResponseParts,
    RunHeader, RunId, RunnerSample, Shape, Slo, TailSums, ThreadSample, UnixMs, Verdict, Window,
};

pub(super) const STARTED: UnixMs = UnixMs(1_760_000_000_250);
const MS: u64 = 1_000_000;

pub(super) fn money(text: &str) -> Money {
    serde_json::from_value(serde_json::Value::from(text)).unwrap()
}

pub(super) fn closed(connections: u32) -> Load {
    Load::Closed { connections }
}

pub(super) fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Poisson, connections: 32 }
}

pub(super) fn header(cell: &str) -> CellHeader {
    CellHeader {
        cell: CellId::new(cell),
        configuration: ConfigurationId::new(&cell[..2]),
        stage: "explore".to_owned(),
        attempt: 3,
        load: open(100.0),
        warmup_s: 2.0,
        measure_s: 5.0,
        conditions: conditions(),
        started: STARTED,
    }
}

pub(super) fn conditions() -> Conditions {
    Conditions {
        runner: "m7g.4xlarge".to_owned(),
        zone: Some("ap-northeast-2a".to_owned()),
        round_trip_ms: Some(1.712_345),
        build: "0.1.0".to_owned(),
        beside: Vec::new(),
        shape: Shape::default(),
        calibrated: None,
    }
}

/// Records a success of a class with its parts in milliseconds.
pub(super) fn succeed(
    classes: &mut PerClass<PartRecordings>,
    tail: &mut TailSums,
    class: Class,
    parts_ms: [u64; 3],
) {
    let [lag, wait, service] = parts_ms.map(|ms| ms * MS);
    let recordings = &mut classes[class];
    recordings.response.record(lag + wait + service);
    recordings.schedule_lag.record(lag);
    recordings.connection_wait.record(wait);
    recordings.service.record(service);
    tail.record(&ResponseParts {
        schedule_lag_ns: lag,
        connection_wait_ns: wait,
        service_ns: service,
        ..ResponseParts::default()
    });
}

/// A second with ten product lookups and two order creates.
pub(super) fn window(seq: u64, phase: Phase) -> Window {
    let (mut classes, mut tail) = (PerClass::default(), TailSums::default());
    for n in 1..=10 {
        succeed(&mut classes, &mut tail, Class::ProductLookup, [0, 0, n]);
    }
    succeed(&mut classes, &mut tail, Class::OrderCreate, [1, 2, 20 + seq]);
    succeed(&mut classes, &mut tail, Class::OrderCreate, [0, 0, 130_000]);
    let mut runner = RunnerSample {
        cpu_percent: 40.0 + seq as f64,
        host_cpu_percent: Some(80.0),
        rss_mib: 30.0 + seq as f64,
        processors: 2,
        threads: vec![
            ThreadSample { thread: 0, ..ThreadSample::default() },
            ThreadSample {
                thread: 1,
                loop_lag: Quantiles { p99: Some(152.345_67), ..Quantiles::default() },
                stalls: 12,
            },
        ],
        ..RunnerSample::default()
    };
    runner.loop_lag.record(MS / 5);
    (0..2).for_each(|_| runner.read_lag.record(MS / 20));
    Window {
        cell: CellId::new("D1-001"),
        configuration: ConfigurationId::new("D1"),
        seq,
        phase,
        start: UnixMs(STARTED.0 + seq * 1_000),
        length_s: 1.0,
        in_flight_before: 4,
        counts: Counts {
            offered: 13,
            completed: 13,
            succeeded: 12,
            failed: 1,
            in_flight: 4,
            attempts: 15,
            retries: 2,
            ..Counts::default()
        },
        sqlstates: BTreeMap::from([("40001".to_owned(), 2), ("XX000".to_owned(), 1)]),
        classes,
        failed: PerClass { order_create: 1, ..PerClass::default() },
        unknown: PerClass::default(),
        tail,
        connections: 32,
        runner,
    }
}

/// A complete cell of one window's figures.
pub(super) fn record(cell: &str, load: Load) -> CellRecord {
    let window = window(0, Phase::Measure);
    let mut counts = window.counts;
    counts.in_flight = 0;
    CellRecord {
        configuration: ConfigurationId::new(&cell[..2]),
        stage: "explore".to_owned(),
        attempt: 1,
        load,
        warmup_s: 2.0,
        measure_s: 5.0,
        conditions: conditions(),
        result: CellResult {
            cell: CellId::new(cell),
            end: CellEnd::Complete,
            started: STARTED,
            measured_from: UnixMs(STARTED.0 + 2_000),
            measured_s: 3.0,
            counts,
            sqlstates: window.sqlstates,
            classes: window.classes,
            failed: window.failed,
            unknown: window.unknown,
            tail: window.tail,
            acknowledged: Acknowledged { creates: 2, cancels: 0, unresolved: 0 },
            runner: window.runner,
            round_trip_ms: Some(1.712_345),
        },
        invariants: Some(InvariantReport { checked: 12, violations: 0, first: Vec::new() }),
        verdict: Verdict::Pass,
        reasons: Vec::new(),
    }
}

pub(super) fn run_header() -> RunHeader {
    RunHeader {
        id: RunId::new("rehearse-1130-a7f3"),
        plan: "rehearse".to_owned(),
        rehearsal: true,
        build: "0.1.0".to_owned(),
        seed: 7,
        started: STARTED,
        slo: Slo::default(),
        max_rate: 8_100.0,
    }
}

pub(super) fn cost_status() -> CostStatus {
    CostStatus {
        accrued: money("31.20"),
        unpublished: (money("2.1"), money("3.4")),
        per_hour: money("11.48"),
        projected: money("48.57"),
        guard: money("54"),
        cap: money("60"),
        basis: Basis::Simulated,
        state: GuardState::Ok,
    }
}

pub(super) fn cost_lines() -> Vec<CostLine> {
    vec![CostLine {
        configuration: Some(ConfigurationId::new("D1")),
        item: "DPU | distributed processing".to_owned(),
        quantity: "1784023".to_owned(),
        unit: "DPU".to_owned(),
        unit_price: money("0.00001"),
        amount: money("17.84023"),
        basis: Basis::Simulated,
    }]
}

pub(super) fn configurations() -> Vec<ConfigurationInfo> {
    ["D1", "R1"]
        .map(|id| ConfigurationInfo {
            id: ConfigurationId::new(id),
            kind: "lab".to_owned(),
            title: format!("Stand-in for {id}"),
            accrued: money("1.5"),
            basis: Basis::Simulated,
        })
        .to_vec()
}

/// The summary of a run that has not ended.
pub(super) fn summary(cells: &[CellRecord]) -> super::Summary {
    super::build(&SummaryInputs {
        header: &run_header(),
        ended: None,
        configurations: &configurations(),
        cells: &cells
            .iter()
            .map(|record| (record.configuration.clone(), super::cell_summary(record)))
            .collect::<Vec<_>>(),
        cost: &cost_status(),
        cost_lines: &cost_lines(),
        teardown: None,
    })
}

/// Events with rising numbers, a second apart.
pub(super) fn events(kinds: Vec<EventKind>) -> Vec<Event> {
    (1..)
        .zip(kinds)
        .map(|(seq, kind)| Event { seq, epoch: 1, at: UnixMs(STARTED.0 + seq * 1_000), kind })
        .collect()
}

pub(super) fn cell_started(cell: &str) -> EventKind {
    EventKind::CellStarted {
        cell: CellId::new(cell),
        configuration: ConfigurationId::new(&cell[..2]),
        stage: "explore".to_owned(),
        load: open(100.0),
        warmup_s: 2.0,
        measure_s: 5.0,
        by: "plan".to_owned(),
        beside: vec![ConfigurationId::new("R1")],
    }
}

pub(super) fn attempt_reserved(cell: &str, ordinal: u64) -> EventKind {
    EventKind::AttemptReserved {
        cell: CellId::new(cell),
        range: AttemptRange {
            ordinal,
            first_id: 1 << 40,
            ids: 1 << 32,
            prefix: format!("rehearse-1130-a7f3.{ordinal}."),
        },
    }
}
