//! From what the operator asks to the commands that go to the engine, or a word why not.

use crate::model::{Command, ConsoleStatus, DecisionAction, RunState, When};

use super::{
    super::{
        action::{Action, Layer},
        copy,
        form::StartForm,
        state::{
            DecisionPanel, Dialog, LinkState, Pending, State, TeardownPanel, needs_confirmation,
        },
    },
    Effect, rate, removal, toast,
};

/// What `extend` puts a deadline off by, in seconds.
const EXTENSION_S: u64 = 300;

/// Sends a command, or says why it cannot be sent.
pub(super) fn send(state: &mut State, command: Command) -> Vec<Effect> {
    send_with(state, command, None)
}

/// Sends a command, and says this once it is done.
pub(super) fn send_saying(state: &mut State, command: Command, done: String) -> Vec<Effect> {
    send_with(state, command, Some(done))
}

fn send_with(state: &mut State, command: Command, done: Option<String>) -> Vec<Effect> {
    if let Some(why) = cannot_send(state, &command) {
        let what = done.as_ref().map_or_else(|| command.to_string(), Clone::clone);
        toast(state, true, format!("not sent: {what}: {why}"));
        return Vec::new();
    }
    if rate::is_step(&command) {
        state.last_step = Some(state.now);
    }
    let id = state.next_command;
    state.next_command += 1;
    state.pending.insert(id, Pending { command: command.clone(), done });
    vec![Effect::Send { id, command }]
}

fn cannot_send(state: &State, command: &Command) -> Option<String> {
    if state.ended.is_some() {
        return Some("the run has ended".to_owned());
    }
    if state.link != LinkState::Live {
        let teardown = state.run().map(|run| format!("; rampdeck teardown {run} works without it"));
        return Some(format!("the engine is lost{}", teardown.unwrap_or_default()));
    }
    if !is_for_all(command)
        && let Some(why) = watching(state)
    {
        return Some(why);
    }
    if rate::is_step(command) { rate::must_wait(state) } else { None }
}

/// Whether a console that watches may send it too: nobody waits for control to end what bills.
const fn is_for_all(command: &Command) -> bool {
    matches!(command, Command::Teardown { .. } | Command::AskControl)
}

/// Who drives, where this console watches, and how to ask for control.
fn watching(state: &State) -> Option<String> {
    if !state.watches() {
        return None;
    }
    let control = &state.snapshot.as_ref()?.control;
    let holder = control.holder?;
    let name = |number| control.consoles.iter().find(|c: &&ConsoleStatus| c.number == number);
    let name = name(holder).map_or_else(|| "another console".to_owned(), |c| c.name.clone());
    let key = state.keymap.key_for(Layer::Overview, Action::AskControl);
    let ask = key.map(|key| format!("; {key} asks for control")).unwrap_or_default();
    Some(format!("{name} (console {holder}) drives, this console watches{ask}"))
}

/// Whether this console may drive the run; otherwise it is said at once, before anything is typed.
pub(super) fn may_drive(state: &mut State, what: &str) -> bool {
    let why = watching(state);
    if let Some(why) = &why {
        toast(state, true, format!("{what}: {why}"));
    }
    why.is_none()
}

/// Asks the console that drives for control.
pub(super) fn ask_control(state: &mut State) -> Vec<Effect> {
    let control = state.snapshot.as_ref().map(|snapshot| &snapshot.control);
    let number = state.number;
    if number > 0 && control.is_some_and(|control| control.holder == Some(number)) {
        toast(state, false, "this console has control already".to_owned());
        return Vec::new();
    }
    send(state, Command::AskControl)
}

/// Hands control to the console that asked, or keeps it.
pub(super) fn answer_for_control(state: &mut State, give: bool) -> Vec<Effect> {
    let asked = state.snapshot.as_ref().and_then(|snapshot| snapshot.control.asked);
    if may_drive(state, "no control to give or keep") {
        if asked.is_some() {
            let command = if give { Command::GiveControl } else { Command::KeepControl };
            return send(state, command);
        }
        toast(state, true, "no console asks for control".to_owned());
    }
    Vec::new()
}

/// Opens the form of a cell for the selected configuration.
pub(super) fn open_start(state: &mut State, when: When) {
    if !may_drive(state, "no cell started") {
        return;
    }
    let (Some(snapshot), Some(status)) = (&state.snapshot, state.configuration()) else {
        return toast(state, true, "nothing to start yet: no configuration is known".to_owned());
    };
    let spans = state.record.spans(&status.id);
    let form = StartForm::new(status, spans, snapshot.header.max_rate, when);
    state.dialog = Some(Dialog::Start(Box::new(form)));
}

/// Stops the selected configuration's cell.
pub(super) fn stop_cell(state: &mut State) -> Vec<Effect> {
    let Some(status) = state.configuration() else {
        toast(state, true, "nothing to stop yet: no configuration is known".to_owned());
        return Vec::new();
    };
    let configuration = status.id.clone();
    if status.cell.is_none() {
        toast(state, true, format!("{configuration} runs no cell: nothing to stop"));
        return Vec::new();
    }
    send(state, Command::StopCell { configuration })
}

/// Whether what is marked may be acted on: while the picture is held still, the mark is on what was
/// there then.
fn may_act_on_mark(state: &mut State) -> bool {
    if state.frozen.is_some() {
        toast(state, true, "not sent: the picture is held still; let it go on first".to_owned());
    }
    state.frozen.is_none()
}

/// The number of the queued cell that is marked in the cells view.
fn marked_in_queue(state: &State) -> Option<u64> {
    let snapshot = state.snapshot.as_ref()?;
    snapshot.queue.get(state.looks.cell).map(|cell| cell.number)
}

/// Runs the marked ended cell once more.
pub(super) fn repeat_cell(state: &mut State) -> Vec<Effect> {
    if !may_act_on_mark(state) {
        return Vec::new();
    }
    let queued = state.snapshot.as_ref().map_or(0, |snapshot| snapshot.queue.len());
    let ended = state.looks.cell.checked_sub(queued);
    let cell = ended.and_then(|back| state.record.cells().iter().rev().nth(back));
    let Some(cell) = cell.map(|cell| cell.cell.clone()) else {
        toast(state, true, "mark a cell that has ended: it runs once more".to_owned());
        return Vec::new();
    };
    send(state, Command::RepeatCell { cell })
}

/// Takes the marked cell out of the queue.
pub(super) fn drop_cell(state: &mut State) -> Vec<Effect> {
    if !may_act_on_mark(state) {
        return Vec::new();
    }
    let Some(cell) = marked_in_queue(state) else {
        toast(state, true, "mark a cell that waits: it is dropped".to_owned());
        return Vec::new();
    };
    send(state, Command::DropCell { cell })
}

/// Moves the marked cell within the queue; the mark goes with it.
pub(super) fn move_cell(state: &mut State, earlier: bool) -> Vec<Effect> {
    if !may_act_on_mark(state) {
        return Vec::new();
    }
    let Some(cell) = marked_in_queue(state) else {
        toast(state, true, "mark a cell that waits: it changes its place".to_owned());
        return Vec::new();
    };
    send(state, Command::MoveCell { cell, earlier })
}

/// Pauses the plan, or resumes it where it is paused.
pub(super) fn pause_or_resume(state: &mut State) -> Vec<Effect> {
    let paused = state.snapshot.as_ref().is_some_and(|s| s.state == RunState::Paused);
    send(state, if paused { Command::Resume } else { Command::Pause })
}

/// Opens the pending decision.
pub(super) fn open_decision(state: &mut State) {
    if state.decision().is_some() {
        state.dialog = Some(Dialog::Decision(DecisionPanel::default()));
    } else {
        toast(state, false, "no decision is pending".to_owned());
    }
}

/// Opens the teardown, asked for or under way.
pub(super) fn open_teardown(state: &mut State) {
    if state.ended.is_some() {
        return toast(state, false, "the run has ended: its summary says what remains".to_owned());
    }
    state.dialog = Some(Dialog::Teardown(TeardownPanel::default()));
}

/// Whether a key came so soon after a decision opened by itself that it was meant for something
/// else.
fn is_too_early(state: &mut State) -> bool {
    let fresh = state.is_decision_fresh();
    if fresh {
        let text = "the decision has opened just now: nothing was answered, press again";
        toast(state, true, text.to_owned());
    }
    fresh
}

/// Chooses an option of the pending decision, from 0: it is sent at once unless it asks for a
/// confirmation.
pub(super) fn choose(state: &mut State, index: usize) -> Vec<Effect> {
    if is_too_early(state) || !may_drive(state, "not answered") {
        return Vec::new();
    }
    let Some(decision) = state.decision() else { return Vec::new() };
    let Some(option) = decision.options.get(index) else {
        let count = decision.options.len();
        toast(state, true, format!("no option {}: 1 to {count}", index + 1));
        return Vec::new();
    };
    if needs_confirmation(decision, option) {
        let panel = DecisionPanel { marked: Some(index), opened: None };
        state.dialog = Some(Dialog::Decision(panel));
        return Vec::new();
    }
    answer(state, index)
}

/// Marks the next option, or the one before.
pub(super) fn mark(state: &mut State, forward: bool) {
    let Some(count) = state.decision().map(|d| d.options.len()).filter(|count| *count > 0) else {
        return;
    };
    if let Some(Dialog::Decision(panel)) = &mut state.dialog {
        panel.marked = Some(match (panel.marked, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        });
    }
}

/// Confirms the marked option. One that removes everything asks for the run's name first.
pub(super) fn confirm(state: &mut State) -> Vec<Effect> {
    let Some(Dialog::Decision(DecisionPanel { marked: Some(index), .. })) = state.dialog else {
        toast(state, false, "choose an option by its digit first".to_owned());
        return Vec::new();
    };
    let Some(decision) = state.decision() else { return Vec::new() };
    let Some(option) = decision.options.get(index) else { return Vec::new() };
    if option.action == DecisionAction::Teardown {
        let answers = Some((decision.id.clone(), option.key.clone()));
        state.dialog =
            Some(Dialog::Teardown(TeardownPanel { answers, ..TeardownPanel::default() }));
        return Vec::new();
    }
    answer(state, index)
}

fn answer(state: &mut State, index: usize) -> Vec<Effect> {
    let Some(decision) = state.decision() else { return Vec::new() };
    let Some(option) = decision.options.get(index) else { return Vec::new() };
    let command = Command::Answer { decision: decision.id.clone(), option: option.key.clone() };
    state.dialog = None;
    send(state, command)
}

/// Puts the pending decision's deadline off.
pub(super) fn extend(state: &mut State) -> Vec<Effect> {
    if is_too_early(state) {
        return Vec::new();
    }
    let Some(decision) = state.decision().map(|decision| decision.id.clone()) else {
        return Vec::new();
    };
    send(state, Command::Extend { decision, seconds: EXTENSION_S })
}

/// Sends what the form says, or shows what is wrong with it.
pub(super) fn submit_form(state: &mut State) -> Vec<Effect> {
    let command = match &mut state.dialog {
        Some(Dialog::Start(form)) => form.submit(),
        Some(Dialog::Rate(form)) => form.submit(),
        Some(Dialog::Ramp(form)) => form.submit(),
        _ => None,
    };
    let Some(command) = command else { return Vec::new() };
    let effects =
        if rate::is_step(&command) { rate::submit(state, command) } else { send(state, command) };
    if !effects.is_empty() {
        state.dialog = None;
    }
    effects
}

/// Shows what a teardown would remove, or asks for the run's name again.
pub(super) fn dry_run(state: &mut State) {
    if state.tearing_down() {
        return toast(state, false, "the teardown is under way".to_owned());
    }
    if let Some(Dialog::Teardown(panel)) = &mut state.dialog {
        panel.dry_run = !panel.dry_run;
        panel.error = None;
    }
}

/// Removes once more what a teardown has left, or what an engine that was lost left of it.
pub(super) fn retry(state: &mut State) -> Vec<Effect> {
    let remains = state.snapshot.as_ref().and_then(|snapshot| snapshot.teardown.as_ref());
    match remains {
        None => toast(state, false, "no teardown is under way: nothing to try again".to_owned()),
        Some(status) if status.ended.is_some() && status.remaining_count == 0 => {
            toast(state, false, "nothing remains: nothing to try again".to_owned());
        }
        Some(_) if state.ended.is_none() && state.engine_answers() => {
            toast(state, false, "the engine goes on removing".to_owned());
        }
        Some(_) => return removal::begin(state),
    }
    Vec::new()
}

/// Puts the figures of the view on the clipboard.
pub(super) fn copy(state: &mut State) -> Vec<Effect> {
    let Some(text) = copy::text(state) else {
        toast(state, true, "nothing to copy yet".to_owned());
        return Vec::new();
    };
    let lines = text.lines().count();
    toast(state, false, format!("{lines} lines copied, where the terminal takes OSC 52"));
    vec![Effect::Copy(text)]
}

/// Sends the teardown once the run's name is typed.
pub(super) fn submit_teardown(state: &mut State) -> Vec<Effect> {
    if state.tearing_down() {
        toast(state, false, "the teardown is under way".to_owned());
        return Vec::new();
    }
    let Some(run) = state.run().cloned() else {
        toast(state, true, "the run's name is not known yet".to_owned());
        return Vec::new();
    };
    let Some(Dialog::Teardown(panel)) = &mut state.dialog else { return Vec::new() };
    if panel.dry_run {
        panel.dry_run = false;
        return Vec::new();
    }
    let confirm = panel.input.value().trim().to_owned();
    if confirm != run.as_str() {
        panel.error = Some(format!("that is not the run's name: type {run}"));
        return Vec::new();
    }
    let command = match panel.answers.clone() {
        Some((decision, option)) => Command::Answer { decision, option },
        None => Command::Teardown { confirm },
    };
    // An emergency must not wait for an engine that has hung or gone.
    if state.engine_answers() { send(state, command) } else { removal::begin(state) }
}
