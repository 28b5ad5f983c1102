//! Steps of the arrival rate: up, down, typed, ramped, undone. One a second, whatever the keyboard
//! does.

use crate::model::{Command, ConfigurationId, Load, RateStep};

use super::{
    super::{
        form::{RampForm, RateForm},
        state::{Dialog, State},
        view::rate_text,
    },
    Effect,
    command::{may_drive, send, send_saying},
    toast,
};

/// The shortest time between two steps, in seconds: a key held down repeats some 30 times a second.
const STEP_GAP_S: f64 = 1.0;

/// Whether a command begins a cell at another rate.
pub(super) const fn is_step(command: &Command) -> bool {
    matches!(command, Command::StepRate { .. } | Command::Ramp { .. } | Command::UndoStep { .. })
}

/// Why a step must wait.
pub(super) fn must_wait(state: &State) -> Option<String> {
    let unanswered = state.pending.values().find(|pending| is_step(&pending.command));
    let too_soon = state.last_step.is_some_and(|at| state.now.seconds_since(at) < STEP_GAP_S);
    let rule = "one step a second, after the last one's answer";
    match unanswered {
        Some(last) => {
            let last = last.done.clone().unwrap_or_else(|| last.command.to_string());
            Some(format!("{rule} (under way: {last})"))
        }
        None => too_soon.then(|| rule.to_owned()),
    }
}

/// An open cell whose rate can be changed.
struct Running {
    configuration: ConfigurationId,
    rate: f64,
    /// The plan's highest rate.
    max: f64,
}

/// The selected configuration's running open cell, or a word why there is none.
fn running(state: &State) -> Result<Running, String> {
    let known = state.snapshot.as_ref().zip(state.configuration());
    let (snapshot, status) = known.ok_or("no configuration is known yet")?;
    let (configuration, max) = (status.id.clone(), snapshot.header.max_rate);
    match status.cell.as_ref().map(|cell| cell.load) {
        Some(Load::Open { rate, .. }) => Ok(Running { configuration, rate, max }),
        Some(load) => Err(format!(
            "{configuration} runs a closed loop ({load}), which has no rate; start an open one"
        )),
        None => Err(format!("{configuration} runs no cell; start an open one")),
    }
}

/// The running open cell, or a toast why there is none that this console may drive.
fn drivable(state: &mut State, what: &str) -> Option<Running> {
    if !may_drive(state, what) {
        return None;
    }
    match running(state) {
        Ok(running) => Some(running),
        Err(why) => {
            toast(state, true, format!("{what}: {why}"));
            None
        }
    }
}

/// From where to where a rate goes, as it is said once it is done.
fn from_to(configuration: &ConfigurationId, from: f64, to: f64) -> String {
    format!("{configuration} {} → {}/s", rate_text(from), rate_text(to))
}

/// Multiplies the running rate, at most to the plan's highest.
pub(super) fn step_rate(state: &mut State, factor: f64) -> Vec<Effect> {
    let Some(Running { configuration, rate, max }) = drivable(state, "no step") else {
        return Vec::new();
    };
    if factor > 1.0 && rate >= max {
        let max = rate_text(max);
        toast(state, true, format!("no step: {max}/s is the highest rate the plan allows"));
        return Vec::new();
    }
    let clamped = factor > 1.0 && rate * factor > max;
    let (step, done) = if clamped {
        let done = format!("{}, the plan's highest", from_to(&configuration, rate, max));
        (RateStep::To { rate: max }, done)
    } else {
        (RateStep::Times { factor }, from_to(&configuration, rate, rate * factor))
    };
    send_saying(state, Command::StepRate { configuration, step }, done)
}

/// Opens the line where a rate is typed.
pub(super) fn open_rate(state: &mut State) {
    if let Some(Running { configuration, rate, max }) = drivable(state, "no rate to set") {
        state.dialog = Some(Dialog::Rate(RateForm::new(configuration, rate, max)));
    }
}

/// Opens the form of a ramp.
pub(super) fn open_ramp(state: &mut State) {
    if let Some(Running { configuration, rate, max }) = drivable(state, "no ramp") {
        state.dialog = Some(Dialog::Ramp(RampForm::new(configuration, rate, max)));
    }
}

/// Sends a rate that was typed in the palette.
///
/// # Errors
/// When it is no rate of this plan, or none can be set.
pub(super) fn set_rate(state: &mut State, text: &str) -> Result<Vec<Effect>, String> {
    let Running { configuration, rate, max } = running(state)?;
    let mut form = RateForm::new(configuration, rate, max);
    form.input = form.input.with_value(text.to_owned());
    let command = form.submit().ok_or_else(|| form.error.unwrap_or_default())?;
    Ok(submit(state, command))
}

/// Sends a ramp that was typed in the palette: a rate, and seconds where they are said.
///
/// # Errors
/// When it is no ramp of this plan, or there is nothing to ramp.
pub(super) fn set_ramp(state: &mut State, text: &str) -> Result<Vec<Effect>, String> {
    let Running { configuration, rate, max } = running(state)?;
    let mut form = RampForm::new(configuration, rate, max);
    let words: Vec<&str> = text.split_whitespace().collect();
    let (to, over) = match words[..] {
        [to] => (to, None),
        [to, over] | [to, "over", over] => (to, Some(over)),
        _ => return Err(format!("`{text}`: a rate, then seconds, as in 2000 60")),
    };
    form.to = form.to.with_value(to.to_owned());
    if let Some(over) = over {
        form.over = form.over.with_value(over.to_owned());
    }
    let command = form.submit().ok_or_else(|| match form.errors {
        (Some(to), _) => format!("rate: {to}"),
        (None, over) => format!("seconds: {}", over.unwrap_or_default()),
    })?;
    Ok(submit(state, command))
}

/// Sends a step that was typed, with from where to where it goes.
pub(super) fn submit(state: &mut State, command: Command) -> Vec<Effect> {
    let from = running(state).map(|running| running.rate);
    let done = match (&command, from) {
        (Command::StepRate { configuration, step: RateStep::To { rate } }, Ok(from)) => {
            Some(from_to(configuration, from, *rate))
        }
        (Command::Ramp { configuration, to, over_s }, Ok(from)) => {
            let from_to = from_to(configuration, from, *to);
            Some(format!("ramp of {from_to} over {} s begun", rate_text(*over_s)))
        }
        _ => None,
    };
    match done {
        Some(done) => send_saying(state, command, done),
        None => send(state, command),
    }
}

/// Ends the ramp of the selected configuration at the rate it has reached.
pub(super) fn hold_rate(state: &mut State) -> Vec<Effect> {
    let Some(status) = state.configuration() else {
        toast(state, true, "no ramp to end: no configuration is known yet".to_owned());
        return Vec::new();
    };
    let configuration = status.id.clone();
    if status.ramp.is_none() {
        toast(state, true, format!("{configuration} has no ramp under way"));
        return Vec::new();
    }
    send(state, Command::HoldRate { configuration })
}

/// Goes back to the rate before the last step.
pub(super) fn undo_step(state: &mut State) -> Vec<Effect> {
    let Some(status) = state.configuration() else {
        toast(state, true, "no step to undo: no configuration is known yet".to_owned());
        return Vec::new();
    };
    let configuration = status.id.clone();
    let Some(to) = status.undo_rate else {
        toast(state, true, format!("{configuration} has no step to undo"));
        return Vec::new();
    };
    let done = match running(state) {
        Ok(running) => format!("{}, the step undone", from_to(&configuration, running.rate, to)),
        Err(_) => format!("{configuration} back to {}/s, the step undone", rate_text(to)),
    };
    send_saying(state, Command::UndoStep { configuration }, done)
}
