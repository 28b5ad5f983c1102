//! Server to client: where round trips end, what they cost, and when their replies leave.

use std::{collections::VecDeque, time::Instant};

use bytes::{Buf, Bytes, BytesMut};

use super::{
    delay::{Delays, SlowedServer},
    fault::Faults,
    message::{self, Framer, Front, Malformed},
    statement::Statement,
    trip::{Fate, Session, Trip},
};

/// A reply that grows beyond this leaves in parts, each a round trip after it came.
const HOLD_LIMIT: usize = 256 * 1024;

/// What leaves at its time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parcel {
    Bytes(Bytes),
    /// The connection to the client ends here.
    Cut,
}

/// Replies on their way back.
#[derive(Default)]
pub(super) struct Held {
    /// In the order in which they leave.
    parcels: VecDeque<(Instant, Parcel)>,
    /// Of the reply that has not come to its end.
    begun: Vec<Bytes>,
    begun_bytes: usize,
    bytes: usize,
}

impl Held {
    /// When the next parcel leaves.
    pub(super) fn next_leaves(&self) -> Option<Instant> {
        self.parcels.front().map(|(at, _)| *at)
    }

    pub(super) fn pop(&mut self) -> Option<Parcel> {
        let (_, parcel) = self.parcels.pop_front()?;
        if let Parcel::Bytes(bytes) = &parcel {
            self.bytes -= bytes.len();
        }
        Some(parcel)
    }

    /// Bytes held in all.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.begun_bytes += bytes.len();
            self.begun.push(bytes);
        }
    }

    fn leave(&mut self, at: Instant) {
        self.begun_bytes = 0;
        self.parcels.extend(self.begun.drain(..).map(|bytes| (at, Parcel::Bytes(bytes))));
    }

    fn cut(&mut self, at: Instant) {
        self.bytes -= self.begun_bytes;
        self.begun_bytes = 0;
        self.begun.clear();
        self.parcels.push_back((at, Parcel::Cut));
    }
}

/// Reads what a server sends and holds it until it leaves.
pub(super) struct Replies {
    framer: Framer,
    delays: Delays,
    server: SlowedServer,
    /// The first `ReadyForQuery` has come: log-in is over.
    started: bool,
    /// Transaction status at the last `ReadyForQuery`.
    status: u8,
    /// What the round trip under way has shown.
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    error: bool,
    /// A COMMIT was carried out, and whether its transaction had written.
    committed: Option<bool>,
    begun: bool,
    copied_in: bool,
    /// A part of the reply is needed before its end.
    wanted_now: bool,
    cut: bool,
}

impl Replies {
    pub(super) fn new(delays: Delays, now: Instant) -> Self {
        Self {
            framer: Framer::default(),
            delays,
            server: SlowedServer::new(now),
            started: false,
            status: b'I',
            seen: Seen::default(),
        }
    }

    /// Moves every message that is complete from `inbox` to `held`; how many round trips of the
    /// client's came to their end.
    ///
    /// # Errors
    /// When the bytes are not the protocol's.
    pub(super) fn take(
        &mut self,
        inbox: &mut BytesMut,
        now: Instant,
        session: &mut Session,
        faults: &Faults,
        held: &mut Held,
    ) -> Result<u64, Malformed> {
        let mut passed = 0;
        let mut ended = 0;
        loop {
            let (tag, length) = match self.framer.step(&inbox[passed..], is_wanted)? {
                Front::Incomplete => break,
                Front::Rest(length) => (0, length),
                Front::Message { tag, look } => (tag, look),
            };
            let body = message::body(&inbox[passed..passed + length]);
            if tag == b'Z' {
                let status = body.first().copied().unwrap_or(b'I');
                held.add(inbox.split_to(passed).freeze());
                passed = 0;
                let ready = inbox.split_to(length).freeze();
                ended += u64::from(self.ready(status, ready, now, session, held));
                continue;
            }
            match self.message(tag, body, now, session, faults) {
                Fate::Pass => passed += length,
                fate => {
                    held.add(inbox.split_to(passed).freeze());
                    passed = 0;
                    inbox.advance(length);
                    if let Fate::Replace(bytes) = fate {
                        held.add(bytes);
                    }
                }
            }
        }
        held.add(inbox.split_to(passed).freeze());
        if self.is_wanted_now(session, held) {
            self.release(now, held);
        }
        Ok(ended)
    }

    /// Lets go what there is of a reply that will not come to its end.
    pub(super) fn release(&mut self, now: Instant, held: &mut Held) {
        let round_trip = self.delays.round_trip();
        let at = self.server.part(now, round_trip);
        held.leave(at);
    }

    /// Log-in, COPY, a Flush and what the server says unasked cannot wait for the reply's end, and
    /// a reply of any length must not fill the memory.
    fn is_wanted_now(&self, session: &Session, held: &Held) -> bool {
        held.begun_bytes > 0
            && (!self.started
                || self.seen.wanted_now
                || session.flushed
                || session.trips.is_empty()
                || held.begun_bytes > HOLD_LIMIT)
    }

    fn message(
        &mut self,
        tag: u8,
        body: &[u8],
        now: Instant,
        session: &mut Session,
        faults: &Faults,
    ) -> Fate {
        match tag {
            b'C' => return self.complete(message::text(body).0, now, session, faults),
            b'E' => self.seen.error = true,
            b'G' => {
                self.seen.copied_in = true;
                self.seen.wanted_now = true;
                session.copy_in = true;
                pass_over_sync(session);
            }
            b'H' | b'W' => self.seen.wanted_now = true,
            _ => {}
        }
        Fate::Pass
    }

    /// A statement came to its end: its tag says what it did.
    fn complete(
        &mut self,
        tag: &[u8],
        now: Instant,
        session: &mut Session,
        faults: &Faults,
    ) -> Fate {
        let trip = session.trips.front();
        if let Some(sqlstate) = trip.and_then(|trip| trip.fails_with.as_deref()) {
            if self.seen.error {
                return Fate::Drop;
            }
            let text = "COMMIT failed: a fault of the gate, the transaction was rolled back";
            return Fate::Replace(message::error("ERROR", sqlstate, text));
        }
        let has = |statement| trip.is_some_and(|trip| trip.content.has(statement));
        match tag {
            b"BEGIN" | b"START TRANSACTION" => self.seen.begun = true,
            b"COMMIT" => {
                let written = std::mem::take(&mut session.written);
                if written || self.seen.begun || self.status != b'I' {
                    self.seen.committed = Some(written);
                    self.seen.cut = self.seen.cut || (written && faults.cut(now));
                }
            }
            // A return to a savepoint has the same tag.
            b"ROLLBACK" if has(Statement::Rollback) || has(Statement::Commit) => {
                session.written = false;
            }
            _ if has_written(tag, self.seen.copied_in, has(Statement::WritingWith)) => {
                session.written = true;
            }
            _ => {}
        }
        Fate::Pass
    }

    /// A round trip came to its end; whether it was the client's.
    fn ready(
        &mut self,
        status: u8,
        message: Bytes,
        now: Instant,
        session: &mut Session,
        held: &mut Held,
    ) -> bool {
        let trip = session.trips.pop_front().unwrap_or_else(|| Trip::new(now, Default::default()));
        let seen = std::mem::take(&mut self.seen);
        if trip.own {
            self.seen.error = seen.error;
            self.status = status;
            return false;
        }
        let mut work = std::time::Duration::ZERO;
        if let Some(written) = self.commits(&trip, &seen, status, session.written) {
            work += self.delays.commit(written);
        }
        if trip.content.has_other_than_commit() {
            work += self.delays.statement();
        }
        let round_trip = self.delays.round_trip();
        let at = self.server.complete(trip.arrival, now, work, round_trip);
        held.add(message);
        if seen.cut {
            held.cut(at);
        } else {
            held.leave(at);
        }
        session.flushed = false;
        session.written = session.written && status != b'I';
        self.status = status;
        self.started = true;
        true
    }

    /// Whether the round trip has the cost of a COMMIT, and then whether of a writing one.
    fn commits(&self, trip: &Trip, seen: &Seen, status: u8, written: bool) -> Option<bool> {
        if trip.fails_with.is_some() {
            Some(true)
        } else if seen.committed.is_some() {
            seen.committed
        } else if seen.error {
            // A conflict that COMMIT finds takes as long as a COMMIT.
            (trip.content.is_only_commit() && self.status == b'T').then_some(written)
        } else {
            // A statement outside of a transaction is one of its own.
            (status == b'I' && written).then_some(true)
        }
    }
}

/// The server passes over the Sync that was sent along with a COPY.
fn pass_over_sync(session: &mut Session) {
    if session.trips.front().is_some_and(|trip| trip.by_sync) {
        session.trips.pop_front();
    }
}

/// Whether a statement with this tag has changed rows or tables.
fn has_written(tag: &[u8], copied_in: bool, writing_with: bool) -> bool {
    let words: Vec<&[u8]> = tag.split(|&b| b == b' ').collect();
    let rows = words.last().copied().unwrap_or_default();
    let some_rows = rows.iter().any(|&b| b != b'0') && rows.iter().all(u8::is_ascii_digit);
    match words.first().copied().unwrap_or_default() {
        b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" => some_rows,
        b"COPY" => copied_in && some_rows,
        b"SELECT" => writing_with,
        b"CREATE" | b"DROP" | b"ALTER" | b"TRUNCATE" => true,
        _ => false,
    }
}

/// Messages whose bodies matter.
const fn is_wanted(tag: u8) -> bool {
    matches!(tag, b'Z' | b'C')
}
