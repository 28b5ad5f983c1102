//! A chart over time: lines or stacked bars, in braille and blocks or in ASCII. A column shows what
//! was measured in its time, and nothing where nothing was.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    text::Span,
};
use unicode_width::UnicodeWidthStr;

use super::{
    super::theme::Theme,
    figures::{limit, thousands},
    text::{Part, line, pad_left},
};

/// Columns of the labels at the left, the axis among them.
pub(super) const LABELS: u16 = 7;
/// The fewest rows of a chart: its title and what shows a course.
pub(super) const LEAST_HEIGHT: u16 = 4;
/// A chart this high has a label half way up.
const HALF_LABEL_ROWS: u16 = 7;
/// Parts of a stacked bar.
pub(super) const PARTS: usize = 4;

/// How a line is drawn; each can be told from the others without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dotted,
    Dashed,
    /// A letter in each column.
    Letter(char),
}

/// One line.
pub(super) struct Series {
    pub values: Vec<Option<f64>>,
    pub stroke: Stroke,
    pub style: Style,
}

/// What a chart draws.
pub(super) enum Body {
    Lines(Vec<Series>),
    /// Bars of parts, the first one lowest.
    Stack([Vec<Option<f64>>; PARTS]),
}

/// A chart.
pub(super) struct Chart {
    /// What it shows, in which unit, and the newest figures.
    pub title: Vec<Part>,
    pub body: Body,
    /// The figure of the highest row; larger ones are marked there.
    pub top: f64,
    /// Lines that the figures are held against.
    pub limits: Vec<f64>,
}

impl Stroke {
    /// How it looks, for the title.
    pub(super) fn sample(self, theme: &Theme) -> String {
        match (self, theme.ascii) {
            (Self::Letter(letter), _) => letter.to_string(),
            (Self::Solid, false) => "⠒⠒⠒".to_owned(),
            (Self::Dotted, false) => "⠂⠂⠂".to_owned(),
            (Self::Dashed, false) => "⠒ ⠒".to_owned(),
            (Self::Solid, true) => "***".to_owned(),
            (Self::Dotted, true) => "...".to_owned(),
            (Self::Dashed, true) => "- -".to_owned(),
        }
    }
}

/// How the parts of a bar look: told apart without colours.
pub(super) const fn part_symbols(theme: &Theme) -> [&'static str; PARTS] {
    if theme.ascii { ["#", "=", "/", "."] } else { ["█", "▒", "╱", "░"] }
}

/// The colours of those parts.
pub(super) const fn part_styles(theme: &Theme) -> [Style; PARTS] {
    [theme.accent, theme.warn, theme.dim, theme.bad]
}

/// Colours of series that stand for configurations; none where there are no colours.
pub(super) fn series_style(at: usize, theme: &Theme) -> Style {
    const MANY: [u8; 8] = [32, 172, 35, 133, 37, 130, 99, 102];
    const SIXTEEN: [Color; 6] =
        [Color::Cyan, Color::Yellow, Color::Green, Color::Magenta, Color::Blue, Color::Red];
    match theme.accent.fg {
        None => theme.plain,
        Some(Color::Indexed(_)) => theme.plain.fg(Color::Indexed(MANY[at % MANY.len()])),
        Some(_) => theme.plain.fg(SIXTEEN[at % SIXTEEN.len()]),
    }
}

/// The next round figure that is not below.
pub(super) fn round_up(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * unit >= value).unwrap_or(10.0);
    let top = step * unit;
    if top.is_finite() && top > 0.0 { top } else { value }
}

/// A figure in at most six columns.
pub(super) fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value >= 1e15 {
        return format!("{value:.0e}");
    }
    if value < 100_000.0 {
        return if value >= 1_000.0 { thousands(value) } else { small(value) };
    }
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1.0, ""));
    format!("{}{name}", small(value / unit))
}

fn small(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..0.01 => "<0.01".to_owned(),
        100.0.. => thousands(value),
        _ => limit(value),
    }
}

/// The row, from the bottom, in steps: `count` steps are a chart's height.
fn step(value: f64, top: f64, count: u16) -> u16 {
    let share = (value / top).clamp(0.0, 1.0);
    // Between 0 and a screen's rows times four; what is not a number is 0.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let step = (share * f64::from(count.saturating_sub(1))).round() as u16;
    step.min(count.saturating_sub(1))
}

impl Chart {
    /// Columns that a chart of this width has for its course.
    pub(super) const fn columns(width: u16) -> usize {
        width.saturating_sub(LABELS) as usize
    }

    /// Draws it, or nothing where it would not be whole. `marks` are columns in which a cell begins.
    pub(super) fn draw(self, marks: &[bool], theme: &Theme, buffer: &mut Buffer, area: Rect) {
        let area = area.intersection(buffer.area);
        if area.height < LEAST_HEIGHT || area.width < LABELS + 4 {
            return;
        }
        let width = usize::from(area.width);
        let title = line(self.title, &Span::raw("  "), width);
        buffer.set_line(area.x, area.y, &title, area.width);
        let plot = Rect {
            x: area.x + LABELS,
            y: area.y + 1,
            width: area.width - LABELS,
            height: area.height - 1,
        };
        labels(self.top, &self.limits, theme, buffer, plot);
        guides(self.top, &self.limits, marks, theme, buffer, plot);
        match self.body {
            Body::Lines(lines) => {
                for series in &lines {
                    series.draw(self.top, theme, buffer, plot);
                }
            }
            Body::Stack(parts) => stack(&parts, self.top, theme, buffer, plot),
        }
    }
}

/// Figures at the left: the highest, half of it, 0, and the limits.
fn labels(top: f64, limits: &[f64], theme: &Theme, buffer: &mut Buffer, plot: Rect) {
    let mut texts = vec![String::new(); usize::from(plot.height)];
    let mut put = |value: f64, text: String| {
        let row = plot.height - 1 - step(value, top, plot.height);
        texts[usize::from(row)] = text;
    };
    put(top, short(top));
    put(0.0, "0".to_owned());
    if plot.height >= HALF_LABEL_ROWS && plot.height % 2 == 1 {
        put(top / 2.0, short(top / 2.0));
    }
    for value in limits.iter().filter(|value| **value <= top) {
        put(*value, short(*value));
    }
    let axis = if theme.ascii { "|" } else { "│" };
    for (y, text) in (plot.y..).zip(texts) {
        let text = if text.width() < usize::from(LABELS) { text } else { String::new() };
        let text = format!("{}{axis}", pad_left(&text, usize::from(LABELS) - 1));
        buffer.set_string(plot.x - LABELS, y, text, theme.dim);
    }
}

/// What lies behind the course: limits, and the moments at which cells began.
fn guides(
    top: f64,
    limits: &[f64],
    marks: &[bool],
    theme: &Theme,
    buffer: &mut Buffer,
    plot: Rect,
) {
    let (across, upright) = if theme.ascii { ("_", ":") } else { ("╌", "┊") };
    for value in limits.iter().filter(|value| **value <= top) {
        let y = plot.bottom() - 1 - step(*value, top, plot.height);
        for x in plot.left()..plot.right() {
            put(buffer, (x, y), across, theme.warn);
        }
    }
    for (x, _) in (plot.left()..plot.right()).zip(marks).filter(|(_, mark)| **mark) {
        for y in plot.top()..plot.bottom() {
            put(buffer, (x, y), upright, theme.dim);
        }
    }
}

fn put(buffer: &mut Buffer, at: (u16, u16), symbol: &str, style: Style) {
    if let Some(cell) = buffer.cell_mut(at) {
        cell.set_symbol(symbol).set_style(style);
    }
}

impl Series {
    fn draw(&self, top: f64, theme: &Theme, buffer: &mut Buffer, plot: Rect) {
        for (x, value) in (plot.left()..plot.right()).zip(&self.values) {
            let Some(value) = *value else { continue };
            if self.stroke == Stroke::Dashed && (x - plot.x) % 2 == 1 {
                continue;
            }
            if value > top {
                put(buffer, (x, plot.y), theme.symbols.over, theme.bad);
                continue;
            }
            match (self.stroke, theme.ascii) {
                (Stroke::Letter(letter), _) => {
                    let y = plot.bottom() - 1 - step(value, top, plot.height);
                    put(buffer, (x, y), letter.encode_utf8(&mut [0; 4]), self.style);
                }
                (stroke, true) => {
                    let y = plot.bottom() - 1 - step(value, top, plot.height);
                    put(buffer, (x, y), &stroke.sample(theme)[..1], self.style);
                }
                (stroke, false) => {
                    let level = step(value, top, plot.height * 4);
                    let y = plot.bottom() - 1 - level / 4;
                    dots(buffer, (x, y), level % 4, stroke, self.style);
                }
            }
        }
    }
}

/// Adds the dots of a line to a cell of the screen; those of another line stay.
fn dots(buffer: &mut Buffer, at: (u16, u16), level: u16, stroke: Stroke, style: Style) {
    const BASE: u32 = 0x2800;
    let Some(cell) = buffer.cell_mut(at) else { return };
    let [left, right] = match level {
        0 => [0x40, 0x80],
        1 => [0x04, 0x20],
        2 => [0x02, 0x10],
        _ => [0x01, 0x08],
    };
    let own = if stroke == Stroke::Dotted { left } else { left | right };
    let known = cell.symbol().chars().next().map_or(0, u32::from);
    let known = if (BASE..BASE + 0x100).contains(&known) { known - BASE } else { 0 };
    let mut text = [0; 4];
    if let Some(symbol) = char::from_u32(BASE + (known | own)) {
        cell.set_symbol(symbol.encode_utf8(&mut text)).set_style(style);
    }
}

fn stack(
    parts: &[Vec<Option<f64>>; PARTS],
    top: f64,
    theme: &Theme,
    buffer: &mut Buffer,
    plot: Rect,
) {
    let (symbols, styles) = (part_symbols(theme), part_styles(theme));
    for (column, x) in (plot.left()..plot.right()).enumerate() {
        let values = parts.each_ref().map(|part| part.get(column).copied().flatten());
        if values.iter().all(Option::is_none) {
            continue;
        }
        let (mut sum, mut drawn) = (0.0, 0);
        for (at, value) in values.into_iter().enumerate() {
            sum += value.unwrap_or(0.0).max(0.0);
            // One step more than rows: nothing at all is no row.
            let end = step(sum, top, plot.height + 1);
            for row in drawn..end.max(drawn) {
                put(buffer, (x, plot.bottom() - 1 - row), symbols[at], styles[at]);
            }
            drawn = end.max(drawn);
        }
        if drawn == 0 {
            put(buffer, (x, plot.bottom() - 1), theme.symbols.spark[0], theme.dim);
        }
        if sum > top {
            put(buffer, (x, plot.y), theme.symbols.over, theme.bad);
        }
    }
}

/// The line below charts: from when to when, and the moments at which cells began.
pub(super) fn ruler(
    (left, right): (&str, &str),
    marks: &[bool],
    theme: &Theme,
    buffer: &mut Buffer,
    area: Rect,
) {
    let area = area.intersection(buffer.area);
    if area.height == 0 || area.width <= LABELS {
        return;
    }
    let columns = Chart::columns(area.width);
    let (dash, mark) = if theme.ascii { ("-", "+") } else { ("─", "┴") };
    let (lead, trail) = (left.width() + 1, right.width() + 1);
    let fits = lead + trail + 2 <= columns;
    let (lead, trail) = if fits { (lead, trail) } else { (0, 0) };
    for column in lead..columns - trail {
        let symbol = if marks.get(column).copied().unwrap_or(false) { mark } else { dash };
        let x = area.x + LABELS + u16::try_from(column).unwrap_or(u16::MAX - area.x - LABELS);
        put(buffer, (x, area.y), symbol, theme.dim);
    }
    if fits {
        buffer.set_string(area.x + LABELS, area.y, left, theme.dim);
        let width = u16::try_from(right.width()).unwrap_or(0);
        buffer.set_string(area.right() - width, area.y, right, theme.dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tops_are_round_and_not_below() {
        let tops = [0.0, 7.0, 255.7, 6_750.0, 1e9].map(round_up);
        assert_eq!(tops, [1.0, 8.0, 300.0, 8_000.0, 1e9]);
        assert_eq!([f64::NAN, f64::INFINITY, -1.0].map(round_up), [1.0; 3]);
    }

    #[test]
    fn labels_are_short() {
        let values = [0.0, 0.001, 0.25, 8.0, 1_500.0, 80_000.0, 150_000.0, 2.5e6, 1e13, 1e300];
        let texts = values.map(short);
        assert_eq!(texts[..6], ["0", "<0.01", "0.25", "8", "1,500", "80,000"]);
        assert_eq!(texts[6..], ["150k", "2.5M", "10T", "1e300"]);
        assert!(texts.iter().all(|text| text.width() < usize::from(LABELS)));
    }
}
