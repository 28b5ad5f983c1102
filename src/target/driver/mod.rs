//! The load core's own way to a database: one connection, driven by the task that uses it.
//!
//! It exists because the generator must be cheaper than what it measures, and exact about time. No
//! task stands between a transaction and its socket, a trip is one send and mostly one receive,
//! what travels together ends in one Sync, the first byte's moment is known, and so is how long a
//! reply had lain unread.

mod encode;
mod inbox;
mod startup;
mod stream;
#[cfg(test)]
mod tests;
mod transport;

use std::{
    future::poll_fn,
    io, slice,
    task::{Context, Poll},
    time::Duration,
};

use inbox::{Inbox, Message};
use transport::Transport;

use super::{
    ConnectError,
    session::{Format, Replies, Request, ServerError, Session, SessionError, Statement, TripError},
    spelling::spelled,
};
use crate::model::{RoundTrips, Secret, Statements, TargetSpec, monotonic_ns};

pub use stream::ReadLag;

/// How long after an error the server may take to say that it is ready again; it says so at once.
const READY_LIMIT: Duration = Duration::from_secs(1);

/// A connection that is logged in.
pub struct Driver {
    transport: Transport,
    inbox: Inbox,
    outbox: Vec<u8>,
    replies: Replies,
    statements: Statements,
    round_trips: RoundTrips,
    /// The statements have been prepared.
    prepared: bool,
    /// As the server said last: idle, in a transaction, or in one that has failed.
    status: u8,
    /// Something was sent whose replies are not all read.
    in_flight: bool,
    /// Why it has ended.
    end: Option<SessionError>,
    commit_sent: bool,
    first_sent: Option<u64>,
}

/// The server is outside of a transaction.
const IDLE: u8 = b'I';

impl Driver {
    /// Opens a connection: address, encryption and log-in within the target's connect timeout.
    ///
    /// # Errors
    /// When the target cannot be reached in time, is not to be trusted, or refuses the log-in.
    pub async fn open(
        target: &TargetSpec,
        password: Option<&Secret>,
        statements: Statements,
        round_trips: RoundTrips,
    ) -> Result<Self, ConnectError> {
        let limit = Duration::from_millis(target.connect_timeout_ms);
        let opened = tokio::time::timeout(limit, startup::open(target, password)).await;
        let (transport, inbox) = opened.unwrap_or_else(|_| Err(ConnectError::timeout(target)))?;
        Ok(Self {
            transport,
            inbox,
            outbox: Vec::with_capacity(1024),
            replies: Replies::default(),
            statements,
            round_trips,
            prepared: false,
            status: IDLE,
            in_flight: false,
            end: None,
            commit_sent: false,
            first_sent: None,
        })
    }

    /// Has the statements prepared, all in one round trip, where they are to be.
    ///
    /// # Errors
    /// With what the server says against one of them, or how the connection ended.
    pub async fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        if self.statements != Statements::Prepared || statements.is_empty() {
            return Ok(());
        }
        self.outbox.clear();
        encode::prepare(&mut self.outbox, statements);
        self.converse(&[]).await?;
        self.prepared = true;
        Ok(())
    }

    /// One empty round trip.
    ///
    /// # Errors
    /// How the connection ended.
    pub async fn ping(&mut self) -> Result<(), SessionError> {
        self.outbox.clear();
        encode::query(&mut self.outbox, ";");
        self.converse(&[]).await
    }

    /// Watches an idle connection: ready once it has ended.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.end.is_none() {
            match self.inbox.next() {
                Ok(Some(Message { tag: b'N' | b'S' | b'A', .. })) => {}
                Ok(Some(message @ Message { tag: b'E', .. })) => {
                    // Between two requests only a farewell can come.
                    let error = inbox::server_error(self.inbox.body(&message));
                    self.end = Some(SessionError::Server(error));
                }
                Ok(Some(message)) => {
                    let what = format!("a message {:?} unasked", char::from(message.tag));
                    self.end = Some(SessionError::Protocol(what));
                }
                Ok(None) => match self.transport.poll_receive(context, self.inbox.room()) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(received) => self.take_in(received),
                },
                Err(error) => self.end = Some(error),
            }
        }
        Poll::Ready(())
    }

    /// Why it has ended, where it has.
    #[must_use]
    pub const fn end(&self) -> Option<&SessionError> {
        self.end.as_ref()
    }

    /// Takes leave of the server, so that it does not log a client that went away.
    pub async fn close(mut self) {
        self.outbox.clear();
        encode::message(&mut self.outbox, b'X', |_| {});
        // It may be gone already.
        let _ = self.transport.send(&self.outbox).await;
    }

    fn take_in(&mut self, received: io::Result<usize>) {
        match received {
            Ok(0) => self.end = Some(SessionError::Lost("the server closed it".into())),
            Ok(length) => self.inbox.received(length),
            Err(error) => self.end = Some(SessionError::Lost(error.to_string())),
        }
    }

    /// Puts requests into the outbox that travel together.
    fn write(&mut self, requests: &[Request<'_>]) {
        self.outbox.clear();
        let together = requests.len() > 1;
        let simple = self.statements == Statements::Simple
            || (!together && !matches!(requests, [Request::Run(..)]));
        if !simple {
            for request in requests {
                encode::extended(&mut self.outbox, request, self.prepared);
            }
            encode::sync(&mut self.outbox);
            return;
        }
        encode::message(&mut self.outbox, b'Q', |out| {
            for (place, request) in requests.iter().enumerate() {
                if place > 0 {
                    out.push(b';');
                }
                spelled(out, request);
            }
            out.push(0);
        });
    }

    async fn exchange(&mut self, requests: &[Request<'_>]) -> Result<(), TripError> {
        self.write(requests);
        for request in requests {
            match request {
                Request::Begin => self.commit_sent = false,
                // What a text does is not known here.
                Request::Commit | Request::Text(_) => self.commit_sent = true,
                Request::Rollback | Request::Run(..) => {}
            }
        }
        let commit_sent = requests.iter().any(|request| matches!(request, Request::Commit));
        self.converse(requests).await.map_err(|error| TripError { commit_sent, error })
    }

    /// Sends the outbox and reads the replies up to the server's word that it is ready.
    async fn converse(&mut self, requests: &[Request<'_>]) -> Result<(), SessionError> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        if self.in_flight {
            return Err(SessionError::Lost("an earlier request was given up".into()));
        }
        self.in_flight = true;
        if self.first_sent.is_none() {
            self.first_sent = Some(monotonic_ns());
        }
        // Where it cannot be sent the server has left, and may have said why: that is read below.
        let _ = self.transport.send(&self.outbox).await;
        let first = self.replies.count();
        match self.read(requests, first).await? {
            None => Ok(()),
            Some(error) => self.settle(error, requests, first).await,
        }
    }

    /// Reads replies until the server is ready (`None`) or has answered with an error.
    async fn read(
        &mut self,
        requests: &[Request<'_>],
        first: usize,
    ) -> Result<Option<ServerError>, SessionError> {
        loop {
            while let Some(message) = self.next()? {
                let body = self.inbox.body(&message);
                match message.tag {
                    b'D' => self.replies.row(body),
                    b'C' => {
                        let asked = requests.get(self.replies.count() - first);
                        if matches!(asked, Some(Request::Commit)) && body.starts_with(b"ROLLBACK") {
                            let what = "COMMIT was answered with ROLLBACK".to_owned();
                            return Err(self.give_up(SessionError::Protocol(what)));
                        }
                        self.replies.complete(inbox::affected(body));
                    }
                    b'I' => self.replies.complete(0),
                    b'E' => return Ok(Some(inbox::server_error(body))),
                    b'Z' => {
                        self.status = body.first().copied().unwrap_or(IDLE);
                        self.in_flight = false;
                        return Ok(None);
                    }
                    // Parsed, bound, described, no data; settings, notices, notifications.
                    _ => {}
                }
            }
            self.receive().await?;
        }
    }

    /// After an error: the server must say that it is ready again, or the connection is given up.
    async fn settle(
        &mut self,
        error: ServerError,
        requests: &[Request<'_>],
        first: usize,
    ) -> Result<(), SessionError> {
        let rest = tokio::time::timeout(READY_LIMIT, self.read(requests, first)).await;
        if !matches!(rest, Ok(Ok(None))) {
            self.end = Some(SessionError::Server(error.clone()));
        }
        Err(SessionError::Server(error))
    }

    fn next(&mut self) -> Result<Option<Message>, SessionError> {
        let next = self.inbox.next();
        next.map_err(|error| self.give_up(error))
    }

    async fn receive(&mut self) -> Result<(), SessionError> {
        let (transport, inbox) = (&mut self.transport, &mut self.inbox);
        let received = poll_fn(|context| transport.poll_receive(context, inbox.room())).await;
        self.take_in(received);
        self.end.clone().map_or(Ok(()), Err)
    }

    fn give_up(&mut self, error: SessionError) -> SessionError {
        self.end = Some(error.clone());
        error
    }
}

impl Session for Driver {
    async fn trip(&mut self, requests: &[Request<'_>]) -> Result<&Replies, TripError> {
        let format = match self.statements {
            Statements::Simple => Format::Text,
            Statements::Prepared | Statements::Unnamed => Format::Binary,
        };
        self.replies.clear(format);
        match self.round_trips {
            RoundTrips::Pipelined => self.exchange(requests).await?,
            RoundTrips::Sequential => {
                for request in requests {
                    self.exchange(slice::from_ref(request)).await?;
                }
            }
        }
        Ok(&self.replies)
    }

    fn is_usable(&self) -> bool {
        self.end.is_none() && !self.in_flight
    }

    fn in_transaction(&self) -> bool {
        self.status != IDLE
    }

    fn commit_sent(&self) -> bool {
        self.commit_sent
    }

    fn take_first_sent(&mut self) -> Option<u64> {
        self.first_sent.take()
    }

    fn take_read_lag(&mut self) -> ReadLag {
        self.transport.take_lag()
    }
}
