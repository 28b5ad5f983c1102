//! Latency recordings: HDR histograms, never interpolated, overflow counted.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer as HdrDeserializer, Serializer as HdrSerializer, V2Serializer},
};
use serde::{Deserialize, Serialize, de, ser};

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

/// The parts of a transaction's response time, in nanoseconds or as a mean in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TailParts {
    pub schedule_lag_ms: f64,
    pub connection_wait_ms: f64,
    pub service_ms: f64,
}

/// Sums of the parts by response time, so that a tail can be attributed by averaging each part
/// over the transactions at or above a percentile (never by subtracting percentiles).
///
/// The buckets are logarithmic: 16 to an octave, so a percentile's own bucket is at most 4.4 %
/// wide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailSums {
    buckets: Vec<TailBucket>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TailBucket(u64, u64, u64, u64);

const TAIL_BUCKETS_PER_OCTAVE: u32 = 16;
const TAIL_BUCKETS: usize = 48 * TAIL_BUCKETS_PER_OCTAVE as usize;

impl Default for TailSums {
    fn default() -> Self {
        Self { buckets: vec![TailBucket::default(); TAIL_BUCKETS] }
    }
}

impl TailSums {
    /// Adds one transaction: its parts in nanoseconds.
    pub fn record(&mut self, schedule_lag_ns: u64, connection_wait_ns: u64, service_ns: u64) {
        let response = schedule_lag_ns + connection_wait_ns + service_ns;
        let bucket = &mut self.buckets[Self::index(response)];
        bucket.0 += 1;
        bucket.1 += schedule_lag_ns;
        bucket.2 += connection_wait_ns;
        bucket.3 += service_ns;
    }

    /// Adds every transaction of another set.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
            mine.2 += theirs.2;
            mine.3 += theirs.3;
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.fill(TailBucket::default());
    }

    /// The mean of each part over the transactions at or above a quantile (0.0 to 1.0) of
    /// response time; `None` when empty.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn mean_above(&self, quantile: f64) -> Option<TailParts> {
        let total: u64 = self.buckets.iter().map(|b| b.0).sum();
        if total == 0 {
            return None;
        }
        let wanted = (total - ((total as f64 * quantile).floor() as u64).min(total)).max(1);
        let mut tail = TailBucket::default();
        for bucket in self.buckets.iter().rev() {
            tail = TailBucket(
                tail.0 + bucket.0,
                tail.1 + bucket.1,
                tail.2 + bucket.2,
                tail.3 + bucket.3,
            );
            if tail.0 >= wanted {
                break;
            }
        }
        let mean = |sum: u64| sum as f64 / tail.0 as f64 / 1e6;
        Some(TailParts {
            schedule_lag_ms: mean(tail.1),
            connection_wait_ms: mean(tail.2),
            service_ms: mean(tail.3),
        })
    }

    /// The octave is the position of the highest set bit, the four bits below it the bucket.
    fn index(ns: u64) -> usize {
        let ns = ns.max(16);
        let octave = ns.ilog2();
        let within = (ns >> (octave - 4)) & 0xf;
        let index = u64::from(octave - 4) * 16 + within;
        usize::try_from(index).map_or(TAIL_BUCKETS - 1, |i| i.min(TAIL_BUCKETS - 1))
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
    fn a_tail_is_the_mean_of_the_slowest() {
        let mut sums = TailSums::default();
        for _ in 0..99 {
            sums.record(0, 0, 1_000_000);
        }
        sums.record(176_000_000, 10_000_000, 3_000_000);
        let tail = sums.mean_above(0.99).unwrap();
        assert_eq!(
            tail,
            TailParts { schedule_lag_ms: 176.0, connection_wait_ms: 10.0, service_ms: 3.0 }
        );
        assert_eq!(TailSums::default().mean_above(0.99), None);
    }
}
