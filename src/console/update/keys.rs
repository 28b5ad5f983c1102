//! From a key to what it does in the layer on top.

use crokey::KeyCombination;
use crossterm::event::{Event, KeyEvent};
use tui_input::{InputRequest, backend::crossterm::to_input_request};

use super::{
    super::{
        ConsoleExit,
        action::{Action, Layer},
        state::{Dialog, LinkState, State},
    },
    Effect, command,
};

/// Lines of a page when scrolling.
const PAGE: usize = 10;
/// Longest text taken from one paste, in characters: a run's name has at most 40.
const LONGEST_PASTE: usize = 64;

/// A key was pressed: the layer on top has it first, then what is typed into, then `Everywhere`.
pub(super) fn press(state: &mut State, key: KeyCombination) -> Vec<Effect> {
    match state.keymap.action(state.layer(), key) {
        // In a typed field the keys that change a choice move the cursor.
        Some(Action::Change) if is_typing(state) => {}
        Some(action) => return act(state, action),
        None => {}
    }
    if let Some(request) = request(key)
        && type_in(state, request)
    {
        return Vec::new();
    }
    match state.keymap.action(Layer::Everywhere, key) {
        Some(action) => act(state, action),
        None => Vec::new(),
    }
}

/// Text was pasted: it goes where typing would go, without its line ends.
pub(super) fn paste(state: &mut State, text: &str) {
    for c in text.trim().chars().filter(|c| !c.is_control()).take(LONGEST_PASTE) {
        type_in(state, InputRequest::InsertChar(c));
    }
}

fn request(key: KeyCombination) -> Option<InputRequest> {
    let event = KeyEvent::new(*key.codes.first(), key.modifiers);
    to_input_request(&Event::Key(event))
}

fn is_typing(state: &State) -> bool {
    match &state.dialog {
        Some(Dialog::Start(form)) => form.is_typed(),
        other => matches!(other, Some(Dialog::Rate(_))),
    }
}

fn type_in(state: &mut State, request: InputRequest) -> bool {
    let tearing_down = state.tearing_down();
    match &mut state.dialog {
        Some(Dialog::Start(form)) => form.type_in(request),
        Some(Dialog::Rate(form)) => form.type_in(request),
        Some(Dialog::Teardown(panel)) if !tearing_down => {
            panel.error = None;
            panel.input.handle(request);
            true
        }
        _ => false,
    }
}

fn act(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::StartCell => command::open_start(state),
        Action::RateType => command::open_rate(state),
        Action::Decision => command::open_decision(state),
        Action::Teardown => command::open_teardown(state),
        Action::Help => state.dialog = Some(Dialog::Help { scroll: 0 }),
        Action::Cancel => state.dialog = None,
        Action::Next => go(state, true, 1),
        Action::Previous => go(state, false, 1),
        Action::PageDown => go(state, true, PAGE),
        Action::PageUp => go(state, false, PAGE),
        Action::Change => {
            if let Some(Dialog::Start(form)) = &mut state.dialog {
                form.change();
            }
        }
        Action::StopCell => return command::stop_cell(state),
        Action::RateUp => return command::step_rate(state, 1.1),
        Action::RateDown => return command::step_rate(state, 0.9),
        Action::RateDouble => return command::step_rate(state, 2.0),
        Action::RateHalve => return command::step_rate(state, 0.5),
        Action::PauseResume => return command::pause_or_resume(state),
        Action::Submit => return submit(state),
        Action::Extend => return command::extend(state),
        Action::Choose(digit) => return command::choose(state, usize::from(digit) - 1),
        Action::Detach | Action::Leave => return vec![Effect::Exit(exit(state))],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Redraw => return vec![Effect::Redraw],
    }
    Vec::new()
}

fn submit(state: &mut State) -> Vec<Effect> {
    match &state.dialog {
        Some(Dialog::Start(_) | Dialog::Rate(_)) => command::submit_form(state),
        Some(Dialog::Decision(_)) => command::confirm(state),
        Some(Dialog::Teardown(_)) => command::submit_teardown(state),
        Some(Dialog::Help { .. }) | None => Vec::new(),
    }
}

/// How the console ends if it is left now.
pub(in crate::console) fn exit(state: &State) -> ConsoleExit {
    let run = state.run().cloned();
    match (&state.ended, &state.link) {
        (Some(end), _) => ConsoleExit::Ended { exit_code: end.exit_code, text: end.text.clone() },
        (None, LinkState::Live) => ConsoleExit::Detached { run },
        (None, LinkState::Lost { .. }) => ConsoleExit::Lost { run },
    }
}

fn go(state: &mut State, forward: bool, lines: usize) {
    let last = last_line(state);
    let moved = |at: usize| if forward { (at + lines).min(last) } else { at.saturating_sub(lines) };
    match &mut state.dialog {
        Some(Dialog::Start(form)) => form.move_focus(forward),
        Some(Dialog::Rate(_)) => {}
        Some(Dialog::Decision(_)) => command::mark(state, forward),
        Some(Dialog::Help { scroll }) => *scroll = moved(*scroll),
        Some(Dialog::Teardown(panel)) => panel.scroll = moved(panel.scroll),
        None => {
            if let Some(end) = &mut state.ended {
                end.scroll = moved(end.scroll);
            } else {
                select(state, forward);
            }
        }
    }
}

/// The last line that what is on top can scroll to.
fn last_line(state: &State) -> usize {
    let lines = match &state.dialog {
        Some(Dialog::Help { .. }) => {
            Layer::ALL.iter().map(|layer| state.keymap.layer(*layer).len() + 2).sum()
        }
        Some(Dialog::Teardown(_)) => state.snapshot.as_ref().map_or(0, |snapshot| {
            snapshot.teardown.as_ref().map_or(snapshot.resources.len(), |t| t.items.len())
        }),
        _ => state.record.cells().len(),
    };
    lines.saturating_sub(1)
}

fn select(state: &mut State, forward: bool) {
    let count = state.snapshot.as_ref().map_or(0, |snapshot| snapshot.configurations.len());
    if count > 0 {
        let step = if forward { 1 } else { count - 1 };
        state.selected = (state.selected + step) % count;
    }
}
