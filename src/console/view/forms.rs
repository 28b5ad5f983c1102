//! Starting a cell and typing a rate.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use tui_input::Input;

use crate::model::{Class, ConfigurationId, ConfigurationStatus, Load, Slo, Verdict, When};

use super::{
    super::{
        action::{Action, Layer},
        form::{Field, RampForm, RateForm, StartForm},
        state::State,
        theme::Theme,
    },
    figures::{limit, ms, rate},
    panel::Panel,
    text::{Part, Row, line, pad, words},
};

/// Ended cells that are shown beside a rate.
const STEPS: usize = 3;

const LABEL: usize = 15;
/// Columns of a typed field: the longest number and the cursor behind it.
const FIELD: usize = 14;

/// The form of a cell.
pub(super) fn start(form: &StartForm, theme: &Theme, width: u16) -> Panel {
    let width = Panel::inner_width(width);
    let rows = form.fields().into_iter().map(|field| {
        let focus = form.focus == field;
        let mut spans = label(field.label(), focus, theme);
        match form.input(field) {
            Some(input) if focus && form.fresh => spans.extend(replaced(input, theme)),
            Some(input) => spans.extend(typed(input, focus, theme)),
            None => spans.extend(choice(form, field, focus, theme)),
        }
        let (note, style) = match form.error(field) {
            Some(error) => (error.to_owned(), theme.bad),
            None => (note(form, field), theme.dim),
        };
        Row::new(0, with_note(spans, &note, style, width, theme))
    });
    let title = format!(" START A CELL on {} ", form.configuration);
    Panel {
        left: vec![Part::new(0, title, theme.strong)],
        right: Vec::new(),
        rows: rows.collect(),
        border: theme.selected,
    }
}

/// The line of a rate, and beside it what the last steps did.
pub(super) fn rate_line(state: &State, form: &RateForm, theme: &Theme, width: u16) -> Panel {
    let width = Panel::inner_width(width);
    let mut spans = label(Field::Rate.label(), true, theme);
    spans.extend(typed(&form.input, true, theme));
    let (note, style) = match &form.error {
        Some(error) => (error.clone(), theme.bad),
        None => {
            let (now, most) = (rate(form.current), rate(form.max_rate));
            (format!("now {now}, up to {most}: starts a new cell"), theme.dim)
        }
    };
    let mut rows = vec![Row::new(0, with_note(spans, &note, style, width, theme))];
    rows.extend(standing(state, &form.configuration, theme, width));
    Panel {
        left: vec![Part::new(0, format!(" ARRIVAL RATE of {} ", form.configuration), theme.strong)],
        right: Vec::new(),
        rows,
        border: theme.selected,
    }
}

/// The form of a ramp.
pub(super) fn ramp(state: &State, form: &RampForm, theme: &Theme, width: u16) -> Panel {
    let width = Panel::inner_width(width);
    let (now, most) = (rate(form.current), rate(form.max_rate));
    let now = format!("now {now}/s; at most {most} (the plan's max_rate)");
    let row = |name: &str, input: &Input, focus: bool, error: &Option<String>, note: &str| {
        let mut spans = label(name, focus, theme);
        if focus && form.fresh {
            spans.extend(replaced(input, theme));
        } else {
            spans.extend(typed(input, focus, theme));
        }
        let (note, style) = match error {
            Some(error) => (error.as_str(), theme.bad),
            None => (note, theme.dim),
        };
        Row::new(0, with_note(spans, note, style, width, theme))
    };
    let steps = "in steps, each a cell of its own";
    let mut rows = vec![
        row("to rate /s", &form.to, !form.on_time, &form.errors.0, &now),
        row("over seconds", &form.over, form.on_time, &form.errors.1, steps),
    ];
    rows.extend(standing(state, &form.configuration, theme, width));
    Panel {
        left: vec![Part::new(0, format!(" RAMP of {} ", form.configuration), theme.strong)],
        right: Vec::new(),
        rows,
        border: theme.selected,
    }
}

/// How a configuration stands: the SLO's head-room now, the last verdict, what the last steps did
/// and what an undo goes back to.
fn standing(state: &State, id: &ConfigurationId, theme: &Theme, width: usize) -> Vec<Row> {
    let Some(snapshot) = &state.snapshot else { return Vec::new() };
    let Some(status) = snapshot.configurations.iter().find(|status| status.id == *id) else {
        return Vec::new();
    };
    let named = |rank: u8, name: &str, parts: Vec<Part>| {
        let mut spans = label(name, false, theme);
        let separator = Span::styled(theme.symbols.dot, theme.dim);
        let room = width.saturating_sub(LABEL);
        spans.extend(line(parts, &separator, room).spans);
        Row::new(rank, Line::from(spans))
    };
    let mut rows = Vec::new();
    rows.extend(head_room(&snapshot.header.slo, status, theme).map(|p| named(1, "worst p99", p)));
    rows.push(named(2, "before", before(state, status, theme)));
    if let Some(to) = status.undo_rate {
        let key = state.keymap.key_for(Layer::Overview, Action::UndoStep).unwrap_or_default();
        let text = format!("{key} goes back to {}/s", rate(to));
        rows.push(named(3, "undo", vec![Part::new(0, text, theme.dim)]));
    }
    rows
}

/// The newest ended cells of a configuration with their verdicts, the last one first.
fn before(state: &State, status: &ConfigurationStatus, theme: &Theme) -> Vec<Part> {
    let part = |rank, load: &Load, verdict: Verdict| {
        let style = match verdict {
            Verdict::Pass => theme.good,
            Verdict::Fail => theme.bad,
            Verdict::Inconclusive | Verdict::Invalid => theme.plain,
        };
        Part::new(rank, format!("{load} {verdict}"), style)
    };
    let cells = state.record.cells().iter().rev().filter(|c| c.configuration == status.id);
    let parts: Vec<Part> =
        cells.take(STEPS).zip(0..).map(|(c, rank)| part(rank, &c.load, c.verdict)).collect();
    match (&parts[..], &status.last) {
        ([], Some(last)) => vec![part(0, &last.load, last.verdict)],
        ([], None) => vec![Part::new(0, "no cell of it has ended yet", theme.dim)],
        _ => parts,
    }
}

/// The class whose p99 is nearest to its limit, or furthest above it.
fn head_room(slo: &Slo, status: &ConfigurationStatus, theme: &Theme) -> Option<Vec<Part>> {
    let cell = status.cell.as_ref()?;
    let figures = Class::ALL.into_iter().filter_map(|class| {
        let (p99, limit) = (cell.classes[class].p99_ms?, slo.of(class).p99_ms);
        Some((class, p99, limit))
    });
    let worst = figures.max_by(|one, two| (one.1 / one.2).total_cmp(&(two.1 / two.2)));
    let Some((class, p99, most)) = worst else {
        return Some(vec![Part::new(0, "no transaction measured yet", theme.dim)]);
    };
    let share = (1.0 - p99 / most) * 100.0;
    let (word, style) = if share < 0.0 {
        (format!("{} {:.0} % above it", theme.symbols.over, -share), theme.bad)
    } else {
        (format!("{share:.0} % head-room"), theme.plain)
    };
    Some(vec![
        Part::new(2, class.words(), theme.plain).or(class.short()),
        Part::new(1, format!("{} ms of {} ms", ms(p99), limit(most)), theme.plain),
        Part::new(0, word, style),
    ])
}

/// The line in which a search is typed.
pub(super) fn search(input: &Input, theme: &Theme, width: u16) -> Panel {
    let mut spans = vec![Span::raw("/ ")];
    spans.extend(typed(input, true, theme));
    let note = "enter shows only lines that contain it";
    let row = with_note(spans, note, theme.dim, Panel::inner_width(width), theme);
    Panel {
        left: vec![Part::new(0, " SEARCH ", theme.strong)],
        right: Vec::new(),
        rows: vec![Row::new(0, row)],
        border: theme.selected,
    }
}

fn label(text: &str, focus: bool, theme: &Theme) -> Vec<Span<'static>> {
    let mark = if focus { theme.symbols.marker } else { " " };
    let style = if focus { theme.selected } else { theme.plain };
    vec![Span::styled(pad(&format!("{mark} {text}"), LABEL), style)]
}

/// A typed value with its cursor as a reversed cell: the terminal's own stays hidden.
pub(super) fn typed(input: &Input, focus: bool, theme: &Theme) -> Vec<Span<'static>> {
    if !focus {
        return vec![Span::styled(pad(input.value(), FIELD), theme.plain)];
    }
    let mut characters = input.value().chars();
    let before: String = characters.by_ref().take(input.cursor()).collect();
    let at = characters.next().map_or_else(|| " ".to_owned(), String::from);
    let after: String = characters.collect();
    let used = before.chars().count() + 1 + after.chars().count();
    vec![
        Span::styled(before, theme.strong),
        Span::styled(at, theme.marked),
        Span::styled(after, theme.strong),
        Span::raw(" ".repeat(FIELD.saturating_sub(used))),
    ]
}

/// A value that the next character replaces.
fn replaced(input: &Input, theme: &Theme) -> Vec<Span<'static>> {
    let value = if input.value().is_empty() { " " } else { input.value() };
    let room = FIELD.saturating_sub(value.chars().count());
    vec![Span::styled(value.to_owned(), theme.marked), Span::raw(" ".repeat(room))]
}

fn choice(form: &StartForm, field: Field, focus: bool, theme: &Theme) -> Vec<Span<'static>> {
    let (first, second, is_first) = match field {
        Field::Kind => ("closed", "open", !form.open_loop),
        _ => ("now", "after", form.when == When::Now),
    };
    let part = |text: &str, chosen: bool| match (chosen, focus) {
        (true, true) => Span::styled(format!("[{text}]"), theme.marked),
        (true, false) => Span::styled(format!("[{text}]"), theme.strong),
        (false, _) => Span::styled(format!(" {text} "), theme.dim),
    };
    let used = first.len() + second.len() + 4;
    vec![
        part(first, is_first),
        part(second, !is_first),
        Span::raw(" ".repeat(FIELD.saturating_sub(used))),
    ]
}

fn note(form: &StartForm, field: Field) -> String {
    match field {
        Field::Kind if form.open_loop => {
            "arrivals at a rate, whatever the database does".to_owned()
        }
        Field::Kind => "each connection sends its next transaction after the last".to_owned(),
        Field::Rate => format!("at most {} (the plan's max_rate)", rate(form.max_rate)),
        Field::Connections if form.open_loop => "most that run at once".to_owned(),
        Field::Connections | Field::WarmUp | Field::Measure => String::new(),
        Field::When => match (form.busy, form.when) {
            (false, _) => "it is idle: starts at once".to_owned(),
            (true, When::Now) => "stops the running cell (INVALID if cut short)".to_owned(),
            (true, When::After) => "starts when the running cell has ended".to_owned(),
        },
    }
}

fn with_note(
    mut spans: Vec<Span<'static>>,
    note: &str,
    style: Style,
    width: usize,
    theme: &Theme,
) -> Line<'static> {
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" "));
    spans.push(Span::styled(words(note, width.saturating_sub(used + 1), &theme.symbols), style));
    Line::from(spans)
}
