//! The operator's notification hook: a command that gets each notable event as JSON.

use std::{process::Stdio, time::Duration};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::model::{Event, EventKind, GuardState};

/// How long a hook may take before it is ended.
const LIMIT: Duration = Duration::from_secs(30);

/// Whether an event is worth waking someone.
pub fn is_notable(kind: &EventKind) -> bool {
    match kind {
        EventKind::DecisionAsked { .. }
        | EventKind::RunEnded { .. }
        | EventKind::AgentLost { .. } => true,
        EventKind::Guard { state, .. } => *state != GuardState::Ok,
        EventKind::TeardownEnded { remaining_count, .. } => *remaining_count > 0,
        _ => false,
    }
}

/// Runs the hook on one event: its JSON on standard input, its name in `RAMPDECK_EVENT`. A hook
/// that fails is logged and changes nothing.
pub fn notify(hook: &[String], run: &str, event: &Event) -> Option<tokio::task::JoinHandle<()>> {
    let (program, arguments) = hook.split_first()?;
    let mut json = match serde_json::to_value(event) {
        Ok(value) => value,
        Err(error) => {
            tracing::warn!("an event cannot be written as JSON: {error}");
            return None;
        }
    };
    json["run"] = run.into();
    json["text"] = event.kind.text().into();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("RAMPDECK_EVENT", json["event"].as_str().unwrap_or_default())
        .env("RAMPDECK_RUN", run)
        // The mark of the run's own processes, which a teardown ends: a hook is not one.
        .env_remove(crate::provider::process::RUN_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let program = program.clone();
    Some(tokio::spawn(async move {
        let outcome = tokio::time::timeout(LIMIT, async {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                // A hook that does not read its input is free not to.
                let _ = stdin.write_all(format!("{json}\n").as_bytes()).await;
            }
            child.wait().await
        })
        .await;
        match outcome {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => {
                tracing::warn!("the notification command {program} ended with {status}")
            }
            Ok(Err(error)) => tracing::warn!("the notification command {program}: {error}"),
            Err(_) => {
                tracing::warn!("the notification command {program} took over 30 s and was ended")
            }
        }
    }))
}
