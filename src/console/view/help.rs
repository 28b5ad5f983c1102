//! The help, made from the live keymap.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{
    super::{
        help::{self, Line as HelpLine},
        state::{HelpPanel, State},
        theme::Theme,
    },
    forms::typed,
    panel::Panel,
    teardown::scrolled,
    text::{Part, Row, line, pad, words},
};

const KEYS: usize = 18;

/// The help as a panel of at most so many rows.
pub(super) fn panel(
    state: &State,
    dialog: &HelpPanel,
    theme: &Theme,
    width: u16,
    height: u16,
) -> Panel {
    let searches = dialog.typing || !dialog.search.value().is_empty();
    let room = usize::from(height.saturating_sub(2)).saturating_sub(usize::from(searches));
    let width = Panel::inner_width(width);
    let mut rows = Vec::new();
    let lines: Vec<_> = help::lines(&state.keymap, dialog)
        .into_iter()
        .map(|content| drawn(&content, theme, width))
        .collect();
    if searches {
        let mut spans = vec![Span::raw("/ ")];
        spans.extend(typed(&dialog.search, dialog.typing, theme));
        if lines.is_empty() {
            spans.push(Span::styled("nothing in the help contains it", theme.warn));
        }
        rows.push(Row::new(0, Line::from(spans)));
    }
    let shown = scrolled(lines, dialog.scroll, room, theme);
    rows.extend(shown.into_iter().map(|line| Row::new(1, line)));
    let builds = if state.build == state.engine_build {
        format!(" {} ", state.build)
    } else {
        format!(" console {}, engine {} ", state.build, state.engine_build)
    };
    Panel {
        left: vec![Part::new(0, " HELP ", theme.strong)],
        right: vec![Part::new(1, builds, theme.dim)],
        rows,
        border: theme.selected,
    }
}

fn drawn(content: &HelpLine<'_>, theme: &Theme, width: usize) -> Line<'static> {
    let (keys, desc) = match content {
        HelpLine::Gap => return Line::default(),
        HelpLine::Heading(text) => {
            return Line::styled(words(text, width, &theme.symbols), theme.strong);
        }
        HelpLine::Keys(rows) => {
            let keys: Vec<_> = rows.iter().map(|row| row.text(theme.ascii)).collect();
            let desc = rows.first().map(|row| row.desc.clone()).unwrap_or_default();
            (format!("  {}", keys.join(", ")), desc)
        }
        HelpLine::Command(action) => {
            (format!("  :{} {}", action.name(), action.arguments()), action.what().to_owned())
        }
    };
    let desc = words(&desc, width.saturating_sub(KEYS.max(keys.width()) + 1), &theme.symbols);
    let parts = vec![Part::new(0, pad(&keys, KEYS), theme.accent), Part::new(1, desc, theme.plain)];
    line(parts, &Span::raw(" "), width)
}
