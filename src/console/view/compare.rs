//! One figure of every configuration over time, and the cells so far against the SLO.

use ratatui::{
    Frame,
    layout::Rect,
    style::Modifier,
    text::{Line, Span},
    widgets::Paragraph,
};
use unicode_width::UnicodeWidthStr;

use crate::model::{ConfigurationStatus, Slo, Snapshot, WindowPoint};

use super::{
    super::{looks::Figure, state::State, theme::Theme},
    chart::{self, Body, Chart, Series, Stroke, round_up, series_style},
    charts::worst_of_slo,
    configuration::{indented, time_line},
    figures::{fine_ms, rate},
    text::{Part, line, two_sided},
    time::{Axis, By, Slice},
    verdicts,
};

/// Rows of the legend at most.
const LEGEND: usize = 3;
const LEAST_CHART: u16 = 5;
const HIGHEST: u16 = 24;
/// The widest legend entry that has the configuration's title.
const TITLE: usize = 24;

/// Draws the view into the area.
pub(super) fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let Some(snapshot) = state.shown() else { return };
    let width = usize::from(area.width);
    let Some(selected) = snapshot.configurations.get(state.selected) else {
        let parts = vec![Part::new(0, " no configuration yet", theme.dim)];
        let text = line(parts, &Span::raw(""), width);
        return frame.render_widget(Paragraph::new(text), area);
    };
    let axis = Axis::of(state, &selected.id, snapshot.at);
    let record = state.shown_record();
    let own: Vec<Own<'_>> = snapshot
        .configurations
        .iter()
        .enumerate()
        .map(|(at, status)| Own { at, status, slices: axis.slices(record, &status.id) })
        .collect();
    let mut room = area;
    let slices = own.get(state.selected).map_or(&[][..], |own| &own.slices);
    super::top(&mut room, vec![head(state, slices, theme, width)], frame);
    let legend = legend(state, snapshot, &own, &axis, theme, width.saturating_sub(2));
    if room.height > LEAST_CHART {
        super::top(&mut room, legend, frame);
    }
    let wanted = u16::try_from(record.cells().len() + 2).unwrap_or(u16::MAX);
    let height = room.height.saturating_sub(wanted.min(room.height / 2)).min(HIGHEST);
    if height > LEAST_CHART {
        let area = Rect { height, ..room };
        draw_chart(state, snapshot, &own, &axis, theme, frame, area);
        room.y += height;
        room.height -= height;
    }
    let table = verdicts::table(record, snapshot, theme, width, usize::from(room.height));
    frame.render_widget(Paragraph::new(table), room);
    if state.stale_s().is_some() {
        frame.buffer_mut().set_style(area, theme.plain.add_modifier(Modifier::DIM));
    }
}

/// A configuration and its windows in the time that is shown.
struct Own<'a> {
    at: usize,
    status: &'a ConfigurationStatus,
    slices: Vec<Slice<'a>>,
}

impl Own<'_> {
    /// The letter of its line: told apart from the others' without colours.
    fn letter(&self) -> char {
        // The remainder is below 26.
        char::from(b'a' + u8::try_from(self.at % 26).unwrap_or(0))
    }
}

fn head(state: &State, slices: &[Slice<'_>], theme: &Theme, width: usize) -> Line<'static> {
    let width = width.saturating_sub(2);
    let figure = state.looks.figure.words();
    let left = vec![Part::new(0, figure, theme.strong)];
    let used = figure.width() + 4;
    let time = time_line(state, slices, theme, width.saturating_sub(used));
    let mut line = two_sided(left, Vec::new(), &Span::raw(""), figure.width());
    line.push_span(Span::raw("    "));
    line.spans.extend(time.spans);
    indented(line)
}

/// The figure of a window.
fn value(figure: Figure, point: &WindowPoint, slo: &Slo) -> Option<f64> {
    let value = match figure {
        Figure::Succeeded => Some(point.succeeded),
        Figure::P99OfSlo => worst_of_slo(point, slo).map(|(_, share)| share),
        Figure::ConnectionWait => point.connection_wait_p99_ms,
        Figure::Retries => Some(point.retries),
        Figure::RunnerCpu => Some(point.runner_cpu_percent),
    };
    value.filter(|value| value.is_finite())
}

const fn by(figure: Figure) -> By {
    match figure {
        Figure::P99OfSlo | Figure::ConnectionWait => By::Worst,
        Figure::Succeeded | Figure::Retries | Figure::RunnerCpu => By::Mean,
    }
}

fn text(figure: Figure, value: f64) -> String {
    match figure {
        Figure::ConnectionWait => fine_ms(value),
        _ => rate(value),
    }
}

/// Which letter is which configuration, and its newest figure; over as many lines as it takes.
fn legend(
    state: &State,
    snapshot: &Snapshot,
    own: &[Own<'_>],
    axis: &Axis,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let figure = state.looks.figure;
    let slo = &snapshot.header.slo;
    let entries = |titles: bool| -> Vec<Vec<Span<'static>>> {
        let entry = |own: &Own<'_>| {
            let newest = axis.newest(&own.slices).and_then(|point| value(figure, point, slo));
            let shown = newest.map_or(theme.symbols.none.to_owned(), |value| text(figure, value));
            let over = figure == Figure::P99OfSlo && newest.is_some_and(|value| value > 100.0);
            let over = if over { format!(" {} OVER", theme.symbols.over) } else { String::new() };
            let title = super::text::words(&own.status.title, TITLE, &theme.symbols);
            let title = if titles { format!(" {title}") } else { String::new() };
            let is_selected = own.at == state.selected;
            let marker = if is_selected { theme.symbols.marker } else { " " };
            let name = if is_selected { theme.selected } else { theme.plain };
            vec![
                Span::styled(marker, theme.selected),
                Span::styled(format!("{} ", own.letter()), series_style(own.at, theme)),
                Span::styled(format!("{}{title} ", own.status.id), name),
                Span::styled(shown, theme.strong),
                Span::styled(format!("{over}  "), theme.bad),
            ]
        };
        own.iter().map(entry).collect()
    };
    let long = flow(entries(true), width);
    if long.len() <= 2 && !long.is_empty() {
        return long;
    }
    flow(entries(false), width).into_iter().take(LEGEND).collect()
}

/// Entries side by side, over several lines; one that is wider than a line is left out.
fn flow(entries: Vec<Vec<Span<'static>>>, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for entry in entries {
        let own: usize = entry.iter().map(Span::width).sum();
        match lines.last_mut() {
            Some(line) if line.width() + own <= width => line.spans.extend(entry),
            _ if own <= width => lines.push(Line::from(entry)),
            _ => {}
        }
    }
    lines
}

fn draw_chart(
    state: &State,
    snapshot: &Snapshot,
    own: &[Own<'_>],
    axis: &Axis,
    theme: &Theme,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let figure = state.looks.figure;
    let slo = &snapshot.header.slo;
    let columns = Chart::columns(area.width);
    let highest = own
        .iter()
        .flat_map(|own| own.slices.iter())
        .filter_map(|slice| value(figure, slice.point, slo))
        .fold(0.0, f64::max);
    let (highest, limits) = match figure {
        Figure::P99OfSlo => (highest.clamp(100.0, 300.0), vec![100.0]),
        Figure::RunnerCpu => (highest.max(100.0), Vec::new()),
        _ => (highest, Vec::new()),
    };
    // The selected one is drawn last: it stays visible where lines meet.
    let is_selected = |own: &Own<'_>| own.at == state.selected;
    let ordered =
        own.iter().filter(|own| !is_selected(own)).chain(own.iter().filter(|own| is_selected(own)));
    let lines = ordered.map(|own| Series {
        values: axis.values(&own.slices, columns, by(figure), |point| value(figure, point, slo)),
        stroke: Stroke::Letter(own.letter()),
        style: series_style(own.at, theme),
    });
    let title = vec![
        Part::new(0, figure.words(), theme.dim),
        Part::new(1, "a letter each, the selected one on top", theme.dim),
    ];
    let body = Body::Lines(lines.collect());
    let chart = Chart { title, body, top: round_up(highest), limits };
    let marks =
        own.get(state.selected).map(|own| axis.marks(&own.slices, columns)).unwrap_or_default();
    let plot = Rect { height: area.height - 1, ..area };
    let buffer = frame.buffer_mut();
    chart.draw(&marks, theme, buffer, plot);
    let ends = (axis.left.as_str(), axis.right.as_str());
    chart::ruler(ends, &marks, theme, buffer, Rect { y: plot.bottom(), height: 1, ..area });
}
