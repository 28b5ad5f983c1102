//! Drawing: the state in, a frame out, nothing kept.
//!
//! ```text
//!  run · what it is                                    stage · clock · engine      header
//!  budget bar, money, guard                                                        header
//!  the views and their keys                        frozen, watching                header
//!  ┌ pane ──────────────┐┌ pane ──────────────┐                                    overview
//!  └────────────────────┘└────────────────────┘
//!  the newest events                                                               foot
//!  ┌ a dialog, with room of its own ──────────┐                                    panel
//!  └──────────────────────────────────────────┘
//!  ┌ how a chord can go on ───────────────────┐                                    chord
//!  └──────────────────────────────────────────┘
//!  a message · the keys                                                            foot
//! ```
//!
//! A figure is drawn whole or not at all: lines are made of parts that are left out whole, panes of
//! rows that are left out whole, and a dialog takes room instead of lying over figures.

mod cells;
mod chart;
mod charts;
mod chord;
mod columns;
mod compare;
mod configuration;
mod decision;
mod ended;
mod figures;
mod foot;
mod forms;
mod header;
mod help;
mod latency;
pub(in crate::console) mod log;
mod nearest;
mod notes;
mod overview;
mod palette;
mod pane;
mod panel;
pub(in crate::console) mod resources;
mod status;
mod teardown;
mod text;
mod time;
mod verdicts;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

pub(super) use self::figures::rate as rate_text;
use self::{panel::Panel, text::Part};

use super::{
    state::{Dialog, State, View},
    theme::Theme,
};

/// Below these nothing useful is whole.
const LEAST_WIDTH: u16 = 24;
const LEAST_HEIGHT: u16 = 6;
/// The rows that a dialog leaves to the overview where it can.
const OVERVIEW_ROWS: u16 = 4;
/// The rows of a screen that has one for the names of the views; the overview's panes say enough
/// by themselves where they would be fewer.
const VIEWS_ROWS: u16 = 10;
const VIEWS_ROWS_OVERVIEW: u16 = 20;

/// Draws the whole screen.
pub(super) fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    frame.buffer_mut().set_style(area, theme.base);
    if area.width < LEAST_WIDTH || area.height < LEAST_HEIGHT {
        let parts = vec![
            Part::new(0, format!("make me larger: {LEAST_WIDTH}x{LEAST_HEIGHT}"), theme.plain)
                .or("make me larger"),
        ];
        let text = text::line(parts, &Span::raw(""), usize::from(area.width));
        frame.render_widget(Paragraph::new(text), area);
    } else {
        draw_screen(state, theme, frame, area);
    }
    if theme.ascii {
        to_ascii(frame.buffer_mut());
    }
}

fn draw_screen(state: &State, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let mut room = area;
    let width = usize::from(area.width);
    let mut head = vec![header::run(state, theme, width)];
    if let Some(snapshot) = &state.snapshot {
        head.push(header::budget(&snapshot.cost, theme, width));
        let least = if state.view == View::Overview { VIEWS_ROWS_OVERVIEW } else { VIEWS_ROWS };
        let ended = state.ended.is_some() && state.view == View::Overview;
        if (area.height >= least && !ended) || header::must_say(state) {
            head.push(header::views(state, theme, width));
        }
    }
    top(&mut room, head, frame);
    bottom(&mut room, vec![foot::hints(state, theme, width)], frame);
    if let Some(toast) = &state.toast {
        bottom(&mut room, foot::toast(toast, theme, width), frame);
    }
    if let Some(chord) = chord::panel(state, theme, area.width) {
        let height = chord.height().min(room.height);
        room.height -= height;
        chord.draw(theme, frame, Rect { y: room.bottom(), height, ..room });
    }
    if let Some(decision) = state.decision()
        && !matches!(state.dialog, Some(Dialog::Decision(_)))
    {
        bottom(&mut room, vec![decision::banner(state, decision, theme, width)], frame);
    }
    if let Some(asked) = header::control(state, theme, width) {
        bottom(&mut room, vec![asked], frame);
    }
    let lost = header::lost(state, theme, width);
    if room.height > OVERVIEW_ROWS + u16::try_from(lost.len()).unwrap_or(u16::MAX) {
        bottom(&mut room, lost, frame);
    }
    if let Some(panel) = panel(state, theme, area.width, room.height) {
        let wanted = panel.height();
        let kept = room.height.saturating_sub(OVERVIEW_ROWS);
        let ended = state.ended.is_some() && state.view == View::Overview;
        let fills = matches!(state.dialog, Some(Dialog::Help(_))) || ended;
        let height = if fills { room.height } else { wanted.min(kept.max(panel.least_height())) };
        let height = height.min(room.height);
        let docked = Rect { y: room.bottom() - height, height, ..room };
        room.height -= height;
        panel.draw(theme, frame, docked);
    }
    draw_view(state, theme, frame, room);
    // What is old looks old, in every view, beside the words that say so.
    if state.stale_s().is_some() {
        frame.buffer_mut().set_style(room, theme.dim);
    }
}

fn draw_view(state: &State, theme: &Theme, frame: &mut Frame<'_>, room: Rect) {
    match state.view {
        View::Overview => draw_overview(state, theme, frame, room),
        View::Configuration => configuration::draw(state, theme, frame, room),
        View::Compare => compare::draw(state, theme, frame, room),
        View::Cells => cells::draw(state, theme, frame, room),
        View::Resources => resources::draw(state, theme, frame, room),
        View::Log => log::draw(state, theme, frame, room),
    }
}

fn panel(state: &State, theme: &Theme, width: u16, height: u16) -> Option<Panel> {
    match (&state.dialog, &state.ended) {
        (Some(Dialog::Start(form)), _) => Some(forms::start(form, theme, width)),
        (Some(Dialog::Rate(form)), _) => Some(forms::rate_line(state, form, theme, width)),
        (Some(Dialog::Ramp(form)), _) => Some(forms::ramp(state, form, theme, width)),
        (Some(Dialog::Palette(palette)), _) => Some(palette::panel(state, palette, theme, width)),
        (Some(Dialog::Search(input)), _) => Some(forms::search(input, theme, width)),
        (Some(Dialog::Decision(dialog)), _) => {
            let decision = state.decision()?;
            Some(decision::panel(state, decision, dialog, theme, width))
        }
        (Some(Dialog::Teardown(dialog)), _) => {
            let kept = height.saturating_sub(OVERVIEW_ROWS).max(5).min(height);
            Some(teardown::panel(state, dialog, theme, width, kept))
        }
        (Some(Dialog::Help(dialog)), _) => Some(help::panel(state, dialog, theme, width, height)),
        (None, Some(end)) if state.view == View::Overview => {
            Some(ended::panel(state, end, theme, width, height))
        }
        (None, _) => None,
    }
}

/// Panes, and the newest events in what is left below them.
fn draw_overview(state: &State, theme: &Theme, frame: &mut Frame<'_>, mut room: Rect) {
    let width = usize::from(room.width);
    let Some(snapshot) = state.shown() else { return };
    if snapshot.configurations.is_empty() {
        top(&mut room, overview::waiting(snapshot, theme, width), frame);
    }
    let events = match room.height {
        0..14 => 0,
        14..24 => 2,
        _ => 3,
    };
    let rows = overview::height(snapshot, room.width, room.height - events);
    let area = Rect { height: rows, ..room };
    overview::draw(state, snapshot, theme, frame, area);
    room.y += rows;
    room.height -= rows;
    let lines = foot::events(state, theme, width, usize::from(room.height));
    frame.render_widget(Paragraph::new(lines), room);
}

/// Draws lines at the top of the room and takes their rows from it.
fn top(room: &mut Rect, lines: Vec<Line<'static>>, frame: &mut Frame<'_>) {
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(room.height);
    frame.render_widget(Paragraph::new(lines), Rect { height, ..*room });
    room.y += height;
    room.height -= height;
}

/// Draws lines at the bottom of the room and takes their rows from it.
fn bottom(room: &mut Rect, lines: Vec<Line<'static>>, frame: &mut Frame<'_>) {
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(room.height);
    let area = Rect { y: room.bottom() - height, height, ..*room };
    frame.render_widget(Paragraph::new(lines), area);
    room.height -= height;
}

/// What came from elsewhere (a plan's titles, an event's text) may not be ASCII.
fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if symbol.is_ascii() {
            continue;
        }
        let plain = match symbol {
            "·" => "|",
            "×" => "x",
            "–" | "—" | "−" => "-",
            "→" => ">",
            "…" => ".",
            "≥" => ">",
            "≤" => "<",
            _ => "?",
        };
        cell.set_symbol(plain);
    }
}

#[cfg(test)]
mod chart_tests;
#[cfg(test)]
mod tests;
