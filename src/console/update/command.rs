//! From what the operator asks to the commands that go to the engine, or a word why not.

use crate::model::{Command, DecisionAction, Load, RateStep, RunState, When};

use super::{
    super::{
        copy,
        form::{RampForm, RateForm, StartForm},
        state::{
            DecisionPanel, Dialog, LinkState, Pending, State, TeardownPanel, needs_confirmation,
        },
    },
    Effect, removal, toast,
};

/// The shortest time between two steps, in seconds: a key held down repeats some 30 times a second.
const STEP_GAP_S: f64 = 1.0;
/// What `extend` puts a deadline off by, in seconds.
const EXTENSION_S: u64 = 300;

/// Sends a command, or says why it cannot be sent.
pub(super) fn send(state: &mut State, command: Command) -> Vec<Effect> {
    if let Some(why) = cannot_send(state) {
        toast(state, true, format!("not sent: {command}: {why}"));
        return Vec::new();
    }
    let id = state.next_command;
    state.next_command += 1;
    state.pending.insert(id, Pending { command: command.clone() });
    vec![Effect::Send { id, command }]
}

fn cannot_send(state: &State) -> Option<String> {
    if state.ended.is_some() {
        return Some("the run has ended".to_owned());
    }
    if state.link == LinkState::Live {
        return None;
    }
    let teardown = state.run().map(|run| format!("; rampdeck teardown {run} works without it"));
    Some(format!("the engine is lost{}", teardown.unwrap_or_default()))
}

/// Opens the form of a cell for the selected configuration.
pub(super) fn open_start(state: &mut State, when: When) {
    let (Some(snapshot), Some(status)) = (&state.snapshot, state.configuration()) else {
        return toast(state, true, "nothing to start yet: no configuration is known".to_owned());
    };
    let spans = state.record.spans(&status.id);
    let form = StartForm::new(status, spans, snapshot.header.max_rate, when);
    state.dialog = Some(Dialog::Start(Box::new(form)));
}

/// Stops the selected configuration's cell.
pub(super) fn stop_cell(state: &mut State) -> Vec<Effect> {
    let Some(status) = state.configuration() else { return Vec::new() };
    let configuration = status.id.clone();
    if status.cell.is_none() {
        toast(state, true, format!("{configuration} runs no cell: nothing to stop"));
        return Vec::new();
    }
    send(state, Command::StopCell { configuration })
}

/// The rate of the selected configuration's running open cell, or a word why there is none.
fn running_rate(state: &State) -> Result<f64, String> {
    let status = state.configuration().ok_or("no configuration is known yet")?;
    match status.cell.as_ref().map(|cell| cell.load) {
        Some(Load::Open { rate, .. }) => Ok(rate),
        Some(load) => Err(format!(
            "{} runs a closed loop ({load}), which has no rate; start an open one",
            status.id
        )),
        None => Err(format!("{} runs no cell; start an open one", status.id)),
    }
}

/// Multiplies the running rate, at most to the plan's highest.
pub(super) fn step_rate(state: &mut State, factor: f64) -> Vec<Effect> {
    let rate = match running_rate(state) {
        Ok(rate) => rate,
        Err(why) => {
            toast(state, true, format!("no step: {why}"));
            return Vec::new();
        }
    };
    let (Some(snapshot), Some(status)) = (&state.snapshot, state.configuration()) else {
        return Vec::new();
    };
    let (max, configuration) = (snapshot.header.max_rate, status.id.clone());
    let unanswered = state.pending.values().any(|p| matches!(p.command, Command::StepRate { .. }));
    let too_soon = state.last_step.is_some_and(|at| state.now.seconds_since(at) < STEP_GAP_S);
    if unanswered || too_soon {
        toast(state, true, "no step: one step a second, after the last one's answer".to_owned());
        return Vec::new();
    }
    if factor > 1.0 && rate >= max {
        toast(state, true, format!("no step: {max}/s is the highest rate the plan allows"));
        return Vec::new();
    }
    state.last_step = Some(state.now);
    let clamped = factor > 1.0 && rate * factor > max;
    let step = if clamped { RateStep::To { rate: max } } else { RateStep::Times { factor } };
    send(state, Command::StepRate { configuration, step })
}

/// Opens the line where a rate is typed.
pub(super) fn open_rate(state: &mut State) {
    match (running_rate(state), &state.snapshot, state.configuration()) {
        (Ok(rate), Some(snapshot), Some(status)) => {
            let form = RateForm::new(status.id.clone(), rate, snapshot.header.max_rate);
            state.dialog = Some(Dialog::Rate(form));
        }
        (Err(why), ..) => toast(state, true, format!("no rate to set: {why}")),
        _ => {}
    }
}

/// Opens the form of a ramp.
pub(super) fn open_ramp(state: &mut State) {
    match (running_rate(state), &state.snapshot, state.configuration()) {
        (Ok(rate), Some(snapshot), Some(status)) => {
            let form = RampForm::new(status.id.clone(), rate, snapshot.header.max_rate);
            state.dialog = Some(Dialog::Ramp(form));
        }
        (Err(why), ..) => toast(state, true, format!("no ramp: {why}")),
        _ => {}
    }
}

/// Ends the ramp of the selected configuration at the rate it has reached.
pub(super) fn hold_rate(state: &mut State) -> Vec<Effect> {
    let Some(status) = state.configuration() else { return Vec::new() };
    let configuration = status.id.clone();
    if status.ramp.is_none() {
        toast(state, true, format!("{configuration} has no ramp under way"));
        return Vec::new();
    }
    send(state, Command::HoldRate { configuration })
}

/// Goes back to the rate before the last step.
pub(super) fn undo_step(state: &mut State) -> Vec<Effect> {
    let Some(status) = state.configuration() else { return Vec::new() };
    let configuration = status.id.clone();
    if status.undo_rate.is_none() {
        toast(state, true, format!("{configuration} has no step to undo"));
        return Vec::new();
    }
    send(state, Command::UndoStep { configuration })
}

/// The number of the queued cell that is marked in the cells view.
fn marked_in_queue(state: &State) -> Option<u64> {
    let snapshot = state.snapshot.as_ref()?;
    snapshot.queue.get(state.looks.cell).map(|cell| cell.number)
}

/// Runs the marked ended cell once more.
pub(super) fn repeat_cell(state: &mut State) -> Vec<Effect> {
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
    let Some(cell) = marked_in_queue(state) else {
        toast(state, true, "mark a cell that waits: it is dropped".to_owned());
        return Vec::new();
    };
    send(state, Command::DropCell { cell })
}

/// Moves the marked cell within the queue; the mark goes with it.
pub(super) fn move_cell(state: &mut State, earlier: bool) -> Vec<Effect> {
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
        return toast(state, false, "the run has ended: see what remains above".to_owned());
    }
    state.dialog = Some(Dialog::Teardown(TeardownPanel::default()));
}

/// Chooses an option of the pending decision, from 0: it is sent at once unless it asks for a
/// confirmation.
pub(super) fn choose(state: &mut State, index: usize) -> Vec<Effect> {
    let Some(decision) = state.decision() else { return Vec::new() };
    let Some(option) = decision.options.get(index) else {
        let count = decision.options.len();
        toast(state, true, format!("no option {}: 1 to {count}", index + 1));
        return Vec::new();
    };
    if needs_confirmation(decision, option) {
        state.dialog = Some(Dialog::Decision(DecisionPanel { marked: Some(index) }));
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
    let Some(Dialog::Decision(DecisionPanel { marked: Some(index) })) = state.dialog else {
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
    let effects = send(state, command);
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
