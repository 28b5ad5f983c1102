//! How near latencies are to their limits.

use ratatui::style::Style;

use crate::model::{Class, ClassLatency, PerClass, Slo};

use super::{
    super::theme::Theme,
    figures::{limit, ms, thousands},
};

/// The latency that is nearest to its limit, or farthest above it.
pub(super) struct Nearest {
    pub class: Class,
    /// `p95` or `p99`.
    pub percentile: &'static str,
    pub value_ms: f64,
    pub limit_ms: f64,
}

impl Nearest {
    /// `None` where no class has any latency.
    pub(super) fn of(classes: &PerClass<ClassLatency>, slo: &Slo) -> Option<Self> {
        let mut nearest: Option<Self> = None;
        for class in Class::ALL {
            let (latency, limits) = (classes[class], slo.of(class));
            let pairs =
                [("p95", latency.p95_ms, limits.p95_ms), ("p99", latency.p99_ms, limits.p99_ms)];
            for (percentile, value, limit_ms) in pairs {
                let Some(value_ms) = value else { continue };
                let found = Self { class, percentile, value_ms, limit_ms };
                if nearest.as_ref().is_none_or(|known| found.ratio() > known.ratio()) {
                    nearest = Some(found);
                }
            }
        }
        nearest
    }

    /// The latency as a share of its limit.
    pub(super) fn ratio(&self) -> f64 {
        self.value_ms / self.limit_ms
    }

    pub(super) fn is_over(&self) -> bool {
        self.value_ms > self.limit_ms
    }

    /// The latency and its limit.
    pub(super) fn text(&self) -> String {
        let (value, limit) = (ms(self.value_ms), limit(self.limit_ms));
        format!("{} {} {value} of {limit} ms", self.class.short(), self.percentile)
    }

    /// What is left of the limit, or by how much it is passed.
    pub(super) fn head_room(&self, theme: &Theme) -> (String, Style) {
        let percent = (self.ratio() - 1.0).abs() * 100.0;
        if self.is_over() {
            let text = format!("{} OVER by {} %", theme.symbols.over, thousands(percent.ceil()));
            return (text, theme.bad);
        }
        (format!("{} % head-room", thousands(percent.floor())), theme.plain)
    }
}
