mod chords;
mod driving;
mod every_key;
mod palette;

use crate::{
    console::{
        ConsoleExit,
        fixture::{NOW, RUN, decision, id, press, show, snapshot, state_of, teardown, type_text},
        form::Field,
        removal::Removal,
        state::{Dialog, LinkState, State, View},
        update::{Effect, Msg, update},
    },
    link::ServerFrame,
    model::{Arrivals, Command, ConfigurationState, Load, RateStep, RunId, RunState, UnixMs, When},
};

fn sent(effects: &[Effect]) -> Option<&Command> {
    match effects {
        [Effect::Send { command, .. }] => Some(command),
        _ => None,
    }
}

fn toast(state: &State) -> &str {
    state.toast.as_ref().map_or("", |toast| toast.text.as_str())
}

fn later(state: &mut State, seconds: u64) {
    update(state, Msg::Tick(UnixMs(state.now.0 + seconds * 1_000)));
}

fn reply(state: &mut State, effects: &[Effect], refused: Option<&str>) {
    let [Effect::Send { id, .. }] = effects else { panic!("nothing was sent: {effects:?}") };
    let refused = refused.map(str::to_owned);
    update(state, Msg::Frame(ServerFrame::Reply { id: *id, refused }));
}

#[test]
fn a_cell_starts_with_the_running_load_filled_in() {
    let mut state = state_of(snapshot());
    let effects = press(&mut state, "s enter");
    let expected = Command::StartCell {
        configuration: id("D1"),
        load: Load::Open { rate: 6_750.0, arrivals: Arrivals::Poisson, connections: 256 },
        warmup_s: 120.0,
        measure_s: 300.0,
        when: When::Now,
    };
    assert_eq!(sent(&effects), Some(&expected));
    assert!(state.dialog.is_none());
}

#[test]
fn a_cell_is_typed_field_by_field() {
    let mut state = state_of(snapshot());
    press(&mut state, "down s");
    // Closed to open, then the rate, the connections, the spans, and when.
    press(&mut state, "space tab");
    press(&mut state, "4 0 0 tab");
    press(&mut state, "backspace backspace 3 2 tab");
    press(&mut state, "ctrl-u 3 0 tab ctrl-u 6 0 tab right");
    let effects = press(&mut state, "enter");
    let expected = Command::StartCell {
        configuration: id("R1"),
        load: Load::Open { rate: 400.0, arrivals: Arrivals::Poisson, connections: 32 },
        warmup_s: 30.0,
        measure_s: 60.0,
        when: When::After,
    };
    assert_eq!(sent(&effects), Some(&expected));
}

#[test]
fn what_is_wrong_with_a_field_is_said_beside_it() {
    let mut state = state_of(snapshot());
    press(&mut state, "s tab");
    type_text(&mut state, "0");
    assert_eq!(press(&mut state, "enter"), []);
    let Some(Dialog::Start(form)) = &state.dialog else { panic!("the form has closed") };
    assert_eq!(form.focus, Field::Rate);
    assert_eq!(form.error(Field::Rate), Some("`0`: above 0, at most 8100 (max_rate)"));
    assert_eq!(form.error(Field::Connections), None);
    press(&mut state, "backspace");
    let Some(Dialog::Start(form)) = &state.dialog else { panic!("the form has closed") };
    assert_eq!(form.error(Field::Rate), None);
    assert_eq!(press(&mut state, "esc"), []);
    assert!(state.dialog.is_none());
}

#[test]
fn a_key_held_down_does_not_run_away() {
    let mut state = state_of(snapshot());
    let step =
        |factor| Command::StepRate { configuration: id("D1"), step: RateStep::Times { factor } };
    let first = press(&mut state, "+");
    assert_eq!(sent(&first), Some(&step(1.1)));
    for _ in 0..30 {
        assert_eq!(press(&mut state, "+"), []);
    }
    reply(&mut state, &first, None);
    assert_eq!(press(&mut state, "+"), [], "a second has not passed");
    later(&mut state, 1);
    assert_eq!(sent(&press(&mut state, "X")), Some(&step(0.5)));
}

#[test]
fn a_step_goes_at_most_to_the_plans_highest_rate() {
    let mut state = state_of(snapshot());
    let to_max =
        Command::StepRate { configuration: id("D1"), step: RateStep::To { rate: 8_100.0 } };
    let effects = press(&mut state, "x");
    assert_eq!(sent(&effects), Some(&to_max));
    reply(&mut state, &effects, None);
    let mut at_max = snapshot();
    let cell = at_max.configurations[0].cell.as_mut().unwrap();
    cell.load = Load::Open { rate: 8_100.0, arrivals: Arrivals::Poisson, connections: 256 };
    show(&mut state, at_max);
    later(&mut state, 2);
    assert_eq!(press(&mut state, "x"), []);
    assert_eq!(toast(&state), "no step: 8,100/s is the highest rate the plan allows");
}

#[test]
fn a_rate_is_typed_and_a_closed_loop_has_none() {
    let mut state = state_of(snapshot());
    press(&mut state, "r ctrl-u");
    type_text(&mut state, "9000");
    assert_eq!(press(&mut state, "enter"), []);
    press(&mut state, "ctrl-u");
    type_text(&mut state, "5400");
    let to = Command::StepRate { configuration: id("D1"), step: RateStep::To { rate: 5_400.0 } };
    assert_eq!(sent(&press(&mut state, "enter")), Some(&to));
    press(&mut state, "up r");
    assert!(state.dialog.is_none());
    let why =
        "no rate to set: A2 runs a closed loop (closed 256), which has no rate; start an open one";
    assert_eq!(toast(&state), why);
    press(&mut state, "up +");
    assert_eq!(toast(&state), "no step: A1 runs no cell; start an open one");
}

#[test]
fn pausing_twice_resumes() {
    let mut state = state_of(snapshot());
    assert_eq!(sent(&press(&mut state, "p")), Some(&Command::Pause));
    let mut paused = snapshot();
    paused.state = RunState::Paused;
    show(&mut state, paused);
    assert_eq!(sent(&press(&mut state, "p")), Some(&Command::Resume));
}

#[test]
fn a_refusal_stays_some_seconds_in_words() {
    let mut state = state_of(snapshot());
    let effects = press(&mut state, "S");
    assert_eq!(sent(&effects), Some(&Command::StopCell { configuration: id("D1") }));
    reply(&mut state, &effects, Some("the cell is draining; it ends within 5 s"));
    let text = "refused: stop cell on D1: the cell is draining; it ends within 5 s";
    assert_eq!(toast(&state), text);
    later(&mut state, 8);
    assert_eq!(toast(&state), text);
    later(&mut state, 1);
    assert_eq!(toast(&state), "");
}

fn deciding() -> State {
    let mut snapshot = snapshot();
    snapshot.decision = Some(decision());
    let mut state = state_of(snapshot);
    // It has been open long enough to take answers.
    later(&mut state, 1);
    state
}

fn answer(option: &str) -> Command {
    Command::Answer { decision: "after-pilot".into(), option: option.into() }
}

#[test]
fn a_decision_opens_by_itself_and_its_safe_default_takes_one_key() {
    let mut state = deciding();
    assert!(matches!(state.dialog, Some(Dialog::Decision(_))));
    assert_eq!(sent(&press(&mut state, "3")), Some(&answer("hold")));
    assert!(state.dialog.is_none());
}

#[test]
fn an_option_that_spends_more_or_removes_asks_for_enter() {
    for (keys, option) in [("1", "go"), ("2", "without")] {
        let mut state = deciding();
        assert_eq!(press(&mut state, "enter"), []);
        assert_eq!(press(&mut state, keys), []);
        assert_eq!(sent(&press(&mut state, "enter")), Some(&answer(option)));
    }
    let mut state = deciding();
    assert_eq!(press(&mut state, "7"), []);
    assert_eq!(toast(&state), "no option 7: 1 to 4");
}

#[test]
fn an_option_that_removes_everything_asks_for_the_runs_name() {
    let mut state = deciding();
    press(&mut state, "4 enter");
    type_text(&mut state, RUN);
    assert_eq!(sent(&press(&mut state, "enter")), Some(&answer("stop")));
    // The deadline passes while the name is typed: nothing is sent.
    let mut state = deciding();
    press(&mut state, "4 enter");
    show(&mut state, snapshot());
    assert!(state.dialog.is_none());
    assert_eq!(toast(&state), "the decision is no longer pending: nothing was sent");
}

#[test]
fn a_decision_can_wait_behind_a_banner_and_be_put_off() {
    let mut state = deciding();
    press(&mut state, "esc");
    assert!(state.dialog.is_none());
    let mut again = snapshot();
    again.decision = Some(decision());
    show(&mut state, again);
    assert!(state.dialog.is_none(), "it opens by itself only once");
    press(&mut state, "d");
    let extend = Command::Extend { decision: "after-pilot".into(), seconds: 300 };
    assert_eq!(sent(&press(&mut state, "e")), Some(&extend));
    show(&mut state, snapshot());
    assert!(state.dialog.is_none(), "it was answered elsewhere");
}

#[test]
fn a_decision_does_not_break_into_a_form() {
    let mut state = state_of(snapshot());
    press(&mut state, "s");
    let mut asked = snapshot();
    asked.decision = Some(decision());
    show(&mut state, asked);
    assert!(matches!(state.dialog, Some(Dialog::Start(_))));
}

#[test]
fn teardown_asks_for_the_runs_name_from_every_layer() {
    for before in ["", "s ", "? ", "r "] {
        let mut state = state_of(snapshot());
        press(&mut state, &format!("{before}T"));
        assert!(matches!(state.dialog, Some(Dialog::Teardown(_))), "after {before:?}");
        type_text(&mut state, "e002");
        assert_eq!(press(&mut state, "enter"), []);
        let Some(Dialog::Teardown(panel)) = &state.dialog else { panic!("it has closed") };
        let error = format!("that is not the run's name: type {RUN}");
        assert_eq!(panel.error.as_ref(), Some(&error));
        type_text(&mut state, &RUN[4..]);
        let confirm = RUN.to_owned();
        assert_eq!(sent(&press(&mut state, "enter")), Some(&Command::Teardown { confirm }));
    }
}

#[test]
fn a_teardown_under_way_opens_once_and_takes_no_letters() {
    let mut state = deciding();
    let mut going = snapshot();
    going.teardown = Some(teardown(false));
    show(&mut state, going.clone());
    assert!(matches!(state.dialog, Some(Dialog::Teardown(_))));
    assert_eq!(press(&mut state, "enter"), []);
    press(&mut state, "esc");
    show(&mut state, going);
    assert!(state.dialog.is_none());
}

#[test]
fn leaving_detaches_and_the_run_goes_on() {
    let run = Some(RunId::new(RUN));
    for keys in ["q", "ctrl-c", "s ctrl-c"] {
        let mut state = state_of(snapshot());
        let exit = ConsoleExit::Detached { run: run.clone() };
        assert_eq!(press(&mut state, keys), [Effect::Exit(exit)]);
    }
    let mut state = state_of(snapshot());
    press(&mut state, "? q");
    assert!(state.dialog.is_none(), "q closes the help");
}

#[test]
fn a_lost_engine_takes_no_commands_and_comes_back() {
    let mut state = state_of(snapshot());
    press(&mut state, "p");
    update(&mut state, Msg::Disconnected { why: "the engine closed the socket".into() });
    assert_eq!(toast(&state), "no answer to \"pause the plan\": the engine was lost");
    later(&mut state, 12);
    assert_eq!(state.stale_s(), Some(12.0));
    assert_eq!(press(&mut state, "p"), []);
    let why = format!(
        "not sent: pause the plan: the engine is lost; rampdeck teardown {RUN} works without it"
    );
    assert_eq!(toast(&state), why);
    let lost = ConsoleExit::Lost { run: Some(RunId::new(RUN)) };
    assert_eq!(press(&mut state, "q"), [Effect::Exit(lost)]);
    update(&mut state, Msg::Connected { build: "0.1.0".into(), number: 1 });
    show(&mut state, snapshot());
    assert_eq!((state.link.clone(), state.stale_s()), (LinkState::Live, None));
}

#[test]
fn the_end_stays_until_it_is_read() {
    let mut state = deciding();
    let text = "12 cells, 11 PASS, 1 FAIL".to_owned();
    update(&mut state, Msg::Frame(ServerFrame::Ended { exit_code: 1, text: text.clone() }));
    assert!(state.dialog.is_none());
    later(&mut state, 100);
    assert_eq!(state.stale_s(), None);
    press(&mut state, "down T x s");
    let exit = ConsoleExit::Ended { exit_code: 1, text };
    assert_eq!(press(&mut state, "enter"), [Effect::Exit(exit)]);
}

#[test]
fn a_selection_survives_fewer_configurations() {
    let mut state = state_of(snapshot());
    press(&mut state, "up");
    assert_eq!(state.selected, 3);
    let mut fewer = snapshot();
    fewer.configurations.truncate(2);
    fewer.configurations[1].state = ConfigurationState::Removed;
    show(&mut state, fewer);
    assert_eq!(state.selected, 1);
    assert_eq!(state.now, NOW);
}

#[test]
fn a_teardown_without_its_engine_goes_on_by_itself_and_can_be_tried_again() {
    let mut state = state_of(snapshot());
    update(&mut state, Msg::Disconnected { why: "gone".into() });
    press(&mut state, "T");
    type_text(&mut state, RUN);
    let effects = press(&mut state, "enter");
    assert_eq!(effects, [Effect::Remove { run: RunId::new(RUN) }]);
    let items = |state: &State| {
        let status = state.snapshot.as_ref().unwrap().teardown.as_ref().unwrap();
        (status.items.len(), status.remaining_count, status.ended.is_some())
    };
    assert_eq!(items(&state), (5, 5, false), "everything known waits");
    assert!(press(&mut state, "ctrl-r").is_empty(), "one removal at a time");

    let gone = crate::model::TeardownItem {
        gone: true,
        state: "gone".into(),
        ..state.snapshot.as_ref().unwrap().teardown.as_ref().unwrap().items[0].clone()
    };
    update(&mut state, Msg::Removal(Removal::Item(gone)));
    assert_eq!(items(&state), (5, 4, false));
    update(&mut state, Msg::Removal(Removal::Ended { remaining: Some(4), exit_code: 4 }));
    assert_eq!(items(&state), (5, 4, true));
    assert!(state.ended.is_none(), "what remains is still to be seen to");
    let effects = press(&mut state, "ctrl-r");
    assert_eq!(effects, [Effect::Remove { run: RunId::new(RUN) }]);
    update(&mut state, Msg::Removal(Removal::Ended { remaining: None, exit_code: 1 }));
    assert!(toast(&state).contains("failed"), "{}", toast(&state));
    press(&mut state, "ctrl-r");
    update(&mut state, Msg::Removal(Removal::Ended { remaining: Some(0), exit_code: 0 }));
    assert_eq!(state.ended.as_ref().unwrap().exit_code, 0);
}

#[test]
fn an_engine_that_is_there_is_asked_and_one_that_has_hung_is_not() {
    let mut state = state_of(snapshot());
    press(&mut state, "T");
    type_text(&mut state, RUN);
    later(&mut state, 5);
    assert!(matches!(sent(&press(&mut state, "enter")), Some(Command::Teardown { .. })));
    let mut state = state_of(snapshot());
    press(&mut state, "T");
    type_text(&mut state, RUN);
    later(&mut state, 11);
    let effects = press(&mut state, "enter");
    assert_eq!(effects, [Effect::Remove { run: RunId::new(RUN) }]);
}

#[test]
fn a_dry_run_sends_nothing() {
    let mut state = state_of(snapshot());
    press(&mut state, "T ctrl-d");
    type_text(&mut state, RUN);
    assert!(press(&mut state, "enter").is_empty(), "it only ends the dry run");
    assert!(matches!(&state.dialog, Some(Dialog::Teardown(panel)) if !panel.dry_run));
}

#[test]
fn escape_ends_a_search_before_it_leaves_the_log() {
    let mut state = state_of(snapshot());
    press(&mut state, "l /");
    type_text(&mut state, "PASS");
    press(&mut state, "enter");
    assert_eq!(state.looks.log.search.value(), "PASS");
    press(&mut state, "esc");
    assert_eq!((state.view, state.looks.log.search.value()), (View::Log, ""));
    press(&mut state, "esc");
    assert_eq!(state.view, View::Overview);
    press(&mut state, "esc");
    assert!(state.toast.is_none(), "it only takes the message away");
}
