//! The cells: those that run, those that wait with what each will take and cost, and those that
//! have ended, the newest first.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::model::{Basis, Load, Money, QueuedCell, Snapshot, Verdict};

use super::{
    super::{record::EndedCell, state::State, theme::Theme},
    columns::{Column, Entry, Kind, around, lay},
    figures::{about, money, rate},
    status::{status_of, verdict_style},
    text::{Part, line},
};

/// A cell's columns: what it is, then what it takes and costs, or how it ended.
const WAITING: [Column; 8] = [
    Column { head: "", rank: 0, kind: Kind::Left },
    Column { head: "", rank: 0, kind: Kind::Left },
    Column { head: "load", rank: 1, kind: Kind::Left },
    Column { head: "stage", rank: 6, kind: Kind::Left },
    Column { head: "warm-up + measure", rank: 7, kind: Kind::Left },
    Column { head: "takes", rank: 3, kind: Kind::Right },
    Column { head: "own USD", rank: 2, kind: Kind::Right },
    Column { head: "asked by", rank: 5, kind: Kind::Left },
];
const ENDED: [Column; 7] = [
    Column { head: "", rank: 0, kind: Kind::Left },
    Column { head: "", rank: 0, kind: Kind::Left },
    Column { head: "load", rank: 3, kind: Kind::Left },
    Column { head: "stage", rank: 6, kind: Kind::Left },
    Column { head: "verdict", rank: 1, kind: Kind::Left },
    Column { head: "ok/s", rank: 2, kind: Kind::Right },
    Column { head: "why, and who made the tail", rank: 4, kind: Kind::Free },
];

/// Rows that the running cells leave to the rest.
const LEAST_LIST: usize = 3;

/// Draws the view into the area.
pub(super) fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let Some(snapshot) = state.shown() else { return };
    let (width, rows) = (usize::from(area.width.saturating_sub(1)), usize::from(area.height));
    let mut lines = vec![queue_title(snapshot, theme, width)];
    let running = running(snapshot, theme, width);
    if running.len() + lines.len() + LEAST_LIST <= rows {
        lines.splice(0..0, running);
    }
    let rows = rows.saturating_sub(lines.len());
    let (list, marked) = list(state, snapshot, theme, width);
    lines.extend(around(list, marked, rows, theme));
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    frame.render_widget(Paragraph::new(lines), area);
}

/// The cells that run now, a line each.
fn running(snapshot: &Snapshot, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let columns = [
        Column { head: "", rank: 0, kind: Kind::Left },
        Column { head: "", rank: 2, kind: Kind::Left },
        Column { head: "", rank: 5, kind: Kind::Left },
        Column { head: "", rank: 1, kind: Kind::Left },
        Column { head: "", rank: 3, kind: Kind::Right },
    ];
    let rows: Vec<Vec<Entry>> = snapshot
        .configurations
        .iter()
        .filter_map(|status| {
            let cell = status.cell.as_ref()?;
            let words = status_of(status, snapshot.at, theme);
            Some(vec![
                Entry::new(cell.id.to_string(), theme.strong),
                Entry::new(load_words(cell.load), theme.plain),
                Entry::new(cell.stage.clone(), theme.dim),
                Entry::new(words.long, words.style),
                Entry::new(format!("ok {}/s", rate(cell.tps.succeeded)), theme.plain),
            ])
        })
        .collect();
    let title = match rows.len() {
        0 => "NOW  no cell runs".to_owned(),
        1 => "NOW  1 cell runs".to_owned(),
        count => format!("NOW  {count} cells run"),
    };
    let mut lines = vec![Line::styled(title, theme.strong)];
    lines.extend(
        lay(&columns, &rows, theme, width.saturating_sub(2)).rows.into_iter().map(indented),
    );
    lines
}

fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw("  "));
    line
}

/// How many wait, what they take and cost by themselves, and what all that exists costs meanwhile,
/// until the plan's end, as a decision prices it.
fn queue_title(snapshot: &Snapshot, theme: &Theme, width: usize) -> Line<'static> {
    let count = match snapshot.queue.len() {
        0 => return Line::styled("QUEUE  no cell waits", theme.strong),
        1 => "1 cell waits".to_owned(),
        count => format!("{count} cells wait"),
    };
    let spends: Money = snapshot.queue.iter().map(|cell| cell.spends).sum();
    let basis = match snapshot.cost.basis {
        Basis::Simulated => " simulated",
        Basis::Measured | Basis::Estimated => "",
    };
    let mut parts = vec![
        Part::new(0, format!("QUEUE  {count}"), theme.strong),
        Part::new(2, format!("about {} of cells", about_s(takes(&snapshot.queue))), theme.plain),
        Part::new(1, format!("their own {} USD{basis}", money(spends)), theme.plain)
            .or(format!("own {} USD", money(spends))),
    ];
    let (projected, accrued) = (snapshot.cost.projected, snapshot.cost.accrued);
    if projected > accrued {
        let rest = format!("+ {} USD to the plan's end", money(projected - accrued));
        let whole = format!("{rest} for all that exists ({} then)", money(projected));
        parts.push(Part::new(3, whole, theme.plain).or(rest));
    }
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}

/// What all cells that wait take, one after the other, in seconds.
fn takes(queue: &[QueuedCell]) -> f64 {
    queue.iter().map(|cell| cell.takes_s).sum()
}

/// A duration for people.
fn about_s(seconds: f64) -> String {
    about(std::time::Duration::try_from_secs_f64(seconds.ceil()).unwrap_or_default().as_secs())
}

/// What waits and what has ended, with their heads, and the line that is marked.
fn list(
    state: &State,
    snapshot: &Snapshot,
    theme: &Theme,
    width: usize,
) -> (Vec<Line<'static>>, usize) {
    let queue = &snapshot.queue;
    let ended: Vec<&EndedCell> = state.shown_record().cells().iter().rev().collect();
    let last = (queue.len() + ended.len()).saturating_sub(1);
    let marked = state.looks.cell.min(last);
    let mut lines = Vec::new();
    if !queue.is_empty() {
        let rows: Vec<_> = queue
            .iter()
            .enumerate()
            .map(|(at, cell)| waiting_row(cell, at, at == marked, theme))
            .collect();
        let laid = lay(&WAITING, &rows, theme, width);
        lines.push(laid.head);
        lines.extend(laid.rows);
        lines.push(Line::default());
    }
    let heads = if queue.is_empty() { 0 } else { 1 };
    let title = match ended.len() {
        0 => "ENDED  no cell yet".to_owned(),
        1 => "ENDED  1 cell".to_owned(),
        count => format!("ENDED  {count} cells, the newest first"),
    };
    lines.push(Line::styled(title, theme.strong));
    let rows: Vec<_> = ended
        .iter()
        .enumerate()
        .map(|(at, cell)| ended_row(cell, queue.len() + at == marked, theme))
        .collect();
    let before_ended = lines.len() + usize::from(!rows.is_empty());
    if !rows.is_empty() {
        let laid = lay(&ENDED, &rows, theme, width);
        lines.push(laid.head);
        lines.extend(laid.rows);
    }
    let place = match marked.checked_sub(queue.len()) {
        Some(back) => before_ended + back,
        None => heads + marked,
    };
    let place = place.min(lines.len().saturating_sub(1));
    (lines, place)
}

fn name(mark: bool, name: String, theme: &Theme) -> [Entry; 2] {
    let style = if mark { theme.selected } else { theme.strong };
    let symbol = if mark { theme.symbols.marker } else { " " };
    [Entry::new(symbol, style), Entry::new(name, style)]
}

fn waiting_row(cell: &QueuedCell, at: usize, mark: bool, theme: &Theme) -> Vec<Entry> {
    let [mark, name] = name(mark, format!("{}. {}", at + 1, cell.configuration), theme);
    let spans = format!("{} + {}", about_s(cell.warmup_s), about_s(cell.measure_s));
    let by = if cell.planned { "plan" } else { "operator" };
    vec![
        mark,
        name,
        Entry::new(load_words(cell.load), theme.plain),
        Entry::new(cell.stage.clone(), theme.dim),
        Entry::new(spans, theme.plain),
        Entry::new(about_s(cell.takes_s), theme.plain),
        Entry::new(money(cell.spends), theme.plain),
        Entry::new(by, theme.dim),
    ]
}

fn ended_row(cell: &EndedCell, mark: bool, theme: &Theme) -> Vec<Entry> {
    let [mark, name] = name(mark, cell.cell.to_string(), theme);
    vec![
        mark,
        name,
        Entry::new(load_words(cell.load), theme.plain),
        Entry::new(cell.stage.clone(), theme.dim),
        Entry::new(cell.verdict.to_string(), verdict_style(cell.verdict, theme)),
        Entry::new(rate(cell.tps.succeeded), theme.plain),
        Entry::new(reason(cell, theme), theme.plain),
    ]
}

/// Why a cell did not pass, and where its tail came from.
fn reason(cell: &EndedCell, theme: &Theme) -> String {
    let why = if cell.verdict == Verdict::Pass { "" } else { cell.why.as_str() };
    let known = [why, cell.tail.as_str()].into_iter().filter(|text| !text.is_empty());
    known.collect::<Vec<_>>().join(theme.symbols.dot)
}

/// A load as panes write it.
fn load_words(load: Load) -> String {
    load.rate().map_or_else(|| load.to_string(), |offered| format!("open {}/s", rate(offered)))
}
