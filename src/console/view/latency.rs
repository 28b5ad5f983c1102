//! The table of the four classes: p95 and p99 against the SLO.

use ratatui::text::{Line, Span};

use crate::model::{Class, ClassLatency, Slo};

use super::{
    super::theme::Theme,
    figures::{limit, ms},
    status::Figures,
    text::{pad, pad_left},
};

const LABEL: usize = 8;
const LEAST_FIGURE: usize = 8;
const LEAST_LIMIT: usize = 6;

struct Cells {
    label: &'static str,
    p95: String,
    p95_slo: String,
    p99: String,
    p99_slo: String,
    over: (bool, bool),
}

/// The table with its head, or `None` where it would not be whole. Without room for the limits it
/// has only the percentiles and the marks. Figures that are not judged have no marks.
pub(super) fn table(
    figures: &Figures<'_>,
    slo: &Slo,
    theme: &Theme,
    width: usize,
) -> Option<Vec<Line<'static>>> {
    let mut rows: Vec<Cells> = Class::ALL
        .into_iter()
        .map(|class| cells(class, figures.classes[class], slo, theme))
        .collect();
    if !figures.are_judged() {
        rows.iter_mut().for_each(|row| row.over = (false, false));
    }
    let widest = |text: fn(&Cells) -> &String, least: usize| {
        rows.iter().map(|row| text(row).chars().count() + 2).max().unwrap_or(0).max(least)
    };
    let widths = [
        widest(|row| &row.p95, LEAST_FIGURE),
        widest(|row| &row.p95_slo, LEAST_LIMIT),
        widest(|row| &row.p99, LEAST_FIGURE),
        widest(|row| &row.p99_slo, LEAST_LIMIT),
    ];
    let mark = rows.iter().map(|row| row.mark(theme).chars().count()).max().unwrap_or(0);
    let (percentiles, limits) = (widths[0] + widths[2], widths[1] + widths[3]);
    let with_limits = LABEL + percentiles + limits + mark <= width;
    if !with_limits && LABEL + percentiles + mark > width {
        return None;
    }
    let mut lines = vec![head(widths, with_limits, theme)];
    lines.extend(rows.iter().map(|row| row.line(widths, with_limits, theme)));
    Some(lines)
}

fn cells(class: Class, latency: ClassLatency, slo: &Slo, theme: &Theme) -> Cells {
    let limits = slo.of(class);
    let text = |value: Option<f64>| value.map_or_else(|| theme.symbols.none.to_owned(), ms);
    let over = |value: Option<f64>, limit: f64| value.is_some_and(|value| value > limit);
    Cells {
        label: class.short(),
        p95: text(latency.p95_ms),
        p95_slo: limit(limits.p95_ms),
        p99: text(latency.p99_ms),
        p99_slo: limit(limits.p99_ms),
        over: (over(latency.p95_ms, limits.p95_ms), over(latency.p99_ms, limits.p99_ms)),
    }
}

fn head(widths: [usize; 4], with_limits: bool, theme: &Theme) -> Line<'static> {
    let mut text = pad("ms", LABEL);
    text.push_str(&pad_left("p95", widths[0]));
    if with_limits {
        text.push_str(&pad_left("SLO", widths[1]));
    }
    text.push_str(&pad_left("p99", widths[2]));
    if with_limits {
        text.push_str(&pad_left("SLO", widths[3]));
    }
    Line::styled(text, theme.dim)
}

impl Cells {
    fn mark(&self, theme: &Theme) -> String {
        let which = match self.over {
            (false, false) => return String::new(),
            (true, false) => "p95",
            (false, true) => "p99",
            (true, true) => "both",
        };
        format!("  {} OVER {which}", theme.symbols.over)
    }

    fn line(&self, widths: [usize; 4], with_limits: bool, theme: &Theme) -> Line<'static> {
        let style = |over: bool| if over { theme.bad } else { theme.plain };
        let mut spans = vec![
            Span::raw(pad(self.label, LABEL)),
            Span::styled(pad_left(&self.p95, widths[0]), style(self.over.0)),
        ];
        if with_limits {
            spans.push(Span::styled(pad_left(&self.p95_slo, widths[1]), theme.dim));
        }
        spans.push(Span::styled(pad_left(&self.p99, widths[2]), style(self.over.1)));
        if with_limits {
            spans.push(Span::styled(pad_left(&self.p99_slo, widths[3]), theme.dim));
        }
        spans.push(Span::styled(self.mark(theme), theme.bad));
        Line::from(spans)
    }
}
