//! What the collector and the load threads say to each other.

use std::{ops::Range, sync::Arc};

use super::{course::Course, opening::Pacer, tally::Tally, thread::PulseLag, timeline::Span};
use crate::model::{Acknowledged, CellOrder, ConfigurationId};

/// A cell as all threads see it.
pub(super) struct CellShared<W> {
    /// Names the cell within this process.
    pub(super) key: u64,
    pub(super) order: CellOrder,
    pub(super) workload: W,
    /// Allows the configuration's connections to be opened.
    pub(super) pacer: Arc<Pacer>,
}

/// Collector to load thread.
pub(super) enum ThreadCommand<W> {
    /// Open connections for a cell: this thread is its `part`th and runs these of its workers.
    Open { shared: Arc<CellShared<W>>, part: usize, workers: Range<u32> },
    /// Measure the empty round trip on one connection while the others are idle.
    Probe { key: u64 },
    /// Everything is open: begin.
    Go { key: u64, course: Arc<Course> },
    /// Do not begin: keep what is open.
    Abandon { key: u64 },
    /// A tally for the next window.
    Spare { key: u64, tally: Box<Tally> },
    /// Close the connections that are kept for a configuration.
    Release { configuration: ConfigurationId },
    /// Stand still, event loop and all.
    #[cfg(debug_assertions)]
    Stall(std::time::Duration),
}

/// Load thread to collector.
pub(super) enum ThreadReport {
    Opened {
        key: u64,
    },
    OpenFailed {
        key: u64,
        why: String,
    },
    /// Times of empty round trips in nanoseconds.
    Probed {
        key: u64,
        round_trips: Vec<u64>,
    },
    Window(ClosedWindow),
    /// The cell is over on this thread.
    Left {
        key: u64,
        part: usize,
        /// `None` where it never began.
        cell: Option<Box<CellTally>>,
    },
    /// How late the thread's loop was over about a second.
    LoopLag {
        thread: usize,
        lag: PulseLag,
    },
    Warning(String),
    /// The thread cannot go on.
    Died(String),
}

/// A thread's share of a window that is over.
pub(super) struct ClosedWindow {
    pub(super) key: u64,
    pub(super) part: usize,
    pub(super) span: Span,
    pub(super) connections: u32,
    /// `None` where nothing happened.
    pub(super) tally: Option<Box<Tally>>,
}

/// A thread's share of the measured span.
pub(super) struct CellTally {
    pub(super) tally: Box<Tally>,
    pub(super) acknowledged: Acknowledged,
}
