//! The one place where the console's state changes: a message comes in, effects go out. Pure.

mod command;
mod keys;
mod look;
mod palette;
mod rate;
mod removal;

pub(super) use keys::exit;

use crokey::KeyCombination;

use crate::{
    link::ServerFrame,
    model::{Command, RunId, Snapshot, UnixMs},
};

use super::{
    ConsoleExit,
    removal::Removal,
    state::{DecisionPanel, Dialog, LinkState, RunEnd, State, TOAST_S, TeardownPanel, Toast},
};

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum Msg {
    /// The time now; comes before every other message and each quarter of a second.
    Tick(UnixMs),
    Key(KeyCombination),
    Paste(String),
    /// The mouse's wheel.
    Scroll {
        forward: bool,
    },
    /// A socket is open again, and the engine's build.
    Connected {
        build: String,
        /// The number that the engine has given this console.
        number: u32,
    },
    Frame(ServerFrame),
    /// From a removal without the engine.
    Removal(Removal),
    /// The socket closed or could not be opened.
    Disconnected {
        why: String,
    },
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    Send {
        id: u64,
        command: Command,
    },
    /// Removes the run without its engine.
    Remove {
        run: RunId,
    },
    Exit(ConsoleExit),
    Suspend,
    Redraw,
    /// Puts text on the clipboard of the operator's own terminal.
    Copy(String),
    /// Takes the mouse, or leaves it to the terminal.
    Mouse(bool),
}

/// Takes a message up.
pub(super) fn update(state: &mut State, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Tick(now) => {
            state.now = now;
            if state.toast.as_ref().is_some_and(|toast| now.seconds_since(toast.at) > TOAST_S) {
                state.toast = None;
            }
            Vec::new()
        }
        Msg::Key(key) => keys::press(state, key),
        Msg::Paste(text) => {
            keys::paste(state, &text);
            Vec::new()
        }
        Msg::Scroll { forward } => {
            keys::go(state, forward, 1);
            Vec::new()
        }
        Msg::Connected { build, number } => {
            state.link = LinkState::Live;
            state.engine_build = build;
            state.number = number;
            toast(state, false, "the engine answers again".to_owned());
            Vec::new()
        }
        Msg::Disconnected { why } => {
            disconnected(state, why);
            Vec::new()
        }
        Msg::Removal(news) => {
            removal::take(state, news);
            Vec::new()
        }
        Msg::Frame(frame) => {
            let layer = state.layer();
            let lines = look::lines_above(state);
            take_frame(state, frame);
            look::stay(state, lines);
            if state.layer() != layer {
                // The next key would be looked up among other keys than the first one.
                state.chord.clear();
            }
            Vec::new()
        }
    }
}

/// Shows a message for some seconds.
fn toast(state: &mut State, bad: bool, text: String) {
    state.toast = Some(Toast { text, bad, at: state.now });
}

fn disconnected(state: &mut State, why: String) {
    if let Some(pending) = state.pending.values().next() {
        let text = format!("no answer to \"{}\": the engine was lost", pending.command);
        toast(state, true, text);
    }
    state.pending.clear();
    state.link = LinkState::Lost { why };
}

fn take_frame(state: &mut State, frame: ServerFrame) {
    match frame {
        ServerFrame::Welcome { build, console, .. } => {
            state.engine_build = build;
            state.number = console;
        }
        ServerFrame::History { configuration, points } => {
            state.record.set_history(configuration, points);
        }
        ServerFrame::Snapshot(snapshot) => take_snapshot(state, snapshot),
        ServerFrame::Event(event) => state.record.add_event(*event),
        ServerFrame::Reply { id, refused } => take_reply(state, id, refused),
        ServerFrame::Ended { exit_code, text } => {
            state.ended = Some(RunEnd { exit_code, text, scroll: 0 });
            state.dialog = None;
        }
    }
}

fn take_snapshot(state: &mut State, snapshot: Box<Snapshot>) {
    state.record.take_up(&snapshot);
    state.last_seen = Some(state.now);
    state.selected = state.selected.min(snapshot.configurations.len().saturating_sub(1));
    state.snapshot = Some(snapshot);
    show_teardown(state);
    show_decision(state);
}

/// A teardown opens by itself once: nothing else matters then.
fn show_teardown(state: &mut State) {
    if !state.tearing_down() || state.shown_teardown {
        return;
    }
    state.shown_teardown = true;
    state.dialog = Some(Dialog::Teardown(TeardownPanel::default()));
}

/// A decision opens by itself once, unless the operator is at something else; what the operator
/// was answering is closed when it is no longer asked.
fn show_decision(state: &mut State) {
    let asked = state.decision().map(|decision| decision.id.clone());
    if asked != state.shown_decision {
        if matches!(state.dialog, Some(Dialog::Decision(_))) {
            state.dialog = None;
        }
        let answered = |panel: &TeardownPanel| {
            panel.answers.as_ref().is_some_and(|(decision, _)| Some(decision) != asked.as_ref())
        };
        if matches!(&state.dialog, Some(Dialog::Teardown(panel)) if answered(panel)) {
            state.dialog = None;
            toast(state, true, "the decision is no longer pending: nothing was sent".to_owned());
        }
        let busy = state.dialog.is_some() || !state.chord.is_empty();
        if asked.is_some() && !busy && state.ended.is_none() {
            let panel = DecisionPanel { marked: None, opened: Some(state.now) };
            state.dialog = Some(Dialog::Decision(panel));
        }
        state.shown_decision = asked;
    }
    let options = state.decision().map_or(0, |decision| decision.options.len());
    if let Some(Dialog::Decision(panel)) = &mut state.dialog {
        panel.marked = panel.marked.filter(|marked| *marked < options);
    }
}

fn take_reply(state: &mut State, id: u64, refused: Option<String>) {
    let Some(pending) = state.pending.remove(&id) else { return };
    match refused {
        Some(why) => {
            if let (Command::Teardown { .. }, Some(Dialog::Teardown(panel))) =
                (&pending.command, &mut state.dialog)
            {
                panel.error = Some(why.clone());
            }
            toast(state, true, format!("refused: {}: {why}", pending.command));
        }
        None => {
            let done = pending.done.unwrap_or_else(|| format!("{}: done", pending.command));
            toast(state, false, done);
        }
    }
}

#[cfg(test)]
mod tests;
