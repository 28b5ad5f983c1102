//! Points in time and how they are shown.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds of the system's monotonic clock: the same on every thread, and the very clock that
/// the kernel's timers use.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A wall-clock time in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub u64);

impl UnixMs {
    /// The time now.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Seconds from `earlier` to this time, 0 if it is not earlier.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        Duration::from_millis(self.0.saturating_sub(earlier.0)).as_secs_f64()
    }

    /// This time plus a number of seconds.
    #[must_use]
    pub fn plus_seconds(self, seconds: f64) -> Self {
        Self(
            self.0.saturating_add(
                Duration::try_from_secs_f64(seconds)
                    .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            ),
        )
    }

    /// RFC 3339 in UTC with milliseconds, as files have it.
    #[must_use]
    pub fn rfc3339(self) -> String {
        self.timestamp().map_or_else(String::new, |t| format!("{t:.3}"))
    }

    /// The time of day in UTC, `HH:MM:SS`, as the screen has it.
    #[must_use]
    pub fn time_of_day(self) -> String {
        self.timestamp().map_or_else(String::new, |t| t.strftime("%H:%M:%S").to_string())
    }

    fn timestamp(self) -> Option<Timestamp> {
        Timestamp::from_millisecond(i64::try_from(self.0).ok()?).ok()
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.rfc3339())
    }
}

/// A duration as `HH:MM:SS`.
#[must_use]
pub fn format_clock(seconds: f64) -> String {
    let s = whole(seconds);
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// A duration as `M:SS`, or `H:MM:SS` from an hour.
#[must_use]
pub fn format_duration(seconds: f64) -> String {
    let s = whole(seconds);
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else {
        format!("{}:{:02}", s / 60, s % 60)
    }
}

fn whole(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs()
}
