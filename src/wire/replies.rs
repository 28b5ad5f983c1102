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
            b'E' => {
                self.seen.error = true;
                // A COPY that fails is over: the next Sync counts again.
                session.copy_in = false;
            }
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
        session.copy_in = false;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        model::{Fault, FaultKind, GateProfile},
        wire::statement::Content,
    };

    const ROUND_TRIP: Duration = Duration::from_millis(10);
    const COMMIT_WRITE: Duration = Duration::from_millis(400);
    const COMMIT_READ: Duration = Duration::from_millis(70);

    fn replies(now: Instant) -> Replies {
        let profile = GateProfile {
            round_trip_ms: ROUND_TRIP.as_secs_f64() * 1e3,
            commit_write_ms: COMMIT_WRITE.as_secs_f64() * 1e3,
            commit_read_ms: COMMIT_READ.as_secs_f64() * 1e3,
            ..GateProfile::default()
        };
        Replies { started: true, ..Replies::new(Delays::new(profile, 1), now) }
    }

    fn reply(tags: &[&str], status: u8) -> Vec<u8> {
        let mut out = BytesMut::new();
        for tag in tags {
            message::put_complete(&mut out, tag);
        }
        message::put_ready(&mut out, status);
        out.to_vec()
    }

    struct Flow {
        now: Instant,
        replies: Replies,
        session: Session,
        held: Held,
        faults: Faults,
        inbox: BytesMut,
    }

    impl Flow {
        fn new(faults: Vec<Fault>) -> Self {
            let now = Instant::now();
            let faults = Faults::new(faults);
            faults.begin(now);
            let (session, held) = (Session::default(), Held::default());
            Self { now, replies: replies(now), session, held, faults, inbox: BytesMut::new() }
        }

        /// One round trip that the server answers at once; what leaves, and how much later.
        fn trip(&mut self, sql: &str, reply: &[u8]) -> (Vec<u8>, Duration, bool) {
            self.now += Duration::from_secs(10);
            self.session.trips.push_back(Trip::new(self.now, Content::of(sql.as_bytes())));
            self.take(reply)
        }

        fn take(&mut self, reply: &[u8]) -> (Vec<u8>, Duration, bool) {
            let Self { now, replies, session, held, faults, inbox } = self;
            inbox.extend_from_slice(reply);
            replies.take(inbox, *now, session, faults, held).unwrap();
            let (mut bytes, mut at, mut cut) = (Vec::new(), *now, false);
            while let Some(leaves) = held.next_leaves() {
                at = leaves;
                match held.pop().unwrap() {
                    Parcel::Bytes(piece) => bytes.extend_from_slice(&piece),
                    Parcel::Cut => cut = true,
                }
            }
            assert_eq!(held.bytes(), held.begun_bytes);
            (bytes, at - *now, cut)
        }
    }

    #[test]
    fn a_commit_costs_by_what_its_transaction_did() {
        let mut flow = Flow::new(Vec::new());
        let mut delay = |sql, tags: &[&str], status| flow.trip(sql, &reply(tags, status)).1;
        assert_eq!(delay("begin", &["BEGIN"], b'T'), ROUND_TRIP);
        assert_eq!(delay("update t", &["UPDATE 0"], b'T'), ROUND_TRIP);
        assert_eq!(delay("commit", &["COMMIT"], b'I'), ROUND_TRIP + COMMIT_READ);
        delay("begin", &["BEGIN"], b'T');
        assert_eq!(delay("update t", &["UPDATE 10"], b'T'), ROUND_TRIP);
        assert_eq!(delay("commit", &["COMMIT"], b'I'), ROUND_TRIP + COMMIT_WRITE);
        delay("begin", &["BEGIN"], b'T');
        delay("insert", &["INSERT 0 1"], b'T');
        assert_eq!(delay("rollback to a", &["ROLLBACK"], b'T'), ROUND_TRIP);
        assert_eq!(delay("commit", &["COMMIT"], b'I'), ROUND_TRIP + COMMIT_WRITE);
        delay("begin", &["BEGIN"], b'T');
        delay("insert", &["INSERT 0 1"], b'T');
        assert_eq!(delay("rollback", &["ROLLBACK"], b'I'), ROUND_TRIP);
        assert_eq!(delay("select", &["SELECT 1"], b'I'), ROUND_TRIP);
        assert_eq!(delay("delete", &["DELETE 3"], b'I'), ROUND_TRIP + COMMIT_WRITE);
        let with = "with a as (insert into t select 1) select 1";
        assert_eq!(delay(with, &["SELECT 1"], b'I'), ROUND_TRIP + COMMIT_WRITE);
        assert_eq!(delay("commit", &["COMMIT"], b'I'), ROUND_TRIP, "no transaction was open");
        let all = ["BEGIN", "INSERT 0 1", "COMMIT"];
        assert_eq!(delay("begin;insert;commit", &all, b'I'), ROUND_TRIP + COMMIT_WRITE);
    }

    #[test]
    fn a_conflict_found_by_commit_takes_as_long_as_a_commit() {
        let mut flow = Flow::new(Vec::new());
        flow.trip("begin; update", &reply(&["BEGIN", "UPDATE 1"], b'T'));
        let mut conflict = message::error("ERROR", "40001", "conflict").to_vec();
        conflict.extend(reply(&[], b'I'));
        let (bytes, delay, _) = flow.trip("commit", &conflict);
        assert_eq!((bytes, delay), (conflict, ROUND_TRIP + COMMIT_WRITE));
    }

    #[test]
    fn a_reply_is_whole_wherever_it_is_cut_and_waits_for_its_end() {
        let stream = [reply(&["SELECT 1"], b'I'), reply(&["SELECT 2"], b'I')].concat();
        for cut in 0..=stream.len() {
            let mut flow = Flow::new(Vec::new());
            for _ in 0..2 {
                flow.session.trips.push_back(Trip::new(flow.now, Content::of(b"select")));
            }
            let (mut bytes, _, _) = flow.take(&stream[..cut]);
            let ends = [0, stream.len() / 2, stream.len()];
            assert!(ends.contains(&bytes.len()), "a part left early: cut at {cut}");
            bytes.extend(flow.take(&stream[cut..]).0);
            assert_eq!(bytes, stream);
        }
    }

    #[test]
    fn log_in_copy_and_notices_do_not_wait() {
        let mut flow = Flow::new(Vec::new());
        flow.replies.started = false;
        flow.session.trips.push_back(Trip::new(flow.now, Content::default()));
        let ask = b"R\0\0\0\x08\0\0\0\x03";
        assert_eq!(flow.take(ask).0, ask);
        flow.replies.started = true;
        let copy = b"G\0\0\0\x07\0\0\0";
        let sync = Trip { by_sync: true, ..Trip::new(flow.now, Content::of(b"copy")) };
        flow.session.trips = VecDeque::from([sync]);
        assert_eq!(flow.take(copy).0, copy);
        assert!(flow.session.copy_in && flow.session.trips.is_empty());
        let notice = b"N\0\0\0\x05\0";
        assert_eq!(flow.take(notice).0, notice);
    }

    #[test]
    fn a_failed_commit_is_answered_in_the_rollbacks_place() {
        let mut flow = Flow::new(Vec::new());
        flow.trip("begin; update", &reply(&["BEGIN", "UPDATE 1"], b'T'));
        flow.now += Duration::from_secs(10);
        let own = Trip { own: true, ..Trip::new(flow.now, Content::default()) };
        let fails_with = Some("40001".to_owned());
        let failing = Trip { fails_with, ..Trip::new(flow.now, Content::of(b"commit")) };
        flow.session.trips = VecDeque::from([own, failing]);
        let stream = [&b"1\0\0\0\x04"[..], &reply(&[], b'T'), &reply(&["ROLLBACK"], b'I')].concat();
        let (bytes, delay, _) = flow.take(&stream);
        let text = String::from_utf8_lossy(&bytes);
        assert!(bytes.starts_with(b"1\0\0\0\x04E") && text.contains("C40001"), "{text:?}");
        assert!(bytes.ends_with(&reply(&[], b'I')) && !text.contains("ROLLBACK"));
        assert_eq!(bytes.iter().filter(|&&b| b == b'Z').count(), 1);
        assert_eq!(delay, ROUND_TRIP + COMMIT_WRITE);
        assert!(!flow.session.written);
    }

    #[test]
    fn a_cut_falls_on_writing_commits_and_takes_the_reply_along() {
        let kind = FaultKind::CutAfterCommit { every: 1 };
        let mut flow = Flow::new(vec![Fault { after_s: 0.0, for_s: None, kind }]);
        flow.trip("begin", &reply(&["BEGIN"], b'T'));
        assert!(!flow.trip("commit", &reply(&["COMMIT"], b'I')).2);
        flow.trip("begin; insert", &reply(&["BEGIN", "INSERT 0 1"], b'T'));
        let (bytes, delay, cut) = flow.trip("commit", &reply(&["COMMIT"], b'I'));
        assert!(cut && bytes.is_empty());
        assert_eq!(delay, ROUND_TRIP + COMMIT_WRITE);
    }
}
