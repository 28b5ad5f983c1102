//! The command palette: what is typed, and what it may mean.

use ratatui::text::{Line, Span};

use super::{
    super::{palette::PalettePanel, state::State, theme::Theme},
    forms::typed,
    panel::Panel,
    text::{Part, Row, line, pad},
};

/// Candidates that are shown.
const SHOWN: usize = 8;
const NAMES: usize = 16;

/// The palette as a panel.
pub(super) fn panel(state: &State, palette: &PalettePanel, theme: &Theme, width: u16) -> Panel {
    let width = Panel::inner_width(width);
    let mut spans = vec![Span::raw(": ")];
    spans.extend(typed(&palette.input, true, theme));
    let mut rows = vec![Row::new(0, Line::from(spans))];
    if let Some(error) = &palette.error {
        rows.push(Row::new(1, line(vec![Part::new(0, error, theme.bad)], &Span::raw(""), width)));
    }
    let candidates = palette.candidates();
    let first = palette.marked.saturating_sub(SHOWN - 1);
    for (at, action) in candidates.iter().enumerate().skip(first).take(SHOWN) {
        let (name, what) = action.words();
        let marked = at == palette.marked;
        let style = if marked { theme.marked } else { theme.plain };
        let key = state.keymap.key_for(palette.from, *action).unwrap_or_default();
        let parts = vec![
            Part::new(0, pad(name, NAMES), style),
            Part::new(1, what, theme.dim),
            Part::new(2, key, theme.accent),
        ];
        rows.push(Row::new(if marked { 1 } else { 2 }, line(parts, &Span::raw("  "), width)));
    }
    Panel {
        left: vec![Part::new(0, " COMMAND ", theme.strong)],
        right: vec![Part::new(1, format!(" {} ", candidates.len()), theme.dim)],
        rows,
        border: theme.selected,
    }
}
