//! How fast connections are opened: one allowance for each configuration, whichever thread opens
//! them and for whatever reason (a cell's beginning, a loss, a planned replacement). Databases
//! refuse what comes faster (DSQL: SQLSTATE 53400), and every configuration is treated alike.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    clock::{self, MS_NS},
    course::until,
};
use crate::model::{ConfigurationId, ConnectionLife};

/// A bucket of allowances: full at first, refilled at a steady rate. Pure: it is told the time.
///
/// Kept as the one moment at which it will be full again (the generic cell rate algorithm), so
/// that nothing is lost to rounding: in any span of time it allows at most the burst and what the
/// span refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// Nanoseconds in which one allowance is refilled.
    gap: u64,
    /// Most allowances, less the one that is taken: how far ahead of now `full_at` may lie when
    /// one more is allowed, in nanoseconds.
    slack: u64,
    full_at: u64,
}

impl Bucket {
    fn new(life: &ConnectionLife) -> Self {
        let gap = clock::from_seconds(1.0 / life.open_per_second).max(1);
        let burst = u64::from(life.open_burst.max(1));
        Self { gap, slack: gap.saturating_mul(burst - 1), full_at: 0 }
    }

    /// When the next allowance can be taken: `now` or later.
    fn ready_at(&self, now: u64) -> u64 {
        now.max(self.full_at.saturating_sub(self.slack))
    }

    /// Takes an allowance; the caller has waited until [`Self::ready_at`].
    fn take(&mut self, now: u64) {
        self.full_at = self.full_at.max(now).saturating_add(self.gap);
    }

    /// Nanoseconds until `count` more allowances are taken, if they are taken as soon as possible
    /// from `now` on.
    fn time_for(&self, now: u64, count: u64) -> u64 {
        let Some(before_last) = count.checked_sub(1) else { return 0 };
        let full_at = self.full_at.max(now).saturating_add(self.gap.saturating_mul(before_last));
        full_at.saturating_sub(self.slack).saturating_sub(now)
    }

    /// Takes over what another bucket has given out, as the settings change.
    fn after(self, other: &Self) -> Self {
        Self { full_at: other.full_at, ..self }
    }
}

/// Gives out a configuration's allowances to open connections, one to each that asks, in the order
/// in which they ask. Shared by all load threads.
#[derive(Debug)]
pub(super) struct Pacer {
    bucket: Mutex<Bucket>,
    /// Who holds it is the next to open: it alone sleeps, the others wait in line for it. Whoever
    /// gives up leaves the line without a trace.
    turn: tokio::sync::Mutex<()>,
    asking: AtomicU64,
}

impl Pacer {
    fn new(bucket: Bucket) -> Self {
        Self {
            bucket: Mutex::new(bucket),
            turn: tokio::sync::Mutex::new(()),
            asking: AtomicU64::new(0),
        }
    }

    /// Waits until one more connection may be opened, and takes the allowance: to be called before
    /// each attempt to connect, also one after a loss and one for a planned replacement. An
    /// allowance is used up whether or not the attempt succeeds, as the server counts it too.
    pub(super) async fn acquire(&self) {
        let _asking = Asking::new(&self.asking);
        let _turn = self.turn.lock().await;
        loop {
            let now = clock::now();
            let ready_at = self.bucket().ready_at(now);
            if ready_at <= now {
                self.bucket().take(now);
                return;
            }
            tokio::time::sleep(Duration::from_nanos(ready_at - now)).await;
        }
    }

    /// How long it takes until `count` more may be opened beside those that ask already: what the
    /// time limit of a cell's opening has to allow for on top of the openings themselves.
    pub(super) fn time_for(&self, count: u32) -> Duration {
        let count = u64::from(count).saturating_add(self.asking.load(Ordering::Relaxed));
        Duration::from_nanos(self.bucket().time_for(clock::now(), count))
    }

    fn bucket(&self) -> std::sync::MutexGuard<'_, Bucket> {
        // A bucket is whole whenever its lock is free.
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one that asks for as long as it does.
struct Asking<'a>(&'a AtomicU64);

impl<'a> Asking<'a> {
    fn new(asking: &'a AtomicU64) -> Self {
        asking.fetch_add(1, Ordering::Relaxed);
        Self(asking)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long to wait before an opening that failed is tried again: longer each time.
#[derive(Debug)]
pub(super) struct Patience {
    bound_ns: u64,
}

impl Patience {
    /// The bound of the first wait.
    pub(super) const FIRST_NS: u64 = 50 * MS_NS;
    const MOST_NS: u64 = 1_000 * MS_NS;

    pub(super) const fn new() -> Self {
        Self { bound_ns: Self::FIRST_NS }
    }

    /// Waits between half of the bound and all of it, as `jitter` says (uniform from 0 to below
    /// what it is given), at most until `until_ns`.
    pub(super) async fn wait(&mut self, jitter: impl FnOnce(u64) -> u64, until_ns: u64) {
        let half = self.bound_ns / 2;
        let wait = Duration::from_nanos(half + jitter(half));
        tokio::time::sleep(wait.min(until(until_ns))).await;
        self.bound_ns = (self.bound_ns * 2).min(Self::MOST_NS);
    }
}

/// The pacers of the agent's configurations, kept for as long as the agent lives: a cell right
/// after another one does not get a second burst.
#[derive(Debug, Default)]
pub(super) struct Pacers {
    known: HashMap<ConfigurationId, (ConnectionLife, Arc<Pacer>)>,
}

impl Pacers {
    /// The pacer of a configuration. One whose settings have changed goes on from what was given
    /// out so far.
    pub(super) fn of(
        &mut self,
        configuration: &ConfigurationId,
        life: &ConnectionLife,
    ) -> Arc<Pacer> {
        let fresh = Bucket::new(life);
        let bucket = match self.known.get(configuration) {
            Some((known, pacer)) if known == life => return Arc::clone(pacer),
            Some((_, pacer)) => fresh.after(&pacer.bucket()),
            None => fresh,
        };
        let pacer = Arc::new(Pacer::new(bucket));
        self.known.insert(configuration.clone(), (*life, Arc::clone(&pacer)));
        pacer
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
