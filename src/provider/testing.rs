//! What the tests of this room share.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::task::JoinHandle;

use super::{Recorder, RecorderMessage, remove};
use crate::model::{Resource, RunId};

/// Writes a program. Not from this process: while its file is open for writing here, a child that
/// another test starts could inherit it, and the program would be busy.
pub(super) fn write_script(path: &Path, text: &str) {
    let written = Command::new("sh")
        .args(["-c", "printf %s \"$2\" >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .arg(text)
        .status()
        .unwrap();
    assert!(written.success());
}

/// A run of its own whose traces are removed at the test's end, also of one that fails.
pub(super) struct TestRun(pub(super) RunId);

impl TestRun {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(RunId::new(format!("test-{}-{count}", std::process::id())))
    }
}

impl Drop for TestRun {
    fn drop(&mut self) {
        let run = self.0.clone();
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(remove(&run, &[], |_| None, |_| {}))
        });
        let remaining = removal.join().map_or(u64::MAX, |status| status.remaining_count);
        assert!(remaining == 0 || std::thread::panicking(), "{remaining} remain");
    }
}

/// A recorder whose owner writes everything down: the newest record of each resource, as a journal
/// would give them, once every recorder is dropped.
pub(super) fn recorder() -> (Recorder, JoinHandle<Vec<Resource>>) {
    let (recorder, mut messages) = Recorder::channel();
    let records = tokio::spawn(async move {
        let mut records: Vec<Resource> = Vec::new();
        let mut keep = |resource: Resource| match records.iter_mut().find(|r| r.id == resource.id) {
            Some(known) => *known = resource,
            None => records.push(resource),
        };
        while let Some(message) = messages.recv().await {
            match message {
                RecorderMessage::Intend { resource, on_disk } => {
                    keep(resource);
                    on_disk.send(Ok(())).unwrap();
                }
                RecorderMessage::Made { resource } => keep(resource),
                RecorderMessage::Gone { .. } | RecorderMessage::Step { .. } => {}
            }
        }
        records
    });
    (recorder, records)
}
