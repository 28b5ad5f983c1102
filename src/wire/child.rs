//! What the gate and the null endpoint do alike as processes: their configuration comes as one line
//! on standard input, their reports leave as lines on standard output, and they end with their
//! parent.

use std::{
    io::{self, BufRead, Read, Write},
    time::{Duration, Instant},
};

use rustix::{
    process::{Resource, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;

/// Reads one line of JSON from standard input.
///
/// # Errors
/// In words, when there is none or it is not the configuration.
pub(super) fn configuration<T: DeserializeOwned>() -> Result<T, String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|error| error.to_string())
}

/// Raises the limit of open descriptors as far as it goes: the usual soft limit of 1,024 would end
/// at some hundred connections.
pub(super) fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With the old limit it serves fewer connections, and says so to those it cannot serve.
    let _raised = setrlimit(Resource::Nofile, limit);
}

/// Writes one line of JSON.
///
/// # Errors
/// When nobody reads it.
pub(super) fn say<T: Serialize>(what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Says what `report` makes of the processor time used over each last second (in percent of one
/// processor), from a thread of its own, so that a parent that does not read holds up no
/// connection; ends when the parent's end of the pipe is closed.
///
/// # Errors
/// When nobody reads the reports.
pub(super) async fn report_every_second<T: Serialize>(
    report: impl Fn(f64) -> T + Send + 'static,
) -> io::Result<()> {
    let (failed, wait) = oneshot::channel();
    std::thread::spawn(move || {
        let mut last = (Instant::now(), processor_time());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = (Instant::now(), processor_time());
            let wall = now.0.duration_since(last.0).as_secs_f64();
            let used = now.1.saturating_sub(last.1).as_secs_f64();
            last = now;
            let percent = if wall > 0.0 { used / wall * 100.0 } else { 0.0 };
            if let Err(error) = say(&report(percent)) {
                let _sent = failed.send(error);
                return;
            }
        }
    });
    wait.await.map_or(Ok(()), Err)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Waits for the end of standard input on a thread of its own: the runtime's would keep the
/// process alive for as long as the read blocks.
pub(super) async fn end_of_stdin() {
    let (ended, wait) = oneshot::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 256];
        let mut stdin = io::stdin().lock();
        loop {
            match stdin.read(&mut bytes) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        let _sent = ended.send(());
    });
    // An error means that the thread is gone: then nothing would ever tell of the parent's end.
    let _ended = wait.await;
}
