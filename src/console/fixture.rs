//! A run for tests: four configurations in the states that an operator meets.

use std::collections::BTreeMap;

use crokey::KeyCombination;
use rust_decimal::Decimal;

use crate::{
    link::ServerFrame,
    model::{
        AgentStatus, Arrivals, Basis, CellId, Class, ClassLatency, ConfigurationId,
        ConfigurationState, ConfigurationStatus, ConsoleStatus, ControlStatus, CostStatus,
        Decision, DecisionAction, DecisionOption, Event, EventKind, GateStatus, GuardState,
        LastCell, Level, LiveCell, Load, Money, PerClass, Phase, QueuedCell, Reason, ReasonCode,
        Resource, ResourceKind, ResourceState, RunHeader, RunId, RunState, Slo, Snapshot,
        StageStatus, TailParts, TeardownItem, TeardownStatus, Tps, UnixMs, Verdict, WindowPoint,
    },
};

use super::{
    keymap::Keymap,
    state::State,
    update::{Effect, Msg, update},
};

pub(super) const RUN: &str = "e002-1130-a7f3";
/// 2025-11-30 12:40:12 UTC.
pub(super) const NOW: UnixMs = UnixMs(1_764_506_412_000);

pub(super) fn cents(cents: i64) -> Money {
    Money::new(Decimal::new(cents, 2))
}

fn ago(seconds: u64) -> UnixMs {
    UnixMs(NOW.0 - seconds * 1_000)
}

pub(super) fn id(name: &str) -> ConfigurationId {
    ConfigurationId::new(name)
}

fn latencies(figures: [(f64, f64); 4]) -> PerClass<ClassLatency> {
    PerClass::from_fn(|class| {
        let at = Class::ALL.iter().position(|c| *c == class).unwrap();
        let (p95, p99) = figures[at];
        ClassLatency { p95_ms: Some(p95), p99_ms: Some(p99), count: 1_000 }
    })
}

fn tps(offered: f64, achieved: f64, succeeded: f64) -> Tps {
    Tps { offered, achieved, succeeded }
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Poisson, connections: 256 }
}

fn tail(schedule_lag_ms: f64, connection_wait_ms: f64, service_ms: f64) -> TailParts {
    TailParts { schedule_lag_ms, connection_wait_ms, service_ms, ..TailParts::default() }
}

fn live(cell: &str, load: Load, rates: Tps, classes: PerClass<ClassLatency>) -> LiveCell {
    LiveCell {
        id: CellId::new(cell),
        stage: "explore".into(),
        attempt: 7,
        load,
        tps: rates,
        classes,
        connection_wait_p99_ms: Some(26.5),
        tail: Some(tail(0.04, 22.1, 79.3)),
        retry_percent: 4.1,
        failed_percent: 0.0,
        rejected_percent: 0.3,
        errors: BTreeMap::from([("40001".into(), 412), ("pool_timeout".into(), 3)]),
        in_flight: 189,
        window_at: Some(ago(0)),
    }
}

fn last(cell: &str, load: Load, verdict: Verdict, figures: [(f64, f64); 4], ok: f64) -> LastCell {
    LastCell {
        id: CellId::new(cell),
        stage: "pilot".into(),
        load,
        tps: tps(ok, ok, ok),
        classes: latencies(figures),
        connection_wait_p99_ms: Some(0.21),
        tail: Some(tail(0.0, 0.2, 118.4)),
        retry_percent: 0.3,
        failed_percent: 0.0,
        errors: BTreeMap::new(),
        verdict,
        reasons: Vec::new(),
    }
}

fn configuration(name: &str, title: &str, state: ConfigurationState) -> ConfigurationStatus {
    ConfigurationStatus {
        id: id(name),
        title: title.into(),
        kind: "lab".into(),
        state,
        cell: None,
        last: None,
        queued: 0,
        cells_done: 3,
        accrued: cents(431),
        per_hour: cents(54),
        gate: Some(GateStatus { cpu_percent: 11.0, round_trip_ms: 1.7 }),
        ramp: None,
        undo_rate: None,
        point: None,
    }
}

fn point(seq: u64) -> WindowPoint {
    let succeeded = 3_000.0 + 55.0 * (seq as f64) + if seq.is_multiple_of(3) { 400.0 } else { 0.0 };
    WindowPoint {
        cell: CellId::new("D1-007"),
        seq,
        phase: Phase::Measure,
        at: ago(60 - seq),
        offered: 6_750.0,
        achieved: succeeded,
        succeeded,
        failed: 0.0,
        p95_ms: PerClass::from_fn(|class| Some(p99_of(class, seq) * 0.6)),
        p99_ms: PerClass::from_fn(|class| Some(p99_of(class, seq))),
        connection_wait_p99_ms: Some(seq as f64 * 0.4),
        tail: Some(tail(0.04, seq as f64 * 0.35, 60.0)),
        retries: seq as f64 * 2.0,
        runner_cpu_percent: 62.0,
    }
}

/// p99 response times of the charts, in ms.
fn p99_of(class: Class, seq: u64) -> f64 {
    let base = [6.0, 9.0, 90.0, 95.0][class.index()];
    base + seq as f64 * 0.5
}

/// Two cells of the plan and one of the operator's that wait.
fn queue() -> Vec<QueuedCell> {
    let cell = |number, name: &str, load, planned| QueuedCell {
        number,
        configuration: id(name),
        stage: if planned { "explore" } else { "operator" }.into(),
        load,
        warmup_s: 120.0,
        measure_s: 300.0,
        takes_s: 423.0,
        spends: cents(96),
        planned,
    };
    vec![
        cell(9, "D1", open(8_100.0), false),
        cell(11, "R1", Load::Closed { connections: 256 }, true),
        cell(12, "A1", Load::Closed { connections: 256 }, true),
    ]
}

fn configurations() -> Vec<ConfigurationStatus> {
    let mut d1 = configuration(
        "D1",
        "Aurora DSQL",
        ConfigurationState::Cell { phase: Phase::Measure, elapsed_s: 192, total_s: 300 },
    );
    let figures = [(5.6, 6.4), (8.3, 9.5), (27.8, 255.7), (26.9, 98.0)];
    let rates = tps(6_750.2, 6_748.0, 6_416.4);
    d1.cell = Some(live("D1-007", open(6_750.0), rates, latencies(figures)));
    d1.queued = 2;
    let mut r1 = configuration("R1", "RDS Multi-AZ", ConfigurationState::Idle);
    let figures = [(6.1, 11.0), (12.4, 31.8), (61.0, 120.7), (58.2, 118.3)];
    r1.last =
        Some(last("R1-003", Load::Closed { connections: 64 }, Verdict::Pass, figures, 5_839.0));
    let mut a1 = configuration("A1", "Aurora provisioned", ConfigurationState::Idle);
    let figures = [(9.0, 20.1), (60.2, 178.7), (80.0, 160.9), (77.0, 151.2)];
    let mut failed =
        last("A1-002", Load::Closed { connections: 64 }, Verdict::Fail, figures, 3_322.0);
    failed.reasons = vec![Reason {
        code: ReasonCode::Latency,
        text: "order history p99 178.7 ms, SLO 100 ms".into(),
    }];
    a1.last = Some(failed);
    let mut a2 = configuration(
        "A2",
        "Serverless v2 12 ACU",
        ConfigurationState::Cell { phase: Phase::WarmUp, elapsed_s: 41, total_s: 120 },
    );
    let figures = [(2.2, 2.7), (2.6, 3.2), (6.8, 7.9), (6.9, 8.1)];
    let load = Load::Closed { connections: 256 };
    a2.cell = Some(live("A2-004", load, tps(15_115.0, 15_115.0, 15_115.0), latencies(figures)));
    vec![d1, r1, a1, a2]
}

fn resource(kind: ResourceKind, name: &str, note: &str) -> Resource {
    Resource {
        kind,
        id: name.into(),
        configuration: None,
        process: None,
        path: None,
        port: None,
        note: note.into(),
        state: ResourceState::Made,
        since: ago(700),
    }
}

fn events() -> Vec<Event> {
    let event = |seq, seconds, kind| Event { seq, epoch: 1, at: ago(seconds), kind };
    let started = EventKind::CellStarted {
        cell: CellId::new("D1-007"),
        configuration: id("D1"),
        stage: "explore".into(),
        load: open(6_750.0),
        warmup_s: 120.0,
        measure_s: 300.0,
        by: "operator".into(),
        beside: vec![id("A2")],
    };
    let ended = |cell: &str, configuration: &str, verdict, ok, text: &str| EventKind::CellEnded {
        cell: CellId::new(cell),
        configuration: id(configuration),
        load: Load::Closed { connections: 64 },
        verdict,
        tps: tps(ok, ok, ok),
        reasons: vec![Reason { code: ReasonCode::Latency, text: text.into() }],
        stage: "explore".into(),
        classes: latencies([(6.1, 11.0), (12.4, 31.8), (61.0, 120.7), (58.2, 118.3)]),
        connection_wait_p99_ms: Some(0.2),
        tail: "p99 120.7 ms: 118 ms database".into(),
        measured_s: 300.0,
    };
    let note = |level, text: &str| EventKind::Note { level, text: text.into() };
    vec![
        event(40, 320, note(Level::Info, "data ready on A2, 1,000,000 customers counted")),
        event(41, 240, ended("R1-003", "R1", Verdict::Pass, 5_839.0, "rehearsal")),
        event(42, 200, started),
        event(
            43,
            5,
            ended("A1-002", "A1", Verdict::Fail, 3_322.0, "order history p99 178.7 ms, SLO 100 ms"),
        ),
        event(44, 3, note(Level::Info, "step rate of D1 × 1.25 by operator")),
        event(45, 1, EventKind::AgentLost { text: "no window for 3 s, started again".into() }),
    ]
}

/// A run in the middle of its second stage.
pub(super) fn snapshot() -> Snapshot {
    Snapshot {
        header: RunHeader {
            id: RunId::new(RUN),
            plan: "e002".into(),
            rehearsal: true,
            build: "0.1.0".into(),
            seed: 7,
            started: ago(761),
            slo: Slo::default(),
            max_rate: 8_100.0,
        },
        seq: 1,
        at: NOW,
        engine_pid: 4_242,
        engine_rss_mib: 31.0,
        state: RunState::Running,
        stage: Some(StageStatus { name: "explore".into(), index: 2, of: 4 }),
        configurations: configurations(),
        decision: None,
        cost: CostStatus {
            accrued: cents(3_120),
            unpublished: (cents(210), cents(340)),
            per_hour: cents(1_148),
            projected: cents(4_980),
            guard: cents(5_400),
            cap: cents(6_000),
            basis: Basis::Simulated,
            state: GuardState::Ok,
        },
        agent: AgentStatus {
            pid: Some(4_243),
            processors: 2,
            cpu_percent: 62.0,
            host_cpu_percent: Some(80.0),
            rss_mib: 40.0,
            loop_lag_p99_ms: Some(0.31),
            at: Some(NOW),
        },
        resources: vec![
            resource(ResourceKind::Agent, "agent", "process 4243"),
            resource(ResourceKind::Gate, "gate D1", "port 5501"),
            resource(ResourceKind::Gate, "gate R1", "port 5502"),
            resource(ResourceKind::Server, "server", "PostgreSQL 15.10, port 5433"),
            resource(ResourceKind::Folder, "/var/tmp/rampdeck/e002-1130-a7f3", ""),
        ],
        teardown: None,
        control: ControlStatus {
            consoles: [(1, "anna on pts/3"), (2, "bo on pts/5")]
                .map(|(number, name)| ConsoleStatus { number, name: name.into(), since: NOW })
                .to_vec(),
            holder: Some(1),
            asked: None,
        },
        queue: queue(),
        recent: events(),
    }
}

/// Before the first cell.
pub(super) fn setting_up() -> Snapshot {
    let mut snapshot = snapshot();
    let step = "loading data: 412,000 of 1,000,000 customers".to_owned();
    snapshot.state = RunState::SettingUp { step: step.clone() };
    snapshot.stage = None;
    snapshot.recent.truncate(1);
    for configuration in &mut snapshot.configurations {
        configuration.state = ConfigurationState::SettingUp { step: step.clone() };
        configuration.cell = None;
        configuration.last = None;
        configuration.queued = 0;
    }
    snapshot
}

/// A decision that a run waits for.
pub(super) fn decision() -> Decision {
    let option = |key: &str, label: &str, action, takes_s, spends, burn| DecisionOption {
        key: key.into(),
        label: label.into(),
        action,
        takes_s,
        spends: cents(spends),
        burn_per_hour: cents(burn),
    };
    let without_a2 = DecisionAction::ContinueWithout { configurations: vec![id("A2")] };
    Decision {
        id: "after-pilot".into(),
        situation: "Pilot done: 12 cells, 12 PASS.".into(),
        question: "Go on to explore (16 / 64 / 256 connections on four configurations)?".into(),
        options: vec![
            option("go", "go on now", DecisionAction::Continue, 7_800, 1_840, 1_148),
            option("without", "go on without A2", without_a2, 6_000, 910, 348),
            option("hold", "hold, keep everything", DecisionAction::Hold, 0, 0, 1_148),
            option("stop", "stop here, tear down", DecisionAction::Teardown, 60, 0, 0),
        ],
        safe: "hold".into(),
        asked: ago(28),
        deadline: UnixMs(NOW.0 + 872_000),
        burn_per_hour: cents(1_148),
        burn_by_configuration: vec![
            (id("D1"), cents(54)),
            (id("R1"), cents(123)),
            (id("A1"), cents(171)),
            (id("A2"), cents(800)),
        ],
        waited_cost: cents(9),
    }
}

/// A teardown half done, or done.
pub(super) fn teardown(ended: bool) -> TeardownStatus {
    let item = |kind, name: &str, state: &str, gone, seconds| TeardownItem {
        kind,
        id: name.into(),
        state: if ended { "gone".into() } else { state.into() },
        gone: gone || ended,
        since: ago(seconds),
    };
    let folder = "/var/tmp/rampdeck/e002-1130-a7f3";
    TeardownStatus {
        started: ago(42),
        ended: ended.then(|| ago(2)),
        items: vec![
            item(ResourceKind::Agent, "agent", "gone", true, 41),
            item(ResourceKind::Gate, "gate D1", "deleting", false, 38),
            item(
                ResourceKind::Gate,
                "gate R1",
                "retrying: still answers on port 5502 (3rd try)",
                false,
                12,
            ),
            item(ResourceKind::Server, "server", "waiting: after its gates", false, 42),
            item(ResourceKind::Folder, folder, "waiting: after its server", false, 42),
        ],
        remaining_count: if ended { 0 } else { 4 },
    }
}

/// A console that has not seen anything yet.
pub(super) fn blank_state() -> State {
    State::new(Keymap::load(None).unwrap(), "0.1.0".into(), "0.1.0".into(), NOW)
}

/// A console that has seen a snapshot.
pub(super) fn state_of(snapshot: Snapshot) -> State {
    let mut state = blank_state();
    let points = (0..60).map(point).collect();
    let history = ServerFrame::History { configuration: id("D1"), points };
    update(&mut state, Msg::Frame(history));
    show(&mut state, snapshot);
    state
}

/// A new snapshot comes.
pub(super) fn show(state: &mut State, snapshot: Snapshot) {
    update(state, Msg::Frame(ServerFrame::Snapshot(Box::new(snapshot))));
}

/// Types keys, in a keymap's words, with spaces between them. Gives the last key's effects.
pub(super) fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for key in keys.split(' ') {
        effects = update(state, Msg::Key(key_of(key)));
    }
    effects
}

fn key_of(text: &str) -> KeyCombination {
    match text.chars().collect::<Vec<_>>()[..] {
        [c] => crossterm::event::KeyEvent::new(
            crossterm::event::KeyCode::Char(c),
            crossterm::event::KeyModifiers::NONE,
        )
        .into(),
        _ => text.parse().unwrap(),
    }
}

/// Types text, a key for each character.
pub(super) fn type_text(state: &mut State, text: &str) {
    for c in text.chars() {
        press(state, &c.to_string());
    }
}
