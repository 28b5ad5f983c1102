//! What can go wrong with a run's files.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a file of a run could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("cannot {act} {}: {source}", .path.display())]
    Io {
        /// What was tried, as a verb: `write`, `read` …
        act: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{} already holds {held}: name a folder that is empty or does not exist yet",
        .path.display()
    )]
    NotEmpty { path: PathBuf, held: String },
    #[error("{} is not a folder: name a folder that is empty or does not exist yet", .path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} is not the folder of a run: it has neither journal.jsonl nor cells", .path.display())]
    NotARun { path: PathBuf },
    #[error("{} is not as rampdeck writes it: {source}", .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{} has schema {found}, this rampdeck reads schema {allowed}", .path.display())]
    Schema { path: PathBuf, found: u32, allowed: u32 },
    #[error("{}, line {line}: {what}", .path.display())]
    Log { path: PathBuf, line: usize, what: String },
    #[error("a histogram of {tag} cannot be written to {}: {what}", .path.display())]
    Histogram { path: PathBuf, tag: String, what: String },
    #[error(
        "{} has grown by another engine's hand ({found} bytes, ours are {ours}): this engine no longer owns the run",
        .path.display()
    )]
    TakenOver { path: PathBuf, found: u64, ours: u64 },
    #[error("{} does not exist, so the run's SLO and costs are not known: rebuild needs them", .path.display())]
    NoSummary { path: PathBuf },
}

impl ReportError {
    /// Makes the error of a failed act on a file.
    pub(super) fn io(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { act, path, source }
    }

    /// Makes the error of a file that does not hold what it should.
    pub(super) fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Json { path, source }
    }
}
