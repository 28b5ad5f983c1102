//! The histogram log of a cell: `HdrHistogram` log format, V2 payloads, one file per cell.
//!
//! Each window adds one interval line for each class and part that recorded something, tagged
//! `order_create.response` and so on, then a comment line with the window's counts that also closes
//! it: a window without its closing line was cut short and is left out by our reader. Only the
//! measured span has plain tags; others begin with their phase (`warmup.order_create.response`), so
//! that a public tool that merges by tag never mixes phases. Values are in nanoseconds,
//! `Interval_Max` is in milliseconds.

mod reader;
mod writer;

use serde::{Deserialize, Serialize};

pub use reader::{CellLog, MeasuredSpan};
pub use writer::HlogWriter;

pub(super) use reader::read;

use crate::model::{
    CellId, Conditions, ConfigurationId, Counts, Load, PerClass, Phase, TailSums, UnixMs, Window,
};

const CELL_COMMENT: &str = "#[Cell: ";
const WINDOW_COMMENT: &str = "#[Window: ";
const LOOP_LAG_TAG: &str = "runner.loop_lag";
const READ_LAG_TAG: &str = "runner.read_lag";

/// What the log says of its cell: enough to make a record of it when its engine is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellHeader {
    pub cell: CellId,
    pub configuration: ConfigurationId,
    pub stage: String,
    /// The attempt's ordinal within the run.
    pub attempt: u64,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
    pub conditions: Conditions,
    /// The log's times count from here.
    pub started: UnixMs,
}

/// The closing line of a window: what is not a histogram.
#[derive(Serialize, Deserialize)]
struct WindowLine {
    seq: u64,
    phase: Phase,
    start: UnixMs,
    length_s: f64,
    in_flight_before: u64,
    counts: Counts,
    sqlstates: std::collections::BTreeMap<String, u64>,
    #[serde(default)]
    failed: PerClass<u64>,
    #[serde(default)]
    unknown: PerClass<u64>,
    tail: TailSums,
    cpu_percent: f64,
    host_cpu_percent: Option<f64>,
    rss_mib: f64,
    processors: u32,
}

impl WindowLine {
    fn of(window: &Window) -> Self {
        Self {
            seq: window.seq,
            phase: window.phase,
            start: window.start,
            length_s: window.length_s,
            in_flight_before: window.in_flight_before,
            counts: window.counts,
            sqlstates: window.sqlstates.clone(),
            failed: window.failed.clone(),
            unknown: window.unknown.clone(),
            tail: window.tail.clone(),
            cpu_percent: window.runner.cpu_percent,
            host_cpu_percent: window.runner.host_cpu_percent,
            rss_mib: window.runner.rss_mib,
            processors: window.runner.processors,
        }
    }
}

/// What the tags of a phase begin with.
const fn tag_prefix(phase: Phase) -> &'static str {
    match phase {
        Phase::Opening => "opening.",
        Phase::WarmUp => "warmup.",
        Phase::Measure => "",
        Phase::Drain => "drain.",
    }
}

#[cfg(test)]
mod tests;
