//! Chords: begun, gone on with, given up, wrong.

use super::*;
use crate::console::{keymap::Keymap, state::View};

fn vim() -> State {
    let mut state = state_of(snapshot());
    state.keymap = Keymap::named("vim").unwrap();
    state
}

#[test]
fn a_chord_is_begun_gone_on_with_and_given_up() {
    let mut state = vim();
    press(&mut state, "g");
    assert_eq!(state.chord.len(), 1);
    assert_eq!(state.view, View::Overview);
    press(&mut state, "l");
    assert_eq!((state.view, state.chord.len()), (View::Log, 0));
    press(&mut state, "g esc");
    assert_eq!((state.view, state.chord.len()), (View::Log, 0));
    assert_eq!(toast(&state), "");
    press(&mut state, "g g");
    assert_eq!(state.looks.log.up, 5, "the layer's own chord");
}

#[test]
fn an_unknown_continuation_says_so_and_does_nothing() {
    let mut state = vim();
    assert_eq!(press(&mut state, "g s"), []);
    assert!(state.dialog.is_none() && state.chord.is_empty());
    assert_eq!(toast(&state), "no keys `g s` here: nothing was done");
    // What is needed at once is not in a chord's way.
    press(&mut state, "g T");
    assert!(matches!(state.dialog, Some(Dialog::Teardown(_))));
}

#[test]
fn what_opens_meanwhile_does_not_take_the_rest_of_a_chord() {
    let mut state = vim();
    press(&mut state, "g");
    let mut asked = snapshot();
    asked.decision = Some(decision());
    show(&mut state, asked.clone());
    assert!(state.dialog.is_none(), "it waits behind its banner");
    press(&mut state, "d");
    assert!(matches!(state.dialog, Some(Dialog::Decision(_))));
    press(&mut state, "esc g");
    asked.teardown = Some(teardown(false));
    show(&mut state, asked);
    assert!(state.chord.is_empty(), "the teardown has other keys");
}

#[test]
fn any_keys_in_any_order_leave_a_state_that_stands() {
    for (name, seed) in [("default", 0x9e37_79b9_7f4a_7c15_u64), ("vim", 0x2545_f491_4f6c_dd1d)] {
        storm(name, seed);
    }
}

/// Ten thousand keys, the keymap's own among them, on a run that changes, 0 to 255 ms apart.
fn storm(name: &str, mut random: u64) {
    let keymap = Keymap::named(name).unwrap();
    let layers = crate::console::action::Layer::ALL;
    let rows = layers.iter().flat_map(|layer| keymap.layer(*layer));
    let mut keys: Vec<_> = rows.flat_map(|row| row.keys.clone()).collect();
    keys.extend("0123456789.ke:/ rampte".chars().map(|c| {
        let code = crossterm::event::KeyCode::Char(c);
        crokey::KeyCombination::one_key(code, crossterm::event::KeyModifiers::NONE)
    }));
    let mut state = deciding();
    state.keymap = keymap;
    state.number = 1;
    let mut last_step: Option<UnixMs> = None;
    for round in 0..10_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = keys[usize::try_from(random >> 33).unwrap() % keys.len()];
        let now = UnixMs(state.now.0 + (random >> 25 & 0xff));
        update(&mut state, Msg::Tick(now));
        for effect in update(&mut state, Msg::Key(key)) {
            let Effect::Send { id, command } = effect else { continue };
            if super::super::rate::is_step(&command) {
                let since = last_step.map_or(1_000, |at| state.now.0 - at.0);
                assert!(since >= 1_000, "{command} after {since} ms");
                last_step = Some(state.now);
            }
            let refused = round.is_multiple_of(2).then(|| "no".to_owned());
            update(&mut state, Msg::Frame(ServerFrame::Reply { id, refused }));
        }
        let mut next = snapshot();
        next.decision = (round / 50).is_multiple_of(2).then(decision);
        next.configurations.truncate(1 + usize::try_from(round % 4).unwrap());
        next.configurations[0].undo_rate = round.is_multiple_of(3).then_some(5_400.0);
        show(&mut state, next);
        assert!(state.selected < state.snapshot.as_ref().unwrap().configurations.len());
        assert!(state.pending.is_empty());
    }
    assert!(last_step.is_some(), "the storm has stepped");
}
