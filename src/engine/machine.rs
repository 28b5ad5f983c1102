//! What the engine says of the machine that it runs on.

use crate::model::Machine;

/// This machine and build, as calibrations are kept by.
#[must_use]
pub fn machine() -> Machine {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Machine {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        cpu: processor_model().unwrap_or_default(),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        build: super::build().to_owned(),
    }
}

/// The runner's type for the record: processors, system and architecture, for example
/// `2 × Intel(R) Xeon(R) Processor, Linux 6.1.0 x86_64`.
pub fn runner_description() -> String {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let system = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let model = processor_model().unwrap_or_else(|| "processors".to_owned());
    format!(
        "{processors} × {model}, {} {} {}",
        part(system.sysname()),
        part(system.release()),
        part(system.machine())
    )
}

/// Linux tells it; elsewhere there is none.
fn processor_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Resident memory of this process in MiB, where the system tells.
pub fn resident_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u32 = text.split_whitespace().nth(1)?.parse().ok()?;
    let page_kib = u32::try_from(rustix::param::page_size() / 1024).ok()?;
    Some(f64::from(pages) * f64::from(page_kib) / 1024.0)
}
