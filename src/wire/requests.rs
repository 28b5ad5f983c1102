//! Client to server: where round trips begin, and what is in them.

use std::{collections::HashMap, time::Instant};

use bytes::{Buf, Bytes, BytesMut};

use super::{
    fault::Faults,
    message::{self, Framer, Front, Malformed},
    outbox::Outbox,
    statement::{Content, Statement},
    trip::{Fate, Session, Trip},
};

/// Reads what a client sends and hands it on.
#[derive(Default)]
pub(super) struct Requests {
    framer: Framer,
    /// What has been asked for since the last Sync.
    batch: Content,
    /// Prepared statements by name.
    statements: HashMap<Box<[u8]>, Content>,
    portals: HashMap<Box<[u8]>, Content>,
    /// The rest of a failed batch, up to its Sync, does not reach the server.
    dropping: bool,
}

impl Requests {
    /// Moves every message that is complete from `inbox` to `out`.
    ///
    /// # Errors
    /// When the bytes are not the protocol's.
    pub(super) fn take(
        &mut self,
        inbox: &mut BytesMut,
        now: Instant,
        session: &mut Session,
        faults: &Faults,
        out: &mut Outbox,
    ) -> Result<(), Malformed> {
        let mut passed = 0;
        loop {
            let (length, fate) = match self.framer.step(&inbox[passed..], is_wanted)? {
                Front::Incomplete => break,
                Front::Rest(length) if self.dropping => (length, Fate::Drop),
                Front::Rest(length) => (length, Fate::Pass),
                Front::Message { tag, look } => {
                    let body = message::body(&inbox[passed..passed + look]);
                    (look, self.message(tag, body, now, session, faults))
                }
            };
            if fate == Fate::Pass {
                passed += length;
                continue;
            }
            out.push(inbox.split_to(passed).freeze());
            passed = 0;
            inbox.advance(length);
            if let Fate::Replace(bytes) = fate {
                out.push(bytes);
            }
        }
        out.push(inbox.split_to(passed).freeze());
        Ok(())
    }

    fn message(
        &mut self,
        tag: u8,
        body: &[u8],
        now: Instant,
        session: &mut Session,
        faults: &Faults,
    ) -> Fate {
        if self.dropping && tag != b'X' {
            self.dropping = tag != b'S';
            return Fate::Drop;
        }
        match tag {
            b'Q' => return self.query(body, now, session, faults),
            b'P' => {
                let (name, rest) = message::text(body);
                self.statements.insert(name.into(), Content::of(message::text(rest).0));
            }
            b'B' => {
                let (portal, rest) = message::text(body);
                let statement = self.statements.get(message::text(rest).0);
                self.portals.insert(portal.into(), statement.copied().unwrap_or_default());
            }
            b'E' => return self.execute(body, now, session, faults),
            b'C' => self.close(body),
            b'S' if !session.copy_in => {
                self.forget_portals(session);
                let trip = Trip::new(now, std::mem::take(&mut self.batch));
                session.trips.push_back(Trip { by_sync: true, ..trip });
            }
            b'F' => session.trips.push_back(Trip::new(now, other())),
            b'H' => session.flushed = true,
            b'c' | b'f' => session.copy_in = false,
            _ => {}
        }
        Fate::Pass
    }

    fn query(&self, body: &[u8], now: Instant, session: &mut Session, faults: &Faults) -> Fate {
        let content = Content::of(message::text(body).0);
        if content.has(Statement::Begin) {
            faults.begin(now);
        }
        let mut trip = Trip::new(now, content);
        let mut fate = Fate::Pass;
        if content.is_only_commit() && session.may_have_written(self.batch) {
            trip.fails_with = faults.fail(now);
            if trip.fails_with.is_some() {
                fate = Fate::Replace(message::query("ROLLBACK"));
            }
        }
        session.trips.push_back(trip);
        fate
    }

    fn execute(
        &mut self,
        body: &[u8],
        now: Instant,
        session: &mut Session,
        faults: &Faults,
    ) -> Fate {
        let portal = message::text(body).0;
        let content = self.portals.get(portal).copied().unwrap_or_else(other);
        if content.has(Statement::Begin) {
            faults.begin(now);
        }
        if content.is_only_commit()
            && session.may_have_written(self.batch)
            && let Some(sqlstate) = faults.fail(now)
        {
            return self.fail_batch(now, session, sqlstate);
        }
        self.batch.join(content);
        Fate::Pass
    }

    /// Ends the batch before its COMMIT and rolls back by a simple query: after the error that the
    /// client will see, the server would pass over the rest up to the Sync, and so does the gate.
    fn fail_batch(&mut self, now: Instant, session: &mut Session, sqlstate: String) -> Fate {
        let before = Trip::new(now, std::mem::take(&mut self.batch));
        session.trips.push_back(Trip { own: true, ..before });
        let mut content = Content::default();
        content.add(Statement::Commit);
        let failing = Trip::new(now, content);
        session.trips.push_back(Trip { fails_with: Some(sqlstate), ..failing });
        self.dropping = true;
        let mut bytes = BytesMut::from(&message::sync()[..]);
        bytes.extend_from_slice(&message::query("ROLLBACK"));
        Fate::Replace(bytes.freeze())
    }

    fn close(&mut self, body: &[u8]) {
        let Some((kind, name)) = body.split_first() else { return };
        let name = message::text(name).0;
        if *kind == b'S' {
            self.statements.remove(name);
        } else {
            self.portals.remove(name);
        }
    }

    /// Named portals end with their transaction, which the client need not say: without this they
    /// would add up.
    fn forget_portals(&mut self, session: &Session) {
        const MANY: usize = 1_000;
        if self.portals.len() > MANY && session.trips.is_empty() {
            self.portals.retain(|name, _| name.is_empty());
        }
    }
}

/// A round trip of which nothing more is known.
fn other() -> Content {
    let mut content = Content::default();
    content.add(Statement::Other);
    content
}

/// Messages whose bodies matter.
const fn is_wanted(tag: u8) -> bool {
    matches!(tag, b'Q' | b'P' | b'B' | b'E' | b'C')
}

/// A startup packet (or what follows a granted encryption request), as it is.
pub(super) fn start(packet: Bytes, now: Instant, session: &mut Session, out: &mut Outbox) {
    session.trips.push_back(Trip::new(now, Content::default()));
    out.push(packet);
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;

    use super::*;
    use crate::model::{Fault, FaultKind};

    fn message(tag: u8, parts: &[&str]) -> Vec<u8> {
        let mut out = BytesMut::new();
        message::put(&mut out, tag, |out| {
            for part in parts {
                message::put_text(out, part);
            }
            out.put_u32(0);
        });
        out.to_vec()
    }

    /// What the gate sends on for a stream that arrives in two pieces, and its round trips.
    fn forwarded(stream: &[u8], cut: usize, faults: &Faults) -> (Vec<u8>, Session) {
        let mut requests = Requests::default();
        let mut session = Session::default();
        let mut out = Outbox::default();
        let mut inbox = BytesMut::new();
        for piece in [&stream[..cut], &stream[cut..]] {
            inbox.extend_from_slice(piece);
            requests.take(&mut inbox, Instant::now(), &mut session, faults, &mut out).unwrap();
        }
        assert!(inbox.is_empty(), "cut at {cut}");
        (out.into_bytes(), session)
    }

    fn extended(sql: &str) -> Vec<u8> {
        let sync = message::sync();
        [message(b'P', &["", sql]), message(b'B', &["", ""]), message(b'E', &[""]), sync.to_vec()]
            .concat()
    }

    #[test]
    fn bytes_pass_unchanged_and_round_trips_are_seen_wherever_the_stream_is_cut() {
        let stream = [
            &message::query("BEGIN")[..],
            &extended("UPDATE t SET a = 1"),
            &message(b'P', &["c", "COMMIT"]),
            &message(b'B', &["p", "c"]),
            &message(b'E', &["p"]),
            &message::sync(),
            &message(b'F', &["function call"]),
        ]
        .concat();
        for cut in 0..=stream.len() {
            let (out, session) = forwarded(&stream, cut, &Faults::new(Vec::new()));
            assert_eq!(out, stream, "cut at {cut}");
            let contents: Vec<_> = session.trips.iter().map(|trip| trip.content).collect();
            assert_eq!(
                contents,
                [Content::of(b"begin"), Content::of(b"update"), Content::of(b"commit"), other(),]
            );
        }
    }

    fn failing_commits() -> Faults {
        let kind = FaultKind::FailCommit { sqlstate: "40001".into(), every: 1 };
        Faults::new(vec![Fault { after_s: 0.0, for_s: None, kind }])
    }

    #[test]
    fn a_failing_commit_becomes_a_rollback_wherever_the_stream_is_cut() {
        let rollback = message::query("ROLLBACK");
        let begin = message::query("BEGIN; INSERT INTO t VALUES (1)");
        let simple = [&begin[..], &message::query("commit /* now */ ;")].concat();
        let batch = extended("END");
        let with_rest = [&begin[..], &batch, &message::query("SELECT 1")].concat();
        for cut in 0..=simple.len() {
            let (out, session) = forwarded(&simple, cut, &failing_commits());
            assert_eq!(out, [&begin[..], &rollback].concat(), "cut at {cut}");
            assert_eq!(session.trips[1].fails_with.as_deref(), Some("40001"));
        }
        let before_execute = &batch[..batch.len() - message(b'E', &[""]).len() - 5];
        for cut in 0..=with_rest.len() {
            let (out, session) = forwarded(&with_rest, cut, &failing_commits());
            let expected = [
                &begin[..],
                before_execute,
                &message::sync(),
                &rollback,
                &message::query("SELECT 1"),
            ];
            assert_eq!(out, expected.concat(), "cut at {cut}");
            let own: Vec<_> = session.trips.iter().map(|trip| trip.own).collect();
            assert_eq!(own, [false, true, false, false]);
        }
    }

    #[test]
    fn a_commit_that_has_only_read_does_not_fail() {
        let stream =
            [message::query("BEGIN"), message::query("SELECT 1"), message::query("COMMIT")]
                .concat();
        let (out, _) = forwarded(&stream, 0, &failing_commits());
        assert_eq!(out, stream);
    }
}
