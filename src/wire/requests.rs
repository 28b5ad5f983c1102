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
