//! What a machine can generate, as `rampdeck calibrate` measured it.

use serde::{Deserialize, Serialize};

/// The machine and the build that a calibration holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub host: String,
    /// The processors' model, empty where the system does not tell.
    pub cpu: String,
    /// Processors that may be used.
    pub processors: u32,
    /// Version and commit of rampdeck.
    pub build: String,
}

/// What one kind of transactions costs the generator, and how much of it it can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// CPU time of the generator for a transaction at the highest rate that was carried, in µs.
    pub cpu_us: f64,
    /// Transactions that one processor can generate in a second at that cost.
    pub per_processor_s: f64,
    /// Transactions a second of a closed loop: as many as generator and endpoint do together on
    /// this machine.
    pub closed_loop_s: f64,
    /// The highest arrival rate that was carried with p99 of schedule lag and connection wait below
    /// 1 ms each, per second; `None` where none of those that were tried was.
    pub highest_rate: Option<f64>,
    /// The lowest arrival rate that was tried and not carried so, per second.
    pub not_carried: Option<f64>,
}

/// How late transactions start at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartLag {
    /// Arrivals per second.
    pub rate: f64,
    /// Completed per second.
    pub achieved: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// What a transaction costs with this many connections, all at the same rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionCost {
    pub connections: u32,
    /// CPU time of the generator for a transaction, in µs.
    pub cpu_us: f64,
}

/// A machine's calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub machine: Machine,
    /// When it was made, RFC 3339.
    pub made: String,
    /// Length of each step's measured span, in seconds.
    pub step_s: f64,
    /// Product lookups: three round trips each.
    pub read: Throughput,
    /// The usual mix of the four transactions.
    pub order_mix: Throughput,
    /// Transactions of one round trip.
    pub start_lag: Vec<StartLag>,
    /// Product lookups at [`Calibration::CONNECTIONS_RATE`].
    pub connections: Vec<ConnectionCost>,
    /// The first number of connections with which a transaction costs more than 1.5 × that with
    /// the least; `None` where none of them did.
    pub bends_at: Option<u32>,
    /// What a reader must know: other load on the machine, steps that could not be made.
    pub remarks: Vec<String>,
}

impl Calibration {
    /// The rate at which the connection counts are compared, arrivals per second.
    pub const CONNECTIONS_RATE: f64 = 1_000.0;
}

/// A cell's load on the generator beside what its runner was calibrated for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Completed per second, the cell's and the highest that the runner was calibrated for.
    pub rate: f64,
    pub highest_rate: f64,
    /// CPU time of the generator for a transaction in µs, the cell's and the calibration's.
    pub cpu_us: f64,
    pub calibrated_cpu_us: f64,
}

impl Calibrated {
    /// How much of what the runner was calibrated for the cell took, in percent: by its rate or by
    /// its CPU time, whichever is more.
    #[must_use]
    pub fn used_percent(&self) -> f64 {
        let by_rate = self.rate / self.highest_rate;
        let by_cpu = by_rate * (self.cpu_us / self.calibrated_cpu_us);
        100.0 * by_rate.max(by_cpu)
    }
}
