//! The engine process from its start to its end.

use std::{collections::BTreeMap, fs::File, path::PathBuf, time::Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{
    agent::AgentCare,
    clients::{self, Broadcaster},
    journal::Journal,
    stages::Progress,
    supervisor::{self, Supervisor},
};
use crate::{
    cost::{AttemptRates, Guard, Meter},
    model::{AgentStatus, Calibration, EventKind, RunHeader, RunId, RunState, UnixMs},
    plan::{self, PlanSource},
    provider,
    report::RunFolder,
};

/// Attempts a second of one connection of a closed loop, before any was seen: what the published
/// runs had of the slowest configuration (1,006/s on 16 connections).
const ASSUMED_RATE_PER_CONNECTION: f64 = 63.0;
/// The data at full scale: about 5 GiB as published, indexes included.
const FULL_SCALE_BYTES: f64 = 5.0 * 1024.0 * 1024.0 * 1024.0;
/// An empty cluster with its write-ahead log, generously.
const LAB_OVERHEAD_BYTES: u64 = 512 << 20;
/// Journal, records and histogram logs of a long run.
const RUN_FOLDER_BYTES: u64 = 64 << 20;
/// Files that the engine has open beside the agent's connections.
const FILES_BESIDE_CONNECTIONS: u64 = 128;
/// Inputs that may wait for the supervisor; beyond, their senders wait.
const INPUT_QUEUE: usize = 1024;

/// What the process that starts an engine tells it, on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    pub run: RunId,
    pub folder: PathBuf,
    pub socket: PathBuf,
    pub plan: PlanSource,
    pub overrides: Vec<String>,
    /// End with 3 where a cell did not pass.
    pub require_pass: bool,
    /// A console will come: the end of the plan waits for the operator.
    pub expect_console: bool,
    /// What this machine was calibrated for, where it was with this build.
    #[serde(default)]
    pub calibration: Option<Calibration>,
}

/// Why an engine could not run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Plan(#[from] plan::PlanErrors),
    #[error("run folder {folder}: {why}")]
    Folder { folder: PathBuf, why: String },
    #[error("another engine owns the run in {0}: attach to it with `rampdeck attach`")]
    Owned(PathBuf),
    #[error("the socket {path} cannot be made: {why}")]
    Socket { path: PathBuf, why: std::io::Error },
    #[error("{0}")]
    Other(String),
}

/// Runs an engine to the end of its run and gives the run's exit code.
///
/// # Errors
/// When the plan, the run folder, its lock or the socket do not let it start; nothing has been
/// made then.
pub async fn run(launch: Launch) -> Result<u8, EngineError> {
    // Away from the terminal: its loss must not end the run. Refused only where the process leads
    // a group already, and then it is away from it.
    let _ = rustix::process::setsid();
    let plan = plan::load(launch.plan.clone(), &launch.overrides)?;
    let in_folder = |why: String| EngineError::Folder { folder: launch.folder.clone(), why };
    let folder = RunFolder::open(&launch.folder).map_err(|e| in_folder(e.to_string()))?;
    let _lock = own(&folder)?;
    folder.write_plan(&plan::to_toml(&plan)).map_err(|e| in_folder(e.to_string()))?;
    if let Some(calibration) = &launch.calibration {
        folder.write_calibration(calibration).map_err(|e| in_folder(e.to_string()))?;
    }
    let last = folder
        .read_journal()
        .map(|journal| (journal.last_seq(), journal.last_epoch()))
        .unwrap_or_default();
    let writer = folder.open_journal().map_err(|e| in_folder(e.to_string()))?;
    let broadcaster = Broadcaster::new();
    let (inputs, queue) = mpsc::channel(INPUT_QUEUE);
    let mut journal = Journal::new(
        writer,
        broadcaster.clone(),
        last,
        plan.notify.clone(),
        launch.run.to_string(),
    );
    preflight(&plan, &folder, &mut journal)?;
    clients::serve(&launch.socket, broadcaster.clone(), inputs.clone())
        .map_err(|why| EngineError::Socket { path: launch.socket.clone(), why })?;
    listen_for_signals(inputs.clone())?;
    let exe = std::env::current_exe().map_err(|e| EngineError::Other(e.to_string()))?;
    let supervisor = Supervisor {
        header: RunHeader {
            id: launch.run.clone(),
            plan: plan.name.clone(),
            rehearsal: plan.is_rehearsal(),
            build: super::build().to_owned(),
            seed: plan.seed,
            started: UnixMs::now(),
            slo: plan.slo,
            max_rate: plan.load.max_rate,
        },
        folder,
        journal,
        broadcaster,
        inputs,
        exe,
        runner: super::machine::runner_description(),
        state: RunState::SettingUp { step: "starting".to_owned() },
        progress: Progress::new(plan.stages.clone()),
        configurations: supervisor::configurations(&plan),
        agent: None,
        agent_generation: 0,
        agent_care: AgentCare::new(),
        agent_status: AgentStatus::default(),
        decision: None,
        meter: Meter::new(&plan),
        guard: Guard::new(plan.budget.guard, plan.budget.cap),
        rates: AttemptRates::assuming(ASSUMED_RATE_PER_CONNECTION),
        no_new_cells: false,
        cells: Vec::new(),
        resources: BTreeMap::new(),
        lab: None,
        setup: None,
        setup_seen: Instant::now(),
        teardown: None,
        teardown_since: None,
        removal_running: false,
        exit_code: 0,
        failure: None,
        server_missed: None,
        attempts: 0,
        control: super::control::Control::default(),
        requests: 0,
        repeatable: Vec::new(),
        ever_attached: launch.expect_console,
        snapshot_seq: 0,
        finished: None,
        plan,
        launch,
    };
    Ok(supervisor.run(queue).await)
}

/// Takes the lock on the run folder, held for as long as the file is open.
fn own(folder: &RunFolder) -> Result<File, EngineError> {
    let path = folder.engine_lock();
    let why = |e: std::io::Error| EngineError::Folder { folder: path.clone(), why: e.to_string() };
    let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(why)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(EngineError::Owned(folder.path().to_path_buf()))
        }
        Err(std::fs::TryLockError::Error(error)) => Err(why(error)),
    }
}

/// Checks what would only fail later: limits, disk, clock.
fn preflight(
    plan: &plan::Plan,
    folder: &RunFolder,
    journal: &mut Journal,
) -> Result<(), EngineError> {
    let connections = u64::from(plan.load.max_connections)
        * u64::try_from(plan.configurations.len()).unwrap_or(8);
    let mut refused = Vec::new();
    let needs = provider::Needs {
        open_files: connections + FILES_BESIDE_CONNECTIONS,
        folders: disk_needs(plan, folder),
    };
    for check in provider::checks(&needs) {
        let (name, text) = (check.name.to_owned(), check.text);
        if !check.ok {
            refused.push(format!("{name}: {text}"));
        }
        journal.note(EventKind::Preflight { check: name, ok: check.ok, text });
    }
    if refused.is_empty() {
        Ok(())
    } else {
        Err(EngineError::Other(format!("the preflight refuses: {}", refused.join("; "))))
    }
}

/// Folders that the run writes to and how much, generously.
fn disk_needs(plan: &plan::Plan, folder: &RunFolder) -> Vec<(PathBuf, u64)> {
    let mut folders = vec![(folder.path().to_path_buf(), RUN_FOLDER_BYTES)];
    let labs = plan.configurations.iter().filter(|c| c.source.kind() == "lab").count();
    if labs > 0 {
        // A template and a copy for each, indexes included, and as much again for what cells add.
        let copies = u32::try_from(labs + 1).unwrap_or(u32::MAX);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked: scale <= 1
        let bytes = (plan.scale * FULL_SCALE_BYTES * f64::from(copies) * 2.0) as u64;
        folders.push((provider::lab::base(), bytes + LAB_OVERHEAD_BYTES));
    }
    folders
}

fn listen_for_signals(inputs: mpsc::Sender<super::input::Input>) -> Result<(), EngineError> {
    use tokio::signal::unix::{SignalKind, signal};
    let other = |e: std::io::Error| EngineError::Other(format!("signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(other)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(other)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(other)?;
    tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                // The engine has no terminal to lose.
                _ = hangup.recv() => continue,
            };
            if inputs.send(super::input::Input::Signal(name)).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}
