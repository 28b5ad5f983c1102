//! Steps and what they say, who may drive, and a decision that opens under the operator's fingers.

use super::*;
use crate::console::state::View;
use crate::model::RampStatus;

fn watching() -> State {
    let mut state = state_of(snapshot());
    state.number = 2;
    state
}

#[test]
fn a_step_says_from_where_to_where() {
    let mut state = state_of(snapshot());
    let effects = press(&mut state, "+");
    reply(&mut state, &effects, None);
    assert_eq!(toast(&state), "D1 6,750 → 7,425/s");
    later(&mut state, 1);
    let effects = press(&mut state, "x");
    reply(&mut state, &effects, None);
    assert_eq!(toast(&state), "D1 6,750 → 8,100/s, the plan's highest");
    later(&mut state, 1);
    let mut stepped = snapshot();
    stepped.configurations[0].undo_rate = Some(5_400.0);
    show(&mut state, stepped);
    let effects = press(&mut state, "z");
    assert_eq!(sent(&effects), Some(&Command::UndoStep { configuration: id("D1") }));
    reply(&mut state, &effects, None);
    assert_eq!(toast(&state), "D1 6,750 → 5,400/s, the step undone");
    press(&mut state, "down z");
    assert_eq!(toast(&state), "R1 has no step to undo");
}

#[test]
fn whatever_way_a_rate_is_changed_it_is_one_step_a_second() {
    let mut state = state_of(snapshot());
    let mut stepped = snapshot();
    stepped.configurations[0].undo_rate = Some(5_400.0);
    show(&mut state, stepped);
    let first = press(&mut state, "-");
    press(&mut state, "r 5 0 0");
    assert_eq!(press(&mut state, "enter"), []);
    assert!(matches!(state.dialog, Some(Dialog::Rate(_))), "what was typed is kept");
    let wait = "one step a second, after the last one's answer";
    let said = format!("not sent: D1 6,750 → 500/s: {wait} (under way: D1 6,750 → 6,075/s)");
    assert_eq!(toast(&state), said);
    press(&mut state, "esc");
    reply(&mut state, &first, None);
    assert_eq!(press(&mut state, "z"), []);
    assert_eq!(toast(&state), format!("not sent: D1 6,750 → 5,400/s, the step undone: {wait}"));
    later(&mut state, 1);
    assert!(sent(&press(&mut state, "z")).is_some());
}

#[test]
fn a_ramp_is_typed_and_what_is_wrong_is_said_beside_its_field() {
    let mut state = state_of(snapshot());
    press(&mut state, "m");
    type_text(&mut state, "9000");
    press(&mut state, "tab 0");
    assert_eq!(press(&mut state, "enter"), []);
    let Some(Dialog::Ramp(form)) = &state.dialog else { panic!("the form has closed") };
    assert_eq!(form.errors.0.as_deref(), Some("`9000`: above 0, at most 8100 (max_rate)"));
    assert_eq!(form.errors.1.as_deref(), Some("`0`: seconds, 1 to 86400"));
    assert!(!form.on_time, "the first wrong field is in focus");
    type_text(&mut state, "6750");
    press(&mut state, "tab 3 0");
    assert_eq!(press(&mut state, "enter"), []);
    let Some(Dialog::Ramp(form)) = &state.dialog else { panic!("the form has closed") };
    assert_eq!(form.errors.0.as_deref(), Some("6750 is the rate it has now"));
    type_text(&mut state, "8000");
    let ramp = Command::Ramp { configuration: id("D1"), to: 8_000.0, over_s: 30.0 };
    let effects = press(&mut state, "enter");
    assert_eq!(sent(&effects), Some(&ramp));
    reply(&mut state, &effects, None);
    assert_eq!(toast(&state), "ramp of D1 6,750 → 8,000/s over 30 s begun");
    let mut ramping = snapshot();
    ramping.configurations[0].ramp = Some(RampStatus { to: 8_000.0, step: 1, of: 4, next_at: NOW });
    show(&mut state, ramping);
    let hold = Command::HoldRate { configuration: id("D1") };
    assert_eq!(sent(&press(&mut state, "h")), Some(&hold), "it does not wait for a second");
}

#[test]
fn a_console_that_watches_is_told_at_once_who_drives() {
    let who = "anna on pts/3 (console 1) drives, this console watches; C asks for control";
    for (key, what) in [
        ("s", "no cell started"),
        ("a", "no cell started"),
        ("+", "no step"),
        ("r", "no rate to set"),
        ("m", "no ramp"),
        ("S", "not sent: stop cell on D1"),
        ("p", "not sent: pause the plan"),
        ("G", "no control to give or keep"),
    ] {
        let mut state = watching();
        assert_eq!(press(&mut state, key), [], "{key}");
        assert!(state.dialog.is_none(), "{key}");
        assert_eq!(toast(&state), format!("{what}: {who}"));
    }
    assert_eq!(sent(&press(&mut watching(), "C")), Some(&Command::AskControl));
    let mut state = watching();
    press(&mut state, "T");
    type_text(&mut state, RUN);
    assert!(sent(&press(&mut state, "enter")).is_some(), "nobody waits to end what bills");
    let mut asked = snapshot();
    asked.decision = Some(decision());
    let mut state = watching();
    show(&mut state, asked);
    later(&mut state, 1);
    assert_eq!(press(&mut state, "3"), []);
    assert_eq!(toast(&state), format!("not answered: {who}"));
}

#[test]
fn control_is_given_or_kept_only_where_it_was_asked_for() {
    let mut state = state_of(snapshot());
    state.number = 1;
    assert_eq!(press(&mut state, "C"), []);
    assert_eq!(toast(&state), "this console has control already");
    assert_eq!(press(&mut state, "G"), []);
    assert_eq!(toast(&state), "no console asks for control");
    let mut asked = snapshot();
    asked.control.asked = Some((2, NOW));
    show(&mut state, asked);
    assert_eq!(sent(&press(&mut state, "G")), Some(&Command::GiveControl));
    assert_eq!(sent(&press(&mut state, "K")), Some(&Command::KeepControl));
}

#[test]
fn a_key_meant_for_a_view_does_not_answer_a_decision_that_opened_meanwhile() {
    let mut asked = snapshot();
    asked.decision = Some(decision());
    let mut state = state_of(asked.clone());
    let early = "the decision has opened just now: nothing was answered, press again";
    for key in ["3", "1", "e"] {
        assert_eq!(press(&mut state, key), []);
        assert_eq!(toast(&state), early);
    }
    update(&mut state, Msg::Tick(UnixMs(NOW.0 + 699)));
    assert_eq!(press(&mut state, "3"), []);
    update(&mut state, Msg::Tick(UnixMs(NOW.0 + 700)));
    assert_eq!(sent(&press(&mut state, "3")), Some(&answer("hold")));
    // Another one takes the first one's place: its digits mean something else.
    let mut state = deciding();
    let mut next = asked.clone();
    next.decision.as_mut().unwrap().id = "after-explore".into();
    show(&mut state, next);
    assert_eq!(press(&mut state, "3"), []);
    // Who opens it means it.
    let mut state = deciding();
    press(&mut state, "esc d");
    assert_eq!(sent(&press(&mut state, "3")), Some(&answer("hold")));
}

#[test]
fn a_decision_is_opened_and_answered_from_every_view() {
    for view in [View::Configuration, View::Compare, View::Cells, View::Resources, View::Log] {
        let mut state = deciding();
        press(&mut state, "esc");
        state.view = view;
        press(&mut state, "d");
        assert_eq!(sent(&press(&mut state, "3")), Some(&answer("hold")), "{view:?}");
        assert_eq!(state.view, view);
    }
}

#[test]
fn what_is_pasted_goes_into_the_field_or_is_said_to_go_nowhere() {
    let mut state = state_of(snapshot());
    update(&mut state, Msg::Paste("5400\n".into()));
    assert_eq!(toast(&state), "nothing here takes what was pasted");
    press(&mut state, "s tab");
    update(&mut state, Msg::Paste(" 5400\r\n".into()));
    let Some(Dialog::Start(form)) = &state.dialog else { panic!("the form has closed") };
    assert_eq!(form.input(Field::Rate).unwrap().value(), "5400", "it replaces what stood there");
    press(&mut state, "backtab");
    update(&mut state, Msg::Paste("7".into()));
    assert_eq!(toast(&state), "nothing here takes what was pasted");
}
