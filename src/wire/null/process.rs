//! The null endpoint as a process of its own.
//!
//! The parent writes a [`NullConfig`] as one line to its standard input and keeps the pipe open:
//! when it closes, by intent or by death, the endpoint exits.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    AnswerError, NullScript,
    serve::{self, Serving},
    shared::Shared,
};
use crate::{
    model::{NullConfig, NullListening, NullReport},
    wire::child,
};

/// Why a null endpoint ended.
#[derive(Debug, thiserror::Error)]
pub enum NullError {
    #[error("the null endpoint got no configuration: one line of JSON on its standard input, {0}")]
    NoConfiguration(String),
    #[error("the null endpoint cannot listen on {0}: a loopback address is allowed")]
    NotLoopback(SocketAddr),
    #[error("{name} of the null endpoint is {found}: from 0 on is allowed")]
    Delay { name: &'static str, found: f64 },
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("the null endpoint cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the null endpoint cannot listen on {}: {source}", path.display())]
    ListenUnix { path: PathBuf, source: io::Error },
    #[error("the null endpoint's event loops failed: {0}")]
    Runtime(io::Error),
    #[error("the null endpoint's parent does not read its reports: {0}")]
    Report(io::Error),
}

/// Runs a null endpoint as a whole process: reads its configuration from standard input and serves
/// until standard input ends. Reports on standard output: [`NullListening`] once, then a
/// [`NullReport`] a second, each a line of JSON.
///
/// # Errors
/// When there is no configuration, it cannot be followed, or nobody reads the reports.
pub fn main() -> Result<(), NullError> {
    let config: NullConfig = child::configuration().map_err(NullError::NoConfiguration)?;
    child::allow_many_connections();
    let NullConfig { listen, unix_directory, round_trip_ms, commit_write_ms, threads, answers } =
        config;
    if !listen.ip().is_loopback() {
        return Err(NullError::NotLoopback(listen));
    }
    let script = NullScript {
        reply_delay: delay("round_trip_ms", round_trip_ms)?,
        commit_write_delay: delay("commit_write_ms", commit_write_ms)?,
        answers,
        ..NullScript::default()
    };
    let shared = Arc::new(Shared::new(script)?);
    let failed = |source| NullError::Listen { address: listen, source };
    let tcp = serve::tcp(listen).map_err(failed)?;
    let port = tcp.local_addr().map_err(failed)?.port();
    let socket = unix_directory.map(|folder| Socket::bind(&folder, port)).transpose()?;
    let unix = socket.as_ref().map(Socket::listener).transpose()?;
    let threads =
        threads.or_else(|| std::thread::available_parallelism().map(Into::into).ok()).unwrap_or(1);
    let serving = Serving::start(tcp, unix, threads, &shared).map_err(NullError::Runtime)?;
    child::say(&NullListening { listening: port }).map_err(NullError::Report)?;
    let ended = until_parent_ends(shared);
    drop(serving);
    ended
}

fn delay(name: &'static str, ms: f64) -> Result<Duration, NullError> {
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| NullError::Delay { name, found: ms })
}

fn until_parent_ends(shared: Arc<Shared>) -> Result<(), NullError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().map_err(NullError::Runtime)?;
    let reports = child::report_every_second(move |cpu_percent| NullReport {
        cpu_percent,
        sessions: shared.sessions.load(Ordering::Relaxed),
        round_trips: shared.round_trips.load(Ordering::Relaxed),
        commits: shared.commits.load(Ordering::Relaxed),
    });
    runtime.block_on(async {
        tokio::select! {
            reported = reports => reported.map_err(NullError::Report),
            () = child::end_of_stdin() => Ok(()),
        }
    })
}

/// A Unix socket; dropping it removes its file.
struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    fn bind(folder: &Path, port: u16) -> Result<Self, NullError> {
        let path = folder.join(format!(".s.PGSQL.{port}"));
        match UnixListener::bind(&path) {
            Ok(listener) => Ok(Self { path, listener }),
            Err(source) => Err(NullError::ListenUnix { path, source }),
        }
    }

    fn listener(&self) -> Result<UnixListener, NullError> {
        let failed = |source| NullError::ListenUnix { path: self.path.clone(), source };
        self.listener.set_nonblocking(true).map_err(failed)?;
        self.listener.try_clone().map_err(failed)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A folder that is gone has taken it along.
        let _removed = fs::remove_file(&self.path);
    }
}
