//! The folder of a run and the files in it.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    CellHeader, CellLog, HlogWriter, Journal, JournalReader, ReportError, Summary, hlog, summary,
};
use crate::model::{Calibration, CellId, CellRecord};

const JOURNAL: &str = "journal.jsonl";
const CELLS: &str = "cells";
/// How many entries of a folder that is not empty are named.
const NAMED_ENTRIES: usize = 5;

/// The folder that one run leaves its files in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder of a new run, its parents too. An empty folder is taken as it is.
    ///
    /// # Errors
    /// When the path exists and is not an empty folder (says what is in it), or cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, ReportError> {
        let path = path.into();
        refuse_if_used(&path)?;
        let cells = path.join(CELLS);
        fs::create_dir_all(&cells).map_err(ReportError::io("make", &cells))?;
        Ok(Self { path })
    }

    /// The folder of a run that exists.
    ///
    /// # Errors
    /// When it is no folder or not one of a run.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ReportError> {
        let path = path.into();
        let held = fs::metadata(&path).map_err(ReportError::io("open", &path))?;
        if !held.is_dir() || !(path.join(CELLS).is_dir() || path.join(JOURNAL).is_file()) {
            return Err(ReportError::NotARun { path });
        }
        Ok(Self { path })
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan as it was run.
    #[must_use]
    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.toml")
    }

    /// Every event, one a line.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// What other programs read.
    #[must_use]
    pub fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// What the runner was calibrated for, where it was.
    #[must_use]
    pub fn calibration(&self) -> PathBuf {
        self.path.join("calibration.json")
    }

    /// The engine's log.
    #[must_use]
    pub fn engine_log(&self) -> PathBuf {
        self.path.join("engine.log")
    }

    /// The file that the one engine of the run holds locked.
    #[must_use]
    pub fn engine_lock(&self) -> PathBuf {
        self.path.join("engine.lock")
    }

    /// A cell's record.
    #[must_use]
    pub fn cell(&self, cell: &CellId) -> PathBuf {
        self.path.join(CELLS).join(format!("{cell}.json"))
    }

    /// A cell's `HdrHistogram` log.
    #[must_use]
    pub fn cell_hlog(&self, cell: &CellId) -> PathBuf {
        self.path.join(CELLS).join(format!("{cell}.hlog"))
    }

    /// Writes the plan as it is run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_plan(&self, text: &str) -> Result<(), ReportError> {
        write_whole(&self.plan(), text.as_bytes())
    }

    /// Writes what the runner was calibrated for.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_calibration(&self, calibration: &Calibration) -> Result<(), ReportError> {
        write_json(&self.calibration(), calibration)
    }

    /// Opens the journal for writing.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open_journal(&self) -> Result<Journal, ReportError> {
        Journal::open(&self.journal())
    }

    /// Reads the journal.
    ///
    /// # Errors
    /// When the file cannot be read; lines that make no sense are kept apart in the reader.
    pub fn read_journal(&self) -> Result<JournalReader, ReportError> {
        JournalReader::read(&self.journal())
    }

    /// Begins a cell's histogram log.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create_hlog(&self, header: &CellHeader) -> Result<HlogWriter, ReportError> {
        HlogWriter::create(&self.cell_hlog(&header.cell), header)
    }

    /// Reads a cell's histogram log; `None` where there is none.
    ///
    /// # Errors
    /// When the file cannot be read or a whole line of it makes no sense.
    pub fn read_hlog(&self, cell: &CellId) -> Result<Option<CellLog>, ReportError> {
        let path = self.cell_hlog(cell);
        if path.exists() { hlog::read(&path).map(Some) } else { Ok(None) }
    }

    /// Writes a cell's record; a reader sees the whole of it or none.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_cell(&self, record: &CellRecord) -> Result<(), ReportError> {
        write_json(&self.cell(&record.result.cell), record)
    }

    /// Every cell's record, in the order in which the cells started.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn read_cells(&self) -> Result<Vec<CellRecord>, ReportError> {
        let folder = self.path.join(CELLS);
        let mut records = Vec::new();
        for entry in fs::read_dir(&folder).map_err(ReportError::io("read", &folder))? {
            let path = entry.map_err(ReportError::io("read", &folder))?.path();
            if path.extension().is_some_and(|e| e == "json") {
                records.push(read_json::<CellRecord>(&path)?);
            }
        }
        records.sort_by(|a, b| {
            (a.result.started, &a.result.cell).cmp(&(b.result.started, &b.result.cell))
        });
        Ok(records)
    }

    /// Writes `summary.json`; a reader sees the whole of it or the one before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), ReportError> {
        write_json(&self.summary(), summary)
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// When it cannot be read or is not a summary.
    pub fn read_summary(&self) -> Result<Summary, ReportError> {
        summary::read(&self.summary())
    }
}

fn refuse_if_used(path: &Path) -> Result<(), ReportError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(ReportError::NotAFolder { path: path.to_owned() });
        }
        Err(source) => {
            return Err(ReportError::Io { act: "look into", path: path.to_owned(), source });
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(ReportError::io("look into", path))?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    if names.is_empty() {
        return Ok(());
    }
    names.sort();
    let more = names.len().saturating_sub(NAMED_ENTRIES);
    let mut held = names[..names.len() - more].join(", ");
    if more > 0 {
        held.push_str(&format!(" and {more} more"));
    }
    Err(ReportError::NotEmpty { path: path.to_owned(), held })
}

pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    let text = fs::read(path).map_err(ReportError::io("read", path))?;
    serde_json::from_slice(&text).map_err(ReportError::json(path))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), ReportError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(ReportError::json(path))?;
    text.push(b'\n');
    write_whole(path, &text)
}

/// Writes beside the file, syncs, and puts it in the file's place, so that neither a reader nor a
/// power cut ever finds half a file.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    if let Err(source) = written {
        // What is left of the attempt is of no use; that it may stay behind is no new error.
        let _ = fs::remove_file(&beside);
        return Err(ReportError::Io { act: "write", path: path.to_owned(), source });
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|f| f.sync_all()).map_err(ReportError::io("sync", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_is_made_with_its_parents_and_an_empty_one_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::create(root.path().join("a/b")).unwrap();
        assert_eq!(RunFolder::open(run.path()).unwrap(), run);
        fs::create_dir(root.path().join("empty")).unwrap();
        assert!(RunFolder::create(root.path().join("empty")).is_ok());
    }

    #[test]
    fn a_used_folder_is_refused_by_what_it_holds() {
        let root = tempfile::tempdir().unwrap();
        for n in 1..=7 {
            fs::write(root.path().join(format!("f{n}")), "").unwrap();
        }
        let error = RunFolder::create(root.path()).unwrap_err().to_string();
        assert!(error.contains("already holds f1, f2, f3, f4, f5 and 2 more"), "{error}");
        let error = RunFolder::create(root.path().join("f1")).unwrap_err();
        assert!(matches!(error, ReportError::NotAFolder { .. }), "{error}");
        let error = RunFolder::open(root.path()).unwrap_err();
        assert!(matches!(error, ReportError::NotARun { .. }), "{error}");
        assert!(RunFolder::open(root.path().join("absent")).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::create(root.path().join("run")).unwrap();
        run.write_plan("first").unwrap();
        run.write_plan("second").unwrap();
        assert_eq!(fs::read_to_string(run.plan()).unwrap(), "second");
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 2);
        fs::remove_dir_all(run.path()).unwrap();
        assert!(run.write_plan("third").unwrap_err().to_string().contains("plan.toml"));
    }
}
