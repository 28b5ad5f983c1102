//! One configuration: its state, its load, its latencies against the SLO, where its tail comes
//! from, and what it costs.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Block, Paragraph},
};
use unicode_width::UnicodeWidthStr;

use crate::model::{AgentStatus, Class, ConfigurationState, ConfigurationStatus, Slo, TailParts};

use super::{
    super::{record::Record, theme::Theme},
    figures::{fine_ms, money, rate},
    latency,
    status::{Figures, Status, status_of},
    text::{Part, Row, fit_rows, line, two_sided, words, wrap},
};

/// The rows a pane has at most, its border included, without the reason of a verdict.
pub(super) const FULL_HEIGHT: u16 = 12;
/// The rows that a verdict's reason takes at most.
const REASON_ROWS: usize = 2;
/// The fewest rows in which a pane says enough: load and latencies.
pub(super) const LEAST_HEIGHT: u16 = 8;
/// The narrowest pane that has its table whole.
pub(super) const LEAST_WIDTH: u16 = 54;

/// The narrowest bar of the tail.
const LEAST_BAR: usize = 6;
const WIDEST_BAR: usize = 40;
const WIDEST_SPARK: usize = 60;
/// Columns from which the offered rate stands beside the planned one.
const ROOM_FOR_OFFERED: usize = 70;

/// The rows that a reason takes in the narrowest pane.
pub(super) fn reason_rows(why: &str) -> u16 {
    let inner = usize::from(LEAST_WIDTH).saturating_sub(4);
    if why.width() <= inner { 1 } else { 2 }
}

/// What a pane is drawn from.
pub(super) struct Pane<'a> {
    pub status: &'a ConfigurationStatus,
    pub agent: &'a AgentStatus,
    pub slo: &'a Slo,
    pub record: &'a Record,
    /// When the engine took the snapshot.
    pub at: crate::model::UnixMs,
    pub selected: bool,
}

/// Draws a pane; rows for which there is no room are left out whole.
pub(super) fn draw(pane: &Pane<'_>, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let border = if pane.selected { theme.selected } else { theme.dim };
    let status = status_of(pane.status, pane.at, theme);
    let width = usize::from(area.width.saturating_sub(4));
    let block = Block::bordered()
        .border_set(theme.symbols.border)
        .border_style(border)
        .title_top(title(pane, &status, theme, width));
    let inner = block.inner(area).intersection(area);
    frame.render_widget(block, area);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if inner.is_empty() {
        return;
    }
    let rows = rows(pane, theme, usize::from(inner.width));
    if let Some(lines) = fit_rows(rows, usize::from(inner.height)) {
        frame.render_widget(Paragraph::new(lines), inner);
    }
}

/// Id and title at the left, what it is doing at the right.
fn title(pane: &Pane<'_>, status: &Status, theme: &Theme, width: usize) -> Line<'static> {
    let mark = if pane.selected { theme.symbols.marker } else { "" };
    let id = format!("{mark} {} ", pane.status.id);
    let state =
        Part::new(1, format!(" {} ", status.long), status.style).or(format!(" {} ", status.short));
    let used = status.long.len() + id.len() + 8;
    let name = words(&pane.status.title, width.saturating_sub(used), &theme.symbols);
    let left = vec![
        Part::new(0, id, theme.strong),
        Part::new(2, if name.is_empty() { name } else { format!("{name} ") }, theme.plain),
    ];
    let line = two_sided(left, vec![state], &Span::raw(""), width);
    dashed(line, theme)
}

/// A title's gap shows the border that it lies on.
pub(super) fn dashed(line: Line<'static>, theme: &Theme) -> Line<'static> {
    let dash = theme.symbols.border.horizontal_top;
    let spans = line.spans.into_iter().map(|span| {
        if span.content.len() > 1 && span.content.trim().is_empty() {
            Span::styled(dash.repeat(span.content.len()), theme.dim)
        } else {
            span
        }
    });
    Line::from_iter(spans)
}

fn rows(pane: &Pane<'_>, theme: &Theme, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if let ConfigurationState::SettingUp { step } = &pane.status.state {
        for text in wrap(step, width, &theme.symbols) {
            rows.push(Row::new(1, Line::styled(text, theme.plain)));
        }
    }
    if let ConfigurationState::Failed { why } = &pane.status.state {
        for text in wrap(why, width, &theme.symbols).into_iter().take(4) {
            rows.push(Row::new(1, Line::styled(text, theme.bad)));
        }
    }
    match Figures::of(pane.status) {
        Some(figures) => rows.extend(figure_rows(pane, &figures, theme, width)),
        None => rows.extend(waiting(pane, theme, width)),
    }
    rows.push(Row::new(5, runner(pane, theme, width)));
    rows.push(Row::new(7, cost(pane, theme, width)));
    rows
}

/// A configuration without any cell yet.
fn waiting(pane: &Pane<'_>, theme: &Theme, width: usize) -> Option<Row> {
    if pane.status.state != ConfigurationState::Idle {
        return None;
    }
    let text = match pane.status.queued {
        0 => "no cell yet".to_owned(),
        queued => format!("no cell yet, {queued} queued"),
    };
    Some(Row::new(2, line(vec![Part::new(0, text, theme.dim)], &Span::raw(""), width)))
}

fn figure_rows(pane: &Pane<'_>, figures: &Figures<'_>, theme: &Theme, width: usize) -> Vec<Row> {
    let dim = if figures.live { theme.plain } else { theme.dim };
    let mut rows = vec![Row::new(1, load(pane, figures, theme, width))];
    if let Some(why) = figures.reason() {
        let mut texts = wrap(why, width, &theme.symbols);
        let rest = texts.split_off(texts.len().min(REASON_ROWS - 1)).join(" ");
        texts.push(words(&rest, width, &theme.symbols));
        let filled = texts.into_iter().filter(|text| !text.is_empty());
        let ranks = (0..REASON_ROWS).map(|at| if at == 0 { 4 } else { 9 });
        let ranked = ranks.zip(filled);
        rows.extend(ranked.map(|(rank, text)| Row::new(rank, Line::styled(text, theme.plain))));
    }
    if let Some(table) = latency::table(figures, pane.slo, theme, width) {
        let mut table = table.into_iter();
        rows.extend(table.next().map(|head| Row::new(3, head)));
        rows.extend(table.map(|class| Row::new(2, class)));
    }
    if let Some(tail) = figures.tail {
        rows.push(Row::new(8, tail_line(&tail, theme, width)));
    }
    rows.push(Row::new(6, waits(figures, theme, width)));
    for row in &mut rows {
        row.line.style = row.line.style.patch(dim);
    }
    rows
}

/// What is put on, what comes back, and its course.
fn load(pane: &Pane<'_>, figures: &Figures<'_>, theme: &Theme, width: usize) -> Line<'static> {
    let tps = figures.tps;
    let separator = Span::raw("  ");
    let mut parts = Vec::new();
    if !figures.live {
        parts.push(Part::new(2, "last:", theme.plain));
    }
    let load = match figures.load.rate() {
        Some(offered) => format!("open {}/s", rate(offered)),
        None => figures.load.to_string(),
    };
    parts.push(Part::new(1, load, theme.plain));
    if let Some((long, short)) = ramp(pane.status) {
        parts.push(Part::new(2, long, theme.accent).or(short));
    }
    let has_offered = figures.load.rate().is_some() && figures.live;
    // The course of the last seconds says more than the rate a second time.
    if has_offered && width >= ROOM_FOR_OFFERED {
        parts.push(Part::new(4, format!("offered {}", rate(tps.offered)), theme.plain));
    }
    parts.push(Part::new(3, format!("achieved {}", rate(tps.achieved)), theme.plain));
    parts.push(Part::new(0, format!("ok {}/s", rate(tps.succeeded)), theme.strong));
    let mut text = line(parts, &separator, width);
    let room = width.saturating_sub(text.width() + 2).min(WIDEST_SPARK);
    if room >= LEAST_BAR {
        text.push_span(separator);
        text.push_span(Span::styled(spark(pane, theme, room), theme.accent));
    }
    text
}

/// A ramp under way, in words and shorter.
pub(super) fn ramp(status: &ConfigurationStatus) -> Option<(String, String)> {
    let ramp = status.ramp?;
    let to = rate(ramp.to);
    let short = format!("ramp → {to}/s");
    Some((format!("{short} step {}/{}", ramp.step, ramp.of), short))
}

/// Successes a second over the newest windows.
fn spark(pane: &Pane<'_>, theme: &Theme, width: usize) -> String {
    let values: Vec<f64> =
        pane.record.newest_points(&pane.status.id, width).map(|point| point.succeeded).collect();
    let highest = values.iter().copied().fold(0.0, f64::max);
    let steps = theme.symbols.spark;
    let level = |value: f64| {
        let share = if highest > 0.0 { (value / highest).clamp(0.0, 1.0) } else { 0.0 };
        // The value is between 0 and 7: nothing is cut.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = (share * 7.0).round() as usize;
        steps[at.min(7)]
    };
    values.into_iter().map(level).collect()
}

/// The slowest 1 %, by who took their time.
fn tail_line(tail: &TailParts, theme: &Theme, width: usize) -> Line<'static> {
    let parts =
        [("db", tail.database_ms()), ("pool", tail.pool_ms()), ("generator", tail.generator_ms())];
    let separator = Span::raw("  ");
    let mut texts = vec![Part::new(0, "p99 tail", theme.dim)];
    for (at, (name, ms)) in parts.iter().enumerate() {
        let unit = if at + 1 == parts.len() { " ms" } else { "" };
        texts.push(Part::new(1, format!("{name} {}{unit}", fine_ms(*ms)), theme.plain));
    }
    let mut text = line(texts, &separator, width);
    let room = width.saturating_sub(text.width() + 2).min(WIDEST_BAR);
    let total: f64 = parts.iter().map(|(_, ms)| ms).sum();
    if room >= LEAST_BAR && total > 0.0 {
        text.push_span(Span::raw("  "));
        let styles = [theme.accent, theme.warn, theme.bad];
        for (at, columns) in shares(&parts.map(|(_, ms)| ms), room).into_iter().enumerate() {
            let bar = theme.symbols.parts[at].repeat(columns);
            text.push_span(Span::styled(bar, styles[at]));
        }
    }
    text
}

/// The columns of each part, all of them used.
fn shares(parts: &[f64; 3], columns: usize) -> [usize; 3] {
    let total: f64 = parts.iter().sum();
    let mut sum = 0.0;
    let mut used = 0;
    parts.map(|part| {
        sum += part;
        // Between 0 and the columns of a screen: nothing is cut.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let end = ((sum / total * columns as f64).round() as usize).min(columns);
        let own = end.saturating_sub(used);
        used = end.max(used);
        own
    })
}

fn waits(figures: &Figures<'_>, theme: &Theme, width: usize) -> Line<'static> {
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let mut parts = Vec::new();
    if let Some(wait) = figures.connection_wait_p99_ms {
        parts.push(Part::new(1, format!("conn wait p99 {} ms", fine_ms(wait)), theme.plain));
    }
    let failed = format!("failed {:.2} %", figures.failed_percent);
    parts.push(Part::new(3, format!("retries {:.1} %", figures.retry_percent), theme.plain));
    parts.push(Part::new(2, failed, theme.plain));
    if let Some(in_flight) = figures.in_flight {
        parts.push(Part::new(4, format!("in flight {in_flight}"), theme.plain));
    }
    if let Some(errors) = most_errors(figures) {
        parts.push(Part::new(5, errors, theme.plain));
    }
    line(parts, &separator, width)
}

/// The errors that attempts saw most, each with its count.
fn most_errors(figures: &Figures<'_>) -> Option<String> {
    let mut errors: Vec<_> = figures.errors.iter().collect();
    errors.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let named: Vec<String> =
        errors.iter().take(2).map(|(name, count)| format!("{name}: {count}")).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The generator's own state, and the gate's.
fn runner(pane: &Pane<'_>, theme: &Theme, width: usize) -> Line<'static> {
    let separator = Span::styled(theme.symbols.dot, theme.dim);
    let mut parts = Vec::new();
    if pane.agent.at.is_some() {
        // Beside the figures of a cell that has ended, this one is of this moment.
        let now =
            if pane.status.cell.is_none() && pane.status.last.is_some() { "now: " } else { "" };
        let cpu = format!("{now}runner cpu {:.0} %", pane.agent.cpu_percent);
        parts.push(Part::new(2, cpu, theme.plain));
    }
    if let Some(lag) = pane.agent.loop_lag_p99_ms {
        parts.push(Part::new(4, format!("loop lag p99 {} ms", fine_ms(lag)), theme.plain));
    }
    if let Some(gate) = &pane.status.gate {
        parts.push(Part::new(5, format!("gate cpu {:.0} %", gate.cpu_percent), theme.plain));
    }
    line(parts, &separator, width)
}

/// The money, and the cells that were and will be.
fn cost(pane: &Pane<'_>, theme: &Theme, width: usize) -> Line<'static> {
    let status = pane.status;
    let done = match status.cells_done {
        1 => "1 cell done".to_owned(),
        count => format!("{count} cells done"),
    };
    let mut parts = vec![
        Part::new(0, format!("{} USD", money(status.accrued)), theme.plain),
        Part::new(1, format!("{}/h", money(status.per_hour)), theme.plain),
        Part::new(3, done, theme.plain),
    ];
    if status.queued > 0 {
        parts.push(Part::new(2, format!("{} queued", status.queued), theme.plain));
    }
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}

/// The latency that is nearest to its limit, or farthest above it, in words.
pub(super) fn worst(figures: &Figures<'_>, slo: &Slo) -> Option<(String, bool)> {
    let mut worst: Option<(f64, String)> = None;
    for class in Class::ALL {
        let (latency, limits) = (figures.classes[class], slo.of(class));
        for (name, value, limit) in
            [("p95", latency.p95_ms, limits.p95_ms), ("p99", latency.p99_ms, limits.p99_ms)]
        {
            let Some(value) = value else { continue };
            let ratio = value / limit;
            if worst.as_ref().is_none_or(|(known, _)| ratio > *known) {
                let (value, limit) = (super::figures::ms(value), super::figures::limit(limit));
                let text = format!("{} {name} {value} of {limit} ms", class.short());
                worst = Some((ratio, text));
            }
        }
    }
    worst.map(|(ratio, text)| (text, ratio > 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_of_the_tail_uses_every_column() {
        assert_eq!(shares(&[90.0, 10.0, 0.0], 20), [18, 2, 0]);
        assert_eq!(shares(&[1.0, 1.0, 1.0], 10), [3, 4, 3]);
        assert_eq!(shares(&[0.0, 0.0, 5.0], 7), [0, 0, 7]);
    }
}
