//! Pop-ups of keys, the palette, rates with their head-room, and the hint line.

use super::*;
use crate::{
    console::{
        fixture::{NOW, decision, type_text},
        keymap::Keymap,
        update::{Msg, update},
    },
    model::{Arrivals, CellId, ConfigurationId, EventKind, Load, Verdict},
};

fn chord() -> State {
    let mut state = state_of(snapshot());
    state.keymap = Keymap::named("vim").unwrap();
    press(&mut state, "g");
    state
}

fn palette(typed: &str) -> State {
    let mut state = state_of(snapshot());
    press(&mut state, ":");
    type_text(&mut state, typed);
    state
}

fn wrong() -> State {
    let mut state = palette("compare");
    // A space is no key of the fixture's words.
    update(&mut state, Msg::Paste("x".into()));
    press(&mut state, "backspace");
    update(&mut state, Msg::Key("space".parse().unwrap()));
    type_text(&mut state, "size");
    press(&mut state, "enter");
    state
}

/// A configuration that was stepped up three times and has been told so.
fn stepped(keys: &str) -> State {
    let mut snapshot = snapshot();
    let ended = snapshot.recent.iter().position(|e| matches!(e.kind, EventKind::CellEnded { .. }));
    let ended = snapshot.recent[ended.unwrap()].clone();
    let verdicts = [Verdict::Pass, Verdict::Pass, Verdict::Inconclusive, Verdict::Fail];
    for (at, of) in verdicts.into_iter().enumerate() {
        let mut event = ended.clone();
        event.seq = 60 + at as u64;
        if let EventKind::CellEnded { cell, configuration, load, verdict, .. } = &mut event.kind {
            *cell = CellId::new(format!("D1-00{at}"));
            *configuration = ConfigurationId::new("D1");
            let rate = 5_000.0 + 400.0 * at as f64;
            *load = Load::Open { rate, arrivals: Arrivals::Poisson, connections: 256 };
            *verdict = of;
        }
        snapshot.recent.push(event);
    }
    snapshot.configurations[0].undo_rate = Some(6_200.0);
    let mut state = state_of(snapshot);
    press(&mut state, keys);
    state
}

fn watching() -> State {
    let mut state = state_of(snapshot());
    state.number = 2;
    press(&mut state, "+");
    state
}

fn found() -> State {
    let mut state = state_of(snapshot());
    press(&mut state, "? /");
    type_text(&mut state, "cell");
    state
}

/// What the tests of every screen take up from here.
pub(super) fn states() -> Vec<(&'static str, State)> {
    vec![
        ("chord", chord()),
        ("palette", palette("rat")),
        ("palette wrong", wrong()),
        ("rate stepped", stepped("r")),
        ("ramp", stepped("m 9 enter")),
        ("watching", watching()),
        ("help found", found()),
    ]
}

macro_rules! looks {
    ($name:literal, $state:expr, $size:expr) => {
        insta::with_settings!({ snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!($name, text(&$state, $size));
        });
    };
}

#[test]
fn keys_and_commands_look_as_agreed() {
    looks!("chord_80x24", chord(), (80, 24));
    looks!("chord_60x15", chord(), (60, 15));
    looks!("chord_200x50", chord(), (200, 50));
    looks!("palette_80x24", palette("rat"), (80, 24));
    looks!("palette_120x36", palette(""), (120, 36));
    looks!("palette_60x15", palette("rat"), (60, 15));
    looks!("palette_wrong_80x24", wrong(), (80, 24));
    looks!("help_found_80x24", found(), (80, 24));
    looks!("help_found_60x15", found(), (60, 15));
}

#[test]
fn a_rate_looks_as_agreed() {
    looks!("rate_120x36", stepped("r"), (120, 36));
    looks!("rate_60x15", stepped("r"), (60, 15));
    looks!("ramp_wrong_80x24", stepped("m 9 0 0 0 enter"), (80, 24));
    looks!("ramp_200x50", stepped("m"), (200, 50));
    looks!("watching_80x24", watching(), (80, 24));
}

fn hint_line(state: &State, size: (u16, u16)) -> String {
    text(state, size).lines().last().unwrap_or_default().trim().to_owned()
}

#[test]
fn the_hint_line_begins_with_what_waits_for_the_operator() {
    let begins = |state: &State, with: &str| {
        for size in [(60, 15), (80, 24), (200, 50)] {
            let line = hint_line(state, size);
            assert!(line.starts_with(with), "{size:?}: {line}");
        }
    };
    let mut hidden = deciding();
    press(&mut hidden, "esc l");
    begins(&hidden, "d decision");
    begins(&watching(), "C ask for control");
    begins(&ended(), "q leave");
    let mut after = ended();
    press(&mut after, "l");
    begins(&after, "q leave   esc summary");
    let mut asked = snapshot();
    asked.control.asked = Some((2, NOW));
    let mut asked = state_of(asked);
    asked.number = 1;
    begins(&asked, "G give control   K keep it");
    begins(&chord(), "esc cancel the chord");
    let mut fresh = snapshot();
    fresh.decision = Some(decision());
    begins(&state_of(fresh), "just opened: for a moment no key answers it");
}

#[test]
fn the_hint_line_has_no_key_that_cannot_act() {
    let mut state = state_of(snapshot());
    assert!(hint_line(&state, (300, 30)).contains("+ up"));
    assert!(!hint_line(&state, (300, 30)).contains("z undo"));
    press(&mut state, "down");
    assert!(!hint_line(&state, (300, 30)).contains("+ up"), "R1 runs no open cell");
    assert!(!hint_line(&watching(), (300, 30)).contains("s start"));
    assert!(hint_line(&stepped("esc"), (300, 30)).contains("z undo"));
    for (width, height) in [(60, 15), (80, 24)] {
        for key in ["? help", "T teardown"] {
            assert!(hint_line(&state, (width, height)).contains(key), "{width} {key}");
        }
    }
}

#[test]
fn every_key_of_every_layer_is_drawn_in_the_help() {
    for name in crate::console::keymap::names() {
        let mut state = state_of(snapshot());
        state.keymap = Keymap::named(name).unwrap();
        press(&mut state, "?");
        let shown = text(&state, (160, 300));
        for layer in crate::console::action::Layer::ALL {
            for binding in state.keymap.layer(layer) {
                let key = binding.text(false);
                let known = shown.lines().any(|line| {
                    let keys = line.trim_start_matches(['│', ' ']).split("  ").next();
                    keys.is_some_and(|keys| keys.split(", ").any(|known| known == key))
                });
                assert!(known, "{name} {layer} {key}");
            }
        }
    }
}
