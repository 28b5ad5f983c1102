//! The engine's pen: numbers events, puts them on disk and hands them on.

use std::collections::VecDeque;

use super::{clients::Broadcaster, notify};
use crate::{
    model::{Event, EventKind, UnixMs},
    report::{Journal as JournalFile, ReportError},
};

/// Events kept for clients that attach late.
const KEPT: usize = 2_000;
/// Ends of cells kept beside them: far more than a plan has.
const KEPT_ENDS: usize = 5_000;

/// Writes the journal and tells the clients.
pub struct Journal {
    writer: JournalFile,
    broadcaster: Broadcaster,
    seq: u64,
    epoch: u64,
    kept: VecDeque<Event>,
    /// Ends of cells that are no longer among the newest events.
    ends: VecDeque<Event>,
    hook: Vec<String>,
    run: String,
    hooks: Vec<tokio::task::JoinHandle<()>>,
}

impl Journal {
    pub fn new(
        writer: JournalFile,
        broadcaster: Broadcaster,
        last: (u64, u64),
        hook: Option<Vec<String>>,
        run: String,
    ) -> Self {
        let (seq, last_epoch) = last;
        Self {
            writer,
            broadcaster,
            seq,
            epoch: last_epoch + 1,
            kept: VecDeque::new(),
            ends: VecDeque::new(),
            hook: hook.unwrap_or_default(),
            run,
            hooks: Vec::new(),
        }
    }

    /// Puts an event on disk, then tells the clients and, where it is notable, the operator's
    /// hook.
    ///
    /// # Errors
    /// When it cannot be put on disk. It has then been told all the same, so that a full disk is
    /// seen and never blocks a removal; the caller decides whether to go on.
    pub fn write(&mut self, kind: EventKind) -> Result<(), ReportError> {
        self.seq += 1;
        let event = Event { seq: self.seq, epoch: self.epoch, at: UnixMs::now(), kind };
        let written = self.writer.append(&event);
        if let Err(error) = &written {
            tracing::error!("the journal cannot be written: {error}");
        }
        if self.kept.len() == KEPT
            && let Some(oldest) = self.kept.pop_front()
            && matches!(oldest.kind, EventKind::CellEnded { .. })
        {
            if self.ends.len() == KEPT_ENDS {
                self.ends.pop_front();
            }
            self.ends.push_back(oldest);
        }
        self.kept.push_back(event.clone());
        if notify::is_notable(&event.kind) {
            self.hooks.retain(|hook| !hook.is_finished());
            self.hooks.extend(notify::notify(&self.hook, &self.run, &event));
        }
        tracing::info!("{}", event.kind.text());
        self.broadcaster.event(event);
        written
    }

    /// Writes an event that no act depends on; a failure is in the log.
    pub fn note(&mut self, kind: EventKind) {
        let _ = self.write(kind);
    }

    /// The newest events, oldest first.
    pub fn recent(&self, at_most: usize) -> Vec<Event> {
        let skipped = self.kept.len().saturating_sub(at_most);
        self.kept.iter().skip(skipped).cloned().collect()
    }

    /// What a client that attaches needs: every end of a cell, and the newest events, oldest first.
    pub fn for_arrivals(&self) -> Vec<Event> {
        self.ends.iter().chain(&self.kept).cloned().collect()
    }

    /// Waits for the operator's hooks that still run.
    pub async fn hooks_done(&mut self) {
        for hook in self.hooks.drain(..) {
            let _ = hook.await;
        }
    }
}
