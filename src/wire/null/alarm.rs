//! One timer for all connections of an event loop: a timer descriptor for each would be a system
//! call for each reply.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

use crate::wire::timer::PreciseTimer;

/// Wakes tasks at the moments they ask for.
#[derive(Debug, Default)]
pub(super) struct Alarm(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// By moment.
    tasks: BinaryHeap<Reverse<Entry>>,
    /// The task that drives the alarm.
    driver: Option<Waker>,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    task: Waker,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Alarm {
    /// Has a task woken once, at `at` or as soon after as can be.
    pub(super) fn wake_at(&self, at: Instant, task: &Waker) {
        let mut waiting = self.waiting();
        let earliest = waiting.tasks.peek().is_none_or(|Reverse(first)| at < first.at);
        waiting.tasks.push(Reverse(Entry { at, task: task.clone() }));
        if earliest && let Some(driver) = waiting.driver.take() {
            driver.wake();
        }
    }

    /// Wakes tasks for as long as it is polled.
    ///
    /// # Errors
    /// When the kernel has no timer.
    pub(super) async fn drive(&self) -> io::Result<()> {
        let mut timer = PreciseTimer::new()?;
        std::future::poll_fn(|cx| self.poll_drive(cx, &mut timer)).await
    }

    fn poll_drive(&self, cx: &mut Context<'_>, timer: &mut PreciseTimer) -> Poll<io::Result<()>> {
        loop {
            let Some(next) = self.wake_due(cx) else { return Poll::Pending };
            ready!(timer.poll_until(cx, next))?;
        }
    }

    /// Wakes those whose moment has come; the next moment.
    fn wake_due(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut waiting = self.waiting();
        let now = Instant::now();
        while let Some(Reverse(first)) = waiting.tasks.peek() {
            if first.at > now {
                break;
            }
            if let Some(Reverse(first)) = waiting.tasks.pop() {
                first.task.wake();
            }
        }
        waiting.driver = Some(cx.waker().clone());
        waiting.tasks.peek().map(|Reverse(first)| first.at)
    }

    /// Nothing that can panic runs under the lock.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    #[tokio::test]
    async fn tasks_are_woken_in_the_order_of_their_moments_and_never_early() {
        let alarm = Arc::new(Alarm::default());
        let driving = alarm.clone();
        let driver = tokio::spawn(async move { driving.drive().await });
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = [9_u64, 3, 6, 1]
            .into_iter()
            .map(|ms| {
                let (alarm, order) = (alarm.clone(), order.clone());
                tokio::spawn(async move {
                    let at = Instant::now() + Duration::from_millis(ms * 10);
                    let mut asked = false;
                    std::future::poll_fn(|cx| {
                        if Instant::now() >= at {
                            return Poll::Ready(());
                        }
                        if !std::mem::replace(&mut asked, true) {
                            alarm.wake_at(at, cx.waker());
                        }
                        Poll::Pending
                    })
                    .await;
                    order.lock().unwrap().push(ms);
                })
            })
            .collect();
        for task in tasks {
            tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [1, 3, 6, 9]);
        driver.abort();
    }
}
