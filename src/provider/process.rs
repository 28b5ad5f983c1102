//! Processes told apart from later ones with the same number, and their end.

use std::{io, time::Duration};

use rustix::{
    io::Errno,
    process::{Pid, Signal},
};

use crate::model::ProcessIdentity;

/// How long a process may take to vanish after SIGKILL: it can only be held by the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// How often a process that is to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was gone before anything was done.
    Already,
    /// After SIGTERM, or by itself.
    Quietly,
    /// Only SIGKILL helped.
    Killed,
}

/// Why a process could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    #[error("process {pid} cannot be sent a signal: {source}")]
    Signal { pid: u32, source: io::Error },
    #[error("process {pid} is still there {} s after SIGKILL", KILL_PATIENCE.as_secs())]
    Remains { pid: u32 },
}

/// Who the process with this number is now; `None` where there is none, or only its exit status
/// waits to be collected.
#[must_use]
pub fn identity(pid: u32) -> Option<ProcessIdentity> {
    imp::start_of(pid).map(|start| ProcessIdentity { pid, start })
}

/// Who this process is.
#[must_use]
pub fn own_identity() -> Option<ProcessIdentity> {
    identity(std::process::id())
}

/// Whether this very process still runs.
#[must_use]
pub fn is_alive(process: &ProcessIdentity) -> bool {
    imp::start_of(process.pid) == Some(process.start)
}

/// Ends a process: SIGTERM, and SIGKILL if it is still there after `grace`. Before each signal it
/// is made sure that the number still means this process.
///
/// # Errors
/// When a signal is refused, or the process outlives SIGKILL.
pub async fn end(process: &ProcessIdentity, grace: Duration) -> Result<Ended, EndError> {
    if !send(process, Signal::TERM)? {
        return Ok(Ended::Already);
    }
    if gone_within(process, grace).await {
        return Ok(Ended::Quietly);
    }
    if !send(process, Signal::KILL)? {
        return Ok(Ended::Quietly);
    }
    if gone_within(process, KILL_PATIENCE).await {
        Ok(Ended::Killed)
    } else {
        Err(EndError::Remains { pid: process.pid })
    }
}

/// Waits until the process is gone, at most for `patience`; whether it is.
pub async fn gone_within(process: &ProcessIdentity, patience: Duration) -> bool {
    let gone = async {
        while is_alive(process) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(patience, gone).await.is_ok()
}

/// Sends a signal to this very process; whether there was one to get it.
pub(super) fn send(process: &ProcessIdentity, signal: Signal) -> Result<bool, EndError> {
    let failed = |source: Errno| EndError::Signal { pid: process.pid, source: source.into() };
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return Ok(false);
    };
    match imp::send(process, pid, signal) {
        Ok(sent) => Ok(sent),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::{
        io::Errno,
        process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
    };

    use crate::model::ProcessIdentity;

    /// Clock ticks from the system's start to the process's.
    pub(super) fn start_of(pid: u32) -> Option<u64> {
        super::parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The descriptor holds on to the process: once it is known to be the right one, the signal
    /// cannot reach another.
    pub(super) fn send(process: &ProcessIdentity, pid: Pid, signal: Signal) -> Result<bool, Errno> {
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Some(descriptor),
            // Kernels before 5.3, and some sandboxes.
            Err(Errno::NOSYS | Errno::PERM) => None,
            Err(error) => return Err(error),
        };
        if !super::is_alive(process) {
            return Ok(false);
        }
        match descriptor {
            Some(descriptor) => pidfd_send_signal(descriptor, signal)?,
            None => kill_process(pid, signal)?,
        }
        Ok(true)
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::{
        hash::{DefaultHasher, Hash, Hasher},
        process::Command,
    };

    use rustix::{
        io::Errno,
        process::{Pid, Signal, kill_process},
    };

    use crate::model::ProcessIdentity;

    /// A hash of the start time in words, to the second, in UTC.
    pub(super) fn start_of(pid: u32) -> Option<u64> {
        let output = Command::new("/bin/ps")
            .args(["-o", "state=,lstart=", "-p", &pid.to_string()])
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let (state, start) = text.trim().split_once(char::is_whitespace)?;
        if state.starts_with('Z') {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        start.trim().hash(&mut hasher);
        Some(hasher.finish())
    }

    pub(super) fn send(process: &ProcessIdentity, pid: Pid, signal: Signal) -> Result<bool, Errno> {
        if !super::is_alive(process) {
            return Ok(false);
        }
        kill_process(pid, signal)?;
        Ok(true)
    }
}

/// The number of every process of this machine.
#[cfg(target_os = "linux")]
pub(super) fn all_pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Who started a process, or has taken it over since.
#[cfg(target_os = "linux")]
pub(super) fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The environment variable by which processes that a run makes, and may end, are known to be its
/// own. What an operator's notification hook is told has another name: a hook is not the run's.
pub const RUN_VARIABLE: &str = "RAMPDECK_OWNED_BY";

/// The processes, this one apart, that were started with [`RUN_VARIABLE`] naming this run. Only
/// Linux can tell: elsewhere there are none.
#[must_use]
pub fn of_run(run: &crate::model::RunId) -> Vec<ProcessIdentity> {
    #[cfg(target_os = "linux")]
    {
        let wanted = format!("{RUN_VARIABLE}={run}").into_bytes();
        let is_ours = |pid: &u32| {
            *pid != std::process::id()
                && std::fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|all| all.split(|&b| b == 0).any(|one| one == wanted))
        };
        all_pids().filter(is_ours).filter_map(identity).collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _run = run;
        Vec::new()
    }
}

/// Start time from a line of `/proc/PID/stat`; `None` for a process that has ended. The name in
/// parentheses may itself hold spaces and parentheses: it ends at the last one.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn parse_stat(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // State is the third field, start time the 22nd.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const STAT: &str = "4242 (a) S (b c)) S 1 4242 4242 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 1 0 \
                        987654 1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0";

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        assert_eq!(parse_stat(STAT), Some(987_654));
        assert_eq!(parse_stat(&STAT.replace(")) S", ")) Z")), None, "a zombie is gone");
        assert_eq!(parse_stat("1 (x"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[tokio::test]
    async fn a_process_is_ended_and_its_number_alone_is_not_enough() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let process = identity(child.id()).unwrap();
        assert!(is_alive(&process));
        let other = ProcessIdentity { start: process.start + 1, ..process };
        assert!(!is_alive(&other));
        assert_eq!(end(&other, Duration::ZERO).await.unwrap(), Ended::Already);
        assert!(is_alive(&process), "the wrong identity must not be signalled");
        // Not collected yet: a zombie counts as gone.
        assert_eq!(end(&process, Duration::from_secs(60)).await.unwrap(), Ended::Quietly);
        child.wait().unwrap();
        assert_eq!(end(&process, Duration::ZERO).await.unwrap(), Ended::Already);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_notification_hook_is_not_the_runs_own() {
        let run = crate::model::RunId::new(format!("test-owned-{}", std::process::id()));
        let start = |variable| {
            let mut command = Command::new("sleep");
            command.arg("600").env(variable, run.as_str()).stdin(Stdio::null()).spawn().unwrap()
        };
        let (mut hook, mut own) = (start("RAMPDECK_RUN"), start(RUN_VARIABLE));
        let found = of_run(&run);
        for child in [&mut hook, &mut own] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [own.id()]);
    }

    #[tokio::test]
    async fn a_deaf_process_is_killed() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let process = identity(child.id()).unwrap();
        assert_eq!(end(&process, Duration::from_millis(50)).await.unwrap(), Ended::Killed);
        child.wait().unwrap();
    }
}
