//! The table of the cells so far against the SLO.

use std::collections::BTreeMap;

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use crate::model::{CellId, ConfigurationId, Snapshot, Verdict};

use super::{
    super::{
        record::{EndedCell, Record},
        theme::Theme,
    },
    configuration::indented,
    figures::{fine_ms, rate, thousands},
    nearest::Nearest,
    status::verdict_style,
    text::{pad, pad_left, words},
};

/// A column: its head, whether figures stand flush right, and the columns that go first when there
/// is no room, those of the highest rank.
const COLUMNS: [(&str, bool, u8); 8] = [
    ("", false, 3),
    ("cell", false, 0),
    ("stage", false, 7),
    ("load", false, 2),
    ("ok/s", true, 1),
    ("verdict", false, 0),
    ("nearest to its SLO", false, 4),
    ("wait p99 ms", true, 6),
];
/// Columns from which the reason of a verdict is said.
const LEAST_REASON: usize = 16;
const GAP: usize = 2;

/// The newest cells that fit, the newest first, with a head; empty where no row has room.
pub(super) fn table(
    record: &Record,
    snapshot: &Snapshot,
    theme: &Theme,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let width = width.saturating_sub(2);
    let cells = record.cells();
    if height == 0 {
        return Vec::new();
    }
    if cells.is_empty() {
        let text = words("no cell has ended yet", width, &theme.symbols);
        return vec![indented(Line::styled(text, theme.dim))];
    }
    let best = best(record);
    let room = height.saturating_sub(1);
    let shown = if cells.len() > room { room.saturating_sub(1) } else { room };
    let rows: Vec<[(String, Style); 8]> =
        cells.iter().rev().take(shown).map(|cell| row(cell, &best, snapshot, theme)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let widths = widths(&rows, width);
    let used: usize = widths.iter().flatten().map(|width| width + GAP).sum();
    let mut lines = vec![head(&widths, theme)];
    for (cells_of_row, cell) in rows.into_iter().zip(cells.iter().rev()) {
        let mut line = laid_out(cells_of_row, &widths);
        let left = width.saturating_sub(used);
        if left >= LEAST_REASON {
            line.push_span(Span::styled(words(&cell.why, left, &theme.symbols), theme.plain));
        }
        lines.push(indented(line));
    }
    let more = cells.len().saturating_sub(shown);
    if more > 0 {
        let text = words(&format!("+{more} more before these"), width, &theme.symbols);
        lines.push(indented(Line::styled(text, theme.dim)));
    }
    lines
}

/// The cell with the highest rate that passed, of each configuration.
fn best(record: &Record) -> BTreeMap<&ConfigurationId, &CellId> {
    let mut best: BTreeMap<&ConfigurationId, &EndedCell> = BTreeMap::new();
    for cell in record.cells().iter().filter(|cell| cell.verdict == Verdict::Pass) {
        let known = best.entry(&cell.configuration).or_insert(cell);
        if cell.tps.succeeded > known.tps.succeeded {
            *known = cell;
        }
    }
    best.into_iter().map(|(id, cell)| (id, &cell.cell)).collect()
}

fn row(
    cell: &EndedCell,
    best: &BTreeMap<&ConfigurationId, &CellId>,
    snapshot: &Snapshot,
    theme: &Theme,
) -> [(String, Style); 8] {
    let plain = |text: String| (super::text::clean(&text), theme.plain);
    let is_best = best.get(&cell.configuration) == Some(&&cell.cell);
    let nearest = Nearest::of(&cell.classes, &snapshot.header.slo);
    let nearest = nearest.map_or_else(
        || plain(theme.symbols.none.to_owned()),
        |nearest| {
            let percent = thousands(nearest.ratio() * 100.0);
            let over = nearest.is_over() && cell.verdict != Verdict::Invalid;
            let mark = if over { theme.symbols.over } else { "" };
            let text = format!("{} = {percent} % {mark}", nearest.text());
            let style = if over { theme.bad } else { theme.plain };
            (text.trim_end().to_owned(), style)
        },
    );
    let wait = cell.connection_wait_p99_ms.map_or(theme.symbols.none.to_owned(), fine_ms);
    let verdict = if is_best { format!("{} best", cell.verdict) } else { cell.verdict.to_string() };
    [
        (cell.configuration.to_string(), theme.strong),
        plain(cell.cell.to_string()),
        plain(cell.stage.clone()),
        plain(cell.load.to_string()),
        (rate(cell.tps.succeeded), if is_best { theme.strong } else { theme.plain }),
        (verdict, verdict_style(cell.verdict, theme)),
        nearest,
        plain(wait),
    ]
}

/// The width of each column that is shown.
fn widths(rows: &[[(String, Style); 8]], width: usize) -> [Option<usize>; 8] {
    let mut widths: [Option<usize>; 8] = std::array::from_fn(|at| {
        let texts = rows.iter().map(|row| row[at].0.width());
        Some(texts.max().unwrap_or(0).max(COLUMNS[at].0.width()))
    });
    loop {
        let used: usize = widths.iter().flatten().map(|width| width + GAP).sum();
        if used <= width + GAP {
            return widths;
        }
        let shown = (0..widths.len()).filter(|at| widths[*at].is_some());
        let Some(last) = shown.max_by_key(|at| COLUMNS[*at].2) else { return widths };
        widths[last] = None;
    }
}

fn head(widths: &[Option<usize>; 8], theme: &Theme) -> Line<'static> {
    let titles = COLUMNS.map(|(title, ..)| (title.to_owned(), theme.dim));
    indented(laid_out(titles, widths))
}

fn laid_out(texts: [(String, Style); 8], widths: &[Option<usize>; 8]) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, (text, style)) in texts.into_iter().enumerate() {
        let Some(width) = widths[at] else { continue };
        let text = if COLUMNS[at].1 { pad_left(&text, width) } else { pad(&text, width) };
        spans.push(Span::styled(text, style));
        spans.push(Span::raw(" ".repeat(GAP)));
    }
    Line::from(spans)
}
