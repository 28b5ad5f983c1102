//! All configurations at once: panes where there is room, a list and the selected pane, or a list.

use std::cmp::Reverse;

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::model::{ConfigurationState, ConfigurationStatus, Snapshot};

use super::{
    super::{state::State, theme::Theme},
    figures::{money, rate},
    pane::{self, FULL_HEIGHT, LEAST_HEIGHT, LEAST_WIDTH, Pane, worst},
    status::{Figures, status_of},
    text::{Part, line, pad},
};

/// How the configurations are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Panes in columns, each of this height.
    Panes { columns: u16, height: u16 },
    /// A line each, and the selected one's pane of this height below.
    ListAndPane { height: u16 },
    /// As many lines as there are rows; the rest is said.
    List,
}

/// How many rows the overview takes of those it may have.
pub(super) fn height(snapshot: &Snapshot, width: u16, rows: u16) -> u16 {
    let count = count_of(snapshot);
    match layout(count, width, rows, full_height(snapshot)) {
        Layout::Panes { columns, height } => count.div_ceil(columns) * height,
        Layout::ListAndPane { height } => count + height,
        Layout::List => count.min(rows),
    }
}

fn count_of(snapshot: &Snapshot) -> u16 {
    u16::try_from(snapshot.configurations.len()).unwrap_or(u16::MAX)
}

/// The rows of a whole pane: more where a verdict's reason is to be shown.
fn full_height(snapshot: &Snapshot) -> u16 {
    let figures = snapshot.configurations.iter().filter_map(Figures::of);
    FULL_HEIGHT + figures.filter_map(|f| f.reason()).map(pane::reason_rows).max().unwrap_or(0)
}

fn layout(count: u16, width: u16, rows: u16, full: u16) -> Layout {
    if count == 0 {
        return Layout::List;
    }
    let most = (width / LEAST_WIDTH).clamp(1, count);
    let heights = (1..=most).map(|columns| (columns, rows / count.div_ceil(columns)));
    // The tallest panes win, and of equal ones those nearest to two columns.
    let best = heights
        .map(|(columns, height)| (height.min(full), Reverse(columns.abs_diff(2)), columns))
        .max()
        .filter(|(height, ..)| *height >= LEAST_HEIGHT && width >= LEAST_WIDTH);
    if let Some((height, _, columns)) = best {
        return Layout::Panes { columns, height };
    }
    let left = rows.saturating_sub(count);
    if left >= LEAST_HEIGHT && width >= LEAST_WIDTH / 2 {
        return Layout::ListAndPane { height: left.min(full) };
    }
    Layout::List
}

/// Draws every configuration into the area.
pub(super) fn draw(
    state: &State,
    snapshot: &Snapshot,
    theme: &Theme,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let count = count_of(snapshot);
    match layout(count, area.width, area.height, full_height(snapshot)) {
        Layout::Panes { columns, height } => {
            draw_panes(state, snapshot, theme, frame, (area, columns, height));
        }
        Layout::ListAndPane { height } => {
            let list = Rect { height: count.min(area.height), ..area };
            draw_list(state, snapshot, theme, frame, list);
            let below = Rect { y: area.y + list.height, height, ..area }.intersection(area);
            if let Some(status) = snapshot.configurations.get(state.selected) {
                pane::draw(&pane_of(state, snapshot, status, true), theme, frame, below);
            }
        }
        Layout::List => draw_list(state, snapshot, theme, frame, area),
    }
}

fn pane_of<'a>(
    state: &'a State,
    snapshot: &'a Snapshot,
    status: &'a ConfigurationStatus,
    selected: bool,
) -> Pane<'a> {
    Pane {
        status,
        agent: &snapshot.agent,
        slo: &snapshot.header.slo,
        record: state.shown_record(),
        at: snapshot.at,
        selected,
    }
}

fn draw_panes(
    state: &State,
    snapshot: &Snapshot,
    theme: &Theme,
    frame: &mut Frame<'_>,
    (area, columns, height): (Rect, u16, u16),
) {
    for (at, status) in snapshot.configurations.iter().enumerate() {
        let Ok(place) = u16::try_from(at) else { return };
        let (row, column) = (place / columns, place % columns);
        // The last column takes what does not divide.
        let x = area.width / columns * column;
        let width = if column + 1 == columns { area.width - x } else { area.width / columns };
        let rect = Rect { x: area.x + x, y: area.y + row * height, width, height };
        let selected = at == state.selected;
        let pane = pane_of(state, snapshot, status, selected);
        pane::draw(&pane, theme, frame, rect.intersection(area));
    }
}

fn draw_list(state: &State, snapshot: &Snapshot, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let (count, rows) = (snapshot.configurations.len(), usize::from(area.height));
    let all_fit = count <= rows;
    let shown = if all_fit { count } else { rows.saturating_sub(1) };
    let first = state.selected.saturating_sub(shown.saturating_sub(1)).min(count - shown);
    let states: Vec<_> =
        snapshot.configurations.iter().map(|c| status_of(c, snapshot.at, theme)).collect();
    let widest = |text: &dyn Fn(usize) -> usize| (0..count).map(text).max().unwrap_or(0);
    let ids = widest(&|at| snapshot.configurations[at].id.as_str().chars().count());
    let long = widest(&|at| states[at].long.chars().count());
    let mut lines = Vec::new();
    let all = snapshot.configurations.iter().zip(&states).enumerate();
    for (at, (status, words)) in all.skip(first).take(shown) {
        let selected = at == state.selected;
        let mark = if selected { theme.symbols.marker } else { " " };
        let name = format!("{mark}{}", pad(status.id.as_str(), ids));
        let id_style = if selected { theme.selected } else { theme.strong };
        let mut parts = vec![
            Part::new(0, name, id_style),
            Part::new(1, pad(&words.long, long), words.style).or(words.short.clone()),
        ];
        parts.extend(brief(status, snapshot, theme));
        lines.push(line(parts, &Span::raw("  "), usize::from(area.width)));
    }
    if !all_fit && rows > 0 {
        let text = format!(" +{} panes more: resize or scroll", count - shown);
        let parts = vec![Part::new(0, text, theme.warn).or(format!("+{}", count - shown))];
        lines.push(line(parts, &Span::raw(""), usize::from(area.width)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// A configuration's main figures.
fn brief(status: &ConfigurationStatus, snapshot: &Snapshot, theme: &Theme) -> Vec<Part> {
    let mut parts = Vec::new();
    if let ConfigurationState::SettingUp { step } = &status.state {
        parts.push(Part::new(3, step, theme.plain));
    }
    if let ConfigurationState::Failed { why } = &status.state {
        parts.push(Part::new(3, why, theme.bad));
    }
    if let Some(figures) = Figures::of(status) {
        let style: Style = if figures.live { theme.plain } else { theme.dim };
        let load = match figures.load.rate() {
            Some(offered) => format!("open {}/s", rate(offered)),
            None => figures.load.to_string(),
        };
        parts.push(Part::new(4, load, style));
        if let Some((long, short)) = pane::ramp(status) {
            parts.push(Part::new(3, long, theme.accent).or(short));
        }
        parts.push(Part::new(2, format!("ok {}/s", rate(figures.tps.succeeded)), style));
        if let Some((text, over)) = worst(&figures, &snapshot.header.slo) {
            if over && figures.are_judged() {
                let mark = format!("{} OVER", theme.symbols.over);
                parts.push(Part::new(3, format!("{mark} {text}"), theme.bad).or(mark));
            } else {
                parts.push(Part::new(3, text, style));
            }
        }
    }
    parts.push(Part::new(5, format!("{} USD", money(status.accrued)), theme.plain));
    parts
}

/// What is shown before the first configuration is known.
pub(super) fn waiting(snapshot: &Snapshot, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let crate::model::RunState::SettingUp { step } = &snapshot.state else { return Vec::new() };
    super::text::wrap(&format!("Setting up: {step}"), width, &theme.symbols)
        .into_iter()
        .map(|text| Line::styled(text, theme.plain))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_eight_configurations_are_laid_out() {
        assert_eq!(layout(4, 120, 28, 11), Layout::Panes { columns: 2, height: 11 });
        assert_eq!(layout(4, 200, 44, 11), Layout::Panes { columns: 2, height: 11 });
        assert_eq!(layout(6, 200, 30, 11), Layout::Panes { columns: 3, height: 11 });
        assert_eq!(layout(8, 120, 32, 11), Layout::Panes { columns: 2, height: 8 });
        assert_eq!(layout(1, 80, 19, 11), Layout::Panes { columns: 1, height: 11 });
        assert_eq!(layout(4, 80, 19, 11), Layout::ListAndPane { height: 11 });
        assert_eq!(layout(4, 60, 11, 11), Layout::List);
        assert_eq!(layout(8, 40, 3, 11), Layout::List);
    }
}
