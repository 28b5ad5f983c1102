//! The one clock of the load core: nanoseconds of the system's monotonic clock, the same on every
//! thread and the very clock that the kernel's timers use.

use rustix::time::{ClockId, clock_gettime};

use crate::model::{UnixMs, monotonic_ns};

/// Nanoseconds in a second.
pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub(super) const MS_NS: u64 = 1_000_000;

/// Nanoseconds on the monotonic clock.
pub(super) fn now() -> u64 {
    monotonic_ns()
}

/// CPU time that this process has used so far, all its threads together, in nanoseconds.
pub(super) fn process_cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * SECOND_NS + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A duration in seconds as nanoseconds; negative, not a number and beyond five centuries are
/// held at the bounds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, as is wanted
pub(super) fn from_seconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Nanoseconds as seconds.
#[allow(clippy::cast_precision_loss)] // sub-nanosecond after 104 days
pub(super) fn to_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A moment known on both clocks, so that the monotonic one can be told as wall-clock time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor {
    monotonic: u64,
    wall: UnixMs,
}

impl Anchor {
    /// Ties the two clocks together now.
    pub(super) fn new() -> Self {
        Self { monotonic: now(), wall: UnixMs::now() }
    }

    /// The wall-clock time of a moment on the monotonic clock.
    pub(super) fn wall(&self, at: u64) -> UnixMs {
        if at >= self.monotonic {
            UnixMs(self.wall.0 + (at - self.monotonic) / MS_NS)
        } else {
            UnixMs(self.wall.0.saturating_sub((self.monotonic - at) / MS_NS))
        }
    }
}
