//! Processes that are measured: their processor time, their memory, their end.

use std::{
    fs,
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use rustix::process::{Resource, getrlimit, setrlimit};

use super::Failure;

/// Processor time of all living threads of a process, in nanoseconds: what the scheduler has
/// counted, exact where the usual ticks are a hundredth of a second.
pub fn cpu_ns(pid: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else {
            return Err("a thread ended while its processor time was read".into());
        };
        let ns = text.split_whitespace().next().unwrap_or_default();
        sum += ns.parse::<u64>().map_err(|_| format!("no processor time in {text:?}"))?;
    }
    Ok(sum)
}

/// Resident memory in MiB.
pub fn resident_mib(pid: u32) -> Result<f64, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .ok_or("no resident memory in the process's status")?;
    Ok(kib / 1024.0)
}

/// A child that does not outlive the benchmark's interest in it.
pub struct Owned(pub Child);

impl Owned {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has ended by itself.
    pub fn ended_within(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if began.elapsed() > limit {
                return Err(format!("process {} did not end within {limit:?}", self.pid()).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Gone already unless a measurement has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Descriptors for thousands of connections, for this process and those it starts.
pub fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, the largest counts of connections fail and say so.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// How many threads a generator may well use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}
