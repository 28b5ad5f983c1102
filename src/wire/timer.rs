//! A timer for waits below a millisecond.
//!
//! The runtime's own timer rounds up to whole milliseconds. On Linux a timer descriptor of the
//! kernel is exact to some ten microseconds and costs one system call for each wait. Elsewhere the
//! runtime's timer serves: there, added delays are up to 1 ms too long.

pub(super) use imp::PreciseTimer;

#[cfg(target_os = "linux")]
mod imp {
    use std::{
        io,
        os::fd::OwnedFd,
        task::{Context, Poll, ready},
        time::{Duration, Instant},
    };

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::{Interest, unix::AsyncFd};

    /// One wait at a time.
    pub(in crate::wire) struct PreciseTimer {
        descriptor: AsyncFd<OwnedFd>,
        armed: Option<Instant>,
    }

    impl PreciseTimer {
        /// Must be called inside the runtime.
        ///
        /// # Errors
        /// When no descriptor is left.
        pub(in crate::wire) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // SAFETY: the descriptor is open, is ours alone, and stays so while registered.
            let descriptor =
                unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE)? };
            Ok(Self { descriptor, armed: None })
        }

        /// Ready when `at` has come. Asking for another moment replaces the wait.
        ///
        /// # Errors
        /// When the kernel refuses the timer.
        pub(in crate::wire) fn poll_until(
            &mut self,
            cx: &mut Context<'_>,
            at: Instant,
        ) -> Poll<io::Result<()>> {
            loop {
                let wait = at.saturating_duration_since(Instant::now());
                if wait.is_zero() {
                    return Poll::Ready(Ok(()));
                }
                if self.armed != Some(at) {
                    self.arm(wait)?;
                    self.armed = Some(at);
                }
                // The expiry is never read: arming again resets it, and each expiry is an edge.
                ready!(self.descriptor.poll_read_ready(cx))?.clear_ready();
            }
        }

        fn arm(&self, wait: Duration) -> io::Result<()> {
            let value = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec {
                    tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: wait.subsec_nanos().into(),
                },
            };
            timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &value)?;
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::{
        future::Future,
        io,
        pin::Pin,
        task::{Context, Poll},
        time::Instant,
    };

    use tokio::time::{Sleep, sleep_until};

    /// One wait at a time.
    pub(in crate::wire) struct PreciseTimer {
        sleep: Pin<Box<Sleep>>,
        armed: Option<Instant>,
    }

    impl PreciseTimer {
        /// Must be called inside the runtime.
        ///
        /// # Errors
        /// Never; the signature is Linux's.
        pub(in crate::wire) fn new() -> io::Result<Self> {
            Ok(Self { sleep: Box::pin(sleep_until(Instant::now().into())), armed: None })
        }

        /// Ready when `at` has come. Asking for another moment replaces the wait.
        ///
        /// # Errors
        /// Never; the signature is Linux's.
        pub(in crate::wire) fn poll_until(
            &mut self,
            cx: &mut Context<'_>,
            at: Instant,
        ) -> Poll<io::Result<()>> {
            if self.armed != Some(at) {
                self.sleep.as_mut().reset(at.into());
                self.armed = Some(at);
            }
            if Instant::now() >= at {
                return Poll::Ready(Ok(()));
            }
            self.sleep.as_mut().poll(cx).map(Ok)
        }
    }
}

impl PreciseTimer {
    /// Waits until `at`.
    ///
    /// # Errors
    /// When the kernel refuses the timer.
    pub(super) async fn until(&mut self, at: std::time::Instant) -> std::io::Result<()> {
        std::future::poll_fn(|cx| self.poll_until(cx, at)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[tokio::test]
    async fn waits_are_never_short_and_can_follow_each_other() {
        let mut timer = PreciseTimer::new().unwrap();
        let mut shortest_overrun = Duration::MAX;
        for _ in 0..20 {
            let at = Instant::now() + Duration::from_micros(300);
            timer.until(at).await.unwrap();
            shortest_overrun = shortest_overrun.min(at.elapsed());
        }
        // A busy machine may be late now and then, but not twenty times in a row.
        if cfg!(target_os = "linux") {
            assert!(shortest_overrun < Duration::from_micros(700), "{shortest_overrun:?}");
        }
    }

    #[tokio::test]
    async fn an_expiry_that_nobody_took_does_not_end_the_next_wait() {
        let mut timer = PreciseTimer::new().unwrap();
        let first = Instant::now() + Duration::from_micros(100);
        std::future::poll_fn(|cx| {
            let _pending = timer.poll_until(cx, first);
            std::task::Poll::Ready(())
        })
        .await;
        timer.until(Instant::now() + Duration::from_millis(2)).await.unwrap();
        let at = Instant::now() + Duration::from_millis(5);
        timer.until(at).await.unwrap();
        assert!(Instant::now() >= at);
    }
}
