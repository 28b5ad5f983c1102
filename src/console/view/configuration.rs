//! One configuration over time: its rates, its latencies against the SLO, where the tail comes
//! from, and below them what no chart says.

use ratatui::{
    Frame,
    layout::Rect,
    style::Modifier,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::model::{ConfigurationStatus, Snapshot};

use super::{
    super::{
        state::{LinkState, State},
        theme::Theme,
    },
    chart::{self, Chart},
    charts::{self, Source},
    figures::rate,
    nearest::Nearest,
    notes,
    status::{Figures, status_of},
    text::{Part, Row, fit_rows, line, pad, two_sided, words},
    time::{Axis, Slice, span_words},
};

/// The narrowest chart whose course says something.
const LEAST_CHART: u16 = 29;
/// Columns of the screen from which four charts stand side by side.
const ROOM_FOR_FOUR: u16 = 150;
const COMFORTABLE: u16 = 5;
const HIGHEST: u16 = 14;
/// The rows that charts leave to the notes below them where they can.
const NOTES: u16 = 2;

/// Draws the view into the area.
pub(super) fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let Some(snapshot) = state.shown() else { return };
    let Some(status) = snapshot.configurations.get(state.selected) else {
        let text = line(
            vec![Part::new(0, " no configuration yet", theme.dim)],
            &Span::raw(""),
            usize::from(area.width),
        );
        return frame.render_widget(Paragraph::new(text), area);
    };
    let axis = Axis::of_one(state, status, snapshot.at);
    let slices = axis.slices(state.shown_record(), &status.id);
    let mut room = area;
    let head = header(state, snapshot, status, &slices, theme, usize::from(area.width));
    let kept = usize::from(area.height.min(3));
    super::top(&mut room, fit_rows(head, kept).unwrap_or_default(), frame);
    let notes = notes::rows(state, snapshot, status, &axis, &slices, theme, room.width);
    let source = Source { slo: &snapshot.header.slo, axis: &axis, slices: &slices };
    draw_charts(&source, notes.len(), theme, frame, &mut room);
    let lines: Vec<Line<'static>> = notes.into_iter().take(usize::from(room.height)).collect();
    frame.render_widget(Paragraph::new(lines), room);
    if state.stale_s().is_some() {
        frame.buffer_mut().set_style(area, theme.plain.add_modifier(Modifier::DIM));
    }
}

fn header(
    state: &State,
    snapshot: &Snapshot,
    status: &ConfigurationStatus,
    slices: &[Slice<'_>],
    theme: &Theme,
    width: usize,
) -> Vec<Row> {
    let width = width.saturating_sub(2);
    let doing = status_of(status, snapshot.at, theme);
    let name = words(&status.title, width / 2, &theme.symbols);
    let at = format!("{} of {}", state.selected + 1, snapshot.configurations.len());
    let left = vec![
        Part::new(0, status.id.to_string(), theme.selected),
        Part::new(2, name, theme.strong),
        Part::new(3, status.kind.clone(), theme.dim),
        Part::new(4, at, theme.dim),
    ];
    let right = vec![Part::new(1, doing.long, doing.style).or(doing.short)];
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let title = two_sided(left, right, &separator, width);
    vec![
        Row::new(0, indented(title)),
        Row::new(1, indented(load(snapshot, status, theme, width))),
        Row::new(2, indented(time_line(state, slices, theme, width))),
    ]
}

/// What is put on, what comes back, and what is left to the SLO.
fn load(
    snapshot: &Snapshot,
    status: &ConfigurationStatus,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let Some(figures) = Figures::of(status) else {
        return line(vec![Part::new(0, "no cell yet", theme.dim)], &separator, width);
    };
    let load = match figures.load.rate() {
        Some(offered) => format!("open {}/s", rate(offered)),
        None => figures.load.to_string(),
    };
    let load = if figures.live { load } else { format!("last: {load}") };
    let mut parts = vec![
        Part::new(3, load, theme.plain),
        Part::new(0, format!("ok {}/s", rate(figures.tps.succeeded)), theme.strong),
    ];
    if let Some(ramp) = &status.ramp {
        let arrow = if theme.ascii { "to" } else { "→" };
        let text = format!("ramp {arrow} {}/s step {}/{}", rate(ramp.to), ramp.step, ramp.of);
        parts.push(Part::new(2, text, theme.accent));
    }
    match Nearest::of(figures.classes, &snapshot.header.slo) {
        Some(nearest) if !figures.are_judged() => {
            parts.push(Part::new(4, nearest.text(), theme.dim));
        }
        Some(nearest) => {
            let (text, style) = nearest.head_room(theme);
            parts.push(Part::new(1, text, style));
            parts.push(Part::new(4, nearest.text(), theme.plain));
        }
        None => parts.push(Part::new(4, "no latency yet", theme.dim)),
    }
    if let Some((verdict, why)) = figures.verdict {
        let style = super::status::verdict_style(verdict, theme);
        parts.push(Part::new(1, verdict.to_string(), style));
        let used = line(parts.clone(), &separator, width).width() + separator.width();
        let why = words(why, width.saturating_sub(used), &theme.symbols);
        parts.push(Part::new(6, why, theme.plain));
    }
    line(parts, &separator, width)
}

/// Which time the charts show, and the newest mark in them in words.
pub(super) fn time_line(
    state: &State,
    slices: &[Slice<'_>],
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let mut parts = vec![Part::new(2, format!("time {}", state.looks.span.words()), theme.plain)];
    if let Some(frozen) = &state.frozen {
        let text = format!("frozen {}", frozen.at.time_of_day());
        parts.push(Part::new(0, text, theme.warn));
    }
    match state.looks.back_s {
        0 => {}
        back => {
            let text = format!("scrolled back {}", span_words(back));
            parts.push(Part::new(0, text, theme.warn));
        }
    }
    if let (LinkState::Lost { .. }, Some(age)) = (&state.link, state.stale_s()) {
        let text = format!("figures are {} old", span_words(whole_seconds(age)));
        parts.push(Part::new(1, text, theme.warn));
    }
    if let Some(mark) = slices.iter().rev().find(|slice| slice.begins) {
        let guide = if theme.ascii { ":" } else { "┊" };
        let from = crate::model::UnixMs(mark.from).time_of_day();
        let text = format!("{guide} cell begins, {} at {from}", mark.point.cell);
        parts.push(Part::new(5, text, theme.dim));
    }
    if slices.is_empty() {
        parts.push(Part::new(3, "nothing was measured in this time", theme.dim));
    }
    line(parts, &separator, width)
}

/// Seconds without their fraction.
pub(super) fn whole_seconds(seconds: f64) -> u64 {
    std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs()
}

/// A line with a column free at its left.
pub(super) fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw(pad("", 1)));
    line
}

/// How many charts stand side by side.
const fn side_by_side(width: u16) -> u16 {
    if width >= ROOM_FOR_FOUR {
        4
    } else if width / 2 >= LEAST_CHART {
        2
    } else {
        1
    }
}

/// Rows of charts, and the rows of each of them; 0 where none fits.
fn layout(across: u16, notes: usize, height: u16) -> (u16, u16) {
    // One row is the ruler's.
    let room = height.saturating_sub(1);
    let notes = u16::try_from(notes).unwrap_or(u16::MAX);
    let most = charts::MOST.div_ceil(across);
    let down = (room.saturating_sub(notes.min(NOTES)) / COMFORTABLE).min(most);
    if down == 0 {
        return if room >= chart::LEAST_HEIGHT { (1, room.min(COMFORTABLE)) } else { (0, 0) };
    }
    let each = room.saturating_sub(notes) / down;
    (down, each.clamp(COMFORTABLE, HIGHEST))
}

/// Draws the charts and takes their rows from the room.
fn draw_charts(
    source: &Source<'_>,
    notes: usize,
    theme: &Theme,
    frame: &mut Frame<'_>,
    room: &mut Rect,
) {
    let across = side_by_side(room.width);
    let (down, height) = layout(across, notes, room.height);
    let width = (room.width.saturating_sub(across)) / across;
    if down == 0 || width < LEAST_CHART.min(24) {
        return;
    }
    let columns = Chart::columns(width);
    let marks = source.axis.marks(source.slices, columns);
    let buffer = frame.buffer_mut();
    for (at, chart) in (0_u16..).zip(charts::of(source, across * down, columns, theme)) {
        let x = room.x + at % across * (width + 1);
        let y = room.y + at / across * height;
        chart.draw(&marks, theme, buffer, Rect { x, y, width, height });
    }
    let y = room.y + down * height;
    for at in 0..across {
        let x = room.x + at * (width + 1);
        let ends = (source.axis.left.as_str(), source.axis.right.as_str());
        chart::ruler(ends, &marks, theme, buffer, Rect { x, y, width, height: 1 });
    }
    room.y += down * height + 1;
    room.height -= down * height + 1;
}
