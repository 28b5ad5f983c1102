//! One measurement of one peer, and what several come to.

use std::time::Instant;

use rampdeck::model::CellResult;

use super::{Failure, process};

/// What a peer is to generate.
#[derive(Clone, Copy)]
pub struct Load {
    /// Poisson arrivals per second.
    pub rate: f64,
    pub connections: u32,
    /// Length of the measured span.
    pub seconds: u32,
}

/// What comes before the measured span.
pub const WARM_UP_S: u32 = 3;
/// Of the rate, in percent: a peer that carries less is not doing the same work.
const LEAST_CARRIED_PERCENT: f64 = 97.0;
/// Of the transactions, in percent.
const MOST_FAILED_PERCENT: f64 = 0.5;

/// Something that generates the load.
pub trait Peer {
    fn name(&self) -> &'static str;

    /// Generates the load once, from a fresh process.
    fn run(&mut self, load: Load) -> Result<Sample, Failure>;
}

/// What a peer did within its measured span.
pub struct Sample {
    pub transactions: u64,
    pub failed: u64,
    pub seconds: f64,
    pub cpu_ns: u64,
    /// rampdeck's own figures.
    pub result: Option<Box<CellResult>>,
}

impl Sample {
    /// Processor time of the generator for each transaction, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_ns as f64 / 1e3 / self.transactions.max(1) as f64
    }

    pub fn rate(&self) -> f64 {
        self.transactions as f64 / self.seconds
    }

    /// Processors used.
    pub fn processors(&self) -> f64 {
        self.cpu_ns as f64 / 1e9 / self.seconds
    }

    /// That the peer did what it was told.
    pub fn check(&self, load: Load) -> Result<(), Failure> {
        let carried = 100.0 * self.rate() / load.rate;
        // Poisson arrivals scatter: three standard deviations are no shortfall.
        let scatter = 300.0 / (load.rate * self.seconds).sqrt();
        if carried < LEAST_CARRIED_PERCENT - scatter {
            return Err(format!("{:.0} of {:.0}/s carried", self.rate(), load.rate).into());
        }
        let failed = 100.0 * self.failed as f64 / self.transactions.max(1) as f64;
        if failed > MOST_FAILED_PERCENT {
            let of = self.transactions;
            return Err(format!("{} of {of} transactions failed", self.failed).into());
        }
        Ok(())
    }
}

/// Adds up a process's seconds from the first report within the measured span on.
pub struct Span {
    pid: u32,
    began: Option<(Instant, u64)>,
    ended: Option<(Instant, u64)>,
    pub transactions: u64,
    pub failed: u64,
}

impl Span {
    pub fn new(pid: u32) -> Self {
        Self { pid, began: None, ended: None, transactions: 0, failed: 0 }
    }

    /// A report has come of the time since the last one: the first one begins the span, and the
    /// others are within it.
    pub fn report(&mut self, transactions: u64, failed: u64) -> Result<(), Failure> {
        let now = (Instant::now(), process::cpu_ns(self.pid)?);
        if self.began.is_none() {
            self.began = Some(now);
        } else {
            self.transactions += transactions;
            self.failed += failed;
            self.ended = Some(now);
        }
        Ok(())
    }

    pub fn sample(self) -> Result<Sample, Failure> {
        let (Some(began), Some(ended)) = (self.began, self.ended) else {
            return Err("it gave no two reports within the measured span".into());
        };
        Ok(Sample {
            transactions: self.transactions,
            failed: self.failed,
            seconds: ended.0.duration_since(began.0).as_secs_f64(),
            cpu_ns: ended.1 - began.1,
            result: None,
        })
    }
}

/// Figures of the same kind.
#[derive(Default)]
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// Median, and in brackets the smallest and the largest.
    pub fn show(&self, digits: usize) -> String {
        let sorted = self.sorted();
        match (sorted.first(), sorted.last()) {
            (Some(least), Some(most)) => {
                format!("{:.digits$} ({least:.digits$}..{most:.digits$})", self.median())
            }
            _ => "–".into(),
        }
    }

    /// Median, and in brackets between which two of the values the true median lies with a
    /// confidence of 95 % or more (the sign test: of n values it is outside of the k-th from either
    /// end with a probability of 2 × P(X < k), X binomial of n and 1/2). All of them where there
    /// are too few for that.
    pub fn show_interval(&self, digits: usize) -> String {
        let sorted = self.sorted();
        let count = sorted.len();
        let (mut term, mut outside, mut from) = (0.5_f64.powi(count as i32), 0.0, 0);
        for k in 0..count / 2 {
            outside += 2.0 * term;
            if outside > 0.05 {
                break;
            }
            from = k;
            term *= (count - k) as f64 / (k + 1) as f64;
        }
        match (sorted.get(from), count.checked_sub(from + 1).and_then(|to| sorted.get(to))) {
            (Some(least), Some(most)) => {
                format!("{:.digits$} ({least:.digits$}..{most:.digits$})", self.median())
            }
            _ => "–".into(),
        }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}
