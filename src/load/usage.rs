//! How much of the machine the agent uses.

use super::clock;
use crate::model::{Recording, RunnerSample, ThreadSample};

/// Measures CPU use from when it was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    processors: u32,
    wall: u64,
    cpu: u64,
    host: Option<HostTime>,
}

/// Ticks of all the machine's processors since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostTime {
    busy: u64,
    all: u64,
}

impl Meter {
    /// Starts now.
    pub(super) fn start() -> Self {
        Self {
            processors: processors(),
            wall: clock::now(),
            cpu: clock::process_cpu(),
            host: HostTime::read(),
        }
    }

    /// The use since the start; what the threads recorded in the same time is the caller's to add.
    #[allow(clippy::cast_precision_loss)] // nanoseconds of days, ticks of centuries
    pub(super) fn read(&self) -> RunnerSample {
        let now = Self::start();
        let wall = now.wall.saturating_sub(self.wall).max(1) as f64;
        let cpu = now.cpu.saturating_sub(self.cpu) as f64;
        let host = self.host.zip(now.host).and_then(|(before, now)| before.percent(now));
        RunnerSample {
            cpu_percent: (cpu / wall / f64::from(self.processors) * 100.0).min(100.0),
            host_cpu_percent: host,
            rss_mib: resident_mib(),
            processors: self.processors,
            ..RunnerSample::default()
        }
    }
}

/// How late one load thread was.
pub(super) fn thread_sample(thread: usize, loop_lag: &Recording, stalls: u64) -> ThreadSample {
    let thread = u32::try_from(thread).unwrap_or(u32::MAX);
    ThreadSample { thread, loop_lag: loop_lag.quantiles(), stalls }
}

/// How many processors this process may use.
pub(super) fn processors() -> u32 {
    std::thread::available_parallelism()
        .map_or(1, |number| u32::try_from(number.get()).unwrap_or(u32::MAX))
}

impl HostTime {
    fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal; guest time is part
    /// of user time.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let all: u64 = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
        Some(Self { busy: all.checked_sub(idle)?, all })
    }

    #[allow(clippy::cast_precision_loss)]
    fn percent(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        let busy = later.busy.saturating_sub(self.busy);
        Some((busy as f64 / all as f64 * 100.0).min(100.0))
    }
}

/// Resident memory in MiB; 0 where the system does not tell.
#[allow(clippy::cast_precision_loss)]
fn resident_mib() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages
        .map_or(0.0, |pages| (pages * rustix::param::page_size() as u64) as f64 / (1024.0 * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_use_is_what_is_not_idle() {
        let before = HostTime::parse("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1").unwrap();
        assert_eq!(before, HostTime { busy: 150, all: 1_000 });
        let later = HostTime { busy: 180, all: 1_100 };
        assert!((before.percent(later).unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(before.percent(before), None);
        assert_eq!(HostTime::parse("nonsense"), None);
    }

    #[test]
    fn a_busy_loop_shows_in_the_process_s_use() {
        let meter = Meter::start();
        let until = clock::process_cpu() + 20 * clock::MS_NS;
        while clock::process_cpu() < until {
            std::hint::spin_loop();
        }
        let sample = meter.read();
        assert!(sample.cpu_percent > 0.0, "{sample:?}");
        assert!(sample.rss_mib > 1.0 || !cfg!(target_os = "linux"));
    }
}
