//! A database that is none: it answers every statement at once, or as late as its script says.
//!
//! For tests and benchmarks that need to know exactly what the other side did. It runs on a thread
//! and runtime of its own, so that its work is not in the event loop that is measured.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, sync::oneshot};

use super::null_session;

/// How the endpoint behaves.
#[derive(Clone, Debug, Default)]
pub struct NullScript {
    /// From a request's arrival to its reply, each round trip.
    pub reply_delay: Duration,
    /// Spans in which no reply leaves.
    pub stalls: Vec<Stall>,
    pub fail: Option<NullFailure>,
    /// One COMMIT in this many is carried out, and then its connection is cut before the reply.
    pub cut_after_commit: Option<u64>,
}

/// A span in which no reply leaves, on any connection.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// From the first query or Sync that the endpoint saw.
    pub after_first_query: Duration,
    pub length: Duration,
}

/// Statements that are answered with an error.
#[derive(Clone, Debug)]
pub struct NullFailure {
    pub sqlstate: String,
    /// One in this many fails (1: each).
    pub every: u64,
    pub on: FailOn,
    /// In place of the script's `reply_delay` for the round trip that fails.
    pub reply_delay: Option<Duration>,
}

/// Which statements fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOn {
    /// Every statement but BEGIN, COMMIT and ROLLBACK.
    Statement,
    Commit,
}

/// A running endpoint; dropping it ends it with all its connections.
#[derive(Debug)]
pub struct NullEndpoint {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NullEndpoint {
    /// Starts to listen on a free port of the loopback address.
    ///
    /// # Errors
    /// When no port, thread or runtime is to be had.
    pub fn start(script: NullScript) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared::new(script));
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let thread = std::thread::Builder::new().name("null endpoint".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { addr, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// COMMITs carried out so far, those whose reply was cut off included.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Connections that have begun a session so far.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.shared.sessions.load(Ordering::Relaxed)
    }
}

impl Drop for NullEndpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic on its thread has been printed; there is nothing to add.
            let _joined = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    // How a connection ends is its client's affair.
                    let _ended = null_session::serve(client, &shared).await;
                });
            }
            // Out of descriptors: some come back as connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// What the connections share.
#[derive(Debug)]
pub(super) struct Shared {
    script: NullScript,
    first_query: Mutex<Option<Instant>>,
    failable: AtomicU64,
    commits: AtomicU64,
    sessions: AtomicU64,
}

impl Shared {
    fn new(script: NullScript) -> Self {
        Self {
            script,
            first_query: Mutex::new(None),
            failable: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
        }
    }

    pub(super) fn session_begins(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    /// The failure that falls on the next statement of this kind, if one does.
    pub(super) fn failure(&self, on: FailOn) -> Option<&NullFailure> {
        let failure = self.script.fail.as_ref().filter(|failure| failure.on == on)?;
        let count = self.failable.fetch_add(1, Ordering::Relaxed) + 1;
        count.is_multiple_of(failure.every.max(1)).then_some(failure)
    }

    /// Counts a COMMIT; whether its connection is cut.
    pub(super) fn commit(&self) -> bool {
        let count = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        self.script.cut_after_commit.is_some_and(|every| count.is_multiple_of(every.max(1)))
    }

    /// When the reply to a request leaves that arrived at `arrival`.
    pub(super) fn reply_at(&self, arrival: Instant, delay: Option<Duration>) -> Instant {
        let mut first = self.first_query.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *first.get_or_insert(arrival);
        let mut at = arrival + delay.unwrap_or(self.script.reply_delay);
        for stall in &self.script.stalls {
            let starts = first + stall.after_first_query;
            let ends = starts + stall.length;
            if at >= starts && at < ends {
                at = ends;
            }
        }
        at
    }
}

#[cfg(test)]
#[path = "null_tests.rs"]
mod tests;
