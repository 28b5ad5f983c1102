//! What the palette's line does.

use tui_input::Input;

use crate::model::{Level, When};

use super::{
    super::{
        action::Action,
        form::StartForm,
        keymap::{self, Keymap},
        looks::Figure,
        palette::{LEVELS, PalettePanel},
        state::{Dialog, State, View},
    },
    Effect,
    command::{may_drive, send},
    keys, rate, toast,
};

/// How many commands are remembered as used.
const RECENT: usize = 8;

/// Opens the palette over what is on top.
pub(super) fn open(state: &mut State) {
    let from = state.layer();
    let configurations = state.snapshot.as_ref().map(|snapshot| &snapshot.configurations);
    let ids = configurations.into_iter().flatten().map(|status| &status.id);
    state.dialog = Some(Dialog::Palette(PalettePanel::new(from, &state.recent, ids)));
}

/// Does what the line says; what is wrong with it is said below it, and it stays.
pub(super) fn submit(state: &mut State) -> Vec<Effect> {
    let Some(Dialog::Palette(panel)) = &state.dialog else { return Vec::new() };
    let mut panel = panel.clone();
    // What a command opens takes the palette's place.
    state.dialog = None;
    let done = panel.chosen().and_then(|(action, words)| {
        let done = run(state, action, &words).map_err(|why| format!("{}: {why}", action.name()));
        done.map(|effects| (action, effects))
    });
    match done {
        Ok((action, effects)) => {
            state.recent.retain(|known| *known != action);
            state.recent.insert(0, action);
            state.recent.truncate(RECENT);
            effects
        }
        Err(why) => {
            panel.error = Some(why);
            state.dialog = Some(Dialog::Palette(panel));
            Vec::new()
        }
    }
}

/// Does an action with the words after it.
fn run(state: &mut State, action: Action, words: &str) -> Result<Vec<Effect>, String> {
    if words.is_empty() && !action.needs_arguments() {
        return Ok(keys::act(state, action));
    }
    match action {
        Action::RateType => rate::set_rate(state, words),
        Action::Ramp => rate::set_ramp(state, words),
        Action::StartCell => start(state, words, When::Now),
        Action::AddCell => start(state, words, When::After),
        Action::Select => select(state, words),
        Action::Compare => compare(state, words),
        Action::Log => log(state, words),
        Action::Keymap => take_keymap(state, words),
        _ => Err(format!("it takes no words after it, found `{words}`")),
    }
}

/// Starts or queues a cell with a load that was typed; its spans are the last cell's.
fn start(state: &mut State, text: &str, when: When) -> Result<Vec<Effect>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (open_loop, rate, connections) = match words[..] {
        ["open", rate] => (true, Some(rate), None),
        ["open", rate, connections] => (true, Some(rate), Some(connections)),
        ["closed", connections] => (false, None, Some(connections)),
        _ => {
            return Err(format!(
                "`{text}`: allowed are open RATE, open RATE CONNECTIONS and closed CONNECTIONS"
            ));
        }
    };
    if !may_drive(state, "no cell started") {
        return Ok(Vec::new());
    }
    let known = state.snapshot.as_ref().zip(state.configuration());
    let (snapshot, status) = known.ok_or("no configuration is known yet")?;
    let spans = state.record.spans(&status.id);
    let mut form = StartForm::new(status, spans, snapshot.header.max_rate, when);
    form.set_load(open_loop, rate, connections);
    match form.submit() {
        Some(command) => Ok(send(state, command)),
        None => {
            let (field, why) = form.errors.into_iter().next().ok_or("the form is not whole")?;
            Err(format!("{}: {why}", field.label()))
        }
    }
}

fn select(state: &mut State, name: &str) -> Result<Vec<Effect>, String> {
    let configurations = state.snapshot.as_ref().map(|snapshot| &snapshot.configurations);
    let ids = configurations.into_iter().flatten().map(|status| status.id.as_str());
    let ids: Vec<&str> = ids.collect();
    let at = ids.iter().position(|id| id.eq_ignore_ascii_case(name));
    let at = at.ok_or_else(|| none_of("configuration", name, &ids))?;
    toast(state, false, format!("{} is selected", ids[at]));
    state.selected = at;
    Ok(Vec::new())
}

fn compare(state: &mut State, word: &str) -> Result<Vec<Effect>, String> {
    let words = Figure::ALL.map(Figure::word);
    let figure = Figure::ALL.into_iter().find(|figure| figure.word().eq_ignore_ascii_case(word));
    state.looks.figure = figure.ok_or_else(|| none_of("figure", word, &words))?;
    state.view = View::Compare;
    Ok(Vec::new())
}

/// Shows the log from a level on, or what contains a text.
fn log(state: &mut State, words: &str) -> Result<Vec<Effect>, String> {
    if let Some(text) = words.strip_prefix('/') {
        state.looks.log.search = Input::new(text.trim().to_owned());
    } else {
        state.looks.log.least = match words {
            "all" => None,
            "warning" => Some(Level::Warning),
            "error" => Some(Level::Error),
            _ => return Err(format!("{}, or /TEXT to search", none_of("level", words, &LEVELS))),
        };
    }
    state.looks.log.up = 0;
    state.view = View::Log;
    Ok(Vec::new())
}

fn take_keymap(state: &mut State, name: &str) -> Result<Vec<Effect>, String> {
    let names = keymap::names();
    if !names.contains(&name) {
        return Err(none_of("keymap", name, &names));
    }
    state.keymap = Keymap::named(name).map_err(|error| error.to_string())?;
    toast(state, false, format!("keymap {name}, as long as this console is open"));
    Ok(Vec::new())
}

/// What was found where one of some names was to be.
fn none_of(what: &str, found: &str, names: &[&str]) -> String {
    let names = names.join(", ");
    if found.is_empty() {
        format!("which {what}? There are {names}")
    } else {
        format!("no {what} `{found}`; there are {names}")
    }
}
