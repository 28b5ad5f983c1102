//! A thread's alarm: wakes its event loop at a moment of the monotonic clock.
//!
//! The runtime's own timer is a millisecond coarse. On Linux the kernel's timer wakes the loop
//! through a file descriptor instead, exact to some microseconds and without spinning.

use std::io;

/// Wakes the loop of the thread that made it.
pub(super) struct Alarm(imp::Alarm);

impl Alarm {
    /// Makes an alarm, unset.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub(super) fn new() -> io::Result<Self> {
        imp::Alarm::new().map(Self)
    }

    /// Sets the alarm to a moment, in nanoseconds of the monotonic clock, in place of what it was
    /// set to. A moment in the past wakes at once.
    pub(super) fn set(&self, at: u64) {
        self.0.set(at);
    }

    /// Waits until the alarm has gone off. It may wake without reason.
    pub(super) async fn gone_off(&self) {
        self.0.gone_off().await;
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::{io, os::fd::OwnedFd};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::{Interest, unix::AsyncFd};

    use crate::load::clock::SECOND_NS;

    pub(super) struct Alarm(AsyncFd<OwnedFd>);

    impl Alarm {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // The replacement is unsafe, for types that do not keep their descriptor; this does.
            #[allow(deprecated)]
            AsyncFd::with_interest(fd, Interest::READABLE).map(Self)
        }

        pub(super) fn set(&self, at: u64) {
            // Zero would unset it.
            let at = at.max(1);
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value = Timespec {
                tv_sec: i64::try_from(at / SECOND_NS).unwrap_or(i64::MAX),
                tv_nsec: (at % SECOND_NS).try_into().unwrap_or(0),
            };
            let spec = Itimerspec { it_interval: zero, it_value: value };
            // It fails for a bad descriptor or a bad time only, and both are well formed here.
            let _ = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &spec);
        }

        pub(super) async fn gone_off(&self) {
            match self.0.readable().await {
                // The expirations are not read: the descriptor is watched for edges, and setting
                // the timer anew resets them, which saves a system call for each arrival.
                Ok(mut ready) => ready.clear_ready(),
                // The runtime is shutting down: nothing will ever wake this again.
                Err(_) => std::future::pending().await,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::{cell::Cell, io, time::Duration};

    use tokio::sync::Notify;

    use crate::load::clock::{self, MS_NS};

    pub(super) struct Alarm {
        at: Cell<u64>,
        set: Notify,
    }

    impl Alarm {
        #[allow(clippy::unnecessary_wraps)] // the signature of every system's alarm
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self { at: Cell::new(u64::MAX), set: Notify::new() })
        }

        pub(super) fn set(&self, at: u64) {
            self.at.set(at);
            self.set.notify_one();
        }

        pub(super) async fn gone_off(&self) {
            loop {
                let at = self.at.get();
                let left = at.saturating_sub(clock::now());
                if at == u64::MAX {
                    self.set.notified().await;
                } else if left > 2 * MS_NS {
                    // Coarse: the rest is waited for by yielding.
                    let coarse = Duration::from_nanos(left - 2 * MS_NS);
                    let _ = tokio::time::timeout(coarse, self.set.notified()).await;
                } else if left > 0 {
                    tokio::task::yield_now().await;
                } else {
                    self.at.set(u64::MAX);
                    return;
                }
            }
        }
    }
}
