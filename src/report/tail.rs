//! Who made the tail, and a short form of the sums it is told from.

use serde::{Deserialize, Serialize};

use crate::model::{TailParts, TailSums};

/// The part of the system that made the slowest transactions slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blamed {
    /// Service time: the database and the way to it, retries included.
    Database,
    /// Waiting for a free connection.
    Pool,
    /// Schedule lag: the generator sent later than it could have.
    Generator,
    /// There is no tail: nothing succeeded, or nothing took any time.
    None,
}

/// Blames the part with the largest mean over the slowest transactions. Of equal parts the
/// generator is blamed before the pool and the pool before the database: the generator is a
/// suspect, and a database is not accused on a doubt.
#[must_use]
pub fn blame(tail: Option<&TailParts>) -> Blamed {
    let Some(tail) = tail else { return Blamed::None };
    let largest = tail.schedule_lag_ms.max(tail.connection_wait_ms).max(tail.service_ms);
    if largest <= 0.0 {
        Blamed::None
    } else if tail.schedule_lag_ms >= largest {
        Blamed::Generator
    } else if tail.connection_wait_ms >= largest {
        Blamed::Pool
    } else {
        Blamed::Database
    }
}

/// [`TailSums`] without its empty buckets: what a histogram log keeps of each window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SparseTail(Vec<(usize, [u64; 4])>);

#[derive(Serialize, Deserialize)]
struct Buckets {
    buckets: Vec<[u64; 4]>,
}

impl SparseTail {
    pub(super) fn from_sums(sums: &TailSums) -> Result<Self, serde_json::Error> {
        let all: Buckets = serde_json::from_value(serde_json::to_value(sums)?)?;
        let filled = all.buckets.into_iter().enumerate().filter(|(_, bucket)| bucket[0] > 0);
        Ok(Self(filled.collect()))
    }

    /// The sums again; buckets that a later version may have added are left out.
    pub(super) fn to_sums(&self) -> Result<TailSums, serde_json::Error> {
        let mut all: Buckets = serde_json::from_value(serde_json::to_value(TailSums::default())?)?;
        for (index, filled) in &self.0 {
            if let Some(bucket) = all.buckets.get_mut(*index) {
                *bucket = *filled;
            }
        }
        serde_json::from_value(serde_json::to_value(all)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(schedule_lag_ms: f64, connection_wait_ms: f64, service_ms: f64) -> TailParts {
        TailParts { schedule_lag_ms, connection_wait_ms, service_ms }
    }

    #[test]
    fn the_largest_part_is_blamed_and_a_doubt_falls_on_the_generator() {
        assert_eq!(blame(Some(&parts(1.0, 2.0, 3.0))), Blamed::Database);
        assert_eq!(blame(Some(&parts(1.0, 189.7, 28.0))), Blamed::Pool);
        assert_eq!(blame(Some(&parts(175.0, 3.0, 28.0))), Blamed::Generator);
        assert_eq!(blame(Some(&parts(5.0, 5.0, 5.0))), Blamed::Generator);
        assert_eq!(blame(Some(&parts(0.0, 5.0, 5.0))), Blamed::Pool);
        assert_eq!(blame(Some(&parts(0.0, 0.0, 0.0))), Blamed::None);
        assert_eq!(blame(None), Blamed::None);
    }

    #[test]
    fn the_short_form_keeps_every_sum() {
        let mut sums = TailSums::default();
        for n in 1..1_000 {
            sums.record(n, n * 1_000, n * 100_000);
        }
        let short = SparseTail::from_sums(&sums).unwrap();
        let text = serde_json::to_string(&short).unwrap();
        let back: SparseTail = serde_json::from_str(&text).unwrap();
        assert_eq!(back.to_sums().unwrap(), sums);
        assert!(text.len() < serde_json::to_string(&sums).unwrap().len() / 2);
    }
}
