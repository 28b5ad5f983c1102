//! The command palette: what is typed, and what it may mean.

use ratatui::text::{Line, Span};

use super::{
    super::{
        palette::{Candidate, PalettePanel},
        state::State,
        theme::Theme,
    },
    forms::typed,
    panel::Panel,
    text::{Part, Row, line, pad, wrap},
};

/// Candidates that are shown.
const SHOWN: usize = 8;
const NAMES: usize = 16;
const KEYS: usize = 6;

/// The palette as a panel.
pub(super) fn panel(state: &State, palette: &PalettePanel, theme: &Theme, width: u16) -> Panel {
    let width = Panel::inner_width(width);
    let mut spans = vec![Span::raw(": ")];
    spans.extend(typed(&palette.input, true, theme));
    let mut rows = vec![Row::new(0, Line::from(spans))];
    if let Some(error) = &palette.error {
        let mut lines = wrap(error, width, &theme.symbols).into_iter();
        rows.extend(lines.next().map(|text| Row::new(0, Line::styled(text, theme.bad))));
        rows.extend(lines.map(|text| Row::new(1, Line::styled(text, theme.bad))));
    }
    if let Some(action) = palette.with_words() {
        let usage = format!("{} {}", action.name(), action.arguments());
        let parts = vec![Part::new(0, usage, theme.dim), Part::new(1, action.what(), theme.dim)];
        rows.push(Row::new(1, line(parts, &Span::raw("  "), width)));
    }
    let candidates = palette.candidates();
    let first = palette.marked.saturating_sub(SHOWN - 1);
    for (at, candidate) in candidates.iter().enumerate().skip(first).take(SHOWN) {
        let marked = at == palette.marked;
        let row = row(state, palette, candidate, marked, theme, width);
        // Those furthest from the mark go first.
        let rank = u8::try_from(at.abs_diff(palette.marked) + 1).unwrap_or(u8::MAX);
        rows.push(Row::new(rank, row));
    }
    Panel {
        left: vec![Part::new(0, " COMMAND ", theme.strong)],
        right: vec![Part::new(1, format!(" {} ", candidates.len()), theme.dim)],
        rows,
        border: theme.selected,
    }
}

/// A candidate: its key, its name with the words that it takes, what it does.
fn row(
    state: &State,
    palette: &PalettePanel,
    candidate: &Candidate,
    marked: bool,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let action = candidate.action;
    let mark = if marked { theme.symbols.marker } else { " " };
    let style = if marked { theme.selected } else { theme.plain };
    let is_name = candidate.text == action.name();
    let key = state.keymap.key_for(palette.from, action).filter(|_| is_name).unwrap_or_default();
    let mut parts = vec![
        Part::new(0, format!("{mark} {}", pad(&candidate.text, NAMES)), style),
        Part::new(2, pad(&key, KEYS), theme.accent),
    ];
    if is_name {
        parts.push(Part::new(1, action.what(), theme.plain));
        parts.push(Part::new(3, action.arguments(), theme.dim));
    }
    line(parts, &Span::raw("  "), width)
}
