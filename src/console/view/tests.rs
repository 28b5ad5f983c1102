use std::collections::BTreeSet;

use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Color};

use crate::{
    console::{
        fixture::{
            NOW, RUN, blank_state, decision, press, setting_up, show, snapshot, state_of, teardown,
            type_text,
        },
        state::State,
        theme::{Palette, Theme},
        update::{Msg, update},
    },
    link::ServerFrame,
    model::{ConfigurationState, Event, EventKind, RunState, Snapshot, UnixMs},
};

pub(super) fn buffer(state: &State, theme: &Theme, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| super::draw(state, theme, frame)).unwrap();
    terminal.backend().buffer().clone()
}

pub(super) fn rows(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width.max(1));
    let row = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    buffer.content.chunks(width).map(row).collect()
}

pub(super) fn text(state: &State, size: (u16, u16)) -> String {
    rows(&buffer(state, &Theme::new(Palette::Many, false), size)).join("\n")
}

fn deciding() -> State {
    let mut snapshot = snapshot();
    snapshot.decision = Some(decision());
    state_of(snapshot)
}

fn tearing_down(ended: bool) -> State {
    let mut snapshot = snapshot();
    snapshot.state = RunState::TearingDown;
    snapshot.teardown = Some(teardown(ended));
    state_of(snapshot)
}

fn asked_for_teardown() -> State {
    let mut state = state_of(snapshot());
    press(&mut state, "T");
    type_text(&mut state, "e002-11");
    state
}

fn ended() -> State {
    let mut state = tearing_down(true);
    let (text, folder) = ("2 cells, 1 PASS, 1 FAIL".to_owned(), format!("/var/runs/{RUN}").into());
    let kind = EventKind::RunEnded { exit_code: 1, text: text.clone(), folder };
    let event = Box::new(Event { seq: 50, epoch: 1, at: NOW, kind });
    update(&mut state, Msg::Frame(ServerFrame::Event(event)));
    update(&mut state, Msg::Frame(ServerFrame::Ended { exit_code: 1, text }));
    state
}

fn lost() -> State {
    let mut state = state_of(snapshot());
    update(&mut state, Msg::Disconnected { why: "the engine closed the socket".into() });
    update(&mut state, Msg::Tick(UnixMs(NOW.0 + 12_000)));
    state
}

fn form(keys: &str) -> State {
    let mut state = state_of(snapshot());
    press(&mut state, keys);
    state
}

fn refused() -> State {
    let mut state = state_of(snapshot());
    press(&mut state, "S");
    let refused = Some("the cell is draining; it ends within 5 s".to_owned());
    update(&mut state, Msg::Frame(ServerFrame::Reply { id: 1, refused }));
    state
}

fn of_count(count: usize) -> Snapshot {
    let mut snapshot = snapshot();
    let all = snapshot.configurations.clone();
    snapshot.configurations = all.into_iter().cycle().take(count).collect();
    snapshot
}

fn removed_and_failed() -> State {
    let mut snapshot = of_count(3);
    snapshot.configurations[0].state = ConfigurationState::Removed;
    snapshot.configurations[1].state =
        ConfigurationState::Failed { why: "gate R1 exited with status 1 (port 5502 taken)".into() };
    snapshot.configurations[2].state = ConfigurationState::Checking;
    state_of(snapshot)
}

/// Every kind of screen.
fn states() -> Vec<(&'static str, State)> {
    let mut help = deciding();
    press(&mut help, "esc ? down down");
    let mut marked = deciding();
    press(&mut marked, "2");
    let mut hidden = deciding();
    press(&mut hidden, "esc");
    vec![
        ("blank", blank_state()),
        ("setting up", state_of(setting_up())),
        ("running", state_of(snapshot())),
        ("one", state_of(of_count(1))),
        ("three", removed_and_failed()),
        ("eight", state_of(of_count(8))),
        ("decision", deciding()),
        ("decision marked", marked),
        ("decision hidden", hidden),
        ("form", form("s")),
        ("form wrong", form("s tab 0 tab ctrl-u enter")),
        ("rate", form("r")),
        ("refused", refused()),
        ("teardown asked", asked_for_teardown()),
        ("teardown", tearing_down(false)),
        ("teardown ended", tearing_down(true)),
        ("help", help),
        ("lost", lost()),
        ("ended", ended()),
    ]
}

macro_rules! looks {
    ($name:literal, $state:expr, $size:expr) => {
        insta::assert_snapshot!($name, text(&$state, $size));
    };
}

#[test]
fn the_overview_looks_as_agreed() {
    looks!("running_60x15", state_of(snapshot()), (60, 15));
    looks!("running_80x24", state_of(snapshot()), (80, 24));
    looks!("running_120x36", state_of(snapshot()), (120, 36));
    looks!("running_200x50", state_of(snapshot()), (200, 50));
    looks!("setting_up_120x36", state_of(setting_up()), (120, 36));
    looks!("setting_up_80x24", state_of(setting_up()), (80, 24));
    looks!("removed_failed_checking_120x36", removed_and_failed(), (120, 36));
    looks!("eight_200x50", state_of(of_count(8)), (200, 50));
    looks!("eight_60x15", state_of(of_count(8)), (60, 15));
}

#[test]
fn dialogs_look_as_agreed() {
    looks!("decision_120x36", deciding(), (120, 36));
    looks!("decision_80x24", deciding(), (80, 24));
    looks!("decision_60x15", deciding(), (60, 15));
    let mut marked = deciding();
    press(&mut marked, "2");
    looks!("decision_marked_80x24", marked, (80, 24));
    let mut hidden = deciding();
    press(&mut hidden, "esc");
    looks!("decision_hidden_80x24", hidden, (80, 24));
    looks!("form_120x36", form("s"), (120, 36));
    looks!("form_wrong_80x24", form("s tab 0 tab ctrl-u enter"), (80, 24));
    looks!("form_60x15", form("s"), (60, 15));
    looks!("rate_80x24", form("r"), (80, 24));
    looks!("refused_80x24", refused(), (80, 24));
    looks!("help_80x24", form("?"), (80, 24));
}

#[test]
fn the_end_of_a_run_looks_as_agreed() {
    looks!("teardown_asked_120x36", asked_for_teardown(), (120, 36));
    looks!("teardown_asked_60x15", asked_for_teardown(), (60, 15));
    looks!("teardown_80x24", tearing_down(false), (80, 24));
    looks!("teardown_ended_120x36", tearing_down(true), (120, 36));
    looks!("ended_80x24", ended(), (80, 24));
    looks!("lost_80x24", lost(), (80, 24));
    looks!("lost_120x36", lost(), (120, 36));
}

#[test]
fn ascii_mode_is_ascii_and_looks_as_agreed() {
    let theme = Theme::new(Palette::None, true);
    for (name, state) in states() {
        for row in rows(&buffer(&state, &theme, (120, 36))) {
            assert!(row.is_ascii(), "{name}: {row}");
        }
    }
    let shown = rows(&buffer(&deciding(), &theme, (120, 36))).join("\n");
    insta::assert_snapshot!("ascii_decision_120x36", shown);
}

#[test]
fn without_colours_none_is_used() {
    let theme = Theme::new(Palette::None, false);
    for (name, state) in states() {
        let buffer = buffer(&state, &theme, (120, 36));
        let coloured = buffer.content.iter().any(|c| (c.fg, c.bg) != (Color::Reset, Color::Reset));
        assert!(!coloured, "{name}");
    }
}

/// Words with a digit in them, without what stands around them.
pub(super) fn figures(buffer: &Buffer) -> BTreeSet<String> {
    let edge = |c: char| c.is_whitespace() || "│┌┐└┘─█▒░▁▂▃▄▅▆▇▸▲".contains(c);
    let mut figures = BTreeSet::new();
    for row in rows(buffer) {
        for word in row.split(edge) {
            // How many lines are out of sight is not a figure of the run.
            let counts = word.starts_with('+') || word.contains('x');
            if word.contains(|c: char| c.is_ascii_digit()) && !counts {
                figures.insert(word.to_owned());
            }
        }
    }
    figures
}

#[test]
fn at_any_size_every_figure_is_whole() {
    let theme = Theme::new(Palette::Many, false);
    for (name, state) in states() {
        // With more columns than anything needs, each height shows another layout in whole.
        let mut whole = BTreeSet::new();
        for height in 1..=60 {
            whole.extend(figures(&buffer(&state, &theme, (420, height))));
        }
        let sizes = (1..=140).step_by(3).flat_map(|w| (1..=45).step_by(4).map(move |h| (w, h)));
        for size in sizes.chain([(80, 24), (60, 15), (110, 30), (24, 6), (200, 50)]) {
            for figure in figures(&buffer(&state, &theme, size)) {
                // A count of rows in "make me larger".
                let rows = figure.parse::<u16>().is_ok_and(|rows| rows < 60);
                assert!(whole.contains(&figure) || rows, "{name} at {size:?}: {figure}");
            }
        }
    }
}

#[test]
fn a_storm_of_sizes_and_wide_names_draws() {
    let mut snapshot = snapshot();
    snapshot.configurations[0].title = "오로라 서버리스 데이터베이스 구성".into();
    snapshot.configurations[1].title = "e\u{301}\u{200d}\u{7}\u{1b}[31m control".into();
    let mut state = state_of(snapshot.clone());
    let theme = Theme::new(Palette::Many, false);
    let mut random: u64 = 42;
    for _ in 0..300 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let size = (
            u16::try_from(random >> 56).unwrap() + 1,
            u16::try_from((random >> 40) & 0x3f).unwrap() + 1,
        );
        show(&mut state, snapshot.clone());
        buffer(&state, &theme, size);
    }
}

#[test]
fn every_key_of_every_layer_is_in_the_help() {
    let mut state = state_of(snapshot());
    press(&mut state, "?");
    let shown = text(&state, (120, 200));
    for layer in crate::console::action::Layer::ALL {
        assert!(shown.contains(layer.heading()));
        for binding in state.keymap.layer(layer) {
            let key = crate::console::keymap::key_text(binding.key, false);
            let known = shown.lines().any(|line| line.split_whitespace().any(|word| word == key));
            assert!(known, "{layer} {key}");
        }
    }
}

/// `RAMPDECK_SHOW=decision cargo test --lib console::view::tests::show -- --ignored --nocapture`
/// prints a screen, to be looked at.
#[test]
#[ignore = "prints screens for people"]
fn show_screens() {
    let wanted = std::env::var("RAMPDECK_SHOW").unwrap_or_default();
    for (name, state) in states().into_iter().filter(|(name, _)| name.contains(&wanted)) {
        for size in [(80, 24), (120, 36), (200, 50)] {
            println!("=== {name} {size:?}\n{}", text(&state, size));
        }
    }
}
