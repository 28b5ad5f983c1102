//! The owner of a run's state: one loop, one input at a time.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::{sync::mpsc, time::MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;

use super::{
    agent::{Agent, AgentCare},
    clients::{Arrival, Broadcaster},
    control::Control,
    input::Input,
    journal::Journal,
    launch::Launch,
    live::Tracker,
    queue::Repeatable,
    rates::Rates,
    setup::{self, Ready},
    stages::{PlannedCell, Progress},
};
use crate::{
    cost::{AttemptRates, Guard, Meter},
    link::HISTORY_POINTS,
    model::{
        AgentStatus, CellResult, Conditions, ConfigurationId, ConfigurationState, ConsoleStatus,
        Decision, EventKind, LastCell, Level, Load, Resource, RunHeader, RunState, TargetSpec,
        TeardownStatus, UnixMs, WindowPoint,
    },
    plan::{ConfigurationPlan, Plan},
    provider::{
        RecorderMessage,
        lab::{Gate, Lab},
    },
    report::{CellSummary, HlogWriter, RunFolder},
};

/// How often the loop looks at the clock: deadlines, the guard, a new snapshot.
const TICK: Duration = Duration::from_millis(250);

/// How long the setup may say nothing; building an index on many rows takes its time.
const SETUP_SILENCE: Duration = Duration::from_secs(15 * 60);

/// How long the lab's server may be away: an immediate restart takes a few seconds.
const SERVER_PATIENCE: Duration = Duration::from_secs(30);

/// A cell that is asked for and not yet started.
#[derive(Clone, Debug)]
pub struct Request {
    /// Unique within the run.
    pub number: u64,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
    pub stage: String,
    pub by: String,
    /// The plan's cell that this is, so that it can be repeated if it is cut.
    pub planned: Option<PlannedCell>,
}

/// Why a running cell was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The operator went on to another rate: what was measured stands, as far as it goes.
    Stepped,
    /// The operator started another cell in its place.
    Replaced,
    StoppedByOperator,
    RunEnding,
    AgentLost,
}

/// A cell whose load runs.
pub struct ActiveCell {
    pub tracker: Tracker,
    pub log: Option<HlogWriter>,
    pub planned: Option<PlannedCell>,
    pub cut: Option<Cut>,
}

/// A cell whose load has ended and whose invariants are being checked.
pub struct CheckingCell {
    pub request: Request,
    pub attempt: u64,
    pub conditions: Conditions,
    pub result: CellResult,
    pub cut: Option<Cut>,
}

/// One configuration as the engine knows it.
pub struct Configuration {
    pub plan: ConfigurationPlan,
    /// How the load reaches it, once it is made.
    pub target: Option<TargetSpec>,
    /// How the checks reach it: not through the gate, whose delays are the load's alone.
    pub direct: Option<TargetSpec>,
    pub gate: Option<Gate>,
    /// Setting up, idle, failed or removed; while a cell runs or is checked that is shown instead.
    pub base: ConfigurationState,
    pub cell: Option<ActiveCell>,
    pub checking: Vec<CheckingCell>,
    pub queue: VecDeque<Request>,
    pub last: Option<LastCell>,
    pub history: VecDeque<WindowPoint>,
    pub cells_done: u32,
    /// Cells made so far, for the next one's name.
    pub cells_made: u32,
    pub removal: Removal,
    /// The rate's steps and ramp.
    pub rates: Rates,
}

/// How far the removal of a configuration that was taken out has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    No,
    /// Once its cell has drained and been checked.
    Due,
    UnderWay,
}

impl Configuration {
    fn new(plan: ConfigurationPlan) -> Self {
        Self {
            plan,
            target: None,
            direct: None,
            gate: None,
            base: ConfigurationState::SettingUp { step: "waiting".to_owned() },
            cell: None,
            checking: Vec::new(),
            queue: VecDeque::new(),
            last: None,
            history: VecDeque::new(),
            cells_done: 0,
            cells_made: 0,
            removal: Removal::No,
            rates: Rates::default(),
        }
    }

    pub fn is_ready(&self) -> bool {
        self.base == ConfigurationState::Idle
    }

    /// Ready, no cell running, none being checked, none asked for.
    pub fn is_idle(&self) -> bool {
        self.is_ready() && self.cell.is_none() && self.checking.is_empty() && self.queue.is_empty()
    }

    pub fn remember(&mut self, point: WindowPoint) {
        if self.history.len() == HISTORY_POINTS {
            self.history.pop_front();
        }
        self.history.push_back(point);
    }
}

/// A run.
pub struct Supervisor {
    pub launch: Launch,
    pub plan: Plan,
    pub header: RunHeader,
    pub folder: RunFolder,
    pub journal: Journal,
    pub broadcaster: Broadcaster,
    pub inputs: mpsc::Sender<Input>,
    pub exe: PathBuf,
    pub runner: String,
    pub state: RunState,
    pub progress: Progress,
    pub configurations: Vec<Configuration>,
    pub agent: Option<Agent>,
    pub agent_generation: u64,
    pub agent_care: AgentCare,
    pub agent_status: AgentStatus,
    pub decision: Option<Decision>,
    pub meter: Meter,
    pub guard: Guard,
    /// Attempts a second that loads were seen to make, for projections.
    pub rates: AttemptRates,
    /// The guard has refused a cell that was about to start: no further one starts.
    pub no_new_cells: bool,
    /// Every cell that has ended, as the summary has it.
    pub cells: Vec<(ConfigurationId, CellSummary)>,
    pub resources: BTreeMap<String, Resource>,
    pub lab: Option<Lab>,
    pub setup: Option<AbortOnDropHandle<()>>,
    /// When the setup last said something.
    pub setup_seen: Instant,
    pub teardown: Option<TeardownStatus>,
    pub teardown_since: Option<Instant>,
    pub removal_running: bool,
    /// A teardown was asked for or became necessary, with the exit code it began with.
    pub exit_code: u8,
    /// Why the run ends otherwise than planned, for everyone who asks.
    pub failure: Option<String>,
    /// Since when the lab's server has not been seen.
    pub server_missed: Option<Instant>,
    pub attempts: u64,
    pub control: Control,
    /// Requests of operators so far, for the next one's number.
    pub requests: u64,
    /// Cells that have ended, the newest last.
    pub repeatable: Vec<Repeatable>,
    /// Whether anyone has watched: without, the plan's end is the run's end.
    pub ever_attached: bool,
    pub snapshot_seq: u64,
    pub finished: Option<(u8, String)>,
}

impl Supervisor {
    /// Runs the loop until the run has ended, and gives its exit code.
    pub async fn run(mut self, mut queue: mpsc::Receiver<Input>) -> u8 {
        self.begin();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.finished.is_none() {
            tokio::select! {
                Some(input) = queue.recv() => self.handle(input),
                _ = tick.tick() => self.tick(),
            }
        }
        let (exit_code, text) = self.finished.clone().unwrap_or((1, String::new()));
        self.send_snapshot();
        self.broadcaster.ended(exit_code, text);
        // Who comes now is told of the end at once, and nobody else can come.
        drop(queue);
        let _ = std::fs::remove_file(&self.launch.socket);
        // A client that has stalled is not waited for.
        let _ = tokio::time::timeout(Duration::from_secs(3), self.broadcaster.all_told()).await;
        self.journal.hooks_done().await;
        exit_code
    }

    fn begin(&mut self) {
        self.journal.note(EventKind::RunStarted {
            run: self.header.id.to_string(),
            plan: self.header.plan.clone(),
            rehearsal: self.header.rehearsal,
            build: self.header.build.clone(),
            pid: std::process::id(),
            seed: self.header.seed,
        });
        self.write_summary(None);
        self.start_agent();
        self.setup = Some(setup::spawn(&self.launch, &self.plan, &self.exe, self.inputs.clone()));
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Attached { console } => self.attached(console),
            Input::Left { number } => self.left(number),
            Input::History { send } => {
                let _ = send.send(self.arrival());
            }
            Input::Command { command, speaker, answer } => {
                let refused = self.command(command, &speaker);
                // Before the answer: who reads on after it sees what it changed.
                self.send_snapshot();
                let _ = answer.send(refused);
            }
            Input::Provider(message) => self.provider(message),
            Input::SetUp(result) => self.set_up(*result),
            Input::Agent { generation, report } if generation == self.agent_generation => {
                self.agent_report(report);
            }
            Input::AgentGone { generation, why } if generation == self.agent_generation => {
                self.agent_gone(&why);
            }
            Input::Agent { .. } | Input::AgentGone { .. } => {}
            Input::Checked { cell, report } => self.checked(&cell, report),
            Input::Removed { configuration, items } => self.removed(&configuration, &items),
            Input::TeardownProgress(item) => self.teardown_progress(item),
            Input::TornDown(status) => self.torn_down(status),
            Input::Signal(name) => self.begin_teardown(name, 0),
        }
    }

    fn attached(&mut self, console: Option<ConsoleStatus>) {
        if let Some(console) = console {
            let (number, name) = (console.number, console.name.clone());
            self.control.attach(console);
            self.ever_attached = true;
            let consoles = count(self.control.status().consoles.len());
            self.journal.note(EventKind::ConsoleAttached { consoles, number, name });
        }
        self.send_snapshot();
    }

    fn left(&mut self, number: Option<u32>) {
        let Some(number) = number else { return };
        let moved = self.control.leave(number);
        let consoles = count(self.control.status().consoles.len());
        self.journal.note(EventKind::ConsoleLeft { consoles, number });
        self.tell(moved);
    }

    /// Says something that operators should know.
    pub fn tell(&mut self, text: Option<String>) {
        if let Some(text) = text {
            self.journal.note(EventKind::Note { level: Level::Info, text });
        }
    }

    fn arrival(&self) -> Arrival {
        let history = self
            .configurations
            .iter()
            .map(|c| (c.plan.id.clone(), c.history.iter().cloned().collect()))
            .collect();
        Arrival { history, journal: self.journal.for_arrivals() }
    }

    /// The setup or a removal tells what it does; an intent is acknowledged once it is on disk.
    pub fn provider(&mut self, message: RecorderMessage) {
        self.setup_seen = Instant::now();
        match message {
            RecorderMessage::Intend { resource, on_disk } => {
                let written =
                    self.journal.write(EventKind::ResourceIntent { resource: resource.clone() });
                if written.is_ok() {
                    self.resources.insert(resource.id.clone(), resource);
                }
                let _ = on_disk.send(written.map_err(|error| error.to_string()));
            }
            RecorderMessage::Made { resource } => self.resource_made(resource),
            RecorderMessage::Gone { id } => self.resource_gone(&id),
            RecorderMessage::Step { configuration, text } => self.step(configuration, text),
        }
    }

    pub fn resource_made(&mut self, resource: Resource) {
        self.journal.note(EventKind::ResourceMade { resource: resource.clone() });
        if let Some(configuration) = &resource.configuration {
            // It bills from its first resource on, not from when it is ready.
            self.meter.exists_from(configuration, UnixMs::now());
        }
        self.resources.insert(resource.id.clone(), resource);
    }

    pub fn resource_gone(&mut self, id: &str) {
        if self.resources.remove(id).is_some() {
            self.journal.note(EventKind::ResourceGone { id: id.to_owned() });
        }
    }

    fn step(&mut self, configuration: Option<ConfigurationId>, text: String) {
        let Some(id) = configuration else {
            if let RunState::SettingUp { step } = &mut self.state {
                *step = text;
            }
            return;
        };
        if let Some(configuration) = self.configuration_mut(&id)
            && let ConfigurationState::SettingUp { step } = &mut configuration.base
        {
            *step = text;
        }
    }

    fn set_up(&mut self, result: Result<Ready, String>) {
        self.setup = None;
        let ready = match result {
            Ok(ready) => ready,
            Err(why) => {
                self.journal.note(EventKind::Note {
                    level: Level::Error,
                    text: format!("the setup failed: {why}"),
                });
                for configuration in &mut self.configurations {
                    configuration.base = ConfigurationState::Failed { why: why.clone() };
                }
                self.failure = Some(format!("the setup failed: {why}"));
                self.begin_teardown("a failed setup", 1);
                return;
            }
        };
        self.lab = ready.lab;
        for endpoint in ready.endpoints {
            self.journal.note(EventKind::DataReady {
                configuration: endpoint.configuration.clone(),
                rows: endpoint.rows,
                seconds: endpoint.seconds,
            });
            if let Some(configuration) = self.configuration_mut(&endpoint.configuration) {
                configuration.target = Some(endpoint.target);
                configuration.direct = Some(endpoint.direct);
                configuration.gate = endpoint.gate;
                configuration.base = ConfigurationState::Idle;
            }
        }
        if matches!(self.state, RunState::SettingUp { .. }) {
            self.state = RunState::Running;
        }
        self.advance();
    }

    fn tick(&mut self) {
        self.look_after_setup();
        self.look_after_agent();
        self.look_after_lab();
        self.look_after_removals();
        self.look_after_money();
        self.look_after_decision();
        self.look_after_ramps();
        let moved = self.control.tick(UnixMs::now());
        self.tell(moved);
        self.look_after_teardown();
        self.advance();
        self.send_snapshot();
    }

    /// A setup that has hung is given up: nobody would watch what it has made.
    fn look_after_setup(&mut self) {
        if self.setup.is_some() && self.setup_seen.elapsed() > SETUP_SILENCE {
            let minutes = SETUP_SILENCE.as_secs() / 60;
            let why = format!("it has not moved for {minutes} minutes");
            self.set_up(Err(why));
        }
    }

    /// A gate that has died takes its configuration out; a server that stays away ends the run. An
    /// operator's restart of the server is over before that.
    fn look_after_lab(&mut self) {
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return;
        }
        for at in 0..self.configurations.len() {
            let configuration = &self.configurations[at];
            let dead = configuration.gate.as_ref().is_some_and(|gate| !gate.is_alive());
            if dead && configuration.is_ready() {
                self.gate_died(at);
            }
        }
        match &self.lab {
            Some(lab) if !lab.is_alive() => {
                let since = *self.server_missed.get_or_insert_with(Instant::now);
                if since.elapsed() > SERVER_PATIENCE {
                    let why = format!("the lab's server died: {}", lab.log_tail());
                    self.failure = Some(why);
                    self.begin_teardown("the loss of the lab's server", 1);
                }
            }
            _ => self.server_missed = None,
        }
    }

    fn gate_died(&mut self, at: usize) {
        let id = self.configurations[at].plan.id.clone();
        let why = "its gate died: nothing stands for its network any more".to_owned();
        let text = format!("{id} is out: {why}");
        self.journal.note(EventKind::Note { level: Level::Error, text: text.clone() });
        self.failure.get_or_insert(text);
        self.exit_code = self.exit_code.max(1);
        self.progress.remove(&id);
        self.configurations[at].queue.clear();
        self.configurations[at].base = ConfigurationState::Failed { why };
        self.cut(at, Cut::RunEnding);
    }

    pub fn configuration(&self, id: &ConfigurationId) -> Option<&Configuration> {
        self.configurations.iter().find(|c| c.plan.id == *id)
    }

    pub fn configuration_mut(&mut self, id: &ConfigurationId) -> Option<&mut Configuration> {
        self.configurations.iter_mut().find(|c| c.plan.id == *id)
    }

    /// Whether any cell runs or is being checked on this runner.
    pub fn runner_is_busy(&self) -> bool {
        self.configurations.iter().any(|c| c.cell.is_some() || !c.checking.is_empty())
    }
}

pub fn configurations(plan: &Plan) -> Vec<Configuration> {
    plan.configurations.iter().cloned().map(Configuration::new).collect()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
