//! The report for people: Markdown, from a summary alone.

mod cells;
mod conditions;

use std::fmt::Write as _;

use super::{CostSummary, Summary, TeardownSummary};
use crate::model::{Basis, LatencyObjective, Money};

/// Makes the report of a run.
#[must_use]
pub fn markdown(summary: &Summary) -> String {
    let mut text = String::new();
    heading(&mut text, summary);
    objectives(&mut text, summary);
    configurations(&mut text, summary);
    cells::tables(&mut text, summary);
    costs(&mut text, summary);
    teardown(&mut text, summary.teardown.as_ref());
    text
}

/// Adds a line; writing to a `String` cannot fail.
macro_rules! line {
    ($text:expr) => {
        $text.push('\n')
    };
    ($text:expr, $($arg:tt)*) => {{
        let _ = writeln!($text, $($arg)*);
    }};
}
use line;

fn heading(text: &mut String, summary: &Summary) {
    let run = &summary.run;
    line!(text, "# Run {}", cell_text(run.id.as_str()));
    line!(text);
    if run.rehearsal {
        line!(
            text,
            "> **REHEARSAL**: latency is added and prices are simulated. No figure here describes \
             a cloud database, and nothing was billed."
        );
        line!(text);
    }
    line!(text, "- Plan: {} (seed {})", cell_text(&run.plan), run.seed);
    line!(text, "- Started: {}", run.started);
    line!(text, "- Ended: {}", run.ended.as_deref().unwrap_or("not yet"));
    line!(text, "- Build: {}", cell_text(&run.build));
    line!(text);
}

fn objectives(text: &mut String, summary: &Summary) {
    let slo = &summary.run.slo;
    line!(text, "## SLO");
    line!(text);
    line!(text, "| | p95 ms | p99 ms |");
    line!(text, "|---|---:|---:|");
    for (name, LatencyObjective { p95_ms, p99_ms }) in [("reads", slo.read), ("writes", slo.write)]
    {
        line!(text, "| {name} | {p95_ms} | {p99_ms} |");
    }
    line!(text);
    line!(
        text,
        "Technical failures at most {} %; no invariant of the business violated.",
        slo.failed_percent
    );
    line!(text);
}

fn configurations(text: &mut String, summary: &Summary) {
    line!(text, "## Configurations");
    line!(text);
    line!(text, "| id | title | kind | cells | cost USD | basis |");
    line!(text, "|---|---|---|---:|---:|---|");
    for configuration in &summary.configurations {
        line!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            cell_text(configuration.id.as_str()),
            cell_text(&configuration.title),
            cell_text(&configuration.kind),
            configuration.cells.len(),
            configuration.cost.accrued,
            basis(configuration.cost.basis)
        );
    }
    line!(text);
}

fn costs(text: &mut String, summary: &Summary) {
    let CostSummary { accrued, unpublished, projected, guard, cap, .. } = &summary.cost;
    line!(text, "## Cost ({})", basis(summary.cost.basis));
    line!(text);
    line!(
        text,
        "{accrued} {} accrued + {}–{} not yet published; projected {projected}, guard {guard}, \
         cap {cap}.",
        summary.cost.currency,
        unpublished.0,
        unpublished.1
    );
    line!(text);
    if summary.cost.lines.is_empty() {
        return;
    }
    line!(text, "| configuration | item | quantity | unit | unit price | amount | basis |");
    line!(text, "|---|---|---:|---|---:|---:|---|");
    for bill in &summary.cost.lines {
        let configuration = bill.configuration.as_ref().map_or("shared", |id| id.as_str());
        line!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell_text(configuration),
            cell_text(&bill.item),
            cell_text(&bill.quantity),
            cell_text(&bill.unit),
            exact(bill.unit_price),
            exact(bill.amount),
            basis(bill.basis)
        );
    }
    line!(text);
}

fn teardown(text: &mut String, teardown: Option<&TeardownSummary>) {
    line!(text, "## Teardown");
    line!(text);
    let Some(teardown) = teardown else {
        line!(text, "None on record: what the run made may still be there.");
        return;
    };
    let ended = teardown.ended.as_deref().unwrap_or("not yet");
    line!(
        text,
        "Started {}, ended {ended}; remaining_count = {}.",
        teardown.started,
        teardown.remaining_count
    );
    if teardown.remaining.is_empty() {
        return;
    }
    line!(text);
    line!(text, "| what remains | id | state | why |");
    line!(text, "|---|---|---|---|");
    for item in &teardown.remaining {
        line!(
            text,
            "| {} | {} | {} | {} |",
            item.kind.words(),
            cell_text(&item.id),
            cell_text(&item.state),
            cell_text(&item.why)
        );
    }
}

const fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Measured => "measured",
        Basis::Estimated => "estimated",
        Basis::Simulated => "simulated",
    }
}

fn exact(money: Money) -> String {
    money.amount().to_string()
}

/// Text from elsewhere, made fit for one cell of a table.
fn cell_text(text: &str) -> String {
    let mut fit = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '<' | '`' | '*' | '\\' => {
                fit.push('\\');
                fit.push(c);
            }
            c if c.is_control() => fit.push(' '),
            c => fit.push(c),
        }
    }
    fit
}

#[cfg(test)]
mod tests;
