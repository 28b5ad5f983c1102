//! Everything that has happened, the newest at the bottom.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::model::{Event, Level};

use super::{
    super::{
        action::{Action, Layer},
        looks::LogLook,
        record::Record,
        state::State,
        theme::Theme,
    },
    text::{Part, line, words, wrap},
};

/// Columns that the mark and its gap take.
const MARK: usize = 3;
/// Rows that the newest line may take to be whole.
const WHOLE_ROWS: usize = 4;

/// Draws the view into the area.
pub(super) fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    if state.shown().is_none() || area.height == 0 {
        return;
    }
    let width = usize::from(area.width.saturating_sub(1));
    let (record, look) = (state.shown_record(), &state.looks.log);
    let shown = matching(record, look);
    let mut lines = vec![title(record, look, shown.len(), theme, width)];
    let rows = usize::from(area.height) - 1;
    if shown.is_empty() && rows > 0 {
        lines.push(line(nothing(state, record, theme), &Span::raw(""), width));
    }
    lines.extend(newest(&shown, look.up, theme, width, rows));
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    frame.render_widget(Paragraph::new(lines), area);
}

/// Why no line is shown, and what shows some.
fn nothing(state: &State, record: &Record, theme: &Theme) -> Vec<Part> {
    let look = &state.looks.log;
    if record.events().is_empty() {
        return vec![Part::new(0, "nothing yet", theme.dim)];
    }
    let mut parts = vec![Part::new(0, "no such line", theme.plain)];
    let keys = |action| state.keymap.key_for(Layer::Log, action);
    if let Some(level) = look.least.filter(|level| *level > Level::Info) {
        let what = if level == Level::Error { "errors" } else { "warnings and errors" };
        parts.push(Part::new(1, format!(" among {what}"), theme.plain));
        if let Some(key) = keys(Action::LogLevel) {
            parts.push(Part::new(2, format!("; {key} shows other levels"), theme.dim));
        }
    }
    if !look.search.value().trim().is_empty()
        && let Some(key) = keys(Action::Back)
    {
        parts.push(Part::new(3, format!("; {key} ends the search"), theme.dim));
    }
    parts
}

/// The events that the view is set to show, oldest first.
pub(in crate::console) fn matching<'a>(record: &'a Record, look: &LogLook) -> Vec<&'a Event> {
    record.events().iter().filter(|event| look.shows(event)).collect()
}

/// What is shown, and how many lines of how many.
fn title(
    record: &Record,
    look: &LogLook,
    shown: usize,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let all = record.events().len();
    let search = look.search.value().trim();
    let mut parts = vec![Part::new(0, "LOG", theme.strong)];
    match look.least {
        None | Some(Level::Info) => {}
        Some(Level::Warning) => parts.push(Part::new(1, "warnings and errors", theme.warn)),
        Some(Level::Error) => parts.push(Part::new(1, "errors", theme.warn)),
    }
    if !search.is_empty() {
        parts.push(Part::new(1, format!("with \"{search}\""), theme.warn).or("searched"));
    }
    let count = match all {
        _ if shown != all => format!("{shown} of {all} lines"),
        1 => "1 line".to_owned(),
        all => format!("{all} lines"),
    };
    parts.push(Part::new(2, count, theme.plain));
    let up = look.up.min(shown.saturating_sub(1));
    if up > 0 {
        parts.push(Part::new(1, format!("+{up} newer below"), theme.warn));
    }
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}

/// As many lines as there are rows, ending `up` lines before the newest. The one at the bottom is
/// whole, over several rows where it needs them.
fn newest(
    events: &[&Event],
    up: usize,
    theme: &Theme,
    width: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let end = events.len() - up.min(events.len().saturating_sub(1));
    let Some((bottom, before)) = events[..end].split_last() else { return Vec::new() };
    let whole = whole(bottom, theme, width);
    let whole = match whole.len() {
        lines if lines <= rows.min(WHOLE_ROWS) => whole,
        _ => vec![one(bottom, theme, width)],
    };
    let room = rows.saturating_sub(whole.len());
    let skip = before.len().saturating_sub(room);
    let mut lines: Vec<Line<'static>> =
        before.iter().skip(skip).map(|event| one(event, theme, width)).collect();
    lines.extend(whole);
    lines.truncate(rows);
    lines
}

/// The mark of a level, which stands at the line's begin, and its style.
const fn mark(level: Level, theme: &Theme) -> (&'static str, ratatui::style::Style) {
    match level {
        Level::Info => ("  ", theme.plain),
        Level::Warning => ("! ", theme.warn),
        Level::Error => ("!!", theme.bad),
    }
}

/// An event on one line.
fn one(event: &Event, theme: &Theme, width: usize) -> Line<'static> {
    let time = event.at.time_of_day();
    let text = words(&event.kind.text(), room(&time, width), &theme.symbols);
    row(event, time, text, theme, width)
}

fn room(time: &str, width: usize) -> usize {
    width.saturating_sub(time.len() + 1 + MARK)
}

fn row(event: &Event, time: String, text: String, theme: &Theme, width: usize) -> Line<'static> {
    let level = event.kind.level();
    let (mark, mark_style) = mark(level, theme);
    let style = if level == Level::Error { theme.bad } else { theme.plain };
    let parts = vec![
        Part::new(0, format!("{mark} "), mark_style),
        Part::new(1, format!("{time} "), theme.dim),
        Part::new(2, text, style),
    ];
    line(parts, &Span::raw(""), width)
}

/// An event on as many lines as it needs.
fn whole(event: &Event, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let time = event.at.time_of_day();
    let indent = " ".repeat(time.len() + 1 + MARK);
    let mut texts = wrap(&event.kind.text(), room(&time, width), &theme.symbols).into_iter();
    let first = texts.next().unwrap_or_default();
    let mut lines = vec![row(event, time, first, theme, width)];
    let style = if event.kind.level() == Level::Error { theme.bad } else { theme.plain };
    lines.extend(texts.map(|text| Line::styled(format!("{indent}{text}"), style)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        console::{
            fixture::{NOW, blank_state, snapshot, state_of},
            theme::Palette,
        },
        model::{EventKind, UnixMs},
    };

    fn texts(state: &State) -> Vec<String> {
        let shown = matching(state.shown_record(), &state.looks.log);
        shown.iter().map(|event| event.kind.text()).collect()
    }

    #[test]
    fn a_search_does_not_mind_capitals_and_goes_with_the_level() {
        let mut state = state_of(snapshot());
        assert_eq!(texts(&state).len(), 6);
        state.looks.log.search = " LOAD agent ".into();
        assert_eq!(texts(&state), ["LOAD AGENT LOST no window for 3 s, started again"]);
        state.looks.log.search = "".into();
        state.looks.log.least = Some(Level::Warning);
        assert_eq!(texts(&state).len(), 2);
        state.looks.log.least = Some(Level::Error);
        assert_eq!(texts(&state).len(), 1);
    }

    #[test]
    fn the_line_at_the_bottom_is_whole_and_scrolls() {
        let mut state = blank_state();
        for seq in 1..=9 {
            let text = format!("line {seq} with more words than fit");
            let kind = EventKind::Note { level: Level::Info, text };
            state.record.add_event(Event { seq, epoch: 1, at: UnixMs(NOW.0), kind });
        }
        let theme = Theme::new(Palette::None, false);
        let shown = matching(&state.record, &state.looks.log);
        let lines = |up, rows| {
            let lines = newest(&shown, up, &theme, 30, rows);
            lines.iter().map(|line| line.to_string().trim().to_owned()).collect::<Vec<_>>()
        };
        let bottom = ["12:40:12 line 9 with more", "words than fit"];
        assert_eq!(lines(0, 3)[1..], bottom);
        assert_eq!(lines(0, 3)[0], "12:40:12 line 8 with more …");
        // Too few rows for a whole one.
        assert_eq!(lines(0, 1), ["12:40:12 line 9 with more …"]);
        assert_eq!(lines(2, 2)[0], "12:40:12 line 7 with more");
        assert_eq!(lines(999, 4), ["12:40:12 line 1 with more", "words than fit"]);
    }
}
