//! One client connection through the gate.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll},
    time::Instant,
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::{
    delay::Delays,
    fault::{Faults, InForce},
    outbox::Outbox,
    replies::{Held, Parcel, Replies},
    requests::{self, Requests},
    timer::PreciseTimer,
    trip::Session,
};

/// Requests that wait for the server: beyond this the client is not read.
const REQUEST_LIMIT: usize = 256 * 1024;
/// Replies that wait for their time or the client: beyond this the server is not read.
const REPLY_LIMIT: usize = 1024 * 1024;
/// Room made for each read.
const READ_SIZE: usize = 8 * 1024;

/// A connection to a database.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Both directions of one connection.
pub(super) struct Relay<'a, C> {
    client: C,
    upstream: Box<dyn Stream>,
    faults: &'a Faults,
    round_trips: &'a AtomicU64,
    timer: PreciseTimer,
    session: Session,
    requests: Requests,
    replies: Replies,
    from_client: BytesMut,
    from_upstream: BytesMut,
    to_upstream: Outbox,
    to_client: Outbox,
    held: Held,
    client_reads: Side,
    upstream_reads: Side,
    upstream_writes: Side,
}

/// One direction of one socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Open,
    /// Closed, and the other socket has not been told yet.
    Ended,
    Closed,
}

impl<'a, C: AsyncRead + AsyncWrite + Unpin> Relay<'a, C> {
    /// A relay whose client has sent `packet` to begin a session and `following` after it.
    pub(super) fn new(
        (client, upstream): (C, Box<dyn Stream>),
        (packet, following): (Bytes, BytesMut),
        (faults, round_trips): (&'a Faults, &'a AtomicU64),
        timer: PreciseTimer,
        delays: Delays,
    ) -> Self {
        let now = Instant::now();
        let mut session = Session::default();
        let mut to_upstream = Outbox::default();
        requests::start(packet, now, &mut session, &mut to_upstream);
        Self {
            client,
            upstream,
            faults,
            round_trips,
            timer,
            session,
            requests: Requests::default(),
            replies: Replies::new(delays, now),
            from_client: following,
            from_upstream: BytesMut::new(),
            to_upstream,
            to_client: Outbox::default(),
            held: Held::default(),
            client_reads: Side::Open,
            upstream_reads: Side::Open,
            upstream_writes: Side::Open,
        }
    }

    /// Carries bytes until the connection has ended.
    ///
    /// # Errors
    /// When the client's socket fails or either side leaves the protocol.
    pub(super) async fn run(mut self) -> io::Result<()> {
        self.take_requests()?;
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut moved = self.read_client(cx)?;
            moved |= self.write_upstream(cx);
            moved |= self.read_upstream(cx)?;
            match self.release(cx)? {
                Released::Cut => return Poll::Ready(Ok(())),
                Released::Some => moved = true,
                Released::None => {}
            }
            moved |= self.write_client(cx)?;
            if self.has_ended() {
                return Pin::new(&mut self.client).poll_shutdown(cx).map(|_| Ok(()));
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    fn read_client(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.client_reads != Side::Open || self.to_upstream.bytes() > REQUEST_LIMIT {
            return Ok(false);
        }
        match read(&mut self.client, &mut self.from_client, cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(0)) => self.client_reads = Side::Ended,
            Poll::Ready(read) => {
                read?;
                self.take_requests()?;
            }
        }
        Ok(true)
    }

    fn take_requests(&mut self) -> io::Result<()> {
        let Self { requests, from_client, session, faults, to_upstream, .. } = self;
        requests
            .take(from_client, Instant::now(), session, faults, to_upstream)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if self.upstream_writes == Side::Closed {
            self.to_upstream.clear();
        }
        Ok(())
    }

    /// A server that does not take a request has closed or will: what it still says is worth more
    /// than the error, so reading goes on.
    fn write_upstream(&mut self, cx: &mut Context<'_>) -> bool {
        if self.upstream_writes == Side::Closed {
            return false;
        }
        if !self.to_upstream.is_empty() {
            return match self.to_upstream.poll_write(&mut *self.upstream, cx) {
                Poll::Pending => false,
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(_)) => {
                    self.upstream_writes = Side::Closed;
                    self.to_upstream.clear();
                    true
                }
            };
        }
        if self.client_reads == Side::Ended {
            if Pin::new(&mut *self.upstream).poll_shutdown(cx).is_pending() {
                return false;
            }
            self.client_reads = Side::Closed;
            self.upstream_writes = Side::Closed;
            return true;
        }
        false
    }

    fn read_upstream(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let waiting = self.held.bytes() + self.to_client.bytes();
        if self.upstream_reads != Side::Open || waiting > REPLY_LIMIT {
            return Ok(false);
        }
        match read(&mut *self.upstream, &mut self.from_upstream, cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(0) | Err(_)) => {
                self.upstream_reads = Side::Ended;
                self.replies.release(Instant::now(), &mut self.held);
            }
            Poll::Ready(Ok(_)) => {
                let Self { replies, from_upstream, session, faults, held, .. } = self;
                let ended = replies
                    .take(from_upstream, Instant::now(), session, faults, held)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                self.round_trips.fetch_add(ended, Ordering::Relaxed);
            }
        }
        Ok(true)
    }

    /// Lets go what is due.
    fn release(&mut self, cx: &mut Context<'_>) -> io::Result<Released> {
        let mut released = Released::None;
        while let Some(leaves) = self.held.next_leaves() {
            let now = Instant::now();
            let wait_for = match self.faults.frozen(now) {
                InForce::ForEver => return Ok(released),
                InForce::Until(end) => leaves.max(end),
                InForce::No => leaves,
            };
            if wait_for > now {
                match self.timer.poll_until(cx, wait_for)? {
                    Poll::Pending => return Ok(released),
                    // A freeze may have begun while it waited.
                    Poll::Ready(()) => continue,
                }
            }
            match self.held.pop() {
                Some(Parcel::Bytes(bytes)) => self.to_client.push(bytes),
                Some(Parcel::Cut) => return Ok(Released::Cut),
                None => {}
            }
            released = Released::Some;
        }
        Ok(released)
    }

    fn write_client(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.to_client.is_empty() {
            return Ok(false);
        }
        match self.to_client.poll_write(&mut self.client, cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(written) => written.map(|()| true),
        }
    }

    /// The server has closed and all it said has left, or could never leave.
    fn has_ended(&self) -> bool {
        let all_left = self.held.next_leaves().is_none() && self.to_client.is_empty();
        let nobody_waits = self.client_reads != Side::Open
            && self.faults.frozen(Instant::now()) == InForce::ForEver;
        self.upstream_reads != Side::Open && (all_left || nobody_waits)
    }
}

enum Released {
    None,
    Some,
    /// The client is to be cut off here.
    Cut,
}

fn read<S: AsyncRead + Unpin + ?Sized>(
    stream: &mut S,
    into: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if into.capacity() - into.len() < READ_SIZE / 4 {
        into.reserve(READ_SIZE);
    }
    // Dropping the future after one poll loses nothing: a read either happens in the poll or not.
    pin!(stream.read_buf(into)).poll(cx)
}
