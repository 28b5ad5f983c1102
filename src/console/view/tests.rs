use std::collections::BTreeSet;

use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    style::{Color, Style},
};

use crate::console::{
    fixture::{press, setting_up, show, snapshot, state_of},
    state::{State, View},
    theme::{Palette, Theme},
};

use states::*;

mod keys;
mod random;
mod said;
mod states;

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
    rows(&buffer(state, &Theme::new(Palette::Dark, false), size)).join("\n")
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

const SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 36), (200, 50)];

/// The views whose looks are agreed here; those with charts have tests of their own too.
#[test]
fn every_view_looks_as_agreed() {
    for (name, view) in VIEWS.into_iter().skip(3) {
        for size in SIZES {
            let mut state = in_view(state_of(with_things(snapshot())), view);
            (state.looks.cell, state.looks.resource) = (1, 5);
            let name = format!("{name}_{}x{}", size.0, size.1);
            insta::assert_snapshot!(name, text(&state, size));
        }
        let deciding = in_view(deciding(), view);
        insta::assert_snapshot!(format!("{name}_deciding_80x24"), text(&deciding, (80, 24)));
        let frozen = frozen(view);
        insta::assert_snapshot!(format!("{name}_frozen_80x24"), text(&frozen, (80, 24)));
        let lost = in_view(lost(), view);
        insta::assert_snapshot!(format!("{name}_lost_80x24"), text(&lost, (80, 24)));
        let empty = in_view(state_of(empty()), view);
        insta::assert_snapshot!(format!("{name}_empty_60x15"), text(&empty, (60, 15)));
    }
    let marked = |view| {
        let state = view_states().into_iter().find(|(n, _)| *n == format!("{view} marked"));
        state.unwrap().1
    };
    looks!("cells_marked_80x24", marked("cells"), (80, 24));
    looks!("log_searched_80x24", marked("log"), (80, 24));
    looks!("ramp_120x36", long(), (120, 36));
    looks!("ramp_60x15", long(), (60, 15));
    looks!("resources_teardown_80x24", in_view(tearing_down(false), View::Resources), (80, 24));
    looks!("control_wanted_80x24", control(1, 2), (80, 24));
    looks!("control_asked_60x15", control(2, 2), (60, 15));
    looks!("watching_80x24", watching(View::Overview), (80, 24));
}

/// A screen whose styles are written below each line: a letter where a style begins, dots where it
/// goes on. Letters are those of the legend.
fn styled(state: &State, theme: &Theme, size: (u16, u16)) -> String {
    let buffer = buffer(state, theme, size);
    let mut legend: Vec<Style> = Vec::new();
    let mut text = Vec::new();
    for (row, cells) in rows(&buffer).iter().zip(buffer.content.chunks(size.0.into())) {
        text.push(row.clone());
        let mut last = None;
        let marks: String = cells
            .iter()
            .map(|cell| {
                let style = cell.style();
                let at = legend.iter().position(|known| *known == style).unwrap_or_else(|| {
                    legend.push(style);
                    legend.len() - 1
                });
                let is_same = last.replace(at) == Some(at);
                let letter = char::from(b'a' + u8::try_from(at).unwrap());
                if is_same { '.' } else { letter }
            })
            .collect();
        text.push(marks.trim_end_matches('.').to_owned());
    }
    for (at, style) in legend.iter().enumerate() {
        let letter = char::from(b'a' + u8::try_from(at).unwrap());
        let (fg, bg) = (style.fg.unwrap_or_default(), style.bg.unwrap_or_default());
        text.push(format!("{letter} {fg} on {bg} {:?}", style.add_modifier));
    }
    text.join("\n")
}

#[test]
fn every_view_looks_as_agreed_in_every_theme() {
    let themes = [
        ("dark", Palette::Dark, false),
        ("light", Palette::Light, false),
        ("contrast", Palette::Contrast, false),
        ("sixteen", Palette::Sixteen, false),
        ("no_color", Palette::None, false),
        ("ascii", Palette::None, true),
    ];
    for (view_name, view) in VIEWS {
        for (theme_name, palette, ascii) in themes {
            let state = in_view(state_of(with_things(snapshot())), view);
            let shown = styled(&state, &Theme::new(palette, ascii), (120, 36));
            insta::assert_snapshot!(format!("theme_{theme_name}_{view_name}_120x36"), shown);
        }
    }
}

/// Every kind of screen at every size.
fn states_and_sizes() -> impl Iterator<Item = (String, State, (u16, u16))> {
    states().into_iter().flat_map(|(name, state)| {
        SIZES.map(|size| (format!("{name} at {size:?}"), state.clone(), size))
    })
}

/// What a theme says is said in symbols and words: without any style the screens are the same.
#[test]
fn a_theme_changes_no_character() {
    for (name, state, size) in states_and_sizes() {
        let plain = rows(&buffer(&state, &Theme::new(Palette::None, false), size));
        for palette in [Palette::Sixteen, Palette::Dark, Palette::Light, Palette::Contrast] {
            let shown = rows(&buffer(&state, &Theme::new(palette, false), size));
            assert_eq!(plain, shown, "{name} {palette:?}");
        }
    }
}

#[test]
fn ascii_mode_is_ascii_and_looks_as_agreed() {
    let theme = Theme::new(Palette::None, true);
    for (name, state, size) in states_and_sizes() {
        for row in rows(&buffer(&state, &theme, size)) {
            assert!(row.is_ascii(), "{name}: {row}");
        }
    }
    for (view_name, view) in VIEWS {
        let state = in_view(state_of(with_things(snapshot())), view);
        for size in SIZES {
            let name = format!("ascii_{view_name}_{}x{}", size.0, size.1);
            insta::assert_snapshot!(name, rows(&buffer(&state, &theme, size)).join("\n"));
        }
    }
    let shown = rows(&buffer(&deciding(), &theme, (120, 36))).join("\n");
    insta::assert_snapshot!("ascii_decision_120x36", shown);
}

#[test]
fn without_colours_none_is_used() {
    let theme = Theme::new(Palette::None, false);
    for (name, state, size) in states_and_sizes() {
        let buffer = buffer(&state, &theme, size);
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
            // Of a long path only the end is shown: its names are whole.
            let rate = word.trim_end_matches("/s").trim_end_matches("/h");
            let is_path = rate.contains('/') && rate.contains(char::is_alphabetic);
            for word in word.split(|c| is_path && matches!(c, '/' | '…')) {
                if word.contains(|c: char| c.is_ascii_digit()) && !counts {
                    figures.insert(word.to_owned());
                }
            }
        }
    }
    figures
}

/// Checks that what is drawn at each size has no figure that a screen with room for all has not.
fn assert_whole(name: &str, state: &State, sizes: impl Iterator<Item = (u16, u16)>) {
    let theme = Theme::new(Palette::Dark, false);
    // With more columns than anything needs, each height shows another layout in whole.
    let mut whole = BTreeSet::new();
    for height in (1..=26).chain([28, 31, 34, 37, 40, 45, 50, 60, 90, 130]) {
        whole.extend(figures(&buffer(state, &theme, (300, height))));
    }
    for size in sizes.chain([(80, 24), (60, 15), (110, 30), (24, 6), (200, 50)]) {
        for figure in figures(&buffer(state, &theme, size)) {
            // A count of rows in "make me larger".
            let rows = figure.parse::<u16>().is_ok_and(|rows| rows < 60);
            assert!(whole.contains(&figure) || rows, "{name} at {size:?}: {figure}");
        }
    }
}

#[test]
fn at_any_size_every_figure_of_a_dialog_is_whole() {
    for (name, state) in dialogs() {
        let sizes = (1..=140).step_by(5).flat_map(|w| (1..=45).step_by(4).map(move |h| (w, h)));
        assert_whole(&name, &state, sizes);
    }
}

#[test]
fn at_any_size_every_figure_of_a_view_is_whole() {
    for (name, state) in view_states() {
        let sizes = (1..=140).step_by(9).flat_map(|w| (1..=45).step_by(6).map(move |h| (w, h)));
        assert_whole(&name, &state, sizes);
    }
}

#[test]
fn a_storm_of_sizes_and_wide_names_draws() {
    let mut snapshot = snapshot();
    snapshot.configurations[0].title = "오로라 서버리스 데이터베이스 구성".into();
    snapshot.configurations[1].title = "e\u{301}\u{200d}\u{7}\u{1b}[31m control".into();
    let mut state = state_of(snapshot.clone());
    let theme = Theme::new(Palette::Dark, false);
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
