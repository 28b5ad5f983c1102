//! What the screen says, and does not say, where a figure alone would mislead.

use super::*;
use crate::{
    console::update::{Msg, update},
    link::ServerFrame,
    model::{AttemptRange, CellId, Event, EventKind, Reason, ReasonCode, UnixMs, Verdict},
};

const WIDE: (u16, u16) = (120, 36);

/// A configuration whose last cell ended so, with every latency far above its limit.
fn ended_cell(verdict: Verdict, why: &str) -> State {
    let mut snapshot = snapshot();
    snapshot.configurations.truncate(2);
    let mut last = snapshot.configurations[1].last.clone().expect("R1 has had a cell");
    last.verdict = verdict;
    last.reasons = vec![Reason { code: ReasonCode::Generator, text: why.to_owned() }];
    for class in crate::model::Class::ALL {
        last.classes[class].p99_ms = Some(900.0);
    }
    snapshot.configurations[1].last = Some(last);
    state_of(snapshot)
}

fn event(state: &mut State, seq: u64, kind: EventKind) {
    let event = Box::new(Event { seq, epoch: 1, at: UnixMs(1), kind });
    update(state, Msg::Frame(ServerFrame::Event(event)));
}

#[test]
fn figures_of_an_invalid_cell_are_not_held_against_the_slo() {
    let why = "thread 1 was stalled";
    // One of them is the other configuration's, whose cell runs.
    let failed = text(&ended_cell(Verdict::Fail, why), WIDE);
    assert_eq!(failed.matches("OVER").count(), 5, "{failed}");
    let invalid = text(&ended_cell(Verdict::Invalid, why), WIDE);
    assert_eq!(invalid.matches("OVER").count(), 1, "{invalid}");
    assert_eq!(invalid.matches("900.0").count(), 4, "{invalid}");
}

#[test]
fn a_long_reason_takes_a_second_row() {
    let why = "the generator was the limit: its threads were late by 31 ms at p99 and a tenth of \
               the tightest SLO is 5 ms";
    let screen = text(&ended_cell(Verdict::Invalid, why), WIDE);
    assert!(screen.contains("the generator was the limit"), "{screen}");
    assert!(screen.contains("tightest SLO is 5 ms"), "{screen}");
}

#[test]
fn the_runner_s_figures_are_said_to_be_of_now_beside_a_cell_that_has_ended() {
    let screen = text(&ended_cell(Verdict::Pass, ""), WIDE);
    assert_eq!(screen.matches("now: runner cpu").count(), 1, "{screen}");
}

#[test]
fn what_is_true_of_a_whole_run_is_no_cell_s_reason() {
    let reasons = |codes: &[ReasonCode]| -> Vec<Reason> {
        codes.iter().map(|code| Reason { code: *code, text: format!("{code:?}") }).collect()
    };
    assert_eq!(Reason::first_text(&reasons(&[ReasonCode::Rehearsal])), "");
    let both = reasons(&[ReasonCode::Rehearsal, ReasonCode::SideBySide]);
    assert_eq!(Reason::first_text(&both), "SideBySide");
}

#[test]
fn bookkeeping_is_in_the_log_and_not_below_the_panes() {
    let mut state = state_of(snapshot());
    let range = AttemptRange { ordinal: 3, first_id: 77, ids: 10, prefix: "p.".to_owned() };
    event(&mut state, 900, EventKind::AttemptReserved { cell: CellId::new("D1-008"), range });
    assert!(!text(&state, WIDE).contains("owns ids"));
    assert!(text(&in_view(state, View::Log), WIDE).contains("owns ids from 77"));
}

#[test]
fn an_empty_log_says_what_hides_its_lines() {
    let mut state = in_view(state_of(snapshot()), View::Log);
    press(&mut state, "v v /");
    crate::console::fixture::type_text(&mut state, "zz");
    let screen = text(&state, WIDE);
    assert!(screen.contains("no such line among errors"), "while it is typed: {screen}");
    assert!(screen.contains("v shows other levels"), "{screen}");
    assert!(screen.contains("esc ends the search"), "{screen}");
}

#[test]
fn charts_end_with_the_last_cell_while_none_runs() {
    let mut snapshot = snapshot();
    snapshot.configurations[0].cell = None;
    snapshot.at = UnixMs(snapshot.at.0 + 600_000);
    let state = in_view(state_of(snapshot), View::Configuration);
    let screen = text(&state, WIDE);
    assert!(screen.contains("D1-007 ended "), "{screen}");
    assert!(!screen.contains("nothing was measured in this time"), "{screen}");
}

#[test]
fn the_end_says_how_decisions_were_answered_and_what_was_not_run() {
    let mut state = ended();
    let (id, option, by) = ("main-or-stop".to_owned(), "stop".to_owned(), "deadline".to_owned());
    event(&mut state, 49, EventKind::DecisionAnswered { id, option, by });
    let screen = text(&state, WIDE);
    assert!(screen.contains("decision main-or-stop answered with stop by deadline"), "{screen}");
    assert!(screen.contains("3 cells were still to come and not run"), "{screen}");
}
