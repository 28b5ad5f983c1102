//! Replacing a worker's connection before it gets too old, unseen by its transactions: the new one
//! is opened beside the old one, which goes on to serve until the new one is ready.

use std::{cell::RefCell, rc::Rc};

use tokio::task::{AbortHandle, spawn_local};

use super::{
    age::{self, Age},
    clock::{self, SECOND_NS},
    link::OpenError,
    local::{Held, Local},
    transaction::Opener,
};
use crate::workload::Workload;

/// How long after an opening that failed the next one is tried.
const AGAIN_NS: u64 = SECOND_NS;

/// Keeps the age of one worker's connection.
pub(super) struct Renewal<W: Workload> {
    local: Rc<Local<W>>,
    worker: usize,
    /// `None` where connections are kept for ever.
    age: Option<Age>,
    spread: f64,
    due: u64,
    opening: Option<Opening>,
}

/// A new connection that is being opened.
struct Opening {
    task: AbortHandle,
    opened: Opened,
}

/// What the opening came to, once it has.
type Opened = Rc<RefCell<Option<Result<Held, OpenError>>>>;

impl Drop for Opening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<W: Workload> Renewal<W> {
    pub(super) fn new(local: &Rc<Local<W>>, worker: usize) -> Self {
        let order = &local.shared.order;
        let index = local.first_worker + worker as u64;
        Self {
            worker,
            age: Age::of(&order.life),
            spread: age::spread(order.seed, u32::try_from(index).unwrap_or(u32::MAX)),
            due: u64::MAX,
            opening: None,
            local: Rc::clone(local),
        }
    }

    /// Counts the age of this connection from now on.
    pub(super) fn watch(&mut self, held: Option<&Held>) {
        if let (Some(age), Some(held)) = (self.age, held) {
            self.set_due(age.due(held.link.opened_at, self.spread));
        }
    }

    fn set_due(&mut self, due: u64) {
        self.due = due;
        self.local.slots[self.worker].set_replace_at(due);
    }

    /// Begins to open a new connection when it is time, and puts one that is ready in the old
    /// one's place. To be called between two transactions and whenever an idle worker is woken.
    pub(super) fn turn(&mut self, held: &mut Option<Held>) {
        if self.age.is_none() {
            return;
        }
        if let Some(opening) = &self.opening {
            let opened = opening.opened.borrow_mut().take();
            if let Some(opened) = opened {
                self.opening = None;
                self.put(opened, held);
            }
        } else if clock::now() >= self.due {
            self.opening = Some(self.open());
        }
    }

    fn open(&self) -> Opening {
        let opened = Opened::default();
        let task = spawn_local({
            let (local, worker) = (Rc::clone(&self.local), self.worker);
            let opened = Rc::clone(&opened);
            async move {
                let result = Opener::open(&*local).await;
                *opened.borrow_mut() = Some(result);
                local.slots[worker].wake();
            }
        });
        Opening { task: task.abort_handle(), opened }
    }

    fn put(&mut self, opened: Result<Held, OpenError>, held: &mut Option<Held>) {
        match opened {
            Ok(new) => {
                if let Some(old) = held.replace(new) {
                    spawn_local(old.release().close());
                }
                self.watch(held.as_ref());
            }
            Err(error) => {
                // No transaction has seen it, but the server has refused something.
                let now = clock::now();
                let measured = self.local.course().is_some_and(|course| {
                    let (from, to) = course.measured();
                    (from..to).contains(&now)
                });
                self.local.count_error(error.name(), measured);
                self.local.warn(|| format!("a connection could not be replaced yet: {error}"));
                self.set_due(now.saturating_add(AGAIN_NS));
            }
        }
    }
}
