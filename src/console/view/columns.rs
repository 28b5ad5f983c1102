//! Lists in columns: a column stands in every line or in none, so that figures keep their place.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use super::{
    super::theme::{Symbols, Theme},
    text::{clean, pad, pad_left, words},
};

/// Between two columns.
const GAP: usize = 2;
/// The narrowest column of free text that is worth its place.
const LEAST_FREE: usize = 8;

/// What a column is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub head: &'static str,
    /// The columns of the highest rank go first when there is too little room.
    pub rank: u8,
    pub kind: Kind,
}

/// How a column takes its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As wide as its widest entry, flush left.
    Left,
    /// As wide as its widest entry, flush right.
    Right,
    /// What is left, cut between words; the last column.
    Free,
}

/// One entry of a line.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    text: String,
    style: Style,
}

impl Entry {
    pub(super) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: clean(&text.into()), style }
    }
}

/// A list as lines.
pub(super) struct Laid {
    pub head: Line<'static>,
    pub rows: Vec<Line<'static>>,
}

/// Lays lines of entries out in columns; each line has an entry for each column. Empty columns are
/// left out.
pub(super) fn lay(columns: &[Column], rows: &[Vec<Entry>], theme: &Theme, width: usize) -> Laid {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let entries = rows.iter().filter_map(|row| row.get(at)).map(|entry| entry.text.width());
            match entries.max().unwrap_or(0) {
                0 => 0,
                widest => widest.max(column.head.width()),
            }
        })
        .collect();
    let kept = kept(columns, &widths, width);
    let head: Vec<Entry> =
        columns.iter().map(|column| Entry::new(column.head, theme.dim)).collect();
    let one = |row: &[Entry]| one_line(columns, row, &kept, &theme.symbols, width);
    Laid { head: one(&head), rows: rows.iter().map(|row| one(row)).collect() }
}

/// The columns for which there is room, each with its width.
fn kept(columns: &[Column], widths: &[usize], width: usize) -> Vec<(usize, usize)> {
    let mut kept: Vec<(usize, usize)> =
        widths.iter().copied().enumerate().filter(|(_, width)| *width > 0).collect();
    loop {
        let least = |(at, widest): &(usize, usize)| match columns[*at].kind {
            Kind::Free => (*widest).min(LEAST_FREE),
            Kind::Left | Kind::Right => *widest,
        };
        let used: usize =
            kept.iter().map(least).sum::<usize>() + GAP * kept.len().saturating_sub(1);
        if used <= width {
            return kept;
        }
        let last = (0..kept.len()).max_by_key(|place| columns[kept[*place].0].rank);
        match last {
            Some(place) => drop(kept.remove(place)),
            None => return kept,
        }
    }
}

fn one_line(
    columns: &[Column],
    row: &[Entry],
    kept: &[(usize, usize)],
    symbols: &Symbols,
    width: usize,
) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for (at, widest) in kept {
        let Some(entry) = row.get(*at) else { continue };
        if used > 0 {
            spans.push(Span::raw(" ".repeat(GAP)));
            used += GAP;
        }
        let text = match columns[*at].kind {
            Kind::Left => pad(&entry.text, *widest),
            Kind::Right => pad_left(&entry.text, *widest),
            Kind::Free => cut(&entry.text, width.saturating_sub(used), symbols),
        };
        used += text.width();
        spans.push(Span::styled(text, entry.style));
    }
    Line::from(spans)
}

/// Free text cut between words; of a path its end stays, which tells it from others.
fn cut(text: &str, width: usize, symbols: &Symbols) -> String {
    if text.width() <= width || !text.contains('/') || text.contains(' ') {
        return words(text, width, symbols);
    }
    let ends = text.match_indices('/').map(|(at, _)| &text[at..]);
    let mut ends = ends.map(|end| format!("{}{end}", symbols.ellipsis));
    ends.find(|end| end.width() <= width).unwrap_or_else(|| words(text, width, symbols))
}

/// The lines around the marked one that fit into so many rows, with a word about those that do
/// not.
pub(super) fn around(
    lines: Vec<Line<'static>>,
    marked: usize,
    rows: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let count = lines.len();
    if count <= rows {
        return lines;
    }
    // The last row says what is out of sight.
    let shown = rows.saturating_sub(1);
    if shown == 0 {
        return lines.into_iter().skip(marked).take(rows).collect();
    }
    let first = (marked + 1 + shown / 3).saturating_sub(shown).min(count - shown);
    let first = first.min(marked);
    super::teardown::scrolled(lines, first, rows, theme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::Palette;

    fn text(line: &Line<'_>) -> String {
        line.spans.iter().map(|span| span.content.as_ref()).collect()
    }

    fn laid(width: usize) -> Vec<String> {
        let columns = [
            Column { head: "cell", rank: 0, kind: Kind::Left },
            Column { head: "ok/s", rank: 1, kind: Kind::Right },
            Column { head: "none", rank: 0, kind: Kind::Right },
            Column { head: "why", rank: 2, kind: Kind::Free },
        ];
        let entry = |text: &str| Entry::new(text, Style::new());
        let row = |cell, ok, why| vec![entry(cell), entry(ok), entry(""), entry(why)];
        let rows = [row("D1-001", "6,416", "p99 178.7 ms of 100"), row("오로라", "9", "")];
        let theme = Theme::new(Palette::None, false);
        let laid = lay(&columns, &rows, &theme, width);
        [laid.head].iter().chain(&laid.rows).map(|line| text(line).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_column_is_in_every_line_or_in_none() {
        assert_eq!(
            laid(40),
            ["cell     ok/s  why", "D1-001  6,416  p99 178.7 ms of 100", "오로라      9"]
        );
        assert_eq!(laid(25), ["cell     ok/s  why", "D1-001  6,416  p99 …", "오로라      9"]);
        assert_eq!(laid(16), ["cell     ok/s", "D1-001  6,416", "오로라      9"]);
        assert_eq!(laid(8), ["cell", "D1-001", "오로라"]);
        assert_eq!(laid(5), ["", "", ""]);
    }

    #[test]
    fn of_a_long_path_the_end_is_shown() {
        let symbols = Theme::new(Palette::None, false).symbols;
        let cut = |width| cut("/var/lib/run-7/data", width, &symbols);
        assert_eq!(cut(19), "/var/lib/run-7/data");
        assert_eq!(cut(18), "…/lib/run-7/data");
        assert_eq!(cut(6), "…/data");
        assert_eq!(cut(5), "…");
    }

    #[test]
    fn the_marked_line_stays_in_sight() {
        let theme = Theme::new(Palette::None, false);
        for count in [1_usize, 5, 30] {
            for rows in 1..=12 {
                for marked in 0..count {
                    let lines = (0..count).map(|at| Line::raw(format!("line {at}"))).collect();
                    let shown = around(lines, marked, rows, &theme);
                    assert!(shown.len() <= rows);
                    let wanted = format!("line {marked}");
                    assert!(
                        shown.iter().any(|l| text(l) == wanted),
                        "{marked} of {count} in {rows}"
                    );
                }
            }
        }
    }
}
