//! The tables of cells: closed and open loops apart, since their figures do not compare.

use std::fmt::Write as _;

use super::{cell_text, conditions, line};
use crate::{
    model::{Class, ConfigurationId},
    report::{Blamed, CellSummary, LoadKind, Summary},
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
        Blamed::Database => "database",
        Blamed::Pool => "pool",
        Blamed::Generator => "generator",
        Blamed::None => "–",
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
