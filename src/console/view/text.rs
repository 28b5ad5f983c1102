//! Lines in which a figure is whole or absent.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use super::super::theme::Symbols;

/// A part of a line that is drawn whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct Part {
    text: String,
    /// Taken in its place before it is left out.
    shorter: Option<String>,
    /// Whether the shorter text is taken before any part of the line is left out.
    early: bool,
    style: Style,
    /// The parts of the highest rank go first when a line is too long.
    rank: u8,
}

impl Part {
    pub(super) fn new(rank: u8, text: impl Into<String>, style: Style) -> Self {
        Self { text: clean(&text.into()), shorter: None, early: false, style, rank }
    }

    pub(super) fn or(mut self, shorter: impl Into<String>) -> Self {
        self.shorter = Some(clean(&shorter.into()));
        self
    }

    /// Like [`Part::or`], but taken before any part of the line is left out.
    pub(super) fn or_early(mut self, shorter: impl Into<String>) -> Self {
        self.early = true;
        self.or(shorter)
    }

    fn width(&self) -> usize {
        self.text.width()
    }
}

/// Leaves out what a line of this width has no room for.
fn fit(mut parts: Vec<Part>, separator: usize, width: usize) -> Vec<Part> {
    parts.retain(|part| !part.text.is_empty());
    loop {
        let gaps = separator * parts.len().saturating_sub(1);
        let total: usize = parts.iter().map(Part::width).sum::<usize>() + gaps;
        if total <= width {
            return parts;
        }
        match give_way(&mut parts) {
            Way::Shortened => {}
            Way::LeftOut(at) => drop(parts.remove(at)),
            Way::None => return parts,
        }
    }
}

/// The place of the part that goes first among those that are asked for.
fn least(parts: &[Part], asked: impl Fn(&Part) -> bool) -> Option<usize> {
    let last = parts.iter().filter(|part| asked(part)).map(|part| part.rank).max()?;
    parts.iter().rposition(|part| part.rank == last && asked(part))
}

/// How a line that is too long became shorter, or is to.
enum Way {
    Shortened,
    LeftOut(usize),
    None,
}

fn give_way(parts: &mut [Part]) -> Way {
    let early = least(parts, |part| part.early && part.shorter.is_some());
    let Some(at) = early.or_else(|| least(parts, |_| true)) else { return Way::None };
    match parts[at].shorter.take() {
        Some(shorter) => {
            parts[at].text = shorter;
            Way::Shortened
        }
        None => Way::LeftOut(at),
    }
}

fn joined(parts: Vec<Part>, separator: &Span<'static>) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for part in parts {
        if !spans.is_empty() {
            spans.push(separator.clone());
        }
        spans.push(Span::styled(part.text, part.style));
    }
    spans
}

/// A line of parts with a separator between them.
pub(super) fn line(parts: Vec<Part>, separator: &Span<'static>, width: usize) -> Line<'static> {
    Line::from(joined(fit(parts, separator.width(), width), separator))
}

/// A line with parts at both of its ends and at least two spaces between them.
pub(super) fn two_sided(
    left: Vec<Part>,
    right: Vec<Part>,
    separator: &Span<'static>,
    width: usize,
) -> Line<'static> {
    let (left, right) = sides(left, right, separator.width(), width);
    let (left, right) = (joined(left, separator), joined(right, separator));
    let used: usize = left.iter().chain(&right).map(Span::width).sum();
    let gap = Span::raw(" ".repeat(width.saturating_sub(used)));
    Line::from_iter(left.into_iter().chain([gap]).chain(right))
}

/// The parts of both ends that fit together, with at least two columns between them.
pub(super) fn sides(
    left: Vec<Part>,
    right: Vec<Part>,
    separator: usize,
    width: usize,
) -> (Vec<Part>, Vec<Part>) {
    let is_shown = |part: &Part| !part.text.is_empty();
    let mut ranked: Vec<Part> = left.into_iter().filter(is_shown).collect();
    let mut is_right = vec![false; ranked.len()];
    ranked.extend(right.into_iter().filter(is_shown));
    is_right.resize(ranked.len(), true);
    loop {
        let total: usize = ranked.iter().map(Part::width).sum();
        let gaps = separator.max(2) * ranked.len().saturating_sub(1);
        if total + gaps <= width {
            break;
        }
        match give_way(&mut ranked) {
            Way::Shortened => {}
            Way::LeftOut(at) => {
                ranked.remove(at);
                is_right.remove(at);
            }
            Way::None => break,
        }
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (part, is_right) in ranked.into_iter().zip(is_right) {
        if is_right { right.push(part) } else { left.push(part) }
    }
    (left, right)
}

/// Text without what would move the cursor.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// As many whole words as fit, with an ellipsis where some were left out.
pub(super) fn words(text: &str, width: usize, symbols: &Symbols) -> String {
    let text = clean(text);
    if text.width() <= width {
        return text;
    }
    let room = width.saturating_sub(symbols.ellipsis.width() + 1);
    let mut kept = String::new();
    for word in text.split(' ') {
        let gap = usize::from(!kept.is_empty());
        if kept.width() + gap + word.width() > room {
            break;
        }
        if gap == 1 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    if kept.is_empty() {
        return if width >= symbols.ellipsis.width() { symbols.ellipsis } else { "" }.to_owned();
    }
    format!("{kept} {}", symbols.ellipsis)
}

/// Text over several lines, broken between words; a word that is longer than a line is left out.
pub(super) fn wrap(text: &str, width: usize, symbols: &Symbols) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
        let word = if word.width() > width { symbols.ellipsis } else { word };
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ if word.width() <= width => lines.push(word.to_owned()),
            _ => {}
        }
    }
    lines
}

/// Like [`wrap`], but a path that is longer than a line goes on after one of its slashes.
pub(super) fn wrap_path(text: &str, width: usize, symbols: &Symbols) -> Vec<String> {
    let mut broken = String::new();
    for word in clean(text).split(' ') {
        let pieces: Vec<&str> =
            if word.width() > width { word.split_inclusive('/').collect() } else { vec![word] };
        let mut line = String::new();
        for piece in pieces {
            if !line.is_empty() && line.width() + piece.width() > width {
                broken.push_str(&line);
                broken.push(' ');
                line.clear();
            }
            line.push_str(piece);
        }
        broken.push_str(&line);
        broken.push(' ');
    }
    wrap(&broken, width, symbols)
}

/// Text and spaces up to a width.
pub(super) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Spaces and text, flush right.
pub(super) fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

/// A line of a box; those of the highest rank go first when there are too few rows.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub rank: u8,
    pub line: Line<'static>,
}

impl Row {
    pub(super) fn new(rank: u8, line: impl Into<Line<'static>>) -> Self {
        Self { rank, line: line.into() }
    }
}

/// The rows that fit, in their order. Rows of one rank stay or go together. `None` when even those
/// of rank 0 do not fit.
pub(super) fn fit_rows(mut rows: Vec<Row>, height: usize) -> Option<Vec<Line<'static>>> {
    while rows.len() > height {
        let last = rows.iter().map(|row| row.rank).max().filter(|rank| *rank > 0)?;
        rows.retain(|row| row.rank != last);
    }
    Some(rows.into_iter().map(|row| row.line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::theme::{Palette, Theme};

    fn text(line: &Line<'_>) -> String {
        line.spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_part_is_whole_shorter_or_absent() {
        let parts = || {
            let part = |rank, text: &str| Part::new(rank, text, Style::new());
            vec![part(1, "6,748/s"), part(3, "retries 4.1 %").or("4.1 %"), part(2, "64")]
        };
        let fitted = |width| text(&line(parts(), &Span::raw(" "), width));
        assert_eq!(fitted(30), "6,748/s retries 4.1 % 64");
        assert_eq!(fitted(20), "6,748/s 4.1 % 64");
        assert_eq!(fitted(12), "6,748/s 64");
        assert_eq!(fitted(7), "6,748/s");
        assert_eq!(fitted(6), "");
    }

    #[test]
    fn both_ends_share_the_width() {
        let part = |rank, text: &str| Part::new(rank, text, Style::new());
        let ends = |width| {
            let (left, right) = (vec![part(0, "D1"), part(2, "Aurora")], vec![part(1, "IDLE")]);
            text(&two_sided(left, right, &Span::raw(" "), width))
        };
        assert_eq!(ends(20), "D1 Aurora       IDLE");
        assert_eq!(ends(12), "D1      IDLE");
        assert_eq!(ends(5), "D1   ");
    }

    #[test]
    fn text_is_cut_between_words_and_wide_characters_count_twice() {
        let symbols = Theme::new(Palette::None, false).symbols;
        assert_eq!(words("p99 178.7 ms, SLO 100", 12, &symbols), "p99 178.7 …");
        assert_eq!(words("p99 178.7 ms", 10, &symbols), "p99 …");
        assert_eq!(words("주문 이력 조회", 9, &symbols), "주문 …");
        assert_eq!(words("178.7", 3, &symbols), "…");
        assert_eq!(wrap("one two 178.7 three", 9, &symbols), ["one two", "178.7", "three"]);
    }
}
