//! One connection to the database that is ready for transactions.

use std::{fmt, time::Duration};

use super::{
    clock,
    failure::{CONNECT_FAILED, Failure, Meaning},
    tally::POOL_TIMEOUT,
};
use crate::{
    model::{CellOrder, Secret, Shape, TargetSpec},
    target::{self, ConnectError, ConnectErrorKind, Driver, SessionError},
    workload::Workload,
};

/// A connection that is ready for transactions.
pub(super) struct Link {
    pub(super) driver: Driver,
    /// Before it was connected: its age counts from then, on the server's side too.
    pub(super) opened_at: u64,
}

/// What a link was opened for: one that is kept can only serve where these are the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Purpose {
    target: TargetSpec,
    shape: Shape,
}

impl Purpose {
    pub(super) fn of(order: &CellOrder) -> Self {
        Self { target: order.target.clone(), shape: order.shape }
    }
}

/// Why a link could not be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    Connect(ConnectError),
    Prepare(SessionError),
    /// The server let us in and then kept silent.
    Silent {
        limit: Duration,
    },
    /// All connections of a pool were in use for too long.
    NoneFree {
        limit: Duration,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Prepare(error @ SessionError::Server(_)) => {
                write!(f, "the statements could not be prepared: {error}")
            }
            Self::Prepare(error) => {
                write!(f, "the connection was lost while it was made ready: {error}")
            }
            Self::Silent { limit } => {
                write!(f, "a new connection was not ready within {} ms", limit.as_millis())
            }
            Self::NoneFree { limit } => {
                write!(f, "no connection of the pool became free within {} ms", limit.as_millis())
            }
        }
    }
}

impl OpenError {
    /// The name under which it is counted.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Connect(error) => error.sqlstate().unwrap_or(CONNECT_FAILED),
            Self::Prepare(error) => error.code().unwrap_or(CONNECT_FAILED),
            Self::Silent { .. } => CONNECT_FAILED,
            Self::NoneFree { .. } => POOL_TIMEOUT,
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
            Self::Prepare(error) => Failure::read(error).meaning == Meaning::Refused,
            Self::Silent { .. } | Self::NoneFree { .. } => false,
        }
    }
}

/// How long a trip took in nanoseconds; `None` if it failed or took longer than `limit`.
pub(super) async fn timed(
    limit: Duration,
    trip: impl Future<Output = Result<(), SessionError>>,
) -> Option<u64> {
    let start = clock::now();
    match tokio::time::timeout(limit, trip).await {
        Ok(Ok(())) => Some(clock::now() - start),
        _ => None,
    }
}

impl Link {
    /// Opens a connection and has the workload's statements prepared on it.
    ///
    /// # Errors
    /// When the target does not let us in, or not within its connect timeout.
    pub(super) async fn open<W: Workload>(
        order: &CellOrder,
        workload: &W,
    ) -> Result<Self, OpenError> {
        let CellOrder { target, shape, .. } = order;
        let opened_at = clock::now();
        let open = |password: Option<Secret>| async move {
            Driver::open(target, password.as_ref(), shape.statements, shape.round_trips).await
        };
        let mut driver = target::log_in(target, open).await.map_err(OpenError::Connect)?;
        let limit = Duration::from_millis(target.connect_timeout_ms);
        let prepared = tokio::time::timeout(limit, driver.prepare(workload.statements())).await;
        match prepared {
            Ok(Ok(())) => Ok(Self { driver, opened_at }),
            Ok(Err(error)) => Err(OpenError::Prepare(error)),
            Err(_) => Err(OpenError::Silent { limit }),
        }
    }

    /// One empty round trip; how long it took in nanoseconds, or `None` if the link is broken or
    /// silent for longer than `limit`.
    pub(super) async fn ping(&mut self, limit: Duration) -> Option<u64> {
        timed(limit, self.driver.ping()).await
    }

    /// Takes leave of the server, so that it does not log a client that went away.
    pub(super) async fn close(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.driver.close()).await;
    }
}
