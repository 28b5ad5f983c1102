//! Removing a run whose engine does not answer: by the command line's own teardown, in a process
//! of its own that outlives this console, since what it does must not end with a terminal.

use std::{io, os::unix::process::CommandExt, process::Stdio};

use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{ChildStderr, ChildStdout, Command},
    sync::mpsc::UnboundedSender,
};

use crate::model::{RunId, TeardownItem};

use super::update::Msg;

/// What the removal tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Removal {
    /// What has become of one thing.
    Item(TeardownItem),
    /// Something that an operator should know, in words.
    Said(String),
    /// It is over: how much remains, and the exit code; `None` where it was never counted.
    Ended { remaining: Option<u64>, exit_code: u8 },
}

/// A line of `rampdeck teardown --json`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Item { item: TeardownItem },
    Ended { remaining_count: u64 },
}

/// Starts the removal and tells of it.
///
/// # Errors
/// When the process cannot be started.
pub(super) fn start(run: &RunId, tell: UnboundedSender<Msg>) -> io::Result<()> {
    let mut command = std::process::Command::new(program());
    command.arg("teardown").arg(run.as_str()).args(["--yes", "--json"]);
    // Of a group of its own: a terminal that hangs up does not end it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = Command::from(command).spawn()?;
    let streams = child.stdout.take().zip(child.stderr.take());
    tokio::spawn(async move {
        let mut remaining = None;
        if let Some((stdout, stderr)) = streams {
            remaining = follow(stdout, stderr, &tell).await;
        }
        let code = child.wait().await.ok().and_then(|status| status.code());
        let exit_code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        let _ = tell.send(Msg::Removal(Removal::Ended { remaining, exit_code }));
    });
    Ok(())
}

/// This program, also where its file has been replaced since it was started.
fn program() -> std::path::PathBuf {
    let running = std::path::Path::new("/proc/self/exe");
    if running.exists() { running.to_owned() } else { std::env::current_exe().unwrap_or_default() }
}

async fn follow(
    stdout: ChildStdout,
    stderr: ChildStderr,
    tell: &UnboundedSender<Msg>,
) -> Option<u64> {
    let mut lines: Lines<_> = BufReader::new(stdout).lines();
    let mut errors: Lines<_> = BufReader::new(stderr).lines();
    let (mut remaining, mut talks) = (None, true);
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(Line::Item { item }) => {
                        let _ = tell.send(Msg::Removal(Removal::Item(item)));
                    }
                    Ok(Line::Ended { remaining_count }) => remaining = Some(remaining_count),
                    Err(_) => {
                        let _ = tell.send(Msg::Removal(Removal::Said(line)));
                    }
                },
                Ok(None) | Err(_) => return remaining,
            },
            line = errors.next_line(), if talks => match line {
                Ok(Some(line)) => {
                    let _ = tell.send(Msg::Removal(Removal::Said(line)));
                }
                Ok(None) | Err(_) => talks = false,
            },
        }
    }
}
