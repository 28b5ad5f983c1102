//! One connection to the database with what the workload keeps on it, driven by whoever uses it.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use tokio_postgres::{Client, Error};

use super::{
    clock,
    failure::{CONNECT_FAILED, Failure, Meaning},
};
use crate::{
    model::TargetSpec,
    target::{self, ConnectError, ConnectErrorKind, Connection},
    workload::Workload,
};

/// A connection that is ready for transactions.
///
/// Nothing moves on it unless [`Wire::drive`] is polled: the task that waits for an answer reads
/// it itself, which saves waking another task for each round trip.
pub(super) struct Link<S> {
    pub(super) client: Client,
    pub(super) session: S,
    pub(super) wire: Wire,
}

/// The driving side of a link.
pub(super) struct Wire {
    connection: Option<Connection>,
    /// Why the connection ended, where it did with an error.
    end: Option<Error>,
}

/// What driving some work came to.
pub(super) enum Driven<T> {
    Done(T),
    /// The connection is gone, and the work did not notice.
    Abandoned,
}

impl Wire {
    const fn new(connection: Connection) -> Self {
        Self { connection: Some(connection), end: None }
    }

    /// Whether the connection is still there.
    pub(super) const fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Why the connection ended, where it did with an error.
    pub(super) const fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    /// Cuts the connection: whatever still waits for an answer on it is told so.
    fn cut(&mut self) {
        self.connection = None;
    }

    /// Moves what is to be sent and received. Returns whether the connection has ended just now.
    fn turn(&mut self, context: &mut Context<'_>) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match Pin::new(connection).poll(context) {
            Poll::Pending => false,
            Poll::Ready(end) => {
                self.end = end.err();
                self.cut();
                true
            }
        }
    }

    /// Drives the connection until it ends, or until `wanted` gives a value.
    pub(super) fn poll_until<T>(
        &mut self,
        context: &mut Context<'_>,
        wanted: impl FnOnce() -> Option<T>,
    ) -> Poll<Option<T>> {
        if let Some(value) = wanted() {
            return Poll::Ready(Some(value));
        }
        self.turn(context);
        if self.is_open() { Poll::Pending } else { Poll::Ready(None) }
    }

    /// Runs work that uses the link's client to its end. When `late` says so the connection is
    /// cut, so that the work itself ends and can tell how far it had come.
    pub(super) async fn drive<T>(
        &mut self,
        late: impl Fn() -> bool,
        work: impl Future<Output = T>,
    ) -> Driven<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if late() {
                self.cut();
            }
            // What has come is read first, so that the work can go on and what it wants to send
            // is sent in the same turn.
            self.turn(context);
            if let Poll::Ready(value) = work.as_mut().poll(context) {
                return Poll::Ready(Driven::Done(value));
            }
            if self.turn(context)
                && let Poll::Ready(value) = work.as_mut().poll(context)
            {
                return Poll::Ready(Driven::Done(value));
            }
            if self.is_open() { Poll::Pending } else { Poll::Ready(Driven::Abandoned) }
        })
        .await
    }
}

/// Why a link could not be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    Connect(ConnectError),
    Prepare(Error),
    /// The server let us in and then kept silent.
    Silent {
        limit: Duration,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Prepare(error) => match error.as_db_error() {
                Some(db) => write!(
                    f,
                    "the statements could not be prepared: {} (SQLSTATE {})",
                    db.message(),
                    db.code().code()
                ),
                None => write!(f, "the connection was lost while it was made ready: {error}"),
            },
            Self::Silent { limit } => {
                write!(f, "a new connection was not ready within {} ms", limit.as_millis())
            }
        }
    }
}

impl OpenError {
    /// The name under which it is counted.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Connect(error) => error.sqlstate().unwrap_or(CONNECT_FAILED),
            Self::Prepare(error) => {
                error.as_db_error().map_or(CONNECT_FAILED, |db| db.code().code())
            }
            Self::Silent { .. } => CONNECT_FAILED,
        }
    }

    /// Whether trying again cannot help: log-in refused, no such database, no such table.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Connect(error) => match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::Tls => true,
                ConnectErrorKind::Server(code) => code.starts_with("3D"),
                _ => false,
            },
            Self::Prepare(error) => Failure::read(error, None).meaning == Meaning::Refused,
            Self::Silent { .. } => false,
        }
    }
}

impl<S> Link<S> {
    /// Opens a connection and has the workload make it ready.
    ///
    /// # Errors
    /// When the target does not let us in, or not within its connect timeout.
    pub(super) async fn open<W: Workload<Session = S>>(
        target: &TargetSpec,
        workload: &W,
    ) -> Result<Self, OpenError> {
        let connected = target::connect(target).await.map_err(OpenError::Connect)?;
        let client = connected.client;
        let mut wire = Wire::new(connected.connection);
        let limit = Duration::from_millis(target.connect_timeout_ms);
        let prepared =
            tokio::time::timeout(limit, wire.drive(|| false, workload.prepare(&client))).await;
        match prepared {
            Ok(Driven::Done(Ok(session))) => Ok(Self { client, session, wire }),
            Ok(Driven::Done(Err(error))) => Err(OpenError::Prepare(error)),
            Ok(Driven::Abandoned) | Err(_) => Err(OpenError::Silent { limit }),
        }
    }

    /// One empty round trip; how long it took in nanoseconds, or `None` if the link is broken or
    /// silent for longer than `limit`.
    pub(super) async fn ping(&mut self, limit: Duration) -> Option<u64> {
        let start = clock::now();
        let trip = self.wire.drive(|| false, self.client.batch_execute(";"));
        match tokio::time::timeout(limit, trip).await {
            Ok(Driven::Done(Ok(()))) => Some(clock::now() - start),
            _ => None,
        }
    }

    /// Takes leave of the server, so that it does not log a client that went away.
    pub(super) async fn close(self) {
        let Self { client, wire, .. } = self;
        drop(client);
        if let Some(connection) = wire.connection {
            let _ = tokio::time::timeout(Duration::from_secs(1), connection).await;
        }
    }
}
