//! From a key to what it does in the layer on top.

use crokey::KeyCombination;
use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{InputRequest, backend::crossterm::to_input_request};

use super::{
    super::{
        ConsoleExit,
        action::{Action, Layer},
        help,
        keymap::{Lookup, keys_text},
        state::{Dialog, HelpPanel, LinkState, State, View},
    },
    Effect, command, look, palette, rate, toast,
};
use crate::model::When;

/// Lines of a page when scrolling.
const PAGE: usize = 10;
/// Longest text taken from one paste, in characters: a run's name has at most 40.
const LONGEST_PASTE: usize = 64;

/// A key was pressed: it goes on with a chord that has begun; else the layer on top has it first,
/// then what is typed into, then `Everywhere`.
pub(super) fn press(state: &mut State, key: KeyCombination) -> Vec<Effect> {
    if !state.chord.is_empty() {
        return go_on(state, key);
    }
    let layer = state.layer();
    let mut typed_only = false;
    match state.keymap.find(layer, &[key]) {
        // In a typed field the keys that change a choice move the cursor.
        Lookup::Matched(Action::Change) if is_typing(state) => typed_only = true,
        Lookup::Matched(action) => return act(state, action),
        Lookup::Pending(_) => {
            state.chord.push(key);
            return Vec::new();
        }
        Lookup::NotFound => {}
    }
    if let Some(request) = request(key)
        && type_in(state, request)
    {
        return Vec::new();
    }
    if typed_only {
        toast(state, false, "this field is typed: there is no choice to change".to_owned());
        return Vec::new();
    }
    match state.keymap.find(Layer::Everywhere, &[key]) {
        Lookup::Matched(action) => return act(state, action),
        Lookup::Pending(_) => state.chord.push(key),
        Lookup::NotFound => {}
    }
    Vec::new()
}

/// The next key of a chord. What goes on with none is not looked up by itself: it was meant for the
/// chord. Only the keys of `Everywhere` always act, teardown among them.
fn go_on(state: &mut State, key: KeyCombination) -> Vec<Effect> {
    let mut keys = std::mem::take(&mut state.chord);
    if *key.codes.first() == KeyCode::Esc {
        return Vec::new();
    }
    keys.push(key);
    for layer in [state.layer(), Layer::Everywhere] {
        match state.keymap.find(layer, &keys) {
            Lookup::Matched(action) => return act(state, action),
            Lookup::Pending(_) => {
                state.chord = keys;
                return Vec::new();
            }
            Lookup::NotFound => {}
        }
    }
    if let Lookup::Matched(action) = state.keymap.find(Layer::Everywhere, &[key]) {
        return act(state, action);
    }
    let text = format!("no keys `{}` here: nothing was done", keys_text(&keys, true));
    toast(state, true, text);
    Vec::new()
}

/// Text was pasted: it goes where typing would go, without its line ends.
pub(super) fn paste(state: &mut State, text: &str) {
    state.chord.clear();
    let mut taken = false;
    for c in text.trim().chars().filter(|c| !c.is_control()).take(LONGEST_PASTE) {
        taken |= type_in(state, InputRequest::InsertChar(c));
    }
    if !taken {
        toast(state, false, "nothing here takes what was pasted".to_owned());
    }
}

fn request(key: KeyCombination) -> Option<InputRequest> {
    let event = KeyEvent::new(*key.codes.first(), key.modifiers);
    to_input_request(&Event::Key(event))
}

fn is_typing(state: &State) -> bool {
    match &state.dialog {
        Some(Dialog::Start(form)) => form.is_typed(),
        other => matches!(other, Some(Dialog::Rate(_) | Dialog::Ramp(_))),
    }
}

fn type_in(state: &mut State, request: InputRequest) -> bool {
    let tearing_down = state.tearing_down();
    match &mut state.dialog {
        Some(Dialog::Start(form)) => form.type_in(request),
        Some(Dialog::Rate(form)) => form.type_in(request),
        Some(Dialog::Ramp(form)) => form.type_in(request),
        Some(Dialog::Palette(panel)) => panel.type_in(request),
        Some(Dialog::Search(input)) => {
            input.handle(request);
            // The log shows what is found while it is typed.
            state.looks.log.search = input.clone();
            state.looks.log.up = 0;
            true
        }
        Some(Dialog::Help(panel)) if panel.typing => {
            panel.search.handle(request);
            panel.scroll = 0;
            true
        }
        Some(Dialog::Teardown(panel)) if !tearing_down => {
            panel.error = None;
            panel.input.handle(request);
            true
        }
        _ => false,
    }
}

/// Does what an action says.
pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Overview => look::show(state, View::Overview),
        Action::Back => look::back(state),
        Action::Configuration => look::show(state, View::Configuration),
        Action::Compare => look::show(state, View::Compare),
        Action::Cells => look::show(state, View::Cells),
        Action::Resources => look::show(state, View::Resources),
        Action::Log => look::show(state, View::Log),
        Action::Freeze => look::freeze(state),
        Action::Span => look::span(state),
        Action::Older => look::scroll_time(state, true),
        Action::Newer => look::scroll_time(state, false),
        Action::Figure => look::figure(state),
        Action::LogLevel => look::log_level(state),
        Action::Search => look::search(state),
        Action::StartCell => command::open_start(state, When::Now),
        Action::AddCell => command::open_start(state, When::After),
        Action::Ramp => rate::open_ramp(state),
        Action::Palette => palette::open(state),
        // Without the words that only the palette has they say what they need.
        Action::Select | Action::Keymap => {
            toast(state, false, format!("type {} {}", action.name(), action.arguments()));
        }
        Action::Complete => {
            if let Some(Dialog::Palette(panel)) = &mut state.dialog {
                panel.complete();
            }
        }
        Action::RateType => rate::open_rate(state),
        Action::Decision => command::open_decision(state),
        Action::Teardown => command::open_teardown(state),
        Action::Help => open_help(state),
        Action::Cancel => cancel(state),
        Action::Next => go(state, true, 1),
        Action::Previous => go(state, false, 1),
        Action::PageDown => go(state, true, PAGE),
        Action::PageUp => go(state, false, PAGE),
        Action::First => go(state, false, usize::MAX),
        Action::Last => go(state, true, usize::MAX),
        Action::Change => {
            if let Some(Dialog::Start(form)) = &mut state.dialog {
                form.change();
            }
        }
        Action::StopCell => return command::stop_cell(state),
        Action::RateUp => return rate::step_rate(state, 1.1),
        Action::RateDown => return rate::step_rate(state, 0.9),
        Action::RateDouble => return rate::step_rate(state, 2.0),
        Action::RateHalve => return rate::step_rate(state, 0.5),
        Action::HoldRate => return rate::hold_rate(state),
        Action::UndoStep => return rate::undo_step(state),
        Action::RepeatCell => return command::repeat_cell(state),
        Action::DropCell => return command::drop_cell(state),
        Action::MoveEarlier => return command::move_cell(state, true),
        Action::MoveLater => return command::move_cell(state, false),
        Action::AskControl => return command::ask_control(state),
        Action::GiveControl => return command::answer_for_control(state, true),
        Action::KeepControl => return command::answer_for_control(state, false),
        Action::DryRun => command::dry_run(state),
        Action::Retry => return command::retry(state),
        Action::Copy => return command::copy(state),
        Action::Mouse => {
            state.mouse = !state.mouse;
            return vec![Effect::Mouse(state.mouse)];
        }
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
        Some(Dialog::Start(_) | Dialog::Rate(_) | Dialog::Ramp(_)) => command::submit_form(state),
        Some(Dialog::Decision(_)) => command::confirm(state),
        Some(Dialog::Teardown(_)) => command::submit_teardown(state),
        Some(Dialog::Palette(_)) => palette::submit(state),
        Some(Dialog::Search(_)) => {
            look::submit_search(state);
            Vec::new()
        }
        Some(Dialog::Help(_)) => {
            look::submit_search(state);
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Opens the help over what is on top, which comes back with what was typed into it.
fn open_help(state: &mut State) {
    let from = state.layer();
    let under = state.dialog.take().map(Box::new);
    state.dialog = Some(Dialog::Help(HelpPanel::new(from, under)));
}

/// Closes what is on top.
fn cancel(state: &mut State) {
    if state.layer() == Layer::Search {
        return look::cancel_search(state);
    }
    let Some(Dialog::Help(panel)) = state.dialog.take() else { return };
    state.dialog = panel.under.map(|under| *under).filter(|under| match under {
        // A decision may have been answered meanwhile.
        Dialog::Decision(_) => state.decision().is_some(),
        Dialog::Start(_) | Dialog::Rate(_) | Dialog::Ramp(_) => true,
        _ => false,
    });
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

/// Moves on or back in what is on top.
pub(super) fn go(state: &mut State, forward: bool, lines: usize) {
    let last = last_line(state);
    let moved = |at: usize| {
        if forward { at.saturating_add(lines).min(last) } else { at.saturating_sub(lines) }
    };
    match &mut state.dialog {
        Some(Dialog::Start(form)) => form.move_focus(forward),
        Some(Dialog::Rate(_)) => toast(state, false, "this form has one field".to_owned()),
        Some(Dialog::Decision(_)) => command::mark(state, forward),
        Some(Dialog::Ramp(form)) => form.move_focus(),
        Some(Dialog::Palette(panel)) => panel.mark(forward),
        Some(Dialog::Search(_)) => {}
        Some(Dialog::Help(panel)) => panel.scroll = moved(panel.scroll),
        Some(Dialog::Teardown(panel)) => panel.scroll = moved(panel.scroll),
        None => match (state.view, &mut state.ended) {
            (View::Cells, _) => state.looks.cell = moved(state.looks.cell),
            (View::Resources, _) => state.looks.resource = moved(state.looks.resource),
            // The newest line is at the bottom: down is towards it.
            (View::Log, _) => {
                let log = &mut state.looks.log;
                log.up = if forward {
                    log.up.saturating_sub(lines)
                } else {
                    log.up.saturating_add(lines).min(last)
                };
            }
            (View::Overview, Some(end)) => end.scroll = moved(end.scroll),
            _ => select(state, forward),
        },
    }
}

/// The last line that what is on top can scroll to.
fn last_line(state: &State) -> usize {
    let lines = match &state.dialog {
        Some(Dialog::Help(panel)) => help::lines(&state.keymap, panel).len(),
        Some(Dialog::Teardown(_)) => state.snapshot.as_ref().map_or(0, |snapshot| {
            snapshot.teardown.as_ref().map_or(snapshot.resources.len(), |t| t.items.len())
        }),
        None if state.view == View::Log => state.record.events().len(),
        None if state.view == View::Resources => {
            state.shown().map_or(0, |snapshot| snapshot.resources.len())
        }
        None if state.view == View::Cells => {
            state.shown().map_or(0, |snapshot| snapshot.queue.len()) + state.record.cells().len()
        }
        _ => state.record.cells().len(),
    };
    lines.saturating_sub(1)
}

fn select(state: &mut State, forward: bool) {
    let count = state.snapshot.as_ref().map_or(0, |snapshot| snapshot.configurations.len());
    if count > 1 {
        let step = if forward { 1 } else { count - 1 };
        state.selected = (state.selected + step) % count;
    } else {
        toast(state, false, "there is no other configuration to select".to_owned());
    }
}
