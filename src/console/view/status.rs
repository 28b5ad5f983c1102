//! What a configuration is doing, in words, and the figures it has: of its running cell, or else of
//! its last one.

use std::collections::BTreeMap;

use ratatui::style::Style;

use crate::model::{
    ClassLatency, ConfigurationState, ConfigurationStatus, LiveCell, Load, PerClass, Phase, Reason,
    TailParts, Tps, UnixMs, Verdict, format_duration,
};

use super::super::theme::Theme;

/// A running cell gives a window each second; one this late is said to be missing, in seconds.
const LATE_WINDOW_S: f64 = 3.0;

/// A state in words.
pub(super) struct Status {
    pub long: String,
    pub short: String,
    pub style: Style,
}

/// What a configuration is doing; `at` is the time of the snapshot.
pub(super) fn status_of(status: &ConfigurationStatus, at: UnixMs, theme: &Theme) -> Status {
    let same = |text: &str, style| Status { long: text.to_owned(), short: text.to_owned(), style };
    match &status.state {
        ConfigurationState::SettingUp { .. } => same("SETTING UP", theme.accent),
        ConfigurationState::Idle => idle(status, theme),
        ConfigurationState::Cell { phase, elapsed_s, total_s } => {
            let running = running(*phase, *elapsed_s, *total_s, theme);
            match status.cell.as_ref().and_then(|cell| missing_window(cell, *phase, at)) {
                Some(age) => Status {
                    long: format!("{}, NO WINDOW for {age} s", running.short),
                    style: theme.warn,
                    ..running
                },
                None => running,
            }
        }
        ConfigurationState::Checking => Status {
            long: "CHECKING invariants".to_owned(),
            short: "CHECKING".to_owned(),
            style: theme.accent,
        },
        ConfigurationState::Removed => same("REMOVED", theme.dim),
        ConfigurationState::Failed { .. } => same("FAILED", theme.bad),
    }
}

fn idle(status: &ConfigurationStatus, theme: &Theme) -> Status {
    let Some(last) = &status.last else {
        return Status { long: "IDLE".to_owned(), short: "IDLE".to_owned(), style: theme.plain };
    };
    let style = verdict_style(last.verdict, theme);
    let text = format!("IDLE last {}", last.verdict);
    Status { long: text.clone(), short: text, style }
}

fn running(phase: Phase, elapsed_s: u64, total_s: u64, theme: &Theme) -> Status {
    let (word, short, style) = match phase {
        Phase::Opening => ("OPENING connections", "OPENING", theme.accent),
        Phase::WarmUp => ("WARM-UP", "WARM-UP", theme.accent),
        Phase::Measure => ("MEASURING", "MEASURING", theme.strong),
        Phase::Drain => ("DRAINING", "DRAINING", theme.accent),
    };
    let clock = |seconds: u64| {
        // Seconds of a cell: far below the 2^53 up to which this is exact.
        #[allow(clippy::cast_precision_loss)]
        format_duration(seconds as f64)
    };
    let long = if total_s == 0 {
        word.to_owned()
    } else {
        format!("{word} {} of {}", clock(elapsed_s), clock(total_s))
    };
    Status { long, short: short.to_owned(), style }
}

fn missing_window(cell: &LiveCell, phase: Phase, at: UnixMs) -> Option<u64> {
    if !matches!(phase, Phase::WarmUp | Phase::Measure) {
        return None;
    }
    let age = at.seconds_since(cell.window_at?);
    (age > LATE_WINDOW_S).then(|| at.0.saturating_sub(cell.window_at.unwrap_or(at).0) / 1_000)
}

/// The style of a verdict; its word stands beside it.
pub(super) const fn verdict_style(verdict: Verdict, theme: &Theme) -> Style {
    match verdict {
        Verdict::Pass => theme.good,
        Verdict::Fail => theme.bad,
        Verdict::Inconclusive | Verdict::Invalid => theme.warn,
    }
}

/// The figures of a pane.
pub(super) struct Figures<'a> {
    /// Whether they are of a running cell.
    pub live: bool,
    pub load: Load,
    pub tps: Tps,
    pub classes: &'a PerClass<ClassLatency>,
    pub connection_wait_p99_ms: Option<f64>,
    pub tail: Option<TailParts>,
    pub retry_percent: f64,
    pub failed_percent: f64,
    pub errors: &'a BTreeMap<String, u64>,
    pub in_flight: Option<u64>,
    /// Of an ended cell, with its first reason.
    pub verdict: Option<(Verdict, &'a str)>,
}

impl<'a> Figures<'a> {
    /// The running cell's, or else the last one's.
    pub(super) fn of(status: &'a ConfigurationStatus) -> Option<Self> {
        if let Some(cell) = &status.cell {
            return Some(Self {
                live: true,
                load: cell.load,
                tps: cell.tps,
                classes: &cell.classes,
                connection_wait_p99_ms: cell.connection_wait_p99_ms,
                tail: cell.tail,
                retry_percent: cell.retry_percent,
                failed_percent: cell.failed_percent,
                errors: &cell.errors,
                in_flight: Some(cell.in_flight),
                verdict: None,
            });
        }
        let last = status.last.as_ref()?;
        Some(Self {
            live: false,
            load: last.load,
            tps: last.tps,
            classes: &last.classes,
            connection_wait_p99_ms: last.connection_wait_p99_ms,
            tail: last.tail,
            retry_percent: last.retry_percent,
            failed_percent: last.failed_percent,
            errors: &last.errors,
            in_flight: None,
            verdict: Some((last.verdict, Reason::first_text(&last.reasons))),
        })
    }

    /// Whether the figures are a database's, so that the SLO applies to them: those of an INVALID
    /// cell are its generator's, or half a cell's.
    pub(super) fn are_judged(&self) -> bool {
        self.verdict.is_none_or(|(verdict, _)| verdict != Verdict::Invalid)
    }

    /// Why the last cell did not pass.
    pub(super) fn reason(&self) -> Option<&'a str> {
        let (verdict, why) = self.verdict?;
        (verdict != Verdict::Pass && !why.is_empty()).then_some(why)
    }
}
