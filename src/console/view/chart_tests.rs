//! The charts of a configuration, and the comparison of all.

use std::collections::BTreeSet;

use ratatui::style::Color;

use super::tests::{buffer, figures, rows, text};
use crate::{
    console::{
        fixture::{NOW, blank_state, id, snapshot, state_of},
        looks::{Figure, Span},
        state::{Frozen, State, View},
        theme::{Palette, Theme},
        update::{Msg, update},
    },
    link::ServerFrame,
    model::{
        CellId, Class, ClassLatency, Event, EventKind, Load, PerClass, Phase, Reason, ReasonCode,
        TailParts, Tps, UnixMs, Verdict, WindowPoint,
    },
};

/// A window of a configuration, `ago` seconds before the snapshot, at about a rate.
fn point(configuration: &str, cell: u64, seq: u64, ago: u64, rate: f64) -> WindowPoint {
    let sway = 1.0 + 0.04 * f64::from(u8::try_from(ago % 5).unwrap());
    let p99 = |class: Class| [6.0, 9.0, 90.0, 95.0][class.index()] * sway * (rate / 4_000.0);
    WindowPoint {
        cell: CellId::new(format!("{configuration}-{cell:03}")),
        seq,
        phase: Phase::Measure,
        at: UnixMs(NOW.0 - ago * 1_000),
        offered: rate,
        achieved: rate * 0.999,
        succeeded: rate * 0.98 / sway,
        failed: 0.0,
        p95_ms: PerClass::from_fn(|class| Some(p99(class) * 0.6)),
        p99_ms: PerClass::from_fn(|class| Some(p99(class))),
        connection_wait_p99_ms: Some(4.0 * sway),
        tail: Some(TailParts {
            schedule_lag_ms: 6.0,
            connection_wait_ms: 22.0 * sway,
            service_ms: 60.0 * sway,
            read_lag_ms: 5.0,
            ..TailParts::default()
        }),
        retries: rate / 50.0,
        runner_cpu_percent: 40.0 + rate / 200.0,
    }
}

fn history(state: &mut State, configuration: &str, points: Vec<WindowPoint>) {
    let frame = ServerFrame::History { configuration: id(configuration), points };
    update(state, Msg::Frame(frame));
}

/// Two cells of D1 with a pause between them and a step of the rate, and others beside them.
fn charted(view: View) -> State {
    let mut state = state_of(snapshot());
    let earlier = (0..200).map(|seq| point("D1", 5, seq, 420 - seq, 4_000.0));
    let before = (0..30).map(|seq| point("D1", 6, seq, 60 - seq, 5_400.0));
    let now = (0..22).map(|seq| point("D1", 7, seq, 21 - seq, 6_750.0));
    history(&mut state, "D1", earlier.chain(before).chain(now).collect());
    history(&mut state, "A1", (0..40).map(|seq| point("A1", 2, seq, 55 - seq, 3_300.0)).collect());
    history(&mut state, "A2", (0..45).map(|seq| point("A2", 4, seq, 44 - seq, 9_000.0)).collect());
    for (seq, event) in (60..).zip(cells()) {
        let event = Event { seq, epoch: 1, at: NOW, kind: event };
        update(&mut state, Msg::Frame(ServerFrame::Event(Box::new(event))));
    }
    state.view = view;
    state
}

fn cells() -> [EventKind; 3] {
    let ended = |cell: &str, verdict, ok: f64, p99: f64, why: &str| EventKind::CellEnded {
        cell: CellId::new(cell),
        configuration: id("D1"),
        load: Load::Closed { connections: 128 },
        verdict,
        tps: Tps { offered: ok, achieved: ok, succeeded: ok },
        reasons: vec![Reason { code: ReasonCode::Latency, text: why.into() }],
        stage: "탐색 explore".into(),
        classes: PerClass::from_fn(|_| ClassLatency {
            p95_ms: Some(p99 * 0.4),
            p99_ms: Some(p99),
            count: 9_000,
        }),
        connection_wait_p99_ms: None,
        tail: format!("p99 {p99} ms: 41 ms database, 22 ms waiting for a connection"),
        measured_s: 300.0,
    };
    [
        ended("D1-004", Verdict::Pass, 3_905.0, 63.0, ""),
        ended("D1-005", Verdict::Pass, 4_120.0, 81.0, ""),
        ended("D1-006", Verdict::Fail, 5_020.0, 131.5, "product lookup p99 131.5 ms, SLO 100 ms"),
    ]
}

fn freeze(mut state: State) -> State {
    let snapshot = state.snapshot.clone().unwrap();
    let record = state.record.clone();
    state.frozen = Some(Box::new(Frozen { at: UnixMs(NOW.0 - 5_000), snapshot, record }));
    state
}

fn back(mut state: State, seconds: u64) -> State {
    state.looks.back_s = seconds;
    state
}

fn spanning(mut state: State, span: Span) -> State {
    state.looks.span = span;
    state
}

fn by(mut state: State, figure: Figure) -> State {
    state.looks.figure = figure;
    state
}

fn without_points(view: View) -> State {
    let mut state = charted(view);
    for name in ["D1", "A1", "A2"] {
        history(&mut state, name, Vec::new());
    }
    state
}

fn lost(view: View) -> State {
    let mut state = charted(view);
    update(&mut state, Msg::Disconnected { why: "the engine closed the socket".into() });
    update(&mut state, Msg::Tick(UnixMs(NOW.0 + 12_000)));
    state
}

fn states() -> Vec<(String, State)> {
    let mut states = Vec::new();
    for view in [View::Configuration, View::Compare] {
        let mut idle = charted(view);
        idle.selected = 1;
        let mut blank = blank_state();
        blank.view = view;
        let named = [
            ("running", charted(view)),
            ("idle", idle),
            ("blank", blank),
            ("frozen", freeze(charted(view))),
            ("back", back(charted(view), 120)),
            ("ten minutes", spanning(charted(view), Span::TenMinutes)),
            ("cell", spanning(charted(view), Span::Cell)),
            ("empty", without_points(view)),
            ("lost", lost(view)),
        ];
        states.extend(named.map(|(name, state)| (format!("{view:?} {name}"), state)));
    }
    for figure in Figure::ALL {
        states.push((format!("compare {figure:?}"), by(charted(View::Compare), figure)));
    }
    states
}

macro_rules! looks {
    ($name:literal, $state:expr, $size:expr) => {
        insta::assert_snapshot!($name, text(&$state, $size));
    };
}

#[test]
fn a_configuration_looks_as_agreed() {
    let view = View::Configuration;
    looks!("configuration_60x15", charted(view), (60, 15));
    looks!("configuration_80x24", charted(view), (80, 24));
    looks!("configuration_120x36", charted(view), (120, 36));
    looks!("configuration_200x50", charted(view), (200, 50));
    looks!("configuration_frozen_80x24", freeze(charted(view)), (80, 24));
    looks!("configuration_back_80x24", back(charted(view), 120), (80, 24));
    looks!("configuration_empty_80x24", without_points(view), (80, 24));
    looks!("configuration_lost_120x36", lost(view), (120, 36));
    looks!(
        "configuration_ten_minutes_120x36",
        spanning(charted(view), Span::TenMinutes),
        (120, 36)
    );
    looks!("configuration_cell_120x36", spanning(charted(view), Span::Cell), (120, 36));
}

#[test]
fn a_comparison_looks_as_agreed() {
    let view = View::Compare;
    looks!("compare_60x15", charted(view), (60, 15));
    looks!("compare_80x24", charted(view), (80, 24));
    looks!("compare_120x36", charted(view), (120, 36));
    looks!("compare_200x50", charted(view), (200, 50));
    looks!("compare_frozen_80x24", freeze(charted(view)), (80, 24));
    looks!("compare_back_80x24", back(charted(view), 120), (80, 24));
    looks!("compare_empty_80x24", without_points(view), (80, 24));
    looks!("compare_lost_80x24", lost(view), (80, 24));
    looks!("compare_of_slo_120x36", by(charted(view), Figure::P99OfSlo), (120, 36));
}

#[test]
fn charts_in_ascii_are_ascii_and_look_as_agreed() {
    let theme = Theme::new(Palette::None, true);
    for (name, state) in states() {
        for row in rows(&buffer(&state, &theme, (120, 36))) {
            assert!(row.is_ascii(), "{name}: {row}");
        }
    }
    let shown = |view| rows(&buffer(&charted(view), &theme, (120, 36))).join("\n");
    insta::assert_snapshot!("ascii_configuration_120x36", shown(View::Configuration));
    insta::assert_snapshot!("ascii_compare_120x36", shown(View::Compare));
}

#[test]
fn charts_without_colours_use_none() {
    let theme = Theme::new(Palette::None, false);
    for (name, state) in states() {
        let buffer = buffer(&state, &theme, (120, 36));
        let coloured = buffer.content.iter().any(|c| (c.fg, c.bg) != (Color::Reset, Color::Reset));
        assert!(!coloured, "{name}");
    }
}

/// That every figure which is shown at some sizes is one that a very wide screen shows.
fn assert_whole(name: &str, state: &State, sizes: impl Iterator<Item = (u16, u16)>) {
    let theme = Theme::new(Palette::Dark, false);
    let mut whole = BTreeSet::new();
    for height in 1..=60 {
        whole.extend(figures(&buffer(state, &theme, (420, height))));
    }
    for size in sizes {
        for figure in figures(&buffer(state, &theme, size)) {
            // A count of rows in "make me larger".
            let rows = figure.parse::<u16>().is_ok_and(|rows| rows < 60);
            assert!(whole.contains(&figure) || rows, "{name} at {size:?}: {figure}");
        }
    }
}

#[test]
fn at_any_size_every_figure_of_a_chart_is_whole() {
    for (name, state) in states() {
        let sizes = (1..=140).step_by(9).flat_map(|w| (1..=45).step_by(4).map(move |h| (w, h)));
        assert_whole(&name, &state, sizes.chain([(80, 24), (60, 15), (200, 50)]));
    }
}

/// Seeded, so that a failure comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    /// Nothing, little, much, far too much, or no number.
    fn figure(&mut self) -> f64 {
        let base = f64::from(u32::try_from(self.below(10_000)).unwrap()) / 7.0;
        match self.below(12) {
            0 => 0.0,
            1 => base * 1e-6,
            2 => base * 1e9,
            3 => f64::MAX,
            4 => f64::NAN,
            5 => f64::INFINITY,
            _ => base,
        }
    }

    fn maybe(&mut self) -> Option<f64> {
        let is_there = self.below(4) > 0;
        is_there.then(|| self.figure())
    }

    fn points(&mut self) -> Vec<WindowPoint> {
        let mut points: Vec<WindowPoint> = Vec::new();
        let (mut ago, mut seq, mut cell) = (self.below(900), 0, 1);
        while ago > 0 && points.len() < 700 {
            let mut made = point("D1", cell, seq, ago, self.figure());
            made.achieved = self.figure();
            made.succeeded = self.figure();
            made.p95_ms = PerClass::from_fn(|_| self.maybe());
            made.p99_ms = PerClass::from_fn(|_| self.maybe());
            made.connection_wait_p99_ms = self.maybe();
            made.tail = self.maybe().map(|service_ms| TailParts {
                service_ms,
                connection_wait_ms: self.figure(),
                read_lag_ms: self.figure(),
                ..TailParts::default()
            });
            made.retries = self.figure();
            made.runner_cpu_percent = self.figure();
            points.push(made);
            (ago, seq) = (ago - 1, seq + 1);
            match self.below(40) {
                0 => (cell, seq) = (cell + 1, 0),
                1 => {
                    ago = ago.saturating_sub(self.below(90));
                    seq += 30;
                }
                // The clock went back.
                2 => ago += self.below(3),
                _ => {}
            }
        }
        points
    }
}

#[test]
fn a_storm_of_points_and_sizes_draws_whole_figures() {
    let mut random = Random(7);
    let theme = Theme::new(Palette::Sixteen, false);
    for round in 0..6 {
        for view in [View::Configuration, View::Compare] {
            let mut state = charted(view);
            for name in ["D1", "R1", "A2"] {
                let points = random.points();
                history(&mut state, name, points);
            }
            let index = |below| usize::try_from(below).unwrap();
            state.selected = index(random.below(4));
            state.looks.figure = Figure::ALL[index(random.below(5))];
            state.looks.span = [Span::Minute, Span::TenMinutes, Span::Cell][index(random.below(3))];
            state.looks.back_s = [0, 15, 400, u64::MAX / 2_000][index(random.below(4))];
            let sizes: Vec<(u16, u16)> = (0..25)
                .map(|_| {
                    let side = |below| u16::try_from(below).unwrap() + 1;
                    (side(random.below(220)), side(random.below(60)))
                })
                .collect();
            assert_whole(&format!("round {round} {view:?}"), &state, sizes.iter().copied());
            for size in sizes {
                buffer(&state, &theme, size);
            }
        }
    }
}
