//! Latency recordings: HDR histograms, never interpolated, overflow counted.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer as HdrDeserializer, Serializer as HdrSerializer, V2Serializer},
};
use serde::{Deserialize, Serialize, de, ser};

use super::PerClass;

/// Values below this are told apart no finer: 256 ns, far below a loopback round trip.
pub const LOWEST_DISCERNIBLE_NS: u64 = 256;
/// The ceiling of every recording: 120 s. Values above it count as overflow and are kept at the
/// ceiling.
pub const HIGHEST_TRACKABLE_NS: u64 = 120_000_000_000;
/// Decimal digits that a recorded value keeps.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of durations in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    histogram: Histogram<u32>,
    overflow: u64,
}

impl Default for Recording {
    fn default() -> Self {
        Self::new()
    }
}

impl Recording {
    /// An empty recording.
    ///
    /// # Panics
    /// Never: the bounds are constants that `hdrhistogram` accepts (a test makes one).
    #[must_use]
    pub fn new() -> Self {
        let mut histogram = Histogram::new_with_bounds(
            LOWEST_DISCERNIBLE_NS,
            HIGHEST_TRACKABLE_NS,
            SIGNIFICANT_DIGITS,
        )
        .expect("the bounds are constants within hdrhistogram's range");
        // Writes every count, so that all of its memory is there from the start: pages that came
        // as rarer values turn up would look like growth, and cost a fault in the hot path.
        histogram.reset();
        Self { histogram, overflow: 0 }
    }

    /// Records one duration in nanoseconds; above the ceiling it is kept at the ceiling and
    /// counted as overflow.
    pub fn record(&mut self, ns: u64) {
        if ns > HIGHEST_TRACKABLE_NS {
            self.overflow += 1;
        }
        self.histogram.saturating_record(ns.min(HIGHEST_TRACKABLE_NS));
    }

    /// Adds every value of another recording.
    pub fn merge(&mut self, other: &Self) {
        // Every recording has the same bounds, which is all that `add` can refuse.
        if self.histogram.add(&other.histogram).is_ok() {
            self.overflow += other.overflow;
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.overflow = 0;
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many values were above the ceiling.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The value at a quantile (0.0 to 1.0) in nanoseconds, `None` when empty.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (!self.histogram.is_empty()).then(|| self.histogram.value_at_quantile(quantile))
    }

    /// The value at a quantile (0.0 to 1.0) in milliseconds, `None` when empty.
    #[must_use]
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.quantile_ns(quantile).map(to_ms)
    }

    /// Percentiles of these values together with as many that never came to an end: a failure
    /// takes for ever. Where more than a percentile's share never ended, it is unbounded.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a cell never counts up to 2^53
    pub fn error_adjusted(&self, without_end: u64) -> ErrorAdjusted {
        let (bounded, all) = (self.count(), self.count() + without_end);
        let at = |per_cent: u64| {
            let rank = (all * per_cent).div_ceil(100).max(1);
            // In the middle of the rank: rounding must not make it the next one.
            let quantile = (rank as f64 - 0.5) / bounded as f64;
            if rank <= bounded { self.quantile_ms(quantile) } else { None }
        };
        ErrorAdjusted {
            p50: at(50),
            p95: at(95),
            p99: at(99),
            unbounded_from: (without_end > 0).then(|| bounded as f64 / all as f64),
        }
    }

    /// How many values are above a limit in milliseconds (to the recording's resolution).
    #[must_use]
    pub fn count_above_ms(&self, limit_ms: f64) -> u64 {
        let limit = std::time::Duration::try_from_secs_f64(limit_ms / 1000.0)
            .map_or(u64::MAX, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        let next = self.histogram.next_non_equivalent(limit.min(HIGHEST_TRACKABLE_NS));
        if next > HIGHEST_TRACKABLE_NS {
            return self.overflow;
        }
        self.histogram.count_between(next, self.histogram.high())
    }

    /// The figures of `summary.json`.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        Quantiles {
            p50: self.quantile_ms(0.50),
            p95: self.quantile_ms(0.95),
            p99: self.quantile_ms(0.99),
            p999: self.quantile_ms(0.999),
            max: (!self.histogram.is_empty()).then(|| to_ms(self.histogram.max())),
        }
    }

    /// The histogram, for the HdrHistogram log.
    #[must_use]
    pub const fn histogram(&self) -> &Histogram<u32> {
        &self.histogram
    }

    /// A recording from a histogram read back from an HdrHistogram log.
    #[must_use]
    pub fn from_histogram(read: &Histogram<u32>) -> Self {
        let mut recording = Self::new();
        for value in read.iter_recorded() {
            let ns = value.value_iterated_to();
            recording
                .histogram
                .saturating_record_n(ns.min(HIGHEST_TRACKABLE_NS), value.count_at_value());
            if ns > HIGHEST_TRACKABLE_NS {
                recording.overflow += u64::from(value.count_at_value());
            }
        }
        recording
    }
}

#[allow(clippy::cast_precision_loss)] // 120 s in nanoseconds is far below 2^53
fn to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    v2: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    overflow: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Serialize for Recording {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut v2 = String::new();
        if !self.histogram.is_empty() {
            let mut bytes = Vec::new();
            V2Serializer::new()
                .serialize(&self.histogram, &mut bytes)
                .map_err(|e| ser::Error::custom(format!("{e:?}")))?;
            v2 = STANDARD.encode(&bytes);
        }
        Encoded { v2, overflow: self.overflow }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Recording {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = Encoded::deserialize(deserializer)?;
        let mut recording = Self::new();
        if !encoded.v2.is_empty() {
            let bytes = STANDARD.decode(&encoded.v2).map_err(de::Error::custom)?;
            let read: Histogram<u32> = HdrDeserializer::new()
                .deserialize(&mut bytes.as_slice())
                .map_err(|e| de::Error::custom(format!("{e:?}")))?;
            recording.histogram = read;
        }
        recording.overflow = encoded.overflow;
        Ok(recording)
    }
}

/// Percentiles in milliseconds; `None` where nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Percentiles in milliseconds in which a transaction that failed counts as one that took for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorAdjusted {
    /// `None` where it is unbounded, and where there was no transaction at all.
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    /// Percentiles above this quantile (0.0 to 1.0) are unbounded; `None` where none is.
    pub unbounded_from: Option<f64>,
}

/// The recordings kept of each transaction: response = connection wait + schedule lag + service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Response,
    Service,
    ConnectionWait,
    ScheduleLag,
}

impl Part {
    pub const ALL: [Self; 4] =
        [Self::Response, Self::Service, Self::ConnectionWait, Self::ScheduleLag];

    /// The name used in files, for example `connection_wait`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::ConnectionWait => "connection_wait",
            Self::ScheduleLag => "schedule_lag",
        }
    }
}

/// The four recordings of one transaction class, of successes only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartRecordings {
    pub response: Recording,
    pub service: Recording,
    pub connection_wait: Recording,
    pub schedule_lag: Recording,
}

impl PartRecordings {
    /// One of the four.
    #[must_use]
    pub const fn part(&self, part: Part) -> &Recording {
        match part {
            Part::Response => &self.response,
            Part::Service => &self.service,
            Part::ConnectionWait => &self.connection_wait,
            Part::ScheduleLag => &self.schedule_lag,
        }
    }

    /// One of the four, to write to.
    pub const fn part_mut(&mut self, part: Part) -> &mut Recording {
        match part {
            Part::Response => &mut self.response,
            Part::Service => &mut self.service,
            Part::ConnectionWait => &mut self.connection_wait,
            Part::ScheduleLag => &mut self.schedule_lag,
        }
    }

    /// Adds every value of another set.
    pub fn merge(&mut self, other: &Self) {
        for part in Part::ALL {
            self.part_mut(part).merge(other.part(part));
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        for part in Part::ALL {
            self.part_mut(part).clear();
        }
    }
}

impl PerClass<PartRecordings> {
    /// One of the four over all classes.
    #[must_use]
    pub fn overall(&self, part: Part) -> Recording {
        let mut all = Recording::new();
        for (_, recordings) in self.iter() {
            all.merge(recordings.part(part));
        }
        all
    }

    /// All four over all classes.
    #[must_use]
    pub fn all(&self) -> PartRecordings {
        let mut all = PartRecordings::default();
        for (_, recordings) in self.iter() {
            all.merge(recordings);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_survives_a_frame_with_its_overflow() {
        let mut recording = Recording::new();
        recording.record(5_000_000);
        recording.record(HIGHEST_TRACKABLE_NS + 1);
        let text = serde_json::to_string(&recording).unwrap();
        let back: Recording = serde_json::from_str(&text).unwrap();
        assert_eq!(back, recording);
        assert_eq!((back.count(), back.overflow()), (2, 1));
        let empty: Recording =
            serde_json::from_str(&serde_json::to_string(&Recording::new()).unwrap()).unwrap();
        assert_eq!(empty.count(), 0);
    }

    #[test]
    fn values_above_a_limit_are_counted_exactly() {
        let mut recording = Recording::new();
        for ms in 1..=100 {
            recording.record(ms * 1_000_000);
        }
        assert_eq!(recording.count_above_ms(90.0), 10);
        assert_eq!(recording.count_above_ms(1e9), 0);
    }

    #[test]
    fn a_failure_takes_for_ever_in_an_error_adjusted_percentile() {
        let mut recording = Recording::new();
        (0..90).for_each(|_| recording.record(10_000_000));
        let all_ended = recording.error_adjusted(0);
        assert_eq!((all_ended.p99, all_ended.unbounded_from), (recording.quantile_ms(0.99), None));
        let a_tenth_failed = recording.error_adjusted(10);
        assert_eq!(a_tenth_failed.p50, recording.quantile_ms(0.5));
        assert_eq!((a_tenth_failed.p95, a_tenth_failed.p99), (None, None));
        assert_eq!(a_tenth_failed.unbounded_from, Some(0.9));
        // Five of a hundred lie above a p95: it is the slowest that ended.
        (0..5).for_each(|_| recording.record(30_000_000));
        let adjusted = recording.error_adjusted(5);
        assert_eq!((adjusted.p95, adjusted.p99), (recording.quantile_ms(1.0), None));
        let only_failures = Recording::new().error_adjusted(3);
        assert_eq!((only_failures.p50, only_failures.unbounded_from), (None, Some(0.0)));
        assert_eq!(Recording::new().error_adjusted(0), ErrorAdjusted::default());
    }

    /// Two runners, one of which saw only slow transactions: what is merged are the recordings.
    #[test]
    fn recordings_of_two_runners_are_merged_and_their_percentiles_never_averaged() {
        let runner = |times: u64, ms: u64| {
            let mut recording = Recording::new();
            (0..times).for_each(|_| recording.record(ms * 1_000_000));
            recording
        };
        let mut both = runner(90, 200);
        both.merge(&runner(10, 5_000));
        assert_eq!((both.count(), both.overflow()), (100, 0));
        assert!(both.quantile_ms(0.95).unwrap() >= 4_000.0, "{:?}", both.quantiles());
        // The same above the ceiling: kept at it, counted, and carried along.
        let ceiling_ms = HIGHEST_TRACKABLE_NS / 1_000_000;
        let mut both = runner(90, 200);
        both.merge(&runner(10, ceiling_ms + 5_000));
        assert_eq!((both.count(), both.overflow()), (100, 10));
        let p95 = both.quantile_ns(0.95).unwrap();
        assert!(p95 >= HIGHEST_TRACKABLE_NS / 1_000 * 999, "{p95}");
        assert_eq!(both.count_above_ms(10_000.0), 10);
    }
}
