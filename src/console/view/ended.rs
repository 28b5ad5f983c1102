//! After the run: how it ended, what remains, and the verdicts.

use ratatui::text::{Line, Span};

use crate::model::{Basis, EventKind, Snapshot};

use super::{
    super::{
        record::EndedCell,
        state::{RunEnd, State},
        theme::Theme,
    },
    figures::{money, rate},
    panel::{Panel, blank},
    status::verdict_style,
    teardown::{id_column, item, scrolled},
    text::{Part, Row, line, pad, pad_left, words, wrap},
};

/// The end as a panel of at most so many rows.
pub(super) fn panel(state: &State, end: &RunEnd, theme: &Theme, width: u16, height: u16) -> Panel {
    let room = usize::from(height.saturating_sub(2));
    let width = Panel::inner_width(width);
    let mut rows: Vec<Row> = wrap(&end.text, width, &theme.symbols)
        .into_iter()
        .map(|text| Row::new(1, Line::styled(text, theme.strong)))
        .collect();
    if let Some(snapshot) = &state.snapshot {
        rows.extend(remaining(snapshot, theme, width));
        rows.push(Row::new(3, spent(snapshot, theme, width)));
    }
    if let Some(folder) = state.record.folder() {
        let parts = vec![
            Part::new(1, "results", theme.dim),
            Part::new(0, folder.display().to_string(), theme.plain),
        ];
        rows.push(Row::new(2, line(parts, &Span::raw("  "), width)));
    }
    rows.extend(answers(state, theme, width));
    rows.push(blank(8));
    let left = room.saturating_sub(rows.len());
    let cells = scrolled(cells(state, theme, width), end.scroll, left, theme);
    rows.extend(cells.into_iter().map(|line| Row::new(6, line)));
    let style = if end.exit_code == 0 { theme.good } else { theme.bad };
    Panel {
        left: vec![Part::new(0, " RUN ENDED ", theme.strong)],
        right: vec![Part::new(1, format!(" exit code {} ", end.exit_code), style)],
        rows,
        border: theme.selected,
    }
}

/// What is left after the teardown, each thing by its name.
fn remaining(snapshot: &Snapshot, theme: &Theme, width: usize) -> Vec<Row> {
    let Some(teardown) = &snapshot.teardown else {
        return vec![Row::new(0, Line::styled("nothing was torn down", theme.warn))];
    };
    let style = if teardown.remaining_count == 0 { theme.good } else { theme.bad };
    let text = format!("remaining {}", teardown.remaining_count);
    let mut rows = vec![Row::new(0, Line::styled(text, style))];
    let left: Vec<_> = teardown.items.iter().filter(|item| !item.gone).collect();
    let ids = id_column(left.iter().map(|item| item.id.as_str()));
    for left in left {
        rows.push(Row::new(2, item(left, ids, snapshot.at, theme, width)));
    }
    rows
}

/// How each decision was answered, and how many cells of the plan were not run.
fn answers(state: &State, theme: &Theme, width: usize) -> Vec<Row> {
    let events = state.record.events().iter();
    let mut rows: Vec<Row> = events
        .filter(|event| matches!(event.kind, EventKind::DecisionAnswered { .. }))
        .map(|event| {
            let text = format!("{} {}", event.at.time_of_day(), event.kind.text());
            Row::new(4, Line::styled(words(&text, width, &theme.symbols), theme.plain))
        })
        .collect();
    let waiting = state.snapshot.as_ref().map_or(0, |snapshot| snapshot.queue.len());
    if waiting > 0 {
        let cells = if waiting == 1 { "1 cell was" } else { &format!("{waiting} cells were") };
        let text = format!("{cells} still to come and not run");
        let text = words(&text, width, &theme.symbols);
        rows.push(Row::new(4, Line::styled(text, theme.warn)));
    }
    rows
}

fn spent(snapshot: &Snapshot, theme: &Theme, width: usize) -> Line<'static> {
    let basis = match snapshot.cost.basis {
        Basis::Measured => "measured",
        Basis::Estimated => "estimated",
        Basis::Simulated => "simulated",
    };
    let parts = vec![
        Part::new(1, "spent", theme.dim),
        Part::new(0, format!("{} USD {basis}", money(snapshot.cost.accrued)), theme.plain),
        Part::new(2, format!("of {}", money(snapshot.cost.cap)), theme.plain),
    ];
    line(parts, &Span::raw("  "), width)
}

fn cells(state: &State, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let known = state.record.cells();
    let mut lines: Vec<_> = known.iter().map(|cell| cell_line(cell, theme, width)).collect();
    let done: usize = state
        .snapshot
        .as_ref()
        .map_or(0, |snapshot| snapshot.configurations.iter().map(|c| c.cells_done as usize).sum());
    if done > known.len() {
        let text =
            format!("{} cells ended before this console came: see the report", done - known.len());
        lines.insert(0, Line::styled(words(&text, width, &theme.symbols), theme.dim));
    }
    lines
}

fn cell_line(cell: &EndedCell, theme: &Theme, width: usize) -> Line<'static> {
    let load = match cell.load.rate() {
        Some(offered) => format!("open {}/s", rate(offered)),
        None => cell.load.to_string(),
    };
    let ok = format!("ok {}/s", pad_left(&rate(cell.tps.succeeded), 7));
    let parts = vec![
        Part::new(0, pad(cell.cell.as_str(), 8), theme.strong),
        Part::new(1, pad(&cell.verdict.to_string(), 12), verdict_style(cell.verdict, theme))
            .or(cell.verdict.to_string()),
        Part::new(2, pad(&load, 12), theme.plain),
        Part::new(3, ok, theme.plain),
        Part::new(4, words(&cell.why, width.saturating_sub(52), &theme.symbols), theme.dim),
    ];
    line(parts, &Span::raw("  "), width)
}
