//! One connection of the null endpoint: reads while replies wait for their moments.

use std::{
    collections::VecDeque,
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{alarm::Alarm, session::Session, shared::Shared};
use crate::wire::{
    message::{self, Framer, Front},
    startup::{Opening, read_opening},
};

/// A client that does not read its replies is not read from while it has so many bytes to read.
const MOST_UNREAD: usize = 1 << 20;
/// What a connection begins with: requests are short.
const INBOX: usize = 4 * 1024;

/// Serves a connection to its end.
///
/// # Errors
/// When its socket fails or the client leaves the protocol.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: S,
    shared: Arc<Shared>,
    alarm: Arc<Alarm>,
) -> io::Result<()> {
    let mut inbox = BytesMut::with_capacity(INBOX);
    let packet = match read_opening(&mut client, &mut inbox, None, || Duration::ZERO).await? {
        Opening::Session(packet) => packet,
        Opening::Cancel(_) | Opening::Gone => return Ok(()),
    };
    let now = Instant::now();
    let mut session = Session::default();
    session.welcome(&packet, shared.session_begins());
    // It shares memory with the inbox.
    drop(packet);
    let welcome = Reply { at: now, length: session.out.len(), cut: false };
    let mut connection = Connection {
        client,
        shared,
        alarm,
        inbox,
        framer: Framer::default(),
        in_replies: welcome.length,
        replies: VecDeque::from([welcome]),
        session,
        busy_until: now,
        waits_for: None,
    };
    // What came with the start-up packet.
    if connection.take_messages(now)? == Client::Gone {
        return Ok(());
    }
    std::future::poll_fn(|cx| connection.poll(cx)).await
}

/// A part of what has been answered.
#[derive(Debug)]
struct Reply {
    /// When it leaves.
    at: Instant,
    length: usize,
    /// The connection ends in its place.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    There,
    Gone,
}

struct Connection<S> {
    client: S,
    shared: Arc<Shared>,
    alarm: Arc<Alarm>,
    inbox: BytesMut,
    framer: Framer,
    session: Session,
    /// In the order in which they leave.
    replies: VecDeque<Reply>,
    /// Bytes of the session's output that belong to one of them.
    in_replies: usize,
    busy_until: Instant,
    /// What the alarm has been asked for.
    waits_for: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Goes on until there is nothing to read and no reply is due.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.send_due(cx)? == Client::Gone {
                return Poll::Ready(Ok(()));
            }
            if self.session.out.len() > MOST_UNREAD {
                return Poll::Pending;
            }
            self.inbox.reserve(INBOX / 2);
            let read = ready!(pin!(self.client.read_buf(&mut self.inbox)).poll(cx))?;
            if read == 0 || self.take_messages(Instant::now())? == Client::Gone {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Sends what is due, as far as the client takes it, and has itself woken for the rest.
    fn send_due(&mut self, cx: &mut Context<'_>) -> io::Result<Client> {
        while let Some(first) = self.replies.front() {
            let now = Instant::now();
            if first.at > now {
                if self.waits_for != Some(first.at) {
                    self.waits_for = Some(first.at);
                    self.alarm.wake_at(first.at, cx.waker());
                }
                break;
            }
            if first.cut {
                return Ok(Client::Gone);
            }
            let due = self.replies.iter().take_while(|reply| reply.at <= now && !reply.cut);
            let due: usize = due.map(|reply| reply.length).sum();
            match pin!(self.client.write(&self.session.out[..due])).poll(cx)? {
                Poll::Pending => break,
                Poll::Ready(0) => return Ok(Client::Gone),
                Poll::Ready(sent) => self.sent(sent),
            }
        }
        Ok(Client::There)
    }

    fn sent(&mut self, mut bytes: usize) {
        self.session.out.advance(bytes);
        self.in_replies -= bytes;
        while let Some(first) = self.replies.front_mut() {
            if first.length > bytes {
                first.length -= bytes;
                break;
            }
            bytes -= first.length;
            self.replies.pop_front();
            if bytes == 0 {
                break;
            }
        }
    }

    /// Answers the messages that came at `arrival`.
    fn take_messages(&mut self, arrival: Instant) -> io::Result<Client> {
        loop {
            match self.framer.step(&self.inbox, |_| true) {
                Ok(Front::Message { tag: b'X', .. }) => return Ok(Client::Gone),
                Ok(Front::Message { tag, look }) => {
                    let body = message::body(&self.inbox[..look]);
                    if let Some(work) = self.session.message(tag, body, &self.shared) {
                        let at = self.shared.reply_at(arrival, work, &mut self.busy_until);
                        let at = self.replies.back().map_or(at, |last| last.at.max(at));
                        let length = self.session.out.len() - self.in_replies;
                        self.in_replies += length;
                        self.replies.push_back(Reply { at, length, cut: work.cut });
                    }
                    self.inbox.advance(look);
                }
                Ok(Front::Rest(length)) => self.inbox.advance(length),
                Ok(Front::Incomplete) => return Ok(Client::There),
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
    }
}
