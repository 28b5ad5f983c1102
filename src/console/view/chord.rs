//! How a chord that has begun can go on.

use ratatui::text::Span;

use super::{
    super::{
        action::Layer,
        keymap::{Binding, Lookup, keys_text},
        state::State,
        theme::Theme,
    },
    panel::Panel,
    text::{Part, Row, line, pad, words},
};

const KEYS: usize = 10;

/// The continuations as a panel; `None` where no chord has begun.
pub(super) fn panel(state: &State, theme: &Theme, width: u16) -> Option<Panel> {
    let begun = continuations(state)?;
    let width = Panel::inner_width(width);
    let rows = begun.into_iter().map(|row| {
        let rest = keys_text(&row.keys[state.chord.len()..], theme.ascii);
        let desc = words(&row.desc, width.saturating_sub(KEYS + 1), &theme.symbols);
        let parts =
            vec![Part::new(0, pad(&rest, KEYS), theme.accent), Part::new(1, desc, theme.plain)];
        Row::new(1, line(parts, &Span::raw(" "), width))
    });
    let title = format!(" {} {} ", keys_text(&state.chord, theme.ascii), theme.symbols.ellipsis);
    Some(Panel {
        left: vec![Part::new(0, title, theme.strong)],
        right: vec![Part::new(1, " esc cancels ", theme.dim)],
        rows: rows.collect(),
        border: theme.selected,
    })
}

fn continuations(state: &State) -> Option<Vec<&Binding>> {
    if state.chord.is_empty() {
        return None;
    }
    let found = [state.layer(), Layer::Everywhere].map(|l| state.keymap.find(l, &state.chord));
    found.into_iter().find_map(|found| match found {
        Lookup::Pending(begun) => Some(begun),
        _ => None,
    })
}
