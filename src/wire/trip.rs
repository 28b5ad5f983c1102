//! What the two directions of a connection know of each other.

use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;

use super::statement::{Content, Statement};

/// One round trip: from the client's Sync, Query or function call to the server's
/// `ReadyForQuery`.
#[derive(Debug)]
pub(super) struct Trip {
    pub(super) arrival: Instant,
    pub(super) content: Content,
    /// Whether a Sync asked for it: the server passes over one that comes during a COPY.
    pub(super) by_sync: bool,
    /// The gate has put a ROLLBACK in the place of the client's COMMIT and answers with this
    /// SQLSTATE.
    pub(super) fails_with: Option<String>,
    /// The gate itself asked for it: its `ReadyForQuery` is not the client's.
    pub(super) own: bool,
}

impl Trip {
    pub(super) const fn new(arrival: Instant, content: Content) -> Self {
        Self { arrival, content, by_sync: false, fails_with: None, own: false }
    }
}

/// The state that requests and replies of one connection share.
#[derive(Default)]
pub(super) struct Session {
    /// Under way, oldest first.
    pub(super) trips: VecDeque<Trip>,
    /// The client sends data of a COPY.
    pub(super) copy_in: bool,
    /// The client has asked for what there is of the reply without a Sync.
    pub(super) flushed: bool,
    /// The open transaction has changed rows, as far as the server has said.
    pub(super) written: bool,
}

impl Session {
    /// Whether the transaction that a COMMIT arriving now would end has written: what the server
    /// has said, and of requests whose replies are still out, what their texts say.
    pub(super) fn may_have_written(&self, batch: Content) -> bool {
        if batch.may_write() {
            return true;
        }
        for trip in self.trips.iter().rev() {
            let ends = trip.content.has(Statement::Commit) || trip.content.has(Statement::Rollback);
            if ends || trip.content.may_write() {
                return !ends;
            }
        }
        self.written
    }
}

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Drop,
    Replace(Bytes),
}
