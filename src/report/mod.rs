//! What a run leaves behind: its folder, journal, histogram logs, `summary.json` and the report.
//!
//! The engine writes here while it runs; the command line reads here when a run is over or its
//! engine is gone. Nothing in this room decides anything: verdicts come ready-made in the records.

mod append;
mod error;
mod folder;
mod hlog;
mod journal;
mod markdown;
mod rebuild;
mod summary;
mod tail;

pub use error::ReportError;
pub use folder::RunFolder;
pub use hlog::{CellHeader, CellLog, HlogWriter, MeasuredSpan};
pub use journal::{
    CellStart, Garbage, Journal, JournalReader, RunStart, TeardownEnd, TeardownRecord,
};
pub use markdown::markdown;
pub use rebuild::{rebuild, rebuild_from};
pub use summary::{
    AdjustedQuantiles, CellSummary, ClassSummary, ConditionsSummary, ConfigurationCost,
    ConfigurationInfo, ConfigurationSummary, CostSummary, InvariantSummary, LoadKind, LoadSummary,
    RemainingItem, RunSummary, RunnerSummary, SCHEMA, Summary, SummaryInputs, TailSummary,
    TeardownSummary, ThreadSummary, build, cell_summary, read,
};
pub use tail::{TAIL_QUANTILE, tail_words};

#[cfg(test)]
mod fixture;
