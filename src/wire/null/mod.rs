//! A database that is none: it answers every statement at once, or as late as its script says.
//!
//! For tests, benchmarks and calibration that need to know exactly what the other side did: in
//! this process on threads of its own ([`NullEndpoint`]), or, so that its processor time is counted
//! apart, as a process ([`process`]). It is cheap: it shares the machine with the generator that is
//! measured.
//!
//! Each event loop has its own share of the connections, in turn, and one timer for all of them.
//! In the steady state a message takes no memory from the heap.

mod alarm;
mod answers;
mod arguments;
mod connection;
pub mod process;
mod serve;
mod session;
mod shared;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serve::Serving;
use shared::Shared;

pub use answers::AnswerError;

use crate::model::NullAnswer;

/// How the endpoint behaves.
#[derive(Clone, Debug, Default)]
pub struct NullScript {
    /// From a request's arrival to its reply, each round trip.
    pub reply_delay: Duration,
    /// Added to the COMMIT of a transaction that has written.
    pub commit_write_delay: Duration,
    /// The rows of statements; the first that fits is given.
    pub answers: Vec<NullAnswer>,
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
    _serving: Serving,
}

impl NullEndpoint {
    /// Starts to listen on a free port of the loopback address, with one event loop.
    ///
    /// # Errors
    /// When no port, thread or runtime is to be had, or the script has an answer that cannot be
    /// given.
    pub fn start(script: NullScript) -> io::Result<Self> {
        let shared = Shared::new(script)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let shared = Arc::new(shared);
        let listener = serve::tcp((Ipv4Addr::LOCALHOST, 0).into())?;
        let addr = listener.local_addr()?;
        let serving = Serving::start(listener, None, 1, &shared)?;
        Ok(Self { addr, shared, _serving: serving })
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

#[cfg(test)]
mod tests;
