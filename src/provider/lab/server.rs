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
/// what counts is `postmaster.pid`, and that the process named there really works in the folder.
#[must_use]
pub(in crate::provider) fn postmaster(data: &Path) -> Option<ProcessIdentity> {
    let pid_file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = pid_file.lines().next()?.trim().parse().ok()?;
    let found = process::identity(pid)?;
    works_in(pid, data).then_some(found)
}

/// Whether the server in this folder says that it takes connections.
pub(super) fn is_ready(data: &Path) -> bool {
    const STATUS_LINE: usize = 7;
    fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|pid_file| {
        pid_file.lines().nth(STATUS_LINE).is_some_and(|status| status.trim() == "ready")
    })
}

/// Every process that works in this data folder: the server and its helpers, and whoever else
/// stands there. Only the server's own first process elsewhere than on Linux.
#[must_use]
pub(in crate::provider) fn processes(data: &Path) -> Vec<ProcessIdentity> {
    #[cfg(target_os = "linux")]
    {
        let pids = process::all_pids().filter(|pid| works_in(*pid, data));
        pids.filter_map(process::identity).collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        postmaster(data).into_iter().collect()
    }
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
