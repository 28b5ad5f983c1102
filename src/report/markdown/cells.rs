//! The tables of cells: closed and open loops apart, since their figures do not compare.

use std::fmt::Write as _;

use super::{cell_text, conditions, line};
use crate::{
    model::{Blamed, Class, ConfigurationId, HIGHEST_TRACKABLE_NS},
    report::{CellSummary, LoadKind, Summary},
};

/// A cell and the configuration it belongs to.
pub(super) type Placed<'a> = (&'a ConfigurationId, &'a CellSummary);

pub(super) fn tables(text: &mut String, summary: &Summary) {
    for (kind, title) in [(LoadKind::Closed, "closed loop"), (LoadKind::Open, "open loop")] {
        let cells: Vec<Placed<'_>> = summary
            .configurations
            .iter()
            .flat_map(|c| c.cells.iter().map(move |cell| (&c.id, cell)))
            .filter(|(_, cell)| cell.load.kind == kind)
            .collect();
        if cells.is_empty() {
            continue;
        }
        line!(text, "## Cells, {title}");
        line!(text);
        table(text, &cells);
        conditions::flags(text, &cells);
        tails(text, &cells);
        errors(text, &cells);
        error_adjusted(text, &cells);
        overflow(text, &cells);
        details(text, &cells);
    }
    let none = summary.configurations.iter().all(|c| c.cells.is_empty());
    if none {
        line!(text, "## Cells");
        line!(text);
        line!(text, "No cell was started.");
        line!(text);
    }
}

fn table(text: &mut String, cells: &[Placed<'_>]) {
    let mut head = String::from("| configuration | cell | stage | load | ok/s |");
    let mut rule = String::from("|---|---|---|---|---:|");
    for class in Class::ALL {
        let _ = write!(head, " {} p95/p99 ms |", class.short());
        rule.push_str("---:|");
    }
    head.push_str(
        " conn wait p99 ms | tail | retries % | failed % | runner cpu % | verdict | why |",
    );
    rule.push_str("---:|---|---:|---:|---:|---|---|");
    line!(text, "{head}");
    line!(text, "{rule}");
    for (configuration, cell) in cells {
        row(text, configuration, cell);
    }
    line!(text);
}

fn row(text: &mut String, configuration: &ConfigurationId, cell: &CellSummary) {
    let _ = write!(
        text,
        "| {} | {} | {} | {} | {:.1} |",
        cell_text(configuration.as_str()),
        cell_text(cell.id.as_str()),
        cell_text(&cell.stage),
        load(cell),
        cell.tps.succeeded
    );
    for (_, class) in cell.classes.iter() {
        let _ = write!(text, " {} |", pair(class.response_ms.p95, class.response_ms.p99));
    }
    let counts = &cell.counts;
    let why = cell.reasons.first().map_or("", |reason| reason.text.as_str());
    line!(
        text,
        " {} | {} | {} | {} | {:.1} | **{}** | {} |",
        figure(cell.all.connection_wait_ms.p99),
        blamed(cell.tail.blamed),
        share(counts.retries, counts.attempts),
        share(counts.failed + counts.unknown, counts.completed),
        cell.runner.cpu_percent,
        cell.verdict,
        cell_text(why)
    );
}

/// Who made each cell's tail.
fn tails(text: &mut String, cells: &[Placed<'_>]) {
    let told: Vec<_> = cells.iter().filter(|(_, cell)| !cell.tail.words.is_empty()).collect();
    if told.is_empty() {
        return;
    }
    line!(text, "Who made the slowest 1 %:");
    line!(text);
    for (_, cell) in told {
        line!(text, "- {}: {}", cell_text(cell.id.as_str()), cell_text(&cell.tail.words));
    }
    line!(text);
}

/// Every error that attempts saw, those that a retry made good included.
fn errors(text: &mut String, cells: &[Placed<'_>]) {
    if cells.iter().all(|(_, cell)| cell.sqlstates.is_empty()) {
        return;
    }
    line!(text, "Errors that attempts saw, retried ones included:");
    line!(text);
    line!(text, "| cell | SQLSTATE | count |");
    line!(text, "|---|---|---:|");
    for (_, cell) in cells {
        let mut errors: Vec<_> = cell.sqlstates.iter().collect();
        errors.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for (state, count) in errors {
            line!(text, "| {} | {} | {count} |", cell_text(cell.id.as_str()), cell_text(state));
        }
    }
    line!(text);
}

/// The percentiles that failures change.
fn error_adjusted(text: &mut String, cells: &[Placed<'_>]) {
    let changed = |(_, cell): &&Placed<'_>| cell.all.unbounded_from.is_some();
    let told: Vec<_> = cells.iter().filter(changed).collect();
    if told.is_empty() {
        return;
    }
    line!(text, "Error-adjusted, a failure counting as one that took for ever:");
    line!(text);
    line!(text, "| cell | class | p50 ms | p95 ms | p99 ms | failed | unresolved |");
    line!(text, "|---|---|---:|---:|---:|---:|---:|");
    for (_, cell) in told {
        let classes = cell.classes.iter().map(|(class, summary)| (class.words(), summary));
        for (name, class) in classes.chain([("all", &cell.all)]) {
            let Some(from) = class.unbounded_from else { continue };
            let shown = |quantile: f64, ms: Option<f64>| match ms {
                None if quantile > from => "unbounded".to_owned(),
                ms => figure(ms),
            };
            let adjusted = class.error_adjusted_ms;
            line!(
                text,
                "| {} | {name} | {} | {} | {} | {} | {} |",
                cell_text(cell.id.as_str()),
                shown(0.5, adjusted.p50),
                shown(0.95, adjusted.p95),
                shown(0.99, adjusted.p99),
                class.failed,
                class.unknown
            );
        }
    }
    line!(text);
}

/// Response times that the recordings could not hold: the percentiles are too low there.
fn overflow(text: &mut String, cells: &[Placed<'_>]) {
    let over: Vec<_> = cells.iter().filter(|(_, cell)| cell.all.overflow > 0).collect();
    for (_, cell) in &over {
        line!(
            text,
            "**Overflow**: {} of {} response times of {} were above {} s and stand at it.",
            cell.all.overflow,
            cell.all.count,
            cell_text(cell.id.as_str()),
            HIGHEST_TRACKABLE_NS / 1_000_000_000
        );
    }
    if !over.is_empty() {
        line!(text);
    }
}

/// The reasons that the table has no room for.
fn details(text: &mut String, cells: &[Placed<'_>]) {
    let told: Vec<_> = cells.iter().filter(|(_, cell)| cell.reasons.len() > 1).collect();
    if told.is_empty() {
        return;
    }
    line!(text, "Further reasons:");
    line!(text);
    for (_, cell) in told {
        for reason in &cell.reasons[1..] {
            line!(text, "- {}: {}", cell_text(cell.id.as_str()), cell_text(&reason.text));
        }
    }
    line!(text);
}

fn load(cell: &CellSummary) -> String {
    match cell.load.rate {
        Some(rate) => format!("{rate}/s on {}", cell.load.connections),
        None => cell.load.connections.to_string(),
    }
}

const fn blamed(blamed: Blamed) -> &'static str {
    match blamed {
        Blamed::None => "–",
        somebody => somebody.name(),
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1}"))
}

fn pair(first: Option<f64>, second: Option<f64>) -> String {
    match (first, second) {
        (None, None) => "–".to_owned(),
        _ => format!("{} / {}", figure(first), figure(second)),
    }
}

/// A share in percent.
#[allow(clippy::cast_precision_loss)] // a cell never counts up to 2^53
fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.2}", 100.0 * part as f64 / whole as f64) }
}
