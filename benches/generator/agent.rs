//! rampdeck's load agent, driven as the engine drives it: frames on its standard streams.

use std::{
    io::{BufReader, Read, Write},
    process::{ChildStdout, Command, Stdio},
    time::Duration,
};

use rampdeck::{
    cli::STEADY_MEMORY,
    model::{
        AgentCommand, AgentReport, Arrivals, AttemptRange, CellEnd, CellId, CellOrder, CellResult,
        ConfigurationId, ConnectionLife, Load as CellLoad, Mix, Phase, RetryPolicy, Shape,
        TargetSpec, WorkloadSpec,
    },
};

use super::{
    Failure,
    process::Owned,
    sample::{Load, Peer, Sample, Span, WARM_UP_S},
};

/// The scale of the data that every row uses.
pub const SCALE: f64 = 0.01;
/// Above the ids of the loaded orders and of the other peers.
const FIRST_ID: i64 = 1 << 51;
const IDS: u64 = 1 << 26;

/// The load agent with one workload.
pub struct Agent {
    pub target: TargetSpec,
    pub mix: Mix,
    pub shape: Shape,
    attempts: u64,
}

/// Reads only.
pub const LOOKUPS: Mix =
    Mix { product_lookup: 100, order_history: 0, order_create: 0, order_cancel: 0 };

impl Agent {
    pub fn new(target: TargetSpec, mix: Mix, shape: Shape) -> Self {
        Self { target, mix, shape, attempts: 0 }
    }

    /// Starts an agent and orders the cell.
    pub fn start(&mut self, load: Load) -> Result<Running, Failure> {
        self.attempts += 1;
        let order = self.order(load)?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_rampdeck"))
            .arg("agent")
            // As the engine starts it.
            .envs(STEADY_MEMORY)
            .env("RAMPDECK_LOG", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the agent has no output")?;
        let mut running = Running { process: Owned(child), reports: BufReader::new(stdout) };
        running.send(&AgentCommand::Run(Box::new(order)))?;
        Ok(running)
    }

    fn order(&self, load: Load) -> Result<CellOrder, Failure> {
        // Unlike any earlier one of this or another agent on the same database.
        let unique = u64::from(std::process::id()) << 32 | self.attempts;
        let ordinal = i64::try_from(self.attempts)?;
        Ok(CellOrder {
            cell: CellId::new("bench-001"),
            configuration: ConfigurationId::new("bench"),
            target: self.target.clone(),
            load: CellLoad::Open {
                rate: load.rate,
                arrivals: Arrivals::Poisson,
                connections: load.connections,
            },
            warmup_s: WARM_UP_S.into(),
            // The first window only marks where the span begins.
            measure_s: f64::from(load.seconds) + 1.0,
            drain_s: 10.0,
            seed: self.attempts,
            attempt: AttemptRange {
                ordinal: self.attempts,
                first_id: FIRST_ID + ordinal * i64::try_from(IDS)?,
                ids: IDS,
                prefix: format!("bench.{unique}."),
            },
            workload: WorkloadSpec { mix: self.mix, scale: SCALE },
            retry: RetryPolicy::default(),
            backlog: None,
            shape: self.shape,
            life: ConnectionLife { open_per_second: 2_000.0, open_burst: 1_000, max_age_s: None },
        })
    }
}

impl Peer for Agent {
    fn name(&self) -> &'static str {
        "rampdeck"
    }

    fn run(&mut self, load: Load) -> Result<Sample, Failure> {
        let mut running = self.start(load)?;
        let mut span = Span::new(running.process.pid());
        let mut windows = 0;
        let result = running.watch(|report| {
            if let AgentReport::Window(window) = report
                && window.phase == Phase::Measure
                && windows <= load.seconds
            {
                windows += 1;
                span.report(window.counts.completed, window.counts.failed)?;
            }
            Ok(())
        })?;
        running.end()?;
        let CellEnd::Complete = result.end else {
            return Err(format!("the cell did not run to its end: {:?}", result.end).into());
        };
        let mut sample = span.sample()?;
        sample.result = Some(result);
        Ok(sample)
    }
}

/// An agent at work.
pub struct Running {
    pub process: Owned,
    reports: BufReader<ChildStdout>,
}

impl Running {
    fn send(&mut self, command: &AgentCommand) -> Result<(), Failure> {
        let body = serde_json::to_vec(command)?;
        let stdin = self.process.0.stdin.as_mut().ok_or("the agent has no input")?;
        stdin.write_all(&u32::try_from(body.len())?.to_be_bytes())?;
        stdin.write_all(&body)?;
        Ok(stdin.flush()?)
    }

    /// The next report.
    pub fn next(&mut self) -> Result<AgentReport, Failure> {
        let mut length = [0; 4];
        self.reports.read_exact(&mut length)?;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(length))?];
        self.reports.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Shows each report until the cell has ended.
    pub fn watch(
        &mut self,
        mut each: impl FnMut(&AgentReport) -> Result<(), Failure>,
    ) -> Result<Box<CellResult>, Failure> {
        loop {
            let report = self.next()?;
            each(&report)?;
            if let AgentReport::Ended(result) = report {
                return Ok(result);
            }
        }
    }

    /// Ends the agent and waits for its end.
    pub fn end(mut self) -> Result<(), Failure> {
        drop(self.process.0.stdin.take());
        self.process.ended_within(Duration::from_secs(20))?;
        Ok(())
    }
}
