//! The load agent as the engine sees it: a child process that takes commands and gives reports.

use std::{
    collections::VecDeque,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    process::{Child, Command as Process},
    sync::{Notify, mpsc},
};

use super::input::Input;
use crate::{
    link::{FrameReader, FrameWriter},
    model::{AgentCommand, AgentReport, RunId},
    provider::process,
};

/// How long an agent may say nothing before it counts as hung: it reports every second.
const SILENCE: Duration = Duration::from_secs(15);
/// So many agents lost within [`LOSS_SPAN`], and the run is ended: it would only burn money.
const MOST_LOSSES: usize = 5;
const LOSS_SPAN: Duration = Duration::from_secs(120);

/// When an agent is to be started, and when no further one.
pub struct AgentCare {
    seen: Instant,
    losses: VecDeque<Instant>,
    due: Option<Instant>,
}

impl AgentCare {
    pub fn new() -> Self {
        Self { seen: Instant::now(), losses: VecDeque::new(), due: None }
    }

    /// The agent has said something.
    pub fn heard(&mut self) {
        self.seen = Instant::now();
    }

    /// An agent was lost, or could not be started: the next one starts at once the first time,
    /// then later and later. `false` where no further one should be.
    pub fn lost(&mut self) -> bool {
        let now = Instant::now();
        self.losses.push_back(now);
        self.losses.retain(|loss| now.duration_since(*loss) < LOSS_SPAN);
        let wait = u32::try_from(self.losses.len().saturating_sub(1)).unwrap_or(1);
        self.due = Some(now + Duration::from_secs(2) * wait);
        self.losses.len() < MOST_LOSSES
    }

    /// Whether an agent should be started now; asked again, it says no.
    pub fn is_due(&mut self) -> bool {
        let due = self.due.is_some_and(|due| Instant::now() >= due);
        if due {
            self.due = None;
            self.heard();
        }
        due
    }

    pub fn is_silent(&self) -> bool {
        self.seen.elapsed() > SILENCE
    }
}

/// A running agent. Dropping it closes the agent's standard input, which ends it.
pub struct Agent {
    pub pid: u32,
    pub generation: u64,
    commands: mpsc::UnboundedSender<AgentCommand>,
    kill: Arc<Notify>,
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
        let kill = Arc::new(Notify::new());
        let killed = Arc::clone(&kill);
        tokio::spawn(read_reports(child, FrameReader::new(stdout), killed, generation, inputs));
        Ok(Self { pid, generation, commands, kill })
    }

    /// Ends an agent that does not answer; its loss is told as any other.
    pub fn kill(&self) {
        self.kill.notify_one();
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
    kill: Arc<Notify>,
    generation: u64,
    inputs: mpsc::Sender<Input>,
) {
    let broken = loop {
        let report = tokio::select! {
            report = reader.next::<AgentReport>() => report,
            () = kill.notified() => {
                break Some(format!("it said nothing for {} s and was ended", SILENCE.as_secs()));
            }
        };
        match report {
            Ok(Some(report)) => {
                if inputs.send(Input::Agent { generation, report }).await.is_err() {
                    return;
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
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
