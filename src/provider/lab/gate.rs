//! Starting a gate and reading what it says.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
};

use crate::{
    model::{
        ConfigurationId, Fault, GateConfig, GateListening, GateProfile, GateReport,
        ProcessIdentity, Resource, ResourceKind, ResourceState, RunId, TargetAddress, TargetSpec,
        UnixMs,
    },
    provider::{
        Recorder,
        process::{self, RUN_VARIABLE},
        recorder::RecordError,
    },
};

/// How long a gate may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long a gate may take to exit once its input is closed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// What a gate is to be.
#[derive(Clone, Debug)]
pub struct GateOrder {
    pub configuration: ConfigurationId,
    pub profile: GateProfile,
    pub faults: Vec<Fault>,
    /// The database behind it.
    pub database: String,
    /// Same seed, same jitter.
    pub seed: u64,
}

/// Why a gate did not start.
#[derive(Debug, thiserror::Error)]
pub enum GateStartError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the gate of {configuration} cannot be started from {}: {source}", exe.display())]
    Start { configuration: ConfigurationId, exe: PathBuf, source: io::Error },
    #[error("the gate of {configuration} did not say where it listens: {what}")]
    Silent { configuration: ConfigurationId, what: String },
}

/// A gate that runs. It exits when this is dropped.
#[derive(Debug)]
pub struct Gate {
    pub configuration: ConfigurationId,
    pub process: ProcessIdentity,
    /// The port on the loopback address.
    pub port: u16,
    /// How to reach the database through the gate.
    pub target: TargetSpec,
    /// The newest report, one a second; closed when the gate has ended.
    pub status: watch::Receiver<Option<GateReport>>,
    /// Open for as long as the gate is to run.
    stdin: ChildStdin,
}

impl Gate {
    /// The resource id of a configuration's gate.
    #[must_use]
    pub fn id_of(configuration: &ConfigurationId) -> String {
        format!("gate {configuration}")
    }

    /// Whether its process runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        process::is_alive(&self.process)
    }

    /// Ends it: by closing its input, and by force where that does not help.
    ///
    /// # Errors
    /// When its process cannot be signalled or outlives SIGKILL.
    pub async fn stop(self) -> Result<(), process::EndError> {
        drop(self.stdin);
        if !process::gone_within(&self.process, STOP_PATIENCE).await {
            process::end(&self.process, STOP_PATIENCE).await?;
        }
        Ok(())
    }
}

/// What a gate is made from.
pub(super) struct Making<'a> {
    pub(super) run: &'a RunId,
    pub(super) exe: &'a Path,
    /// Where its own errors are written.
    pub(super) folder: &'a Path,
    /// The database itself.
    pub(super) behind: TargetSpec,
    pub(super) recorder: &'a Recorder,
}

/// Starts a gate and waits until it listens.
pub(super) async fn start(making: Making<'_>, order: GateOrder) -> Result<Gate, GateStartError> {
    let GateOrder { configuration, profile, faults, database: _, seed } = order;
    let mut resource = Resource {
        kind: ResourceKind::Gate,
        id: Gate::id_of(&configuration),
        configuration: Some(configuration.clone()),
        process: None,
        path: None,
        port: None,
        note: format!("round trip {} ms", profile.round_trip_ms),
        state: ResourceState::Intended,
        since: UnixMs::now(),
    };
    making.recorder.intend(&resource).await?;
    let config = GateConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        upstream: making.behind.address.clone(),
        profile,
        faults,
        seed,
    };
    let errors = making.folder.join(format!("gate-{configuration}.log"));
    let started = spawn(&making, &config, &errors).await;
    let (child, stdin, lines, port) = match started {
        Ok(started) => started,
        Err(Failed::Start(source)) => {
            let exe = making.exe.to_owned();
            return Err(GateStartError::Start { configuration, exe, source });
        }
        Err(Failed::Silent(what)) => {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            let what = format!("{what} {}", said.trim()).trim().to_owned();
            return Err(GateStartError::Silent { configuration, what });
        }
    };
    let Some(process) = child.id().and_then(process::identity) else {
        let what = "it ended as soon as it listened".into();
        return Err(GateStartError::Silent { configuration, what });
    };
    resource.process = Some(process);
    resource.port = Some(port);
    making.recorder.made(resource);
    let (report, status) = watch::channel(None);
    tokio::spawn(follow(child, lines, report));
    let target = TargetSpec { address: TargetAddress::loopback(port), ..making.behind };
    Ok(Gate { configuration, process, port, target, status, stdin })
}

enum Failed {
    Start(io::Error),
    Silent(String),
}

type Started = (Child, ChildStdin, Lines<BufReader<ChildStdout>>, u16);

async fn spawn(making: &Making<'_>, config: &GateConfig, errors: &Path) -> Result<Started, Failed> {
    let mut child = Command::new(making.exe)
        .arg("gate")
        .env(RUN_VARIABLE, making.run.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(errors).map_err(Failed::Start)?)
        // An interrupt typed at the engine's terminal is not the gate's.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(Failed::Start)?;
    let missing = || Failed::Silent("it has no pipes".into());
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let mut lines = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
    let mut line = serde_json::to_vec(config).map_err(|error| Failed::Start(error.into()))?;
    line.push(b'\n');
    let talk = async {
        stdin.write_all(&line).await.map_err(|error| Failed::Silent(error.to_string()))?;
        let said = lines.next_line().await.map_err(|error| Failed::Silent(error.to_string()))?;
        let said = said.ok_or_else(|| Failed::Silent("it ended".into()))?;
        let said: GateListening = serde_json::from_str(&said)
            .map_err(|error| Failed::Silent(format!("it said {said:?}: {error}")))?;
        Ok(said.listening)
    };
    let port = tokio::time::timeout(START_PATIENCE, talk)
        .await
        .map_err(|_| Failed::Silent(format!("no word within {} s", START_PATIENCE.as_secs())))??;
    Ok((child, stdin, lines, port))
}

/// Reads the gate's reports to their end, then collects its exit status.
async fn follow(
    mut child: Child,
    mut lines: Lines<BufReader<ChildStdout>>,
    report: watch::Sender<Option<GateReport>>,
) {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(said) = serde_json::from_str(&line) {
            report.send_replace(Some(said));
        }
    }
    // Its status says nothing that its end does not.
    let _status = child.wait().await;
}
