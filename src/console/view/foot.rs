//! The bottom of the screen: recent events, what was just refused or done, and the keys.

use ratatui::text::{Line, Span};

use crate::model::{Event, Level, RunState};

use super::{
    super::{
        action::{Action, Layer},
        keymap::Binding,
        state::{Dialog, State, Toast, View},
        theme::Theme,
    },
    text::{Part, line, words, wrap},
};

/// Lines that a message may take.
const TOAST_LINES: usize = 3;

/// The newest events, the newest at the bottom; bookkeeping is in the log alone.
pub(super) fn events(
    state: &State,
    theme: &Theme,
    width: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let events = state.shown_record().events().iter().rev();
    let mut lines: Vec<_> = events
        .filter(|event| !event.kind.is_bookkeeping())
        .take(rows)
        .map(|event| event_line(event, theme, width))
        .collect();
    lines.reverse();
    lines
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

/// The keys of the layer on top, what matters most first, as many as fit.
pub(super) fn hints(state: &State, theme: &Theme, width: usize) -> Line<'static> {
    if width == 0 {
        return Line::default();
    }
    let mut hints = line(hint_parts(state, theme), &Span::raw("   "), width.saturating_sub(1));
    hints.spans.insert(0, Span::raw(" "));
    hints.style = theme.dim;
    hints
}

fn hint_parts(state: &State, theme: &Theme) -> Vec<Part> {
    let layer = state.layer();
    if !state.chord.is_empty() {
        return vec![Part::new(0, "esc cancel the chord", theme.plain)];
    }
    if state.is_decision_fresh() {
        let text = "just opened: for a moment no key answers it";
        return vec![Part::new(0, text, theme.plain).or("just opened")];
    }
    let mut rows: Vec<(u8, &Binding, String)> = Vec::new();
    for binding in state.keymap.rows(layer) {
        if let Some((urgency, word)) = hint(state, layer, binding)
            && rows.iter().all(|(_, known, _)| known.action != binding.action)
        {
            rows.push((urgency, binding, word));
        }
    }
    rows.sort_by_key(|(urgency, ..)| *urgency);
    let choices = choices(state, theme).filter(|_| layer == Layer::Decision);
    let first = u8::from(choices.is_some());
    let hints = rows.into_iter().enumerate().map(|(at, (urgency, binding, word))| {
        // The help leads to all the others, and the ways out are looked for in a hurry: these stay
        // when others go.
        let rank = match binding.action {
            _ if urgency == 0 => at,
            Action::Help => 1,
            Action::Teardown => 2,
            Action::StartCell => 3,
            Action::Detach if layer.is_view() => 4,
            Action::Palette => 5,
            _ => at + 6,
        };
        let rank = u8::try_from(rank).unwrap_or(u8::MAX - 1).saturating_add(first);
        let style = if urgency == 0 { theme.strong } else { theme.plain };
        Part::new(rank, format!("{} {word}", binding.text(theme.ascii)), style)
    });
    choices.into_iter().chain(hints).collect()
}

/// A hint's urgency, 0 for what waits for the operator, and its word; `None` where it is none now.
fn hint(state: &State, layer: Layer, binding: &Binding) -> Option<(u8, String)> {
    let ended = state.ended.is_some();
    let own = binding.hint.clone();
    let word = |urgency, word: &str| Some((urgency, word.to_owned()));
    match binding.action {
        Action::Detach | Action::Leave if ended => word(0, "leave"),
        Action::Back if ended => word(1, "summary"),
        Action::Decision if ended || state.decision().is_none() => None,
        Action::Decision => word(0, "decision"),
        Action::AskControl if !ended && state.watches() => word(0, "ask for control"),
        Action::GiveControl if state.is_asked_for_control() => word(0, "give control"),
        Action::KeepControl if state.is_asked_for_control() => word(0, "keep it"),
        Action::HoldRate if is_ramping(state) && !state.watches() => word(1, "hold the ramp"),
        Action::Submit | Action::DryRun if layer == Layer::Teardown && state.tearing_down() => None,
        Action::Retry if !removes(state) => None,
        Action::Next if matches!(state.dialog, Some(Dialog::Rate(_))) => None,
        Action::Change if !matches!(&state.dialog, Some(Dialog::Start(f)) if !f.is_typed()) => None,
        Action::Freeze if state.frozen.is_some() => word(1, "go on"),
        // What moves is to be read.
        Action::Freeze if matches!(layer, Layer::Configuration | Layer::Compare) => {
            own.map(|own| (1, own))
        }
        Action::Back => own.filter(|_| state.view != View::Overview).map(|own| (3, own)),
        action if is_driving(action) => {
            let own = own.filter(|_| !ended && !state.watches() && can_act(state, action))?;
            let paused = action == Action::PauseResume && is_paused(state);
            Some((2, if paused { "resume".to_owned() } else { own }))
        }
        _ => own.map(|own| (2, own)),
    }
}

const fn is_driving(action: Action) -> bool {
    matches!(
        action,
        Action::StartCell
            | Action::AddCell
            | Action::StopCell
            | Action::RateUp
            | Action::RateDown
            | Action::RateDouble
            | Action::RateHalve
            | Action::RateType
            | Action::Ramp
            | Action::HoldRate
            | Action::UndoStep
            | Action::PauseResume
            | Action::RepeatCell
            | Action::DropCell
            | Action::MoveEarlier
            | Action::MoveLater
    )
}

/// Whether what the selected configuration does lets an action act.
fn can_act(state: &State, action: Action) -> bool {
    let Some(status) = state.configuration() else { return false };
    let open = status.cell.as_ref().is_some_and(|cell| cell.load.rate().is_some());
    match action {
        Action::StopCell => status.cell.is_some(),
        Action::RateUp
        | Action::RateDown
        | Action::RateDouble
        | Action::RateHalve
        | Action::RateType
        | Action::Ramp => open,
        Action::UndoStep => status.undo_rate.is_some(),
        Action::HoldRate => status.ramp.is_some(),
        _ => true,
    }
}

/// Whether a teardown is under way and has not come to its end.
fn removes(state: &State) -> bool {
    let teardown = state.snapshot.as_ref().and_then(|snapshot| snapshot.teardown.as_ref());
    teardown.is_some_and(|teardown| teardown.ended.is_none())
}

fn is_ramping(state: &State) -> bool {
    state.configuration().is_some_and(|status| status.ramp.is_some())
}

fn is_paused(state: &State) -> bool {
    state.snapshot.as_ref().is_some_and(|snapshot| snapshot.state == RunState::Paused)
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
