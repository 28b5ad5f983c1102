//! The engine's pen: numbers events, puts them on disk and hands them on.

use std::collections::VecDeque;

use super::{clients::Broadcaster, notify};
use crate::{
    model::{Event, EventKind, UnixMs},
    report::{Journal as JournalFile, ReportError},
};

/// Events kept for clients that attach late.
const KEPT: usize = 200;

/// Writes the journal and tells the clients.
pub struct Journal {
    writer: JournalFile,
    broadcaster: Broadcaster,
    seq: u64,
    epoch: u64,
    kept: VecDeque<Event>,
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
            kept: VecDeque::with_capacity(KEPT),
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
        if self.kept.len() == KEPT {
            self.kept.pop_front();
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

    /// Waits for the operator's hooks that still run.
    pub async fn hooks_done(&mut self) {
        for hook in self.hooks.drain(..) {
            let _ = hook.await;
        }
    }
}
