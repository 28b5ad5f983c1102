//! Which charts a configuration has, in the order in which they matter, and what is in them.

use ratatui::style::Style;

use crate::model::{Class, Slo, TailParts, WindowPoint};

use super::{
    super::theme::Theme,
    chart::{Body, Chart, PARTS, Series, Stroke, part_styles, part_symbols, round_up},
    figures::{fine_ms, limit, ms, rate},
    text::Part,
    time::{Axis, By, Slice},
};

/// Charts there are at most.
pub(super) const MOST: u16 = 8;
/// Latencies are drawn up to so many times their limit: what lies above is marked, and what lies
/// below can still be read.
const LIMITS_SHOWN: f64 = 3.0;

/// What the charts are made from.
pub(super) struct Source<'a> {
    pub slo: &'a Slo,
    pub axis: &'a Axis,
    pub slices: &'a [Slice<'a>],
}

/// The charts for so many places, each with so many columns for its course.
pub(super) fn of(source: &Source<'_>, places: u16, columns: usize, theme: &Theme) -> Vec<Chart> {
    let maker = Maker { source, columns, theme };
    let worst = || maker.worst();
    let classes = || Class::ALL.map(|class| maker.class(class));
    match places {
        0 => Vec::new(),
        1 => vec![maker.rates()],
        2 => vec![maker.rates(), worst()],
        3 => vec![maker.rates(), worst(), maker.tail()],
        4 | 5 => vec![maker.rates(), worst(), maker.tail(), maker.wait()],
        6 | 7 => [maker.rates(), maker.tail()].into_iter().chain(classes()).collect(),
        _ => [maker.rates(), maker.tail(), maker.wait(), maker.retries()]
            .into_iter()
            .chain(classes())
            .collect(),
    }
}

struct Maker<'a> {
    source: &'a Source<'a>,
    columns: usize,
    theme: &'a Theme,
}

impl Maker<'_> {
    fn series(
        &self,
        by: By,
        (stroke, style): (Stroke, Style),
        value: impl Fn(&WindowPoint) -> Option<f64>,
    ) -> Series {
        let values = self.source.axis.values(self.source.slices, self.columns, by, value);
        Series { values, stroke, style }
    }

    fn newest(&self) -> Option<&WindowPoint> {
        self.source.axis.newest(self.source.slices)
    }

    /// The largest figure of the windows themselves: it does not depend on the columns.
    fn highest(&self, value: impl Fn(&WindowPoint) -> Option<f64>) -> f64 {
        let values = self.source.slices.iter().filter_map(|slice| value(slice.point));
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    fn figure(&self, value: Option<f64>, text: fn(f64) -> String) -> String {
        value.filter(|value| value.is_finite()).map_or(self.theme.symbols.none.to_owned(), text)
    }

    fn rates(&self) -> Chart {
        let theme = self.theme;
        let newest = self.newest();
        type Rate = fn(&WindowPoint) -> f64;
        let lines: [(&str, u8, Stroke, Style, Rate); 3] = [
            ("offered", 3, Stroke::Dashed, theme.dim, |point| point.offered),
            ("achieved", 2, Stroke::Dotted, theme.plain, |point| point.achieved),
            ("ok", 0, Stroke::Solid, theme.accent, |point| point.succeeded),
        ];
        let mut title = vec![Part::new(1, "/s", theme.strong)];
        for (name, rank, stroke, style, value) in &lines {
            let figure = self.figure(newest.map(value), rate);
            let text = format!("{} {name} {figure}", stroke.sample(theme));
            title.push(Part::new(*rank, text, *style));
        }
        let top =
            lines.iter().map(|(.., value)| self.highest(|p| Some(value(p)))).fold(0.0, f64::max);
        let body = lines.map(|(_, _, stroke, style, value)| {
            self.series(By::Mean, (stroke, style), move |point| Some(value(point)))
        });
        Chart { title, body: Body::Lines(body.into()), top: round_up(top), limits: Vec::new() }
    }

    fn class(&self, class: Class) -> Chart {
        let theme = self.theme;
        let limits = self.source.slo.of(class);
        let newest = self.newest();
        let p95 = |point: &WindowPoint| point.p95_ms[class];
        let p99 = |point: &WindowPoint| point.p99_ms[class];
        let mut title = vec![Part::new(1, format!("{} ms", class.short()), theme.strong)];
        let mut over = Vec::new();
        let lines = [
            ("p99", Stroke::Solid, theme.accent, newest.and_then(p99), limits.p99_ms, 0),
            ("p95", Stroke::Dotted, theme.plain, newest.and_then(p95), limits.p95_ms, 2),
        ];
        for (name, stroke, style, value, limit_ms, rank) in lines {
            let is_over = value.is_some_and(|value| value > limit_ms);
            let style = if is_over { theme.bad } else { style };
            let text = format!("{} {name} {}", stroke.sample(theme), self.figure(value, ms));
            title.push(Part::new(rank, text, style));
            if is_over {
                over.push(name);
            }
        }
        let (first, second) = (limit(limits.p95_ms), limit(limits.p99_ms));
        title.push(Part::new(4, format!("SLO {first}, {second}"), theme.dim));
        if !over.is_empty() {
            let text = format!("{} OVER {}", theme.symbols.over, over.join(", "));
            title.push(Part::new(1, text, theme.bad).or(theme.symbols.over));
        }
        let highest = self.highest(p95).max(self.highest(p99));
        let shown = highest.min(limits.p99_ms * LIMITS_SHOWN).max(limits.p99_ms);
        let lines = vec![
            self.series(By::Worst, (Stroke::Dotted, theme.plain), p95),
            self.series(By::Worst, (Stroke::Solid, theme.accent), p99),
        ];
        let limits = vec![limits.p95_ms, limits.p99_ms];
        Chart { title, body: Body::Lines(lines), top: round_up(shown), limits }
    }

    /// All classes in one chart, where there is no room for a chart of each.
    fn worst(&self) -> Chart {
        let theme = self.theme;
        let slo = *self.source.slo;
        let value = move |point: &WindowPoint| worst_of_slo(point, &slo).map(|(_, share)| share);
        let newest = self.newest().and_then(|point| worst_of_slo(point, &slo));
        let is_over = newest.is_some_and(|(_, share)| share > 100.0);
        let (class, figure) = match newest {
            Some((class, share)) => (class.short(), rate(share)),
            None => ("", theme.symbols.none.to_owned()),
        };
        let mut title = vec![Part::new(1, "worst p99, % of SLO", theme.strong).or("p99 % of SLO")];
        let style = if is_over { theme.bad } else { theme.accent };
        let text = format!("{class} {figure}");
        title.push(Part::new(0, text.trim_start(), style));
        if is_over {
            let over = format!("{} OVER", theme.symbols.over);
            title.push(Part::new(2, over, theme.bad).or(theme.symbols.over));
        }
        let highest = self.highest(value).clamp(100.0, LIMITS_SHOWN * 100.0);
        let lines = vec![self.series(By::Worst, (Stroke::Solid, theme.accent), value)];
        let limits = vec![100.0];
        Chart { title, body: Body::Lines(lines), top: round_up(highest), limits }
    }

    fn tail(&self) -> Chart {
        let theme = self.theme;
        let newest = self.newest().and_then(|point| point.tail);
        let (symbols, styles) = (part_symbols(theme), part_styles(theme));
        let names = ["database", "conn wait", "schedule", "generator"];
        let short = ["db", "wait", "sched", "gen"];
        let mut title = vec![Part::new(2, "tail ms", theme.strong).or("tail")];
        for (at, part) in TAIL.into_iter().enumerate() {
            let figure = self.figure(newest.as_ref().map(part), fine_ms);
            let text = format!("{} {} {figure}", symbols[at], names[at]);
            let or = format!("{} {} {figure}", symbols[at], short[at]);
            let rank = [1, 1, 4, 3][at];
            title.push(Part::new(rank, text, styles[at]).or_early(or));
        }
        let sum = |tail: &TailParts| TAIL.iter().map(|part| part(tail).max(0.0)).sum::<f64>();
        let top = round_up(self.highest(|point| point.tail.as_ref().map(sum)));
        // Means over the windows of a column: only so do the parts add up to a tail that was.
        let parts = TAIL.map(|part| {
            self.source.axis.values(self.source.slices, self.columns, By::Mean, |point| {
                point.tail.as_ref().map(part)
            })
        });
        Chart { title, body: Body::Stack(parts), top, limits: Vec::new() }
    }

    fn wait(&self) -> Chart {
        let value = |point: &WindowPoint| point.connection_wait_p99_ms;
        self.single("conn wait p99, ms", By::Worst, fine_ms, value)
    }

    fn retries(&self) -> Chart {
        self.single("retries /s", By::Mean, rate, |point| Some(point.retries))
    }

    fn single(
        &self,
        name: &str,
        by: By,
        text: fn(f64) -> String,
        value: fn(&WindowPoint) -> Option<f64>,
    ) -> Chart {
        let theme = self.theme;
        let title = vec![
            Part::new(1, name, theme.strong),
            Part::new(0, self.figure(self.newest().and_then(value), text), theme.accent),
        ];
        let lines = vec![self.series(by, (Stroke::Solid, theme.accent), value)];
        let top = round_up(self.highest(value));
        Chart { title, body: Body::Lines(lines), top, limits: Vec::new() }
    }
}

/// The tail's parts, the largest of most cells first: what the database made, what the number of
/// connections made, and the generator's own two.
const TAIL: [fn(&TailParts) -> f64; PARTS] = [
    TailParts::database_ms,
    TailParts::pool_ms,
    |tail| tail.schedule_lag_ms,
    |tail| tail.generator_ms() - tail.schedule_lag_ms,
];

/// The class whose p99 is nearest to its limit or farthest above it, in percent of the limit.
pub(super) fn worst_of_slo(point: &WindowPoint, slo: &Slo) -> Option<(Class, f64)> {
    let shares = Class::ALL.into_iter().filter_map(|class| {
        let share = point.p99_ms[class]? / slo.of(class).p99_ms * 100.0;
        share.is_finite().then_some((class, share))
    });
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}
