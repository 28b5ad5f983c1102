//! The two processes of a calibration: the null endpoint and the load agent, as in a run.

use std::{net::Ipv4Addr, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
    task::JoinHandle,
};

use super::CalibrateError;
use crate::{
    link::{FrameReader, FrameWriter},
    model::{
        AgentCommand, AgentReport, AttemptRange, CellId, CellOrder, CellResult, ConfigurationId,
        ConnectionLife, Load, Mix, NullConfig, NullListening, NullReport, RetryPolicy,
        RunnerSample, Shape, TargetAddress, TargetSpec, WorkloadSpec,
    },
    workload,
};

const SCHEMA: &str = "calibration";
/// How long a process may take to say that it is there.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a cell may take beyond its own spans.
const CELL_LIMIT: Duration = Duration::from_secs(90);
const WARMUP_S: f64 = 0.5;
const DRAIN_S: f64 = 5.0;
/// No pace to keep: the endpoint takes connections as fast as they come.
const UNPACED: ConnectionLife =
    ConnectionLife { open_per_second: 100_000.0, open_burst: 100_000, max_age_s: None };

/// What a step puts on.
pub struct Step {
    pub mix: Mix,
    pub shape: Shape,
    pub load: Load,
    pub seconds: f64,
}

/// A null endpoint and a load agent, which end with it.
pub struct Bench {
    endpoint: Endpoint,
    agent: Agent,
    cells: u64,
}

struct Endpoint {
    _child: Child,
    port: u16,
    /// For its end: it lasts as long as its input is open.
    _stdin: Option<ChildStdin>,
    reports: watch::Receiver<NullReport>,
    reading: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

struct Agent {
    _child: Child,
    commands: FrameWriter<ChildStdin>,
    reports: FrameReader<ChildStdout>,
}

fn child(exe: &Path, command: &str, environment: &[(&str, &str)]) -> std::io::Result<Child> {
    Command::new(exe)
        .arg(command)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
}

impl Bench {
    /// Starts both. The endpoint has `threads` event loops.
    pub async fn start(
        exe: &Path,
        environment: &[(&str, &str)],
        threads: usize,
    ) -> Result<Self, CalibrateError> {
        let endpoint = Endpoint::start(exe, threads).await?;
        let agent = Agent::start(exe, environment).await?;
        Ok(Self { endpoint, agent, cells: 0 })
    }

    /// CPU use of the endpoint over the last second, in percent of one processor.
    pub fn endpoint_cpu_percent(&self) -> f64 {
        self.endpoint.reports.borrow().cpu_percent
    }

    /// The agent's next sample of itself and the machine.
    pub async fn runner(&mut self) -> Result<RunnerSample, CalibrateError> {
        loop {
            if let AgentReport::Runner(sample) = self.agent.next(START_LIMIT).await? {
                return Ok(*sample);
            }
        }
    }

    /// Runs a step to its end.
    pub async fn cell(&mut self, step: &Step) -> Result<CellResult, CalibrateError> {
        self.cells += 1;
        let order = self.order(step);
        let lost = |error: crate::link::FrameError| CalibrateError::Agent(error.to_string());
        self.agent.commands.send(&AgentCommand::Run(Box::new(order))).await.map_err(lost)?;
        let limit = Duration::from_secs_f64(WARMUP_S + step.seconds + DRAIN_S) + CELL_LIMIT;
        tokio::time::timeout(limit, self.agent.ended())
            .await
            .unwrap_or(Err(CalibrateError::Silent { what: "a step", limit }))
    }

    fn order(&self, step: &Step) -> CellOrder {
        CellOrder {
            cell: CellId::new(format!("calibration-{:03}", self.cells)),
            configuration: ConfigurationId::new("null"),
            target: target(self.endpoint.port),
            load: step.load,
            warmup_s: WARMUP_S,
            measure_s: step.seconds,
            drain_s: DRAIN_S,
            seed: 1,
            attempt: AttemptRange {
                ordinal: self.cells,
                first_id: i64::try_from(self.cells << 32).unwrap_or(i64::MAX),
                ids: 1 << 32,
                prefix: format!("calibration.{}.", self.cells),
            },
            workload: WorkloadSpec { mix: step.mix, scale: 0.01 },
            retry: RetryPolicy::default(),
            backlog: None,
            shape: step.shape,
            life: UNPACED,
        }
    }
}

fn target(port: u16) -> TargetSpec {
    TargetSpec::plain(TargetAddress::loopback(port), "calibration", "calibration", SCHEMA)
}

impl Endpoint {
    async fn start(exe: &Path, threads: usize) -> Result<Self, CalibrateError> {
        let failed = |error: std::io::Error| CalibrateError::Endpoint(error.to_string());
        let config = NullConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            unix_directory: None,
            round_trip_ms: 0.0,
            commit_write_ms: 0.0,
            threads: Some(threads),
            answers: workload::null_answers(SCHEMA),
        };
        let mut child = child(exe, "null-endpoint", &[]).map_err(failed)?;
        let mut stdin = child.stdin.take();
        let line = serde_json::to_string(&config).map_err(|e| failed(e.into()))? + "\n";
        if let Some(stdin) = &mut stdin {
            stdin.write_all(line.as_bytes()).await.map_err(failed)?;
            stdin.flush().await.map_err(failed)?;
        }
        let Some(stdout) = child.stdout.take() else {
            return Err(CalibrateError::Endpoint("it has no output".to_owned()));
        };
        let mut lines = BufReader::new(stdout).lines();
        let first = tokio::time::timeout(START_LIMIT, lines.next_line()).await;
        let first = first.map_err(|_| CalibrateError::Silent {
            what: "the null endpoint",
            limit: START_LIMIT,
        })?;
        let first = first.map_err(failed)?.unwrap_or_default();
        let NullListening { listening } = serde_json::from_str(&first)
            .map_err(|_| CalibrateError::Endpoint("it ended before it listened".to_owned()))?;
        let (sender, reports) = watch::channel(NullReport::default());
        let reading = tokio::spawn(read_reports(lines, sender));
        Ok(Self { _child: child, port: listening, _stdin: stdin, reports, reading })
    }
}

async fn read_reports(
    mut lines: Lines<BufReader<ChildStdout>>,
    reports: watch::Sender<NullReport>,
) {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(report) = serde_json::from_str(&line) {
            reports.send_replace(report);
        }
    }
}

impl Agent {
    async fn start(exe: &Path, environment: &[(&str, &str)]) -> Result<Self, CalibrateError> {
        let failed = |error: std::io::Error| CalibrateError::Agent(error.to_string());
        let mut child = child(exe, "agent", environment).map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CalibrateError::Agent("it has no pipes".to_owned()));
        };
        let mut agent = Self {
            _child: child,
            commands: FrameWriter::new(stdin),
            reports: FrameReader::new(stdout),
        };
        while !matches!(agent.next(START_LIMIT).await?, AgentReport::Ready { .. }) {}
        Ok(agent)
    }

    async fn next(&mut self, limit: Duration) -> Result<AgentReport, CalibrateError> {
        match tokio::time::timeout(limit, self.reports.next()).await {
            Ok(Ok(Some(report))) => Ok(report),
            Ok(Ok(None)) => Err(CalibrateError::Agent("it ended".to_owned())),
            Ok(Err(error)) => Err(CalibrateError::Agent(error.to_string())),
            Err(_) => Err(CalibrateError::Silent { what: "the load agent", limit }),
        }
    }

    async fn ended(&mut self) -> Result<CellResult, CalibrateError> {
        loop {
            match self.next(START_LIMIT).await? {
                AgentReport::Ended(result) => return Ok(*result),
                AgentReport::Log { warning: true, text } => tracing::warn!("{text}"),
                _ => {}
            }
        }
    }
}
