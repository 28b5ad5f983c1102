//! The load agent as the engine sees it: a child process that takes commands and gives reports.

use std::{path::Path, process::Stdio};

use tokio::{
    process::{Child, Command as Process},
    sync::mpsc,
};

use super::input::Input;
use crate::{
    link::{FrameReader, FrameWriter},
    model::{AgentCommand, AgentReport, RunId},
    provider::process,
};

/// A running agent. Dropping it closes the agent's standard input, which ends it.
pub struct Agent {
    pub pid: u32,
    pub generation: u64,
    commands: mpsc::UnboundedSender<AgentCommand>,
}

impl Agent {
    /// Starts the agent and the tasks that carry its words.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(
        exe: &Path,
        run: &RunId,
        generation: u64,
        inputs: mpsc::Sender<Input>,
    ) -> std::io::Result<Self> {
        let mut child = Process::new(exe)
            .arg("agent")
            // By which a sweep finds it where its identity never reached the journal.
            .env(process::RUN_VARIABLE, run.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let pid = child.id().unwrap_or_default();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(std::io::Error::other("the agent has no pipes"));
        };
        let (commands, mut queue) = mpsc::unbounded_channel::<AgentCommand>();
        tokio::spawn(async move {
            let mut writer = FrameWriter::new(stdin);
            while let Some(command) = queue.recv().await {
                if writer.send(&command).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(read_reports(child, FrameReader::new(stdout), generation, inputs));
        Ok(Self { pid, generation, commands })
    }

    /// Sends a command; to an agent that has died it goes nowhere, and its loss is told by
    /// [`Input::AgentGone`].
    pub fn send(&self, command: AgentCommand) {
        let _ = self.commands.send(command);
    }
}

async fn read_reports(
    mut child: Child,
    mut reader: FrameReader<tokio::process::ChildStdout>,
    generation: u64,
    inputs: mpsc::Sender<Input>,
) {
    let broken = loop {
        match reader.next::<AgentReport>().await {
            Ok(Some(report)) => {
                if inputs.send(Input::Agent { generation, report }).await.is_err() {
                    return;
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    if broken.is_some() {
        // What it says makes no sense any more: it is not to be trusted with load.
        let _ = child.start_kill();
    }
    let ended = match child.wait().await {
        Ok(status) => format!("it ended with {status}"),
        Err(error) => format!("it cannot be waited for: {error}"),
    };
    let why = broken.map_or(ended.clone(), |error| format!("{error}; {ended}"));
    let _ = inputs.send(Input::AgentGone { generation, why }).await;
}
