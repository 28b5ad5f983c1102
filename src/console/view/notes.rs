//! What no chart of a configuration says: errors by their codes, the runner, money, the gate, and
//! how its last cells ended.

use ratatui::text::{Line, Span};

use crate::model::{CellId, ConfigurationStatus, Snapshot, Verdict, WindowPoint};

use super::{
    super::{record::EndedCell, state::State, theme::Theme},
    configuration::indented,
    figures::{fine_ms, money, rate, thousands},
    nearest::Nearest,
    status::{Figures, verdict_style},
    text::{Part, line, words},
    time::{Axis, Slice},
};

/// Ended cells that are listed.
const CELLS: usize = 8;
/// Errors that are named.
const ERRORS: usize = 6;

/// The lines below the charts, the most useful first.
pub(super) fn rows(
    state: &State,
    snapshot: &Snapshot,
    status: &ConfigurationStatus,
    axis: &Axis,
    slices: &[Slice<'_>],
    theme: &Theme,
    width: u16,
) -> Vec<Line<'static>> {
    let width = usize::from(width.saturating_sub(2));
    let mut lines = Vec::new();
    if let Some(figures) = Figures::of(status) {
        lines.push(errors(state, status, &figures, theme, width));
    }
    lines.push(runner(snapshot, axis.newest(slices), theme, width));
    lines.push(cost(status, theme, width));
    lines.push(gate(snapshot, status, theme, width));
    let cells = state.shown_record().cells().iter().rev();
    let own = cells.filter(|cell| cell.configuration == status.id);
    lines.extend(own.take(CELLS).map(|cell| ended(cell, snapshot, theme, width)));
    lines.into_iter().filter(|line| line.width() > 0).map(indented).collect()
}

fn separator(theme: &Theme) -> Span<'static> {
    Span::styled(theme.symbols.dot, theme.dim)
}

/// Retries and errors, each with its count and, where it is known over how long, a second.
fn errors(
    state: &State,
    status: &ConfigurationStatus,
    figures: &Figures<'_>,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let style = if figures.failed_percent > 0.0 { theme.bad } else { theme.plain };
    let mut parts = vec![
        Part::new(1, format!("retries {:.1} %", figures.retry_percent), theme.plain),
        Part::new(2, format!("failed {:.2} %", figures.failed_percent), style),
    ];
    let seconds = seconds_counted(state, status);
    let mut named: Vec<_> = figures.errors.iter().filter(|(_, count)| **count > 0).collect();
    named.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let more = named.len().saturating_sub(ERRORS);
    for (rank, (name, count)) in (3..).zip(named.into_iter().take(ERRORS)) {
        // Counts of one run are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let count = *count as f64;
        let counted = format!("{name} {}", thousands(count));
        let a_second =
            seconds.map(|seconds| format!("{counted} ({}/s)", small_rate(count / seconds)));
        let text = a_second.unwrap_or_else(|| counted.clone());
        parts.push(Part::new(rank, text, theme.plain).or(counted));
    }
    if more > 0 {
        parts.push(Part::new(20, format!("+{more} more codes"), theme.dim));
    }
    if figures.errors.values().all(|count| *count == 0) {
        parts.push(Part::new(3, "no errors", theme.dim));
    }
    line(parts, &separator(theme), width)
}

fn small_rate(value: f64) -> String {
    if value > 0.0 && value < 0.05 { "<0.1".to_owned() } else { rate(value) }
}

/// Over how long the errors were counted, in seconds: all windows of a running cell, the measured
/// span of an ended one.
fn seconds_counted(state: &State, status: &ConfigurationStatus) -> Option<f64> {
    let record = state.shown_record();
    let seconds = if let Some(cell) = &status.cell {
        let mut points =
            record.newest_points(&status.id, usize::MAX).filter(|point| is_of(point, &cell.id));
        let first = points.next().filter(|point| point.seq == 0)?;
        let last = points.last()?;
        // Its first window began about a second before it ended.
        last.at.seconds_since(first.at) + 1.0
    } else {
        let last = status.last.as_ref()?;
        record.cells().iter().rev().find(|cell| cell.cell == last.id)?.measured_s
    };
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

fn is_of(point: &WindowPoint, cell: &CellId) -> bool {
    point.cell == *cell
}

fn runner(
    snapshot: &Snapshot,
    newest: Option<&WindowPoint>,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let agent = &snapshot.agent;
    let mut parts = Vec::new();
    if let Some(point) = newest {
        let text = format!("in this cell's window {:.0} %", point.runner_cpu_percent);
        parts.push(Part::new(5, text, theme.dim));
    }
    let Some(at) = agent.at else {
        parts.insert(0, Part::new(0, "runner: nothing heard yet", theme.dim));
        return line(parts, &separator(theme), width);
    };
    let age = age(snapshot.at.seconds_since(at));
    let processors = match agent.processors {
        1 => "1 processor".to_owned(),
        count => format!("{count} processors"),
    };
    let text = format!("runner CPU {:.0} % of {processors}", agent.cpu_percent);
    parts.insert(0, Part::new(0, text, theme.plain));
    if let Some(host) = agent.host_cpu_percent {
        parts.insert(1, Part::new(3, format!("host {host:.0} %"), theme.plain));
    }
    if let Some(lag) = agent.loop_lag_p99_ms {
        let text = format!("loop lag p99 {} ms", fine_ms(lag));
        parts.push(Part::new(2, text, theme.plain));
    }
    parts.push(Part::new(4, age, theme.dim));
    line(parts, &separator(theme), width)
}

/// How old a figure is, in words.
fn age(seconds: f64) -> String {
    if seconds < 1.5 { "as of now".to_owned() } else { format!("{seconds:.0} s old") }
}

fn cost(status: &ConfigurationStatus, theme: &Theme, width: usize) -> Line<'static> {
    let done = match status.cells_done {
        1 => "1 cell done".to_owned(),
        count => format!("{count} cells done"),
    };
    let mut parts = vec![
        Part::new(0, format!("cost {} USD accrued", money(status.accrued)), theme.plain),
        Part::new(1, format!("{} USD/h", money(status.per_hour)), theme.plain),
        Part::new(2, done, theme.plain),
    ];
    if status.queued > 0 {
        parts.push(Part::new(3, format!("{} queued", status.queued), theme.plain));
    }
    line(parts, &separator(theme), width)
}

/// The gate's own figures, and since when what belongs to the configuration exists.
fn gate(
    snapshot: &Snapshot,
    status: &ConfigurationStatus,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let mut parts = Vec::new();
    if let Some(gate) = status.gate {
        let cpu = format!("gate CPU {:.0} % of one processor", gate.cpu_percent);
        parts.push(Part::new(0, cpu, theme.plain));
        let trip = format!("round trip {} ms", fine_ms(gate.round_trip_ms));
        parts.push(Part::new(1, trip, theme.plain));
    }
    let own = snapshot.resources.iter().filter(|r| r.configuration.as_ref() == Some(&status.id));
    for resource in own {
        let since = super::time::span_words(super::configuration::whole_seconds(
            snapshot.at.seconds_since(resource.since),
        ));
        let text = format!("{} for {since}", resource.id);
        parts.push(Part::new(2, text, theme.dim));
    }
    line(parts, &separator(theme), width)
}

/// A cell that has ended: its verdict, its rate, and its tail in words.
fn ended(cell: &EndedCell, snapshot: &Snapshot, theme: &Theme, width: usize) -> Line<'static> {
    let mut parts = vec![
        Part::new(0, cell.cell.to_string(), theme.plain),
        Part::new(3, cell.load.to_string(), theme.plain),
        Part::new(0, cell.verdict.to_string(), verdict_style(cell.verdict, theme)),
        Part::new(2, format!("ok {}/s", rate(cell.tps.succeeded)), theme.plain),
    ];
    if let Some(nearest) = Nearest::of(&cell.classes, &snapshot.header.slo) {
        let over = nearest.is_over() && cell.verdict != Verdict::Invalid;
        let style = if over { theme.bad } else { theme.plain };
        parts.push(Part::new(4, nearest.text(), style));
    }
    let separator = separator(theme);
    let used = line(parts.clone(), &separator, width).width() + separator.width();
    let tail = words(&cell.tail, width.saturating_sub(used), &theme.symbols);
    parts.push(Part::new(5, tail, theme.dim));
    line(parts, &separator, width)
}
