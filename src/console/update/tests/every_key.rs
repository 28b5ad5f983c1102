//! Every key of every layer does what its line in the help says, and is in that help.

use std::collections::HashSet;

use tui_input::Input;

use super::*;
use crate::{
    console::{
        action::{Action, Layer},
        help::{self, Line},
        keymap::{self, Binding, Keymap},
        state::{HelpPanel, RunEnd, TeardownPanel, View},
    },
    model::{CellId, EventKind, RampStatus},
};

/// A run in which every key can act: an open cell on the selected configuration with a ramp and a
/// step to undo, a decision hidden behind its banner, a console that asks for control.
fn busy(keymap: &Keymap) -> State {
    let mut snapshot = snapshot();
    snapshot.decision = Some(decision());
    let d1 = &mut snapshot.configurations[0];
    d1.undo_rate = Some(5_400.0);
    d1.ramp = Some(RampStatus { to: 8_000.0, step: 1, of: 4, next_at: NOW });
    snapshot.control.asked = Some((2, NOW));
    let ended = snapshot.recent.iter().find(|e| matches!(e.kind, EventKind::CellEnded { .. }));
    let ended = ended.unwrap().clone();
    for at in 0..20 {
        let mut more = ended.clone();
        more.seq = 100 + at;
        if let EventKind::CellEnded { cell, .. } = &mut more.kind {
            *cell = CellId::new(format!("R1-1{at:02}"));
        }
        snapshot.recent.push(more);
    }
    let mut state = state_of(snapshot);
    state.keymap = keymap.clone();
    state.number = 1;
    later(&mut state, 1);
    state.dialog = None;
    state.looks.cell = 2;
    state.looks.resource = 2;
    state.looks.log.up = 3;
    state.looks.back_s = 15;
    state
}

/// A state in which this layer is on top.
fn on_top(layer: Layer, keymap: &Keymap) -> State {
    let mut state = busy(keymap);
    let act = |state: &mut State, action| {
        super::super::keys::act(state, action);
    };
    match layer {
        Layer::Overview => {
            // There is a message that esc takes away.
            act(&mut state, Action::Overview);
        }
        Layer::Configuration => state.view = View::Configuration,
        Layer::Compare => state.view = View::Compare,
        Layer::Cells => state.view = View::Cells,
        Layer::Resources => state.view = View::Resources,
        Layer::Log => state.view = View::Log,
        Layer::Form => act(&mut state, Action::StartCell),
        Layer::Decision => act(&mut state, Action::Decision),
        Layer::Teardown => {
            let panel = TeardownPanel { scroll: 2, ..TeardownPanel::default() };
            state.dialog = Some(Dialog::Teardown(panel));
        }
        Layer::Help => {
            let panel = HelpPanel { scroll: 30, ..HelpPanel::new(Layer::Overview, None) };
            state.dialog = Some(Dialog::Help(panel));
        }
        Layer::Palette => act(&mut state, Action::Palette),
        Layer::Search => state.dialog = Some(Dialog::Search(Input::new("a".into()))),
        Layer::Ended => {
            state.ended = Some(RunEnd { exit_code: 0, text: String::new(), scroll: 10 });
        }
        Layer::Views | Layer::Everywhere => panic!("{layer} is never on top"),
    }
    assert_eq!(state.layer(), layer);
    state
}

/// What moving moves.
fn place(state: &State) -> String {
    format!("{} {:?} {:?} {:?}", state.selected, state.looks, state.dialog, state.ended)
}

fn said(before: &State, after: &State) -> bool {
    after.toast.is_some() && after.toast != before.toast
}

/// Whether what happened is what the action says. A message why not will do where it must.
fn is_done(action: Action, before: &State, after: &State, effects: &[Effect]) -> bool {
    let is = |wanted: fn(&Dialog) -> bool| after.dialog.as_ref().is_some_and(wanted);
    let view = |view| after.view == view && after.dialog.is_none();
    let sends = |wanted: fn(&Command) -> bool| sent(effects).is_some_and(wanted);
    match action {
        Action::Overview => view(View::Overview),
        Action::Back => {
            view(View::Overview) && (before.view != after.view || after.toast.is_none())
        }
        Action::Configuration => view(View::Configuration),
        Action::Compare => view(View::Compare),
        Action::Cells => view(View::Cells),
        Action::Resources => view(View::Resources),
        Action::Log => view(View::Log),
        Action::StartCell => is(|d| matches!(d, Dialog::Start(form) if form.when == When::Now)),
        Action::AddCell => is(|d| matches!(d, Dialog::Start(form) if form.when == When::After)),
        Action::StopCell => sends(|c| matches!(c, Command::StopCell { .. })),
        Action::RateUp | Action::RateDown | Action::RateDouble | Action::RateHalve => {
            sends(|c| matches!(c, Command::StepRate { .. }))
        }
        Action::RateType => is(|d| matches!(d, Dialog::Rate(_))),
        Action::Ramp => is(|d| matches!(d, Dialog::Ramp(_))),
        Action::HoldRate => sends(|c| matches!(c, Command::HoldRate { .. })),
        Action::UndoStep => sends(|c| matches!(c, Command::UndoStep { .. })),
        Action::PauseResume => sends(|c| matches!(c, Command::Pause)),
        Action::Decision => is(|d| matches!(d, Dialog::Decision(_))),
        Action::Teardown => {
            is(|d| matches!(d, Dialog::Teardown(_)))
                || before.ended.is_some() && said(before, after)
        }
        Action::RepeatCell => said(before, after),
        Action::DropCell => sends(|c| matches!(c, Command::DropCell { .. })),
        Action::MoveEarlier => sends(|c| matches!(c, Command::MoveCell { earlier: true, .. })),
        Action::MoveLater => sends(|c| matches!(c, Command::MoveCell { earlier: false, .. })),
        // It has control.
        Action::AskControl => said(before, after),
        Action::GiveControl => sends(|c| matches!(c, Command::GiveControl)),
        Action::KeepControl => sends(|c| matches!(c, Command::KeepControl)),
        Action::Freeze => before.frozen.is_none() && after.frozen.is_some(),
        Action::Search => after.layer() == Layer::Search,
        Action::Copy => matches!(effects, [Effect::Copy(_)]),
        Action::Mouse => effects == [Effect::Mouse(true)],
        Action::Palette => is(|d| matches!(d, Dialog::Palette(_))),
        Action::Help => is(|d| matches!(d, Dialog::Help(_))),
        Action::Detach | Action::Leave => matches!(effects, [Effect::Exit(_)]),
        Action::Suspend => effects == [Effect::Suspend],
        Action::Redraw => effects == [Effect::Redraw],
        Action::Extend => sends(|c| matches!(c, Command::Extend { .. })),
        Action::Span | Action::Older | Action::Newer | Action::Figure | Action::LogLevel => {
            place(before) != place(after)
        }
        Action::Next | Action::Previous | Action::PageDown | Action::PageUp => {
            place(before) != place(after)
        }
        Action::First | Action::Last | Action::Change | Action::Complete | Action::DryRun => {
            place(before) != place(after)
        }
        Action::Submit | Action::Cancel | Action::Choose(_) | Action::Retry => {
            place(before) != place(after) || !effects.is_empty() || said(before, after)
        }
        Action::Select | Action::Keymap => false,
    }
}

/// Presses the keys of a row where its layer is on top.
fn holds(layer: Layer, keymap: &Keymap, row: &Binding) {
    let mut state = on_top(layer, keymap);
    let before = state.clone();
    let mut effects = Vec::new();
    for (at, key) in row.keys.iter().enumerate() {
        assert_eq!(state.chord.len(), at, "{layer} {}", row.text(true));
        effects = update(&mut state, Msg::Key(*key));
    }
    assert!(state.chord.is_empty());
    let done = is_done(row.action, &before, &state, &effects);
    let name = row.action.name();
    assert!(done, "{layer} {} {name}: {effects:?} {:?}", row.text(true), state.toast);
}

/// The rows of `Everywhere` that come through where a layer is on top.
fn from_everywhere(layer: Layer, keymap: &Keymap) -> Vec<&Binding> {
    let rows = keymap.layer(Layer::Everywhere).iter();
    let free = rows.filter(|row| keymap.find(layer, &row.keys) == keymap::Lookup::NotFound);
    let is_text = |row: &Binding| row.text(true).chars().count() == 1;
    let takes_text = matches!(layer, Layer::Palette | Layer::Search | Layer::Teardown);
    free.filter(|row| !(takes_text && is_text(row))).collect()
}

#[test]
fn every_key_does_what_the_help_says_and_every_help_line_works() {
    for name in keymap::names() {
        let keymap = Keymap::named(name).unwrap();
        let mut pressed: HashSet<(Action, String)> = HashSet::new();
        let layers = || {
            let never = |layer: &Layer| matches!(layer, Layer::Views | Layer::Everywhere);
            Layer::ALL.into_iter().filter(move |layer| !never(layer))
        };
        for layer in layers() {
            for row in keymap.rows(layer).chain(from_everywhere(layer, &keymap)) {
                holds(layer, &keymap, row);
                pressed.insert((row.action, row.text(true)));
            }
        }
        for layer in layers() {
            let panel = HelpPanel::new(layer, None);
            let lines = help::lines(&keymap, &panel);
            let listed: Vec<&Binding> = lines
                .iter()
                .flat_map(|line| if let Line::Keys(rows) = line { &rows[..] } else { &[] })
                .copied()
                .collect();
            for row in keymap.rows(layer).chain(keymap.layer(Layer::Everywhere)) {
                assert!(listed.contains(&row), "{layer} {} is not in its help", row.text(true));
            }
            for row in listed {
                let line = (row.action, row.text(true));
                assert!(pressed.contains(&line), "a line of the help does nothing: {line:?}");
            }
        }
    }
}

#[test]
fn the_help_begins_with_the_keys_that_count_and_finds() {
    let keymap = Keymap::named("default").unwrap();
    let mut panel = HelpPanel::new(Layer::Cells, None);
    let headings = |panel: &HelpPanel| -> Vec<&str> {
        let lines = help::lines(&keymap, panel).into_iter();
        lines.filter_map(|line| if let Line::Heading(h) = line { Some(h) } else { None }).collect()
    };
    assert_eq!(headings(&panel)[..3], ["Cells", "In every view", "Everywhere"]);
    panel.search = Input::new("queue".into());
    assert_eq!(
        headings(&panel),
        ["Cells", "In every view", "Commands that take words in the palette"]
    );
    panel.search = Input::new("no such thing".into());
    assert!(help::lines(&keymap, &panel).is_empty());
}

#[test]
fn the_help_gives_back_what_it_lay_over() {
    let mut state = state_of(snapshot());
    press(&mut state, "r 5 ?");
    assert!(matches!(state.dialog, Some(Dialog::Help(_))));
    press(&mut state, "esc 4");
    let Some(Dialog::Rate(form)) = &state.dialog else { panic!("the form is gone") };
    assert_eq!(form.input.value(), "54");
    // A decision that was answered meanwhile does not come back.
    let mut state = deciding();
    press(&mut state, "?");
    show(&mut state, snapshot());
    press(&mut state, "esc");
    assert!(state.dialog.is_none());
}
