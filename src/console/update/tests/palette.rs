//! What is typed in the palette, done or refused in words.

use super::*;
use crate::{
    console::{action::Action, keymap::Keymap, looks::Figure, state::View},
    model::Level,
};

/// Types a line into the palette and takes it.
fn line(state: &mut State, text: &str) -> Vec<Effect> {
    press(state, ":");
    type_line(state, text);
    press(state, "enter")
}

fn type_line(state: &mut State, text: &str) {
    update(state, Msg::Paste(text.into()));
}

fn error(state: &State) -> &str {
    let Some(Dialog::Palette(panel)) = &state.dialog else { panic!("the palette has closed") };
    panel.error.as_deref().unwrap_or("")
}

#[test]
fn a_rate_and_a_ramp_are_typed() {
    let step = |rate| Command::StepRate { configuration: id("D1"), step: RateStep::To { rate } };
    let ramp = |over_s| Command::Ramp { configuration: id("D1"), to: 2_000.0, over_s };
    for (text, command) in [
        ("rate 500", step(500.0)),
        ("ramp 2000 60", ramp(60.0)),
        ("ramp 2000 over 90", ramp(90.0)),
        ("ramp 2000", ramp(60.0)),
    ] {
        let mut state = state_of(snapshot());
        assert_eq!(sent(&line(&mut state, text)), Some(&command), "{text}");
        assert!(state.dialog.is_none());
    }
    let mut state = state_of(snapshot());
    line(&mut state, "rate");
    assert!(matches!(state.dialog, Some(Dialog::Rate(_))), "without a word the form opens");
}

#[test]
fn a_cell_is_started_by_a_line() {
    let start = |load, when| Command::StartCell {
        configuration: id("D1"),
        load,
        warmup_s: 120.0,
        measure_s: 300.0,
        when,
    };
    let open = |connections| Load::Open { rate: 500.0, arrivals: Arrivals::Poisson, connections };
    for (text, command) in [
        ("start open 500", start(open(256), When::Now)),
        ("add open 500 32", start(open(32), When::After)),
        ("start closed 64", start(Load::Closed { connections: 64 }, When::Now)),
    ] {
        assert_eq!(sent(&line(&mut state_of(snapshot()), text)), Some(&command), "{text}");
    }
}

#[test]
fn views_and_looks_are_set_by_a_line() {
    let mut state = state_of(snapshot());
    assert_eq!(line(&mut state, "select r1"), []);
    assert_eq!((state.selected, toast(&state)), (1, "R1 is selected"));
    line(&mut state, "compare p99");
    assert_eq!((state.view, state.looks.figure), (View::Compare, Figure::P99OfSlo));
    line(&mut state, "log error");
    assert_eq!((state.view, state.looks.log.least), (View::Log, Some(Level::Error)));
    line(&mut state, "log /no window");
    assert_eq!(state.looks.log.search.value(), "no window");
    line(&mut state, "keymap vim");
    assert_eq!(state.keymap, Keymap::named("vim").unwrap());
    let used = [Action::Keymap, Action::Log, Action::Compare, Action::Select];
    assert_eq!(state.recent, used);
    press(&mut state, ":");
    let Some(Dialog::Palette(panel)) = &state.dialog else { panic!("no palette") };
    let first = panel.candidates().into_iter().take(3).map(|candidate| candidate.text);
    assert_eq!(first.collect::<Vec<_>>(), ["keymap", "log", "compare"]);
}

#[test]
fn wrong_words_are_named_with_what_is_allowed_and_the_line_stays() {
    for (text, why) in [
        ("rate 9000", "rate: `9000`: above 0, at most 8100 (max_rate)"),
        ("rate many", "rate: `many`: above 0, at most 8100 (max_rate)"),
        ("rate NaN", "rate: `NaN`: above 0, at most 8100 (max_rate)"),
        ("ramp 2000 0", "ramp: seconds: `0`: seconds, 1 to 86400"),
        ("ramp 1 2 3", "ramp: `1 2 3`: a rate, then seconds, as in 2000 60"),
        (
            "start many",
            "start: `many`: allowed are open RATE, open RATE CONNECTIONS and closed CONNECTIONS",
        ),
        ("start closed 0", "start: connections: `0`: a whole number from 1"),
        ("start open 9000", "start: rate /s: `9000`: above 0, at most 8100 (max_rate)"),
        ("select D9", "select: no configuration `D9`; there are D1, R1, A1, A2"),
        ("select", "select: which configuration? There are D1, R1, A1, A2"),
        ("compare size", "compare: no figure `size`; there are succeeded, p99, wait, retries, cpu"),
        ("log loud", "log: no level `loud`; there are all, warning, error, or /TEXT to search"),
        ("keymap emacs", "keymap: no keymap `emacs`; there are default, vim"),
        ("freeze now", "freeze: it takes no words after it, found `now`"),
        ("explode", "no command `explode` here; tab and the arrows show what there is"),
        ("figure", "`figure` means nothing in the overview layer"),
    ] {
        let mut state = state_of(snapshot());
        assert_eq!(line(&mut state, text), [], "{text}");
        assert_eq!(error(&state), why);
        press(&mut state, "ctrl-u");
        assert_eq!(error(&state), "");
    }
    let mut state = state_of(snapshot());
    line(&mut state, "select R1");
    line(&mut state, "rate 500");
    assert_eq!(error(&state), "rate: R1 runs no cell; start an open one");
}

#[test]
fn every_command_of_the_help_that_takes_words_takes_them() {
    for action in Action::with_arguments() {
        let words = match action {
            Action::RateType => "500",
            Action::Ramp => "500 60",
            Action::StartCell | Action::AddCell => "open 500",
            Action::Select => "R1",
            Action::Compare => "cpu",
            Action::Log => "all",
            Action::Keymap => "vim",
            other => panic!("no words are known for {}", other.name()),
        };
        let mut state = state_of(snapshot());
        line(&mut state, &format!("{} {words}", action.name()));
        assert!(state.dialog.is_none(), "{}: {}", action.name(), error(&state));
        assert_eq!(state.recent, [action]);
    }
}
