//! What made the slowest transactions slow, and whose doing it was.

use serde::{Deserialize, Serialize};

/// The part of the system that made the slowest transactions slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blamed {
    /// The database and the way to it, retries included: service time, and waiting for connections
    /// that it held unusually long.
    Database,
    /// Too few connections for what transactions ordinarily take.
    Pool,
    /// The generator sent later than it could have, or read a reply later than it was there.
    Generator,
    /// There is no tail: nothing succeeded, or nothing took any time.
    None,
}

impl Blamed {
    /// The name, as in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Pool => "pool",
            Self::Generator => "generator",
            Self::None => "none",
        }
    }
}

/// One transaction's response time in parts, in nanoseconds: schedule lag + connection wait +
/// service. The other three are parts of these parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseParts {
    pub schedule_lag_ns: u64,
    pub connection_wait_ns: u64,
    pub service_ns: u64,
    /// Of the service: replies lay in the kernel, unread.
    pub read_lag_ns: u64,
    /// Of the connection wait: the database held the connection longer than it ordinarily does.
    pub wait_on_database_ns: u64,
    /// Of the connection wait: the generator was late to use or to free the connection.
    pub wait_on_generator_ns: u64,
}

impl ResponseParts {
    /// From the arrival's intended start to its end.
    #[must_use]
    pub const fn response_ns(&self) -> u64 {
        self.schedule_lag_ns + self.connection_wait_ns + self.service_ns
    }
}

/// Means of the parts of [`ResponseParts`] over some transactions, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TailParts {
    pub schedule_lag_ms: f64,
    pub connection_wait_ms: f64,
    pub service_ms: f64,
    #[serde(default)]
    pub read_lag_ms: f64,
    #[serde(default)]
    pub wait_on_database_ms: f64,
    #[serde(default)]
    pub wait_on_generator_ms: f64,
}

impl TailParts {
    /// What the generator made: it sent late, read late, or kept others waiting by either.
    #[must_use]
    pub fn generator_ms(&self) -> f64 {
        self.schedule_lag_ms + self.read_lag_ms + self.wait_on_generator_ms
    }

    /// What the number of connections made: waiting behind transactions that took no longer than
    /// they ordinarily do.
    #[must_use]
    pub fn pool_ms(&self) -> f64 {
        let others = self.wait_on_database_ms + self.wait_on_generator_ms;
        (self.connection_wait_ms - others).max(0.0)
    }

    /// What the database made: service, and the wait for connections that it held unusually long.
    #[must_use]
    pub fn database_ms(&self) -> f64 {
        (self.service_ms - self.read_lag_ms).max(0.0) + self.wait_on_database_ms
    }

    /// The whole response time.
    #[must_use]
    pub fn response_ms(&self) -> f64 {
        self.schedule_lag_ms + self.connection_wait_ms + self.service_ms
    }

    /// What one of them made; 0 for nobody.
    #[must_use]
    pub fn made_by_ms(&self, blamed: Blamed) -> f64 {
        match blamed {
            Blamed::Database => self.database_ms(),
            Blamed::Pool => self.pool_ms(),
            Blamed::Generator => self.generator_ms(),
            Blamed::None => 0.0,
        }
    }

    /// Who made the largest part. Of equal parts the generator is blamed before the pool and the
    /// pool before the database: the generator is a suspect, and a database is not accused on a
    /// doubt.
    #[must_use]
    pub fn blamed(&self) -> Blamed {
        let suspects = [Blamed::Generator, Blamed::Pool, Blamed::Database];
        let largest = suspects.map(|b| self.made_by_ms(b)).into_iter().fold(0.0, f64::max);
        if largest <= 0.0 {
            return Blamed::None;
        }
        let made_it = |b: &Blamed| self.made_by_ms(*b) >= largest;
        suspects.into_iter().find(made_it).unwrap_or(Blamed::None)
    }
}

/// Sums of the parts by response time, so that a tail can be attributed by averaging each part
/// over the transactions at or above a percentile (never by subtracting percentiles).
///
/// The buckets are logarithmic: 16 to an octave, so a percentile's own bucket is at most 6.25 %
/// wide. Only those that hold something are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct TailSums {
    buckets: Vec<Bucket>,
}

/// The number of transactions, and the sums of schedule lag, connection wait, service, read lag,
/// wait on the database and wait on the generator in nanoseconds.
type Bucket = [u64; 7];

const BUCKETS_PER_OCTAVE: u64 = 16;
const BUCKETS: usize = 48 * BUCKETS_PER_OCTAVE as usize;

impl Default for TailSums {
    fn default() -> Self {
        Self { buckets: vec![Bucket::default(); BUCKETS] }
    }
}

impl TailSums {
    /// Adds one transaction.
    pub fn record(&mut self, parts: &ResponseParts) {
        let one = [
            1,
            parts.schedule_lag_ns,
            parts.connection_wait_ns,
            parts.service_ns,
            parts.read_lag_ns,
            parts.wait_on_database_ns,
            parts.wait_on_generator_ns,
        ];
        add(&mut self.buckets[index(parts.response_ns())], &one);
    }

    /// Adds every transaction of another set.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            add(mine, theirs);
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.fill(Bucket::default());
    }

    /// The mean of each part over the transactions at or above a quantile (0.0 to 1.0) of
    /// response time; `None` when empty.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn mean_above(&self, quantile: f64) -> Option<TailParts> {
        let total: u64 = self.buckets.iter().map(|b| b[0]).sum();
        if total == 0 {
            return None;
        }
        let wanted = (total - ((total as f64 * quantile).floor() as u64).min(total)).max(1);
        let mut tail = Bucket::default();
        for bucket in self.buckets.iter().rev() {
            add(&mut tail, bucket);
            if tail[0] >= wanted {
                break;
            }
        }
        let mean = |sum: u64| sum as f64 / tail[0] as f64 / 1e6;
        Some(TailParts {
            schedule_lag_ms: mean(tail[1]),
            connection_wait_ms: mean(tail[2]),
            service_ms: mean(tail[3]),
            read_lag_ms: mean(tail[4]),
            wait_on_database_ms: mean(tail[5]),
            wait_on_generator_ms: mean(tail[6]),
        })
    }
}

fn add(mine: &mut Bucket, theirs: &Bucket) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

/// The octave is the position of the highest set bit, the four bits below it the bucket.
fn index(ns: u64) -> usize {
    let ns = ns.max(BUCKETS_PER_OCTAVE);
    let octave = ns.ilog2();
    let within = (ns >> (octave - 4)) & 0xf;
    let index = u64::from(octave - 4) * BUCKETS_PER_OCTAVE + within;
    usize::try_from(index).map_or(BUCKETS - 1, |i| i.min(BUCKETS - 1))
}

/// The form in files and frames. Sums that an earlier version did not keep read as 0, and buckets
/// that a later one may have added are left out.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    /// By place; the empty ones are left out.
    Filled(Vec<(usize, Vec<u64>)>),
    /// All of them, as earlier versions wrote it.
    All { buckets: Vec<Vec<u64>> },
}

impl From<TailSums> for Written {
    fn from(sums: TailSums) -> Self {
        let filled = sums.buckets.into_iter().enumerate().filter(|(_, bucket)| bucket[0] > 0);
        Self::Filled(filled.map(|(place, bucket)| (place, bucket.to_vec())).collect())
    }
}

impl From<Written> for TailSums {
    fn from(written: Written) -> Self {
        let read = match written {
            Written::Filled(filled) => filled,
            Written::All { buckets } => buckets.into_iter().enumerate().collect(),
        };
        let mut sums = Self::default();
        for (place, values) in read {
            if let Some(bucket) = sums.buckets.get_mut(place) {
                bucket.iter_mut().zip(values).for_each(|(kept, read)| *kept = read);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn parts(lag: f64, wait: f64, service: f64) -> TailParts {
        TailParts {
            schedule_lag_ms: lag,
            connection_wait_ms: wait,
            service_ms: service,
            ..TailParts::default()
        }
    }

    #[test]
    fn a_tail_is_the_mean_of_the_slowest() {
        let mut sums = TailSums::default();
        for _ in 0..99 {
            sums.record(&ResponseParts { service_ns: MS, ..ResponseParts::default() });
        }
        sums.record(&ResponseParts {
            schedule_lag_ns: 176 * MS,
            connection_wait_ns: 10 * MS,
            service_ns: 3 * MS,
            read_lag_ns: 2 * MS,
            wait_on_database_ns: MS,
            wait_on_generator_ns: 4 * MS,
        });
        let tail = sums.mean_above(0.99).unwrap();
        let expected = TailParts {
            read_lag_ms: 2.0,
            wait_on_database_ms: 1.0,
            wait_on_generator_ms: 4.0,
            ..parts(176.0, 10.0, 3.0)
        };
        assert_eq!(tail, expected);
        assert_eq!(TailSums::default().mean_above(0.99), None);
    }

    #[test]
    fn the_largest_part_is_blamed_and_a_doubt_falls_on_the_generator() {
        assert_eq!(parts(1.0, 2.0, 3.0).blamed(), Blamed::Database);
        assert_eq!(parts(1.0, 189.7, 28.0).blamed(), Blamed::Pool);
        assert_eq!(parts(175.0, 3.0, 28.0).blamed(), Blamed::Generator);
        assert_eq!(parts(5.0, 5.0, 5.0).blamed(), Blamed::Generator);
        assert_eq!(parts(0.0, 5.0, 5.0).blamed(), Blamed::Pool);
        assert_eq!(parts(0.0, 0.0, 0.0).blamed(), Blamed::None);
    }

    #[test]
    fn a_wait_is_laid_to_whoever_held_the_connection_and_the_parts_add_up() {
        let frozen = TailParts { wait_on_database_ms: 180.0, ..parts(1.0, 189.7, 28.0) };
        assert_eq!(frozen.blamed(), Blamed::Database);
        let stalled =
            TailParts { read_lag_ms: 20.0, wait_on_generator_ms: 170.0, ..parts(1.0, 189.7, 28.0) };
        assert_eq!(stalled.blamed(), Blamed::Generator);
        for tail in [frozen, stalled] {
            let sum = tail.generator_ms() + tail.pool_ms() + tail.database_ms();
            assert!((sum - 218.7).abs() < 1e-9, "{sum}");
        }
    }

    #[test]
    fn every_sum_survives_a_frame_and_empty_buckets_take_no_room() {
        let mut sums = TailSums::default();
        for n in 1..1_000 {
            let (lag, wait, service) = (n, n * 1_000, n * 100_000);
            sums.record(&ResponseParts {
                schedule_lag_ns: lag,
                connection_wait_ns: wait,
                service_ns: service,
                read_lag_ns: n,
                ..ResponseParts::default()
            });
        }
        let text = serde_json::to_string(&sums).unwrap();
        assert_eq!(serde_json::from_str::<TailSums>(&text).unwrap(), sums);
        assert_eq!(serde_json::to_string(&TailSums::default()).unwrap(), "[]");
    }

    #[test]
    fn sums_that_an_earlier_version_wrote_are_read() {
        let mut expected = TailSums::default();
        expected.record(&ResponseParts { service_ns: 16, ..ResponseParts::default() });
        for text in ["[[0,[1,0,0,16]],[100000,[1,0,0,9]]]", r#"{"buckets":[[1,0,0,16],[0,0,0,0]]}"#]
        {
            assert_eq!(serde_json::from_str::<TailSums>(text).unwrap(), expected, "{text}");
        }
    }
}
