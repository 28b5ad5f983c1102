//! The journal: every event of a run, one line of JSON each, on the disk before the act.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{ReportError, append::AppendFile};
use crate::model::{
    AttemptRange, CellId, ConfigurationId, Event, EventKind, Load, Resource, ResourceState, UnixMs,
};

/// The journal as its one writer has it.
#[derive(Debug)]
pub struct Journal(AppendFile);

impl Journal {
    /// Opens the journal for appending, made where there is none. A last line that a power cut
    /// tore is taken away: its event never counted as written, so nothing was done on its word.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        let mut file = AppendFile::open(path)?;
        let text = fs::read(path).map_err(ReportError::io("read", path))?;
        let whole = whole_lines(&text).len();
        if whole < text.len() {
            file.cut_to(whole as u64)?;
        }
        Ok(Self(file))
    }

    /// Appends an event and waits until it is on the disk. Where this fails, nothing may be done on
    /// the event's word; only a caller that removes things goes on without it (a full disk must
    /// not block removal). A line that was cut short is taken back.
    ///
    /// # Errors
    /// When the line cannot be written or synced, or another engine has taken the run over.
    pub fn append(&mut self, event: &Event) -> Result<(), ReportError> {
        let mut line = serde_json::to_vec(event).map_err(ReportError::json(self.0.path()))?;
        line.push(b'\n');
        self.0.append(&line)?;
        self.0.sync()
    }
}

/// The bytes up to and with the last line's end.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    &text[..end]
}

/// A line of the journal that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    pub why: String,
}

impl std::fmt::Display for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}: not an event: {}", self.path.display(), self.line, self.why)
    }
}

/// How a run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStart {
    pub run: String,
    pub plan: String,
    pub rehearsal: bool,
    pub build: String,
    /// The engine's process.
    pub pid: u32,
    pub seed: u64,
    pub at: UnixMs,
}

/// How a cell began.
#[derive(Clone, Debug, PartialEq)]
pub struct CellStart {
    pub cell: CellId,
    pub configuration: ConfigurationId,
    pub stage: String,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
    pub beside: Vec<ConfigurationId>,
    pub at: UnixMs,
}

/// The last teardown that the journal tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeardownRecord {
    pub started: UnixMs,
    pub by: String,
    /// `None` while it runs, or where its engine did not live to the end of it.
    pub ended: Option<TeardownEnd>,
}

/// How a teardown ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeardownEnd {
    pub at: UnixMs,
    pub remaining_count: u64,
    /// What remained and why, in words.
    pub remaining: Vec<String>,
}

/// A journal read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalReader {
    events: Vec<Event>,
    garbage: Vec<Garbage>,
    torn: bool,
}

impl JournalReader {
    /// Reads a journal. A torn last line is left out; any other line that is not an event is kept
    /// apart, so that one bad line never stands in the way of a removal.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let text = fs::read(path).map_err(ReportError::io("read", path))?;
        let whole = whole_lines(&text);
        let mut reader = Self { torn: whole.len() < text.len(), ..Self::default() };
        for (index, line) in whole.split(|byte| *byte == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(event) => reader.events.push(event),
                Err(error) => reader.garbage.push(Garbage {
                    path: path.to_owned(),
                    line: index + 1,
                    why: error.to_string(),
                }),
            }
        }
        Ok(reader)
    }

    /// Every event, in the order of the journal.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Lines that are not events.
    #[must_use]
    pub fn garbage(&self) -> &[Garbage] {
        &self.garbage
    }

    /// Whether the last line was torn.
    #[must_use]
    pub const fn torn(&self) -> bool {
        self.torn
    }

    /// The highest epoch that wrote, 0 in an empty journal.
    #[must_use]
    pub fn last_epoch(&self) -> u64 {
        self.events.iter().map(|event| event.epoch).max().unwrap_or(0)
    }

    /// The highest event number, 0 in an empty journal.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.events.iter().map(|event| event.seq).max().unwrap_or(0)
    }

    /// How the run began; `None` where the journal does not say.
    #[must_use]
    pub fn run(&self) -> Option<RunStart> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted { run, plan, rehearsal, build, pid, seed } => Some(RunStart {
                run: run.clone(),
                plan: plan.clone(),
                rehearsal: *rehearsal,
                build: build.clone(),
                pid: *pid,
                seed: *seed,
                at: event.at,
            }),
            _ => None,
        })
    }

    /// What the run has made or was about to make and is not known to be gone, in the order in
    /// which it was first intended. Whatever the epoch that wrote it: what a fenced-off engine
    /// made must go as well.
    #[must_use]
    pub fn resources(&self) -> Vec<Resource> {
        let mut present = self.recorded();
        present.retain(|resource| resource.state != ResourceState::Gone);
        present
    }

    /// Everything that the run has ever made or was about to make, the newest state of each, in
    /// the order in which it was first intended: also what is said to be gone.
    #[must_use]
    pub fn recorded(&self) -> Vec<Resource> {
        let mut recorded: Vec<Resource> = Vec::new();
        for event in &self.events {
            match &event.kind {
                EventKind::ResourceIntent { resource } | EventKind::ResourceMade { resource } => {
                    match recorded.iter_mut().find(|known| known.id == resource.id) {
                        Some(known) => *known = resource.clone(),
                        None => recorded.push(resource.clone()),
                    }
                }
                EventKind::ResourceGone { id } => {
                    for known in recorded.iter_mut().filter(|known| known.id == *id) {
                        known.state = ResourceState::Gone;
                        known.since = event.at;
                    }
                }
                _ => {}
            }
        }
        recorded
    }

    /// Every cell that was started, in order.
    #[must_use]
    pub fn cells_started(&self) -> Vec<CellStart> {
        self.events.iter().filter_map(cell_start).collect()
    }

    /// Cells that were started and of which no end is told.
    #[must_use]
    pub fn cells_open(&self) -> Vec<CellStart> {
        let ended = |cell: &CellId| {
            self.events.iter().any(
                |event| matches!(&event.kind, EventKind::CellEnded { cell: c, .. } if c == cell),
            )
        };
        let mut open = self.cells_started();
        open.retain(|start| !ended(&start.cell));
        open
    }

    /// The ranges that attempts own, in the order in which they were reserved.
    pub fn attempts(&self) -> impl Iterator<Item = (&CellId, &AttemptRange)> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::AttemptReserved { cell, range } => Some((cell, range)),
            _ => None,
        })
    }

    /// The highest ordinal of an attempt, 0 where there was none.
    #[must_use]
    pub fn highest_attempt(&self) -> u64 {
        self.attempts().map(|(_, range)| range.ordinal).max().unwrap_or(0)
    }

    /// The last teardown; `None` where none was started.
    #[must_use]
    pub fn teardown(&self) -> Option<TeardownRecord> {
        let mut last: Option<TeardownRecord> = None;
        for event in &self.events {
            match &event.kind {
                EventKind::TeardownStarted { by, .. } => {
                    last = Some(TeardownRecord { started: event.at, by: by.clone(), ended: None });
                }
                EventKind::TeardownEnded { remaining_count, remaining } => {
                    if let Some(record) = &mut last {
                        record.ended = Some(TeardownEnd {
                            at: event.at,
                            remaining_count: *remaining_count,
                            remaining: remaining.clone(),
                        });
                    }
                }
                _ => {}
            }
        }
        last
    }

    /// The exit code of the run; `None` where its end is not told.
    #[must_use]
    pub fn exit_code(&self) -> Option<u8> {
        self.run_ended().map(|(_, code)| code)
    }

    /// When the run ended and with which exit code; the last time that it did.
    #[must_use]
    pub fn run_ended(&self) -> Option<(UnixMs, u8)> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunEnded { exit_code, .. } => Some((event.at, *exit_code)),
            _ => None,
        })
    }
}

fn cell_start(event: &Event) -> Option<CellStart> {
    let EventKind::CellStarted {
        cell,
        configuration,
        stage,
        load,
        warmup_s,
        measure_s,
        beside,
        ..
    } = &event.kind
    else {
        return None;
    };
    Some(CellStart {
        cell: cell.clone(),
        configuration: configuration.clone(),
        stage: stage.clone(),
        load: *load,
        warmup_s: *warmup_s,
        measure_s: *measure_s,
        beside: beside.clone(),
        at: event.at,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::{
        model::ResourceKind,
        report::fixture::{STARTED, attempt_reserved, cell_started, events},
    };

    fn resource(id: &str, state: ResourceState) -> Resource {
        Resource {
            kind: ResourceKind::Gate,
            id: id.to_owned(),
            configuration: Some(ConfigurationId::new("D1")),
            process: None,
            path: None,
            port: Some(5_432),
            note: String::new(),
            state,
            since: STARTED,
        }
    }

    fn written(path: &Path, kinds: Vec<EventKind>) {
        let mut journal = Journal::open(path).unwrap();
        for event in events(kinds) {
            journal.append(&event).unwrap();
        }
    }

    #[test]
    fn resources_are_what_was_intended_or_made_and_is_not_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let intent =
            |id| EventKind::ResourceIntent { resource: resource(id, ResourceState::Intended) };
        let made = |id| EventKind::ResourceMade { resource: resource(id, ResourceState::Made) };
        let gone = EventKind::ResourceGone { id: "a".to_owned() };
        written(&path, vec![intent("a"), made("a"), intent("b"), intent("c"), made("c"), gone]);
        let reader = JournalReader::read(&path).unwrap();
        let present: Vec<_> = reader.resources().into_iter().map(|r| (r.id, r.state)).collect();
        let expected = [("b", ResourceState::Intended), ("c", ResourceState::Made)]
            .map(|(i, s)| (i.to_owned(), s));
        assert_eq!(present, expected);
        let recorded: Vec<_> = reader.recorded().into_iter().map(|r| (r.id, r.state)).collect();
        let gone = ("a".to_owned(), ResourceState::Gone);
        assert_eq!(recorded, [&[gone][..], &expected].concat());
        assert_eq!((reader.last_seq(), reader.last_epoch()), (6, 1));
    }

    #[test]
    fn cells_attempts_and_ends_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let ended = EventKind::CellEnded {
            cell: CellId::new("D1-001"),
            configuration: ConfigurationId::new("D1"),
            load: Load::Closed { connections: 1 },
            verdict: crate::model::Verdict::Pass,
            tps: crate::model::Tps::default(),
            reasons: Vec::new(),
            stage: String::new(),
            classes: crate::model::PerClass::default(),
            connection_wait_p99_ms: None,
            tail: String::new(),
            measured_s: 0.0,
        };
        let over = EventKind::RunEnded {
            exit_code: 3,
            text: "over".to_owned(),
            folder: folder.path().to_owned(),
        };
        written(
            &path,
            vec![
                attempt_reserved("D1-001", 4),
                cell_started("D1-001"),
                ended,
                cell_started("D1-002"),
                EventKind::TeardownStarted { by: "deadline".to_owned(), resources: 0 },
                over,
            ],
        );
        let reader = JournalReader::read(&path).unwrap();
        assert_eq!(reader.events().len(), 6);
        assert_eq!(reader.cells_started().len(), 2);
        assert_eq!(reader.cells_open()[0].cell, CellId::new("D1-002"));
        assert_eq!(reader.highest_attempt(), 4);
        assert_eq!(reader.exit_code(), Some(3));
        assert_eq!(reader.teardown().unwrap().ended, None);
        assert_eq!(reader.run(), None);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_taken_away_by_the_next_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        written(&path, vec![cell_started("D1-001")]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"seq\":2,\"epo").unwrap();
        let reader = JournalReader::read(&path).unwrap();
        assert_eq!((reader.events().len(), reader.torn(), reader.garbage().len()), (1, true, 0));
        written(&path, vec![cell_started("D1-002")]);
        let reader = JournalReader::read(&path).unwrap();
        assert_eq!((reader.events().len(), reader.torn()), (2, false));
    }

    #[test]
    fn garbage_is_told_by_line_and_hides_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        written(&path, vec![cell_started("D1-001")]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"\xff\xfe\n\n").unwrap();
        written(&path, vec![cell_started("D1-002")]);
        let reader = JournalReader::read(&path).unwrap();
        assert_eq!(reader.events().len(), 2);
        assert_eq!(reader.garbage()[0].line, 2);
        assert!(reader.garbage()[0].to_string().contains("journal.jsonl, line 2: not an event"));
    }
}
