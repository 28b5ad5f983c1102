//! The help, made from the live keymap.

use ratatui::text::{Line, Span};

use super::{
    super::{
        action::{Action, Layer},
        keymap::key_text,
        state::{HelpPanel, State},
        theme::Theme,
    },
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
    let room = usize::from(height.saturating_sub(2));
    let width = Panel::inner_width(width);
    let lines = scrolled(lines(state, theme, width), dialog.scroll, room, theme);
    let builds = if state.build == state.engine_build {
        format!(" {} ", state.build)
    } else {
        format!(" console {}, engine {} ", state.build, state.engine_build)
    };
    Panel {
        left: vec![Part::new(0, " HELP ", theme.strong)],
        right: vec![Part::new(1, builds, theme.dim)],
        rows: lines.into_iter().map(|line| Row::new(1, line)).collect(),
        border: theme.selected,
    }
}

fn lines(state: &State, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for layer in Layer::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(words(layer.heading(), width, &theme.symbols), theme.strong));
        lines.extend(rows(state, layer, theme, width));
    }
    lines
}

/// A line for each action of a layer, with all of its keys.
fn rows(state: &State, layer: Layer, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<(Action, Vec<String>, String)> = Vec::new();
    for binding in state.keymap.layer(layer) {
        let key = key_text(binding.key, theme.ascii);
        match rows.iter_mut().find(|(action, ..)| *action == binding.action) {
            Some((_, keys, _)) => keys.push(key),
            None => rows.push((binding.action, vec![key], binding.desc.clone())),
        }
    }
    rows.into_iter()
        .map(|(_, keys, desc)| {
            let keys = format!("  {}", keys.join(" "));
            let desc = words(&desc, width.saturating_sub(KEYS.max(keys.len()) + 1), &theme.symbols);
            let parts =
                vec![Part::new(0, pad(&keys, KEYS), theme.accent), Part::new(1, desc, theme.plain)];
            line(parts, &Span::raw(" "), width)
        })
        .collect()
}
