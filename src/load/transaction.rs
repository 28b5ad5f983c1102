//! One transaction from its start to its end: attempts, back-off, new connections, and the look-up
//! of an outcome that nobody told.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use super::{
    clock::{self, MS_NS},
    course::until,
    failure::{self, Failure, Meaning},
    link::OpenError,
    local::Local,
    opening::Patience,
    schedule::Arrival,
    slot::Slot,
    tally::{Ended, Outcome},
};
use crate::{
    model::{Class, RetryPolicy},
    target::{ReadLag, Session},
    workload::{AttemptError, Done, Reached, Workload},
};

/// How long the outcome of a COMMIT is looked for when the transaction is out of time already.
const LOOK_UP_GRACE_NS: u64 = 5_000 * MS_NS;

/// A connection in a transaction's hands.
pub(super) trait Holds {
    type Session: Session;

    fn session(&mut self) -> &mut Self::Session;
}

/// Where a transaction's connections come from.
pub(super) trait Opener {
    type Held: Holds;

    /// A connection that is ready for transactions.
    fn open(&self) -> impl Future<Output = Result<Self::Held, OpenError>>;
}

/// An arrival that has its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) arrival: Arrival,
    /// How long it waited for the connection.
    pub(super) connection_wait_ns: u64,
    /// How late the generator was before it asked for the connection.
    pub(super) schedule_lag_ns: u64,
    /// Since when both were there.
    pub(super) at: u64,
}

impl Taken {
    /// By a connection that was free from `free` on.
    pub(super) fn by_claim(arrival: Arrival, free: u64) -> Self {
        Self {
            arrival,
            connection_wait_ns: free.saturating_sub(arrival.intended),
            schedule_lag_ns: 0,
            at: arrival.intended.max(free),
        }
    }
}

/// Runs the transaction of an arrival on the connection of a `worker`, and records it. The
/// connection is replaced or gone afterwards where its state is in doubt. Gives the moment at
/// which the transaction ended.
pub(super) async fn run<W: Workload, O: Opener>(
    local: &Local<W>,
    opener: &O,
    worker: usize,
    held: &mut Option<O::Held>,
    taken: Taken,
) -> u64 {
    let slot = &local.slots[worker];
    let workload = &local.shared.workload;
    let measured = taken.arrival.measured;
    let transaction = workload.draw(taken.arrival.ordinal);
    let class = workload.class(&transaction);
    let begun = clock::now();
    let timeout = local.shared.order.retry.transaction_timeout_ms.saturating_mul(MS_NS);
    slot.set_deadline(begun.saturating_add(timeout));
    if let Some(held) = held {
        // What was noted before is not this transaction's.
        held.session().take_first_sent();
        held.session().take_read_lag();
    }
    let mut run = Run {
        local,
        opener,
        slot,
        transaction: &transaction,
        class,
        measured,
        attempts: 0,
        start: None,
        read_lag: ReadLag::default(),
        doubt: false,
        ended: false,
    };
    let outcome = run.run_to_end(held).await;
    let done = clock::now();
    slot.clear_deadline();
    run.settle(outcome);
    let start = run.start.unwrap_or(begun);
    let ended = Ended {
        class,
        outcome,
        attempts: run.attempts,
        worker,
        connection_wait_ns: taken.connection_wait_ns,
        schedule_lag_ns: taken.schedule_lag_ns + start.saturating_sub(taken.at),
        service_ns: done.saturating_sub(start),
        read_lag: run.read_lag,
    };
    local.end(&ended, measured, done);
    done
}

/// Opens a connection in place of a lost one, trying again and again until `until_ns`.
pub(super) async fn reopen<W: Workload, O: Opener>(
    local: &Local<W>,
    opener: &O,
    until_ns: u64,
    measured: impl Fn() -> bool,
) -> Option<O::Held> {
    let mut patience = Patience::new();
    while clock::now() < until_ns {
        let Ok(opened) = tokio::time::timeout(until(until_ns), opener.open()).await else { break };
        match opened {
            Ok(held) => return Some(held),
            Err(error) => {
                local.count_error(error.name(), measured());
                local.warn(|| error.to_string());
            }
        }
        patience.wait(|bound| local.jitter(bound), until_ns).await;
    }
    None
}

struct Run<'a, W: Workload, O: Opener> {
    local: &'a Local<W>,
    opener: &'a O,
    slot: &'a Slot,
    transaction: &'a W::Transaction,
    class: Class,
    measured: bool,
    attempts: u32,
    /// When the first byte was handed to the system.
    start: Option<u64>,
    /// How long replies lay unread.
    read_lag: ReadLag,
    /// A COMMIT was sent whose outcome is not known, and no look-up has found it.
    doubt: bool,
    ended: bool,
}

/// An attempt that did not end as it should.
struct Failed {
    failure: Failure,
    reached: Reached,
}

/// What a look-up tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Committed,
    Nothing,
    NoAnswer,
}

/// How to go on after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The whole transaction again.
    Again,
    /// Look for the receipt first.
    LookUp,
    /// It has failed.
    Fail,
}

impl<W: Workload, O: Opener> Run<'_, W, O> {
    async fn run_to_end(&mut self, held: &mut Option<O::Held>) -> Outcome {
        loop {
            if held.is_none() && !self.reopen(held).await {
                self.count(failure::TIMEOUT);
                return self.without_connection();
            }
            self.attempts += 1;
            let outcome = match self.attempt(held).await {
                Ok(Done::Committed) => Some(Outcome::Succeeded),
                Ok(Done::Rejected) if self.doubt => {
                    self.look_up_last(held, Outcome::Rejected).await
                }
                Ok(Done::Rejected) => Some(Outcome::Rejected),
                Err(failed) => self.after(&failed, held).await,
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// One attempt. A connection that cannot or must not be used again is gone afterwards.
    async fn attempt(&mut self, held: &mut Option<O::Held>) -> Result<Done, Failed> {
        let workload = &self.local.shared.workload;
        let Some(session) = held.as_mut().map(Holds::session) else {
            return Err(Failed { failure: Failure::lost(), reached: Reached::BeforeCommit });
        };
        let work = workload.attempt(session, self.transaction);
        let result = match unless(|| self.slot.is_late(), work).await {
            Some(Ok(done)) => Ok(done),
            Some(Err(AttemptError { reached, error })) => {
                Err(Failed { failure: Failure::read(&error), reached })
            }
            None => {
                let reached =
                    if session.commit_sent() { Reached::CommitSent } else { Reached::BeforeCommit };
                Err(Failed { failure: Failure::lost(), reached })
            }
        };
        self.start = self.start.or(session.take_first_sent());
        self.read_lag.add(session.take_read_lag());
        let unavailable =
            matches!(&result, Err(failed) if failed.failure.meaning == Meaning::Unavailable);
        if unavailable || !session.is_usable() || session.in_transaction() {
            *held = None;
        }
        result
    }

    /// Goes on after a failed attempt: the outcome, or `None` for another attempt.
    async fn after(&mut self, failed: &Failed, held: &mut Option<O::Held>) -> Option<Outcome> {
        let late = self.slot.is_late();
        self.count(if late { failure::TIMEOUT } else { &failed.failure.name });
        let policy = &self.local.shared.order.retry;
        let state = State {
            late,
            is_write: self.class.is_write(),
            doubt: self.doubt,
            attempts_left: self.attempts < policy.max_attempts,
        };
        match state.next(failed) {
            Next::Fail => return self.fail(held).await,
            Next::LookUp => {
                self.doubt = true;
                if late {
                    self.extend();
                    return self.look_up_last(held, Outcome::Unknown).await;
                }
                match self.look_up(held).await {
                    Found::Committed => return Some(Outcome::Succeeded),
                    Found::NoAnswer => return Some(Outcome::Unknown),
                    Found::Nothing if !state.attempts_left => return self.fail(held).await,
                    Found::Nothing => {}
                }
            }
            Next::Again => {}
        }
        self.back_off().await;
        None
    }

    /// The transaction has failed; if an earlier COMMIT of it is in doubt, that one may still
    /// have been carried out.
    async fn fail(&mut self, held: &mut Option<O::Held>) -> Option<Outcome> {
        if self.doubt {
            if self.slot.is_late() {
                self.extend();
            }
            return self.look_up_last(held, Outcome::Failed).await;
        }
        Some(Outcome::Failed)
    }

    /// A last look for the receipt: what it tells, or else `otherwise`.
    async fn look_up_last(
        &mut self,
        held: &mut Option<O::Held>,
        otherwise: Outcome,
    ) -> Option<Outcome> {
        Some(match self.look_up(held).await {
            Found::Committed => Outcome::Succeeded,
            Found::Nothing => otherwise,
            Found::NoAnswer => Outcome::Unknown,
        })
    }

    /// Looks for the transaction's receipt, on a new connection where the old one is gone, until
    /// there is an answer or no time is left.
    async fn look_up(&self, held: &mut Option<O::Held>) -> Found {
        loop {
            if held.is_none() && !self.reopen(held).await {
                return Found::NoAnswer;
            }
            let Some(session) = held.as_mut().map(Holds::session) else { return Found::NoAnswer };
            let work = self.local.shared.workload.look_up(session, self.transaction);
            match unless(|| self.slot.is_late(), work).await {
                Some(Ok(true)) => return Found::Committed,
                Some(Ok(false)) => return Found::Nothing,
                Some(Err(error)) => self.count(&Failure::read(&error).name),
                None => self.count(failure::CONNECTION_LOST),
            }
            *held = None;
            if self.slot.is_late() {
                return Found::NoAnswer;
            }
            let wait = Duration::from_nanos(Patience::FIRST_NS);
            tokio::time::sleep(wait.min(until(self.slot.deadline()))).await;
        }
    }

    async fn reopen(&self, held: &mut Option<O::Held>) -> bool {
        *held = reopen(self.local, self.opener, self.slot.deadline(), || self.measured).await;
        held.is_some()
    }

    /// The outcome of a transaction for which no connection could be had in time.
    const fn without_connection(&self) -> Outcome {
        if self.doubt { Outcome::Unknown } else { Outcome::Failed }
    }

    /// Waits before the next attempt: exponential, full jitter.
    async fn back_off(&self) {
        let bound = back_off_bound(&self.local.shared.order.retry, self.attempts);
        let wait = Duration::from_nanos(self.local.jitter(bound));
        tokio::time::sleep(wait.min(until(self.slot.deadline()))).await;
    }

    /// Gives the look-up its time.
    fn extend(&self) {
        self.slot.set_deadline(clock::now().saturating_add(LOOK_UP_GRACE_NS));
    }

    fn count(&self, name: &str) {
        self.local.count_error(name, self.measured);
    }

    /// Tells workload and ledger how the transaction ended.
    fn settle(&mut self, outcome: Outcome) {
        self.ended = true;
        match outcome {
            Outcome::Succeeded => {
                self.local.shared.workload.committed(self.transaction);
                self.local.acknowledge(self.class);
            }
            // A COMMIT that no look-up has found may still be carried out.
            Outcome::Unknown => self.unresolved(),
            Outcome::Failed | Outcome::Rejected if self.doubt => self.unresolved(),
            Outcome::Failed | Outcome::Rejected => {}
        }
    }

    fn unresolved(&self) {
        if self.class.is_write() {
            self.local.unresolved();
        }
    }
}

impl<W: Workload, O: Opener> Drop for Run<'_, W, O> {
    /// Given up in the middle, at the drain's limit: its COMMIT may be on its way.
    fn drop(&mut self) {
        if !self.ended && self.attempts > 0 {
            self.unresolved();
        }
    }
}

/// Runs work to its end, or gives it up when `late` says so (whoever makes it so wakes the task).
async fn unless<T>(late: impl Fn() -> bool, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(
        |context| {
            if late() { Poll::Ready(None) } else { work.as_mut().poll(context).map(Some) }
        },
    )
    .await
}

/// The upper bound of the wait after the `attempts`th attempt, in nanoseconds.
fn back_off_bound(policy: &RetryPolicy, attempts: u32) -> u64 {
    let doublings = i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
    let ms = (policy.base_ms * 2f64.powi(doublings)).min(policy.cap_ms).max(0.0);
    clock::from_seconds(ms / 1e3)
}

/// What decides how to go on.
#[derive(Clone, Copy, Debug)]
struct State {
    late: bool,
    is_write: bool,
    doubt: bool,
    attempts_left: bool,
}

impl State {
    fn next(self, failed: &Failed) -> Next {
        let told = failed.failure.meaning != Meaning::Unavailable;
        let commit_untold = self.is_write && failed.reached == Reached::CommitSent && !told;
        // The duplicate is its own earlier commit more likely than not.
        let own_duplicate = self.doubt && failure::is_duplicate(&failed.failure);
        if commit_untold || own_duplicate {
            return Next::LookUp;
        }
        if self.late || failed.failure.meaning == Meaning::Refused || !self.attempts_left {
            return Next::Fail;
        }
        Next::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: State = State { late: false, is_write: true, doubt: false, attempts_left: true };

    fn failed(meaning: Meaning, reached: Reached, name: &'static str) -> Failed {
        Failed { failure: Failure { meaning, name: name.into() }, reached }
    }

    #[test]
    fn the_back_off_doubles_up_to_its_cap() {
        let policy = RetryPolicy { base_ms: 5.0, cap_ms: 1_000.0, ..RetryPolicy::default() };
        let ms: Vec<u64> =
            [1, 2, 3, 8, 9, 4_000_000_000].map(|n| back_off_bound(&policy, n) / MS_NS).into();
        assert_eq!(ms, [5, 10, 20, 640, 1_000, 1_000]);
    }

    #[test]
    fn a_lost_commit_of_a_write_is_looked_up_and_of_a_read_run_again() {
        let lost = failed(Meaning::Unavailable, Reached::CommitSent, "connection_lost");
        assert_eq!(FRESH.next(&lost), Next::LookUp);
        assert_eq!(State { late: true, ..FRESH }.next(&lost), Next::LookUp);
        assert_eq!(State { attempts_left: false, ..FRESH }.next(&lost), Next::LookUp);
        assert_eq!(State { is_write: false, ..FRESH }.next(&lost), Next::Again);
        let before = failed(Meaning::Unavailable, Reached::BeforeCommit, "connection_lost");
        assert_eq!(FRESH.next(&before), Next::Again);
        assert_eq!(State { late: true, ..FRESH }.next(&before), Next::Fail);
    }

    #[test]
    fn conflicts_are_tried_again_until_the_attempts_are_used_up() {
        let conflict = failed(Meaning::Conflict, Reached::CommitSent, "40001");
        assert_eq!(FRESH.next(&conflict), Next::Again);
        assert_eq!(State { attempts_left: false, ..FRESH }.next(&conflict), Next::Fail);
    }

    #[test]
    fn a_duplicate_is_a_failure_unless_it_may_be_its_own() {
        let duplicate = failed(Meaning::Refused, Reached::BeforeCommit, "23505");
        assert_eq!(FRESH.next(&duplicate), Next::Fail);
        assert_eq!(State { doubt: true, ..FRESH }.next(&duplicate), Next::LookUp);
    }
}
