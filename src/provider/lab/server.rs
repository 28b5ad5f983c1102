//! The lab's server process: found by its data folder, whoever started it last.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    model::ProcessIdentity,
    provider::process::{self, EndError},
};

/// The server that runs in this data folder now, if one does. An operator may have restarted it:
/// what counts is `postmaster.pid`, and that the process named there is a server that really works
/// in the folder.
#[must_use]
pub(in crate::provider) fn postmaster(data: &Path) -> Option<ProcessIdentity> {
    let pid_file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = pid_file.lines().next()?.trim().parse().ok()?;
    let found = process::identity(pid)?;
    is_server_of(pid, data).then_some(found)
}

/// Whether the server in this folder says that it takes connections.
pub(super) fn is_ready(data: &Path) -> bool {
    const STATUS_LINE: usize = 7;
    fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|pid_file| {
        pid_file.lines().nth(STATUS_LINE).is_some_and(|status| status.trim() == "ready")
    })
}

/// Every process of the server in this data folder: its own, and what they have started. Whoever
/// else stands there, an operator's shell for example, is none. Only the server's own first process
/// elsewhere than on Linux.
#[must_use]
pub(in crate::provider) fn processes(data: &Path) -> Vec<ProcessIdentity> {
    #[cfg(target_os = "linux")]
    {
        let all: Vec<u32> = process::all_pids().collect();
        let mut found: Vec<u32> =
            all.iter().copied().filter(|pid| is_server_of(*pid, data)).collect();
        // A command that the server runs, to archive for example, stands there as well.
        let standing: Vec<u32> =
            all.into_iter().filter(|pid| !found.contains(pid) && works_in(*pid, data)).collect();
        let is_child = |found: &[u32], pid: &u32| {
            !found.contains(pid) && process::parent(*pid).is_some_and(|p| found.contains(&p))
        };
        while let Some(child) = standing.iter().find(|pid| is_child(&found, pid)) {
            found.push(*child);
        }
        found.into_iter().filter_map(process::identity).collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        postmaster(data).into_iter().collect()
    }
}

#[cfg(target_os = "linux")]
fn is_server_of(pid: u32, data: &Path) -> bool {
    works_in(pid, data)
        && fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.file_name().is_some_and(is_server_program))
}

/// Also one that was replaced since by an upgrade, and one that a distribution starts by a script.
#[cfg(target_os = "linux")]
fn is_server_program(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    matches!(name, "postgres" | ".postgres-wrapped")
}

#[cfg(not(target_os = "linux"))]
fn is_server_of(pid: u32, data: &Path) -> bool {
    works_in(pid, data)
}

#[cfg(target_os = "linux")]
fn works_in(pid: u32, data: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == resolved(data))
}

/// Elsewhere the command's line must name the folder: the server is started with it.
#[cfg(not(target_os = "linux"))]
fn works_in(pid: u32, data: &Path) -> bool {
    let output = std::process::Command::new("/bin/ps")
        .args(["-ww", "-o", "command=", "-p", &pid.to_string()])
        .output();
    let data = resolved(data);
    output.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).contains(&*data.to_string_lossy())
    })
}

fn resolved(data: &Path) -> PathBuf {
    fs::canonicalize(data).unwrap_or_else(|_| data.to_owned())
}

/// Stops the server in this folder and waits until nothing works there any more: first in order,
/// then without, then by force. Whether anything had to be stopped.
///
/// # Errors
/// When a process cannot be signalled or outlives SIGKILL.
pub(in crate::provider) async fn stop(
    data: &Path,
    recorded: Option<ProcessIdentity>,
) -> Result<bool, EndError> {
    const STEPS: [(Signal, Duration); 2] =
        [(Signal::INT, Duration::from_secs(15)), (Signal::QUIT, Duration::from_secs(5))];
    let recorded = recorded.filter(process::is_alive);
    let mut acted = false;
    for (signal, patience) in STEPS {
        let Some(server) = postmaster(data).or(recorded) else { break };
        acted |= process::send(&server, signal)?;
        if none_within(data, recorded, patience).await {
            return Ok(acted);
        }
    }
    let mut left = processes(data);
    left.extend(recorded.filter(process::is_alive).filter(|server| !left.contains(server)));
    for one in left {
        acted |= process::end(&one, Duration::ZERO).await? != process::Ended::Already;
    }
    Ok(acted)
}

async fn none_within(data: &Path, recorded: Option<ProcessIdentity>, patience: Duration) -> bool {
    let gone = async {
        while recorded.is_some_and(|server| process::is_alive(&server))
            || !processes(data).is_empty()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, gone).await.is_ok()
}
