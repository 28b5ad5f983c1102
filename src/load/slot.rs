//! Where one worker is reached by what runs beside it on its thread.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    task::{Poll, Waker},
};

use super::schedule::Arrival;

/// What a waiting worker is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Arrival(Arrival),
    /// Measure the empty round trip.
    Probe,
    /// The cell begins.
    Go,
    /// Nothing will come any more.
    Over,
}

/// Where one worker is reached.
#[derive(Default)]
pub(super) struct Slot {
    waker: RefCell<Option<Waker>>,
    given: Cell<Option<Given>>,
    /// When its transaction is out of time; 0: it has none.
    deadline: Cell<u64>,
    /// When its connection is to be replaced; 0: never.
    replace_at: Cell<u64>,
    late: Cell<bool>,
}

impl Slot {
    /// Keeps the waker of the task that polls this, the worker's.
    pub(super) async fn enter(&self) {
        poll_fn(|context| {
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    pub(super) fn give(&self, given: Given) {
        self.given.set(Some(given));
        self.wake();
    }

    /// Waits until something is given.
    pub(super) async fn given(&self) -> Given {
        self.enter().await;
        poll_fn(|_| self.taken().map_or(Poll::Pending, Poll::Ready)).await
    }

    pub(super) fn taken(&self) -> Option<Given> {
        self.given.take()
    }

    /// Sets the time limit of the worker's transaction.
    pub(super) fn set_deadline(&self, at: u64) {
        self.deadline.set(at);
        self.late.set(false);
    }

    pub(super) fn clear_deadline(&self) {
        self.set_deadline(0);
    }

    pub(super) const fn deadline(&self) -> u64 {
        self.deadline.get()
    }

    /// Whether the time limit is over.
    pub(super) const fn is_late(&self) -> bool {
        self.late.get()
    }

    /// Has the worker woken once its connection is to be replaced; 0: never.
    pub(super) fn set_replace_at(&self, at: u64) {
        self.replace_at.set(at);
    }

    /// Wakes the worker for what is due at `now`.
    pub(super) fn check(&self, now: u64) {
        let replace_at = self.replace_at.get();
        if replace_at != 0 && now >= replace_at {
            self.replace_at.set(0);
            self.wake();
        }
        let deadline = self.deadline.get();
        if deadline != 0 && now >= deadline && !self.late.replace(true) {
            self.wake();
        }
    }

    /// Has the worker look at what has changed.
    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}
