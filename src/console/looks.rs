//! What each view is set to: how far back, by which figure, which line is marked.

use tui_input::Input;

use crate::model::{Event, Level};

/// How much of the past the charts show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Span {
    #[default]
    Minute,
    TenMinutes,
    /// The cell that runs or was the last one, as far as it is known.
    Cell,
}

impl Span {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Minute => Self::TenMinutes,
            Self::TenMinutes => Self::Cell,
            Self::Cell => Self::Minute,
        }
    }

    /// The span in words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Minute => "1 min",
            Self::TenMinutes => "10 min",
            Self::Cell => "whole cell",
        }
    }

    /// Its length in seconds; `None` where the cell says it.
    pub(super) const fn seconds(self) -> Option<u64> {
        match self {
            Self::Minute => Some(60),
            Self::TenMinutes => Some(600),
            Self::Cell => None,
        }
    }
}

/// The figure that configurations are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Figure {
    #[default]
    Succeeded,
    /// The worst p99 of any class, as a share of its SLO.
    P99OfSlo,
    ConnectionWait,
    Retries,
    RunnerCpu,
}

impl Figure {
    pub(super) const ALL: [Self; 5] =
        [Self::Succeeded, Self::P99OfSlo, Self::ConnectionWait, Self::Retries, Self::RunnerCpu];

    pub(super) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|figure| *figure == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// The figure as one word, as it is typed.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::P99OfSlo => "p99",
            Self::ConnectionWait => "wait",
            Self::Retries => "retries",
            Self::RunnerCpu => "cpu",
        }
    }

    /// The figure in words, with its unit.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded /s",
            Self::P99OfSlo => "worst p99, % of its SLO",
            Self::ConnectionWait => "connection wait p99, ms",
            Self::Retries => "retries /s",
            Self::RunnerCpu => "runner CPU, %",
        }
    }
}

/// What the log shows.
#[derive(Clone, Debug, Default)]
pub(super) struct LogLook {
    /// Only events that matter this much or more.
    pub least: Option<Level>,
    /// Only events whose text contains this.
    pub search: Input,
    /// Lines from the newest one up; 0 follows.
    pub up: usize,
}

impl LogLook {
    /// Whether an event is among those that are shown.
    pub(super) fn shows(&self, event: &Event) -> bool {
        let wanted = self.search.value().trim().to_lowercase();
        let matters = self.least.is_none_or(|least| event.kind.level() >= least);
        matters && (wanted.is_empty() || event.kind.text().to_lowercase().contains(&wanted))
    }
}

/// The settings of all views. They outlive a change of view.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    pub span: Span,
    /// How far the charts are scrolled back, in seconds; 0 follows.
    pub back_s: u64,
    pub figure: Figure,
    /// The marked line of the cells view: queued cells first, then ended ones, the newest first.
    pub cell: usize,
    /// The marked line of the resources view.
    pub resource: usize,
    pub log: LogLook,
}
