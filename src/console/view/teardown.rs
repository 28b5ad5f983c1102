//! Removing everything: the typed name, then what becomes of each thing.

use ratatui::text::{Line, Span};

use crate::model::{
    Resource, ResourceState, Snapshot, TeardownItem, TeardownStatus, UnixMs, format_duration,
};

use super::{
    super::{
        action::{Action, Layer},
        state::{State, TeardownPanel},
        theme::Theme,
    },
    figures::money,
    forms::typed,
    panel::{Panel, blank},
    text::{Part, Row, line, pad, words, wrap},
};

/// Names longer than this stand out of their column.
const LONGEST_ID: usize = 20;

/// The teardown as a panel of at most so many rows.
pub(super) fn panel(
    state: &State,
    dialog: &TeardownPanel,
    theme: &Theme,
    width: u16,
    height: u16,
) -> Panel {
    let rows = usize::from(height.saturating_sub(2));
    let width = Panel::inner_width(width);
    let under_way = state.snapshot.as_ref().and_then(|snapshot| {
        let teardown = snapshot.teardown.as_ref()?;
        Some((snapshot, teardown))
    });
    let rows = match under_way {
        Some((snapshot, teardown)) => {
            let mut rows = progress(snapshot, teardown, dialog.scroll, theme, width, rows);
            rows.extend(left_by_the_engine(state, teardown, theme, width));
            rows
        }
        None => asked(state, dialog, theme, width, rows),
    };
    let clock = under_way.map(|(snapshot, teardown)| {
        let until = teardown.ended.unwrap_or(snapshot.at);
        Part::new(
            2,
            format!(" {} ", format_duration(until.seconds_since(teardown.started))),
            theme.plain,
        )
    });
    let right: Vec<Part> = clock.into_iter().collect();
    let title = match under_way {
        Some((_, teardown)) if teardown.ended.is_some() => " TEARDOWN ended ",
        Some(_) => " TEARDOWN under way ",
        None if dialog.dry_run => " TEARDOWN, a dry run: nothing is removed ",
        None => " TEARDOWN removes everything this run made ",
    };
    let left = vec![Part::new(0, title, theme.bad).or(" TEARDOWN ")];
    Panel { left, right, rows, border: theme.bad }
}

/// The question for the run's name, and what would go.
fn asked(
    state: &State,
    dialog: &TeardownPanel,
    theme: &Theme,
    width: usize,
    height: usize,
) -> Vec<Row> {
    let Some(snapshot) = &state.snapshot else {
        return vec![Row::new(0, Line::raw("The run's name is not known yet."))];
    };
    let run = &snapshot.header.id;
    let mut rows = Vec::new();
    if dialog.dry_run {
        let per_hour = money(snapshot.cost.per_hour);
        let text = format!("DRY RUN: this would go, in this order, and {per_hour}/h with it");
        rows.extend(text_rows(0, &text, theme.strong, width, theme));
    } else if !state.engine_answers() {
        let text = format!(
            "The engine does not answer: it is done without it, as by rampdeck teardown {run}"
        );
        rows.extend(text_rows(0, &text, theme.bad, width, theme));
    }
    if !dialog.dry_run {
        let prompt = format!("Type the run's name to confirm: {run}");
        rows.extend(text_rows(0, &prompt, theme.strong, width, theme));
        let mut spans = vec![Span::raw("> ")];
        spans.extend(typed(&dialog.input, true, theme));
        rows.push(Row::new(0, Line::from(spans)));
    }
    if let Some(error) = &dialog.error {
        rows.extend(text_rows(0, error, theme.bad, width, theme));
    }
    rows.push(blank(8));
    let ids = id_column(snapshot.resources.iter().map(|resource| resource.id.as_str()));
    let mut left: Vec<&Resource> = snapshot.resources.iter().collect();
    left.retain(|resource| resource.state != ResourceState::Gone);
    // Removal goes in the order of the kinds.
    left.sort_by_key(|resource| resource.kind);
    let items: Vec<Line<'static>> = left
        .into_iter()
        .map(|resource| {
            let parts = vec![
                Part::new(1, pad(resource.kind.words(), 18), theme.plain),
                Part::new(0, pad(&resource.id, ids), theme.plain).or(resource.id.clone()),
                Part::new(2, words(&resource.note, width / 3, &theme.symbols), theme.dim),
            ];
            line(parts, &Span::raw("  "), width)
        })
        .collect();
    let verb = if dialog.dry_run { "would go" } else { "go" };
    let heading = format!("{} things {verb}, running cells are stopped:", items.len());
    rows.push(Row::new(4, words(&heading, width, &theme.symbols)));
    let room = height.saturating_sub(rows.len());
    rows.extend(scrolled(items, dialog.scroll, room, theme).into_iter().map(|l| Row::new(5, l)));
    rows
}

/// What to do about a teardown whose engine is no longer there to go on with it.
fn left_by_the_engine(
    state: &State,
    teardown: &TeardownStatus,
    theme: &Theme,
    width: usize,
) -> Vec<Row> {
    let over = teardown.ended.is_some() && teardown.remaining_count == 0;
    if over || state.removing || state.engine_answers() || state.ended.is_some() {
        return Vec::new();
    }
    let key = state.keymap.key_for(Layer::Teardown, Action::Retry).unwrap_or_default();
    let text = format!("The engine does not answer: {key} goes on without it");
    text_rows(0, &text, theme.bad, width, theme)
}

/// What has become of each thing so far.
fn progress(
    snapshot: &Snapshot,
    teardown: &TeardownStatus,
    scroll: usize,
    theme: &Theme,
    width: usize,
    height: usize,
) -> Vec<Row> {
    let remaining = Row::new(0, remaining(snapshot, teardown, theme, width));
    let ids = id_column(teardown.items.iter().map(|item| item.id.as_str()));
    let items =
        teardown.items.iter().map(|entry| item(entry, ids, snapshot.at, theme, width)).collect();
    let room = height.saturating_sub(1);
    let mut rows: Vec<Row> =
        scrolled(items, scroll, room, theme).into_iter().map(|line| Row::new(5, line)).collect();
    rows.push(remaining);
    rows
}

fn remaining(
    snapshot: &Snapshot,
    teardown: &TeardownStatus,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let count = teardown.remaining_count;
    let style = match (teardown.ended.is_some(), count) {
        (_, 0) => theme.good,
        (true, _) => theme.bad,
        (false, _) => theme.strong,
    };
    let mut parts = vec![Part::new(0, format!("remaining {count}"), style)];
    if teardown.ended.is_none() || count > 0 {
        let burn = format!("still billing {}/h", money(snapshot.cost.per_hour));
        parts.push(Part::new(1, burn, theme.plain));
    }
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}

/// One thing: its state, what it is, and why it is not gone, or since when.
pub(super) fn item(
    item: &TeardownItem,
    ids: usize,
    now: UnixMs,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let (word, why) = item.state.split_once(':').unwrap_or((item.state.as_str(), ""));
    let style = match word {
        "gone" => theme.good,
        "retrying" => theme.warn,
        "remains" => theme.bad,
        _ => theme.plain,
    };
    let since = if item.gone {
        item.since.time_of_day()
    } else {
        format!("for {}", format_duration(now.seconds_since(item.since)))
    };
    let mut parts = vec![
        Part::new(0, pad(word, 9), style),
        Part::new(2, pad(item.kind.words(), 18), theme.plain),
        Part::new(1, pad(&item.id, ids), theme.plain).or(item.id.clone()),
        Part::new(4, since, theme.dim),
    ];
    if !why.trim().is_empty() {
        parts.push(Part::new(3, words(why.trim(), width / 2, &theme.symbols), theme.plain));
    }
    line(parts, &Span::raw("  "), width)
}

/// The width of a column of names; a long path does not push the others out of sight.
pub(super) fn id_column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(str::len).filter(|len| *len <= LONGEST_ID).max().unwrap_or(0)
}

fn text_rows(
    rank: u8,
    text: &str,
    style: ratatui::style::Style,
    width: usize,
    theme: &Theme,
) -> Vec<Row> {
    let lines = wrap(text, width, &theme.symbols).into_iter();
    lines.map(|text| Row::new(rank, Line::styled(text, style))).collect()
}

/// A part of the lines, with a word about those that are not shown.
pub(super) fn scrolled(
    lines: Vec<Line<'static>>,
    scroll: usize,
    room: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let count = lines.len();
    if count <= room {
        return lines;
    }
    if room == 0 {
        return Vec::new();
    }
    let first = scroll.min(count - (room - 1));
    let mut shown: Vec<_> = lines.into_iter().skip(first).take(room - 1).collect();
    let (above, below) = (first, count - first - (room - 1));
    let text = match (above, below) {
        (0, below) => format!("+{below} below"),
        (above, 0) => format!("+{above} above"),
        (above, below) => format!("+{above} above, +{below} below"),
    };
    shown.push(Line::styled(text, theme.warn));
    shown
}
