//! The bottom of the screen: recent events, what was just refused or done, and the keys.

use ratatui::text::{Line, Span};

use crate::model::{Event, Level};

use super::{
    super::{
        action::{Action, Layer},
        keymap::key_text,
        state::{State, Toast},
        theme::Theme,
    },
    text::{Part, line, words, wrap},
};

/// Lines that a message may take.
const TOAST_LINES: usize = 3;

/// The newest events, the newest at the bottom.
pub(super) fn events(
    state: &State,
    theme: &Theme,
    width: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let events = state.record.events();
    let skip = events.len().saturating_sub(rows);
    events.iter().skip(skip).map(|event| event_line(event, theme, width)).collect()
}

fn event_line(event: &Event, theme: &Theme, width: usize) -> Line<'static> {
    let (mark, style) = match event.kind.level() {
        Level::Info => (" ", theme.plain),
        Level::Warning => ("!", theme.plain),
        Level::Error => ("!", theme.bad),
    };
    let time = event.at.time_of_day();
    let room = width.saturating_sub(time.len() + 3);
    let text = words(&event.kind.text(), room, &theme.symbols);
    let parts =
        vec![Part::new(2, mark, style), Part::new(1, time, theme.dim), Part::new(0, text, style)];
    line(parts, &Span::raw(" "), width)
}

/// The message of the moment.
pub(super) fn toast(toast: &Toast, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let style = if toast.bad { theme.warn } else { theme.strong };
    let room = width.saturating_sub(2);
    let mut lines = wrap(&toast.text, room, &theme.symbols);
    if lines.len() > TOAST_LINES {
        let rest = lines.split_off(TOAST_LINES - 1).join(" ");
        lines.push(words(&rest, room, &theme.symbols));
    }
    lines.into_iter().map(|text| Line::styled(format!(" {text}"), style)).collect()
}

/// The keys of the layer on top, as many as fit.
pub(super) fn hints(state: &State, theme: &Theme, width: usize) -> Line<'static> {
    let mut parts = Vec::new();
    if state.layer() == Layer::Decision {
        parts.extend(choices(state, theme));
    }
    for binding in state.keymap.rows(state.layer()) {
        let Some(hint) = &binding.hint else { continue };
        let is_late = binding.action == Action::Submit && state.layer() == Layer::Teardown;
        if is_late && state.tearing_down() {
            continue;
        }
        let rank = u8::try_from(parts.len()).unwrap_or(u8::MAX);
        let text = format!("{} {hint}", key_text(binding.key, theme.ascii));
        parts.push(Part::new(rank, text, theme.plain));
    }
    let mut hints = line(parts, &Span::raw("   "), width.saturating_sub(1));
    hints.spans.insert(0, Span::raw(" "));
    hints.style = theme.dim;
    if width == 0 { Line::default() } else { hints }
}

/// The digits that choose, as one hint.
fn choices(state: &State, theme: &Theme) -> Option<Part> {
    let count = state.decision()?.options.len();
    let last = u8::try_from(count).ok().filter(|last| (1..=9).contains(last))?;
    let key = |digit| state.keymap.key_for(Layer::Decision, Action::Choose(digit));
    let text = match (key(1)?, key(last)?) {
        (first, _) if count == 1 => format!("{first} choose"),
        (first, last) => format!("{first}{}{last} choose", theme.symbols.dash),
    };
    Some(Part::new(0, text, theme.plain))
}
