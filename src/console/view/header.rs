//! The lines at the top: the run, its money, and which view is shown.

use ratatui::text::{Line, Span};

use crate::model::{
    Basis, CostStatus, GuardState, Money, RunState, Snapshot, UnixMs, format_clock, format_duration,
};

use super::{
    super::{
        action::{Action, Layer},
        state::{LinkState, State, View},
        theme::Theme,
    },
    figures::money,
    text::{Part, line, two_sided, wrap},
};

/// Columns of the budget's bar.
const BAR: usize = 26;
/// The narrowest screen that has one.
const WIDE: usize = 100;
const REHEARSAL: &str = "REHEARSAL latency added, prices simulated";

/// The run: its name, what it is, where it stands, and whether the engine is there.
pub(super) fn run(state: &State, theme: &Theme, width: usize) -> Line<'static> {
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let Some(snapshot) = &state.snapshot else {
        let parts = vec![
            Part::new(0, " rampdeck", theme.strong),
            Part::new(1, "waiting for the engine's first snapshot", theme.plain),
        ];
        return line(parts, &separator, width);
    };
    let header = &snapshot.header;
    let mut left = vec![
        Part::new(8, "rampdeck", theme.dim),
        Part::new(1, header.id.to_string(), theme.strong),
    ];
    if header.rehearsal {
        let words = if width < WIDE { "REHEARSAL" } else { REHEARSAL };
        left.push(Part::new(4, words, theme.accent).or("REHEARSAL"));
    }
    let right = right(state, snapshot, theme);
    let mut line = two_sided(left, right, &separator, width.saturating_sub(2));
    line.spans.insert(0, Span::raw(" "));
    line
}

fn right(state: &State, snapshot: &Snapshot, theme: &Theme) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(word) = run_word(&snapshot.state) {
        parts.push(Part::new(2, word, theme.warn));
    }
    if let Some(stage) = &snapshot.stage {
        let text = format!("{} {}/{}", stage.name, stage.index, stage.of);
        parts.push(Part::new(5, text, theme.plain));
    }
    let elapsed = format_clock(snapshot.at.seconds_since(snapshot.header.started));
    parts.push(Part::new(6, elapsed, theme.plain));
    let consoles = match snapshot.control.consoles.len() {
        1 => "1 console".to_owned(),
        count => format!("{count} consoles"),
    };
    parts.push(Part::new(9, consoles, theme.dim));
    parts.push(engine(state, theme));
    parts
}

fn engine(state: &State, theme: &Theme) -> Part {
    let age = state.stale_s().map(|age| age.floor());
    match (&state.link, age, &state.ended) {
        (_, _, Some(_)) => Part::new(7, "engine done", theme.plain),
        (LinkState::Lost { .. }, age, None) => {
            let text = age.map_or_else(String::new, |age| format!(", last seen {age} s ago"));
            Part::new(0, format!("ENGINE LOST{text}"), theme.bad)
        }
        (LinkState::Live, Some(age), None) => {
            Part::new(0, format!("ENGINE SILENT for {age} s"), theme.warn)
        }
        (LinkState::Live, None, None) => Part::new(7, "engine live", theme.good),
    }
}

const fn run_word(state: &RunState) -> Option<&'static str> {
    match state {
        RunState::SettingUp { .. } => Some("SETTING UP"),
        RunState::Running => None,
        RunState::Paused => Some("PAUSED"),
        RunState::Holding => Some("HOLDING"),
        RunState::TearingDown => Some("TEARING DOWN"),
        RunState::Ended { .. } => Some("ENDED"),
    }
}

/// The money: what is spent, how fast, and where it stops.
pub(super) fn budget(cost: &CostStatus, theme: &Theme, width: usize) -> Line<'static> {
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let (low, high) = cost.unpublished;
    let accrued = format!("{} accrued", money(cost.accrued));
    let style = guard_style(cost.state, theme);
    let mut parts = if high > Money::ZERO {
        let dash = theme.symbols.dash;
        let with = format!("{accrued} + {}{dash}{}", money(low), money(high));
        vec![Part::new(1, format!("{with} not yet published"), style).or_early(with)]
    } else {
        vec![Part::new(1, accrued, style)]
    };
    parts.push(Part::new(3, format!("{}/h", money(cost.per_hour)), theme.plain));
    if cost.projected > Money::ZERO {
        parts.push(Part::new(7, format!("projected {}", money(cost.projected)), theme.plain));
    }
    parts.push(Part::new(4, format!("guard {}", money(cost.guard)), theme.plain));
    parts.push(Part::new(2, format!("cap {} USD", money(cost.cap)), theme.plain));
    if let Some(word) = guard_word(cost.state) {
        parts.push(Part::new(0, word, theme.bad));
    }
    let basis = match cost.basis {
        Basis::Measured => "measured",
        Basis::Estimated => "estimated",
        Basis::Simulated => "simulated",
    };
    parts.push(Part::new(5, basis, theme.accent));
    let mut spans = vec![Span::styled(" budget ", theme.dim)];
    if width >= WIDE {
        spans.extend(bar(cost, theme));
        spans.push(Span::raw("  "));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    if used >= width {
        return Line::default();
    }
    spans.extend(line(parts, &separator, width - used).spans);
    Line::from(spans)
}

fn bar(cost: &CostStatus, theme: &Theme) -> Vec<Span<'static>> {
    let full = filled(cost.accrued, cost.cap);
    let guard = filled(cost.guard, cost.cap).saturating_sub(1);
    (0..BAR)
        .map(|at| {
            if at < full {
                Span::styled(theme.symbols.full, guard_style(cost.state, theme))
            } else if at == guard || at == BAR - 1 {
                Span::styled(theme.symbols.limit, theme.strong)
            } else {
                Span::styled(theme.symbols.empty, theme.dim)
            }
        })
        .collect()
}

/// How many of the bar's columns an amount takes; anything takes one.
fn filled(amount: Money, of: Money) -> usize {
    if of <= Money::ZERO || amount <= Money::ZERO {
        return 0;
    }
    let columns = amount.amount() * rust_decimal::Decimal::from(BAR) / of.amount();
    usize::try_from(columns.ceil()).unwrap_or(BAR).min(BAR)
}

const fn guard_word(state: GuardState) -> Option<&'static str> {
    match state {
        GuardState::Ok => None,
        GuardState::Warn => Some("GUARD WARNS"),
        GuardState::NoNewCells => Some("GUARD: NO NEW CELLS"),
        GuardState::Teardown => Some("GUARD: TEARDOWN"),
    }
}

const fn guard_style(state: GuardState, theme: &Theme) -> ratatui::style::Style {
    match state {
        GuardState::Ok => theme.plain,
        GuardState::Warn => theme.warn,
        GuardState::NoNewCells | GuardState::Teardown => theme.bad,
    }
}

/// What an operator can do while the engine does not answer.
pub(super) fn lost(state: &State, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let LinkState::Lost { why } = &state.link else { return Vec::new() };
    if state.ended.is_some() {
        return Vec::new();
    }
    let room = width.saturating_sub(2);
    let from = state.last_seen.map(UnixMs::time_of_day).unwrap_or_default();
    let run = state.run().map_or("RUN", |run| run.as_str());
    let mut lines = wrap(
        &format!(
            "The engine does not answer ({why}). Figures are of {from}; trying again each second."
        ),
        room,
        &theme.symbols,
    );
    lines.extend(wrap(
        &format!("To remove everything without it: rampdeck teardown {run}"),
        room,
        &theme.symbols,
    ));
    lines.into_iter().map(|text| Line::styled(format!(" {text}"), theme.warn)).collect()
}

/// The views with the keys that lead to them.
const VIEWS: [(View, Action, &str); 6] = [
    (View::Overview, Action::Overview, "overview"),
    (View::Configuration, Action::Configuration, "configuration"),
    (View::Compare, Action::Compare, "compare"),
    (View::Cells, Action::Cells, "cells"),
    (View::Resources, Action::Resources, "resources"),
    (View::Log, Action::Log, "log"),
];

/// Which view is shown, the keys to the others, and whether it is held still or only watched.
pub(super) fn views(state: &State, theme: &Theme, width: usize) -> Line<'static> {
    let mut left = Vec::new();
    let mut rank = 4;
    // The summary of an ended run has no keys but its own.
    let layer = match state.view {
        View::Overview if state.ended.is_some() => Layer::Ended,
        view => view.layer(),
    };
    for (view, action, name) in VIEWS {
        if view == state.view {
            let name = format!("{} {name}", theme.symbols.marker);
            left.push(Part::new(2, name, theme.selected));
        } else if let Some(key) = state.keymap.key_for(layer, action) {
            let part = Part::new(rank, format!("{key} {name}"), theme.dim);
            let short = (view == View::Configuration).then(|| format!("{key} config"));
            left.push(match short {
                Some(short) => part.or_early(short),
                None => part,
            });
            rank += 1;
        }
    }
    let mut line =
        two_sided(left, notices(state, theme), &Span::raw("  "), width.saturating_sub(2));
    line.spans.insert(0, Span::raw(" "));
    line
}

/// Whether the line of the views says what must be said however small the screen is.
pub(super) fn must_say(state: &State) -> bool {
    state.frozen.is_some() || state.watches()
}

fn notices(state: &State, theme: &Theme) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(frozen) = &state.frozen {
        let age = state.now.seconds_since(frozen.at).floor();
        let at = frozen.snapshot.at.time_of_day();
        let text = format!("FROZEN at {at}, {age} s ago");
        parts.push(Part::new(0, text, theme.warn).or("FROZEN"));
    }
    if state.watches() {
        let holder = state.snapshot.as_ref().and_then(|snapshot| snapshot.control.holder);
        let holder = holder.map(|number| console(state, number)).unwrap_or_default();
        let text = format!("watching: {holder} drives");
        parts.push(Part::new(1, text, theme.accent).or("WATCHING"));
    }
    parts
}

/// A console by its number and who is there.
fn console(state: &State, number: u32) -> String {
    let consoles = state.snapshot.as_ref().map(|snapshot| &snapshot.control.consoles);
    let known = consoles.into_iter().flatten().find(|console| console.number == number);
    match known {
        Some(known) if !known.name.is_empty() => format!("console {number} ({})", known.name),
        _ => format!("console {number}"),
    }
}

/// Control that is asked for: who asks, until when, and what can be done.
pub(super) fn control(state: &State, theme: &Theme, width: usize) -> Option<Line<'static>> {
    let snapshot = state.snapshot.as_ref()?;
    let (asks, until) = snapshot.control.asked?;
    // By the engine's clock, as a decision's countdown.
    let left = format_duration(until.seconds_since(snapshot.at).ceil());
    let key = |action| state.keymap.key_for(state.view.layer(), action);
    let holds = state.number > 0 && snapshot.control.holder == Some(state.number);
    let mut parts = Vec::new();
    if state.number > 0 && asks == state.number {
        parts.push(Part::new(0, " CONTROL asked for", theme.warn));
        let holder = snapshot.control.holder.map(|number| console(state, number));
        let unless = holder.map_or_else(String::new, |holder| format!(" unless {holder} keeps it"));
        parts.push(
            Part::new(1, format!("yours in {left}{unless}"), theme.strong)
                .or(format!("yours in {left}")),
        );
    } else {
        let who = console(state, asks);
        let style = if holds { theme.warn } else { theme.accent };
        parts.push(Part::new(0, " CONTROL", style));
        let text = format!("{who} asks for it, gets it in {left}");
        parts.push(Part::new(1, text, theme.strong).or_early(format!("{who} gets it in {left}")));
        if holds {
            let (give, keep) = (key(Action::GiveControl), key(Action::KeepControl));
            parts.extend(give.map(|key| Part::new(3, format!("{key} gives"), theme.strong)));
            parts.extend(keep.map(|key| Part::new(2, format!("{key} keeps"), theme.strong)));
        }
    }
    Some(line(parts, &Span::styled(theme.symbols.dot, theme.dim), width))
}
