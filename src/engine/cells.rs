//! Cells, from the plan's or the operator's wish to the end of their load.

use std::{collections::BTreeSet, time::Duration};

use tokio_util::task::AbortOnDropHandle;

use super::{
    agent::Agent,
    input::Input,
    live::Tracker,
    stages::{Next, PlannedCell},
    supervisor::{ActiveCell, CheckingCell, Configuration, Cut, Request, Supervisor},
};
use crate::{
    model::{
        AgentCommand, AgentReport, AttemptRange, CellEnd, CellId, CellOrder, CellResult,
        ConfigurationId, ConnectionLife, EventKind, Level, Phase, ResourceKind, ResourceState,
        RunState, RunnerSample, Shape, TargetSpec, UnixMs, Window, WorkloadSpec,
    },
    provider::process,
    report::{CellHeader, HlogWriter},
};

/// How long the check of a cell's invariants may take.
const CHECK_LIMIT: Duration = Duration::from_secs(300);
/// Ids of one attempt: 2^32 orders, more than any cell makes.
const IDS_PER_ATTEMPT: u64 = 1 << 32;

impl Supervisor {
    pub fn start_agent(&mut self) {
        self.agent_generation += 1;
        match Agent::start(&self.exe, &self.header.id, self.agent_generation, self.inputs.clone()) {
            Ok(agent) => {
                let mut resource = super::setup::resource(
                    ResourceKind::Agent,
                    format!("load agent {}", agent.generation),
                );
                resource.process = process::identity(agent.pid);
                resource.state = ResourceState::Made;
                self.resource_made(resource);
                self.agent = Some(agent);
            }
            Err(error) => {
                self.agent = None;
                self.journal
                    .note(EventKind::AgentLost { text: format!("it cannot be started: {error}") });
                self.agent_again();
            }
        }
    }

    /// Another agent, at once or after a while; too many lost in a row end the run.
    fn agent_again(&mut self) {
        if !self.agent_care.lost() {
            self.failure = Some("one load agent after the other was lost".to_owned());
            self.begin_teardown("the loss of one load agent after the other", 1);
        }
    }

    pub fn look_after_agent(&mut self) {
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return;
        }
        match &self.agent {
            Some(agent) if self.agent_care.is_silent() => agent.kill(),
            None if self.agent_care.is_due() => self.start_agent(),
            _ => {}
        }
    }

    /// Starts whatever may start now: the operator's cells first, then the plan's.
    pub fn advance(&mut self) {
        if matches!(
            self.state,
            RunState::SettingUp { .. } | RunState::TearingDown | RunState::Ended { .. }
        ) {
            return;
        }
        self.start_requested();
        if self.state != RunState::Running {
            return;
        }
        // Each step starts a cell or moves the plan, so this ends.
        while self.step_plan() {}
    }

    fn start_requested(&mut self) {
        if self.agent.is_none() {
            return;
        }
        for at in 0..self.configurations.len() {
            let configuration = &mut self.configurations[at];
            if configuration.cell.is_some() || !configuration.is_ready() {
                continue;
            }
            let Some(request) = configuration.queue.pop_front() else { continue };
            let id = configuration.plan.id.clone();
            if self.guard_allows(&[(&id, request.load, request.warmup_s + request.measure_s)]) {
                self.start_cell(at, request);
            } else {
                let text =
                    format!("{id} {} does not start: the guard allows no new cells", request.load);
                self.journal.note(EventKind::Note { level: Level::Warning, text });
            }
        }
    }

    /// Moves the plan on by one step; `false` when it has to wait.
    fn step_plan(&mut self) -> bool {
        match self.progress.next() {
            Next::Begin(index) => {
                let stage = self.progress.stage().map(|(_, s)| s.name.clone()).unwrap_or_default();
                let of = self.progress.stages();
                self.journal.note(EventKind::StageStarted { stage, index: index + 1, of });
                self.progress.begin();
                true
            }
            Next::Cells { alone, cells } => self.start_planned(alone, cells),
            Next::Wait => false,
            Next::Decision(_) => {
                self.ask_the_plans_question();
                false
            }
            // The last verdicts belong to the stage, and to the question that follows it.
            Next::End(_) if self.anything_checked() => false,
            Next::End(_) => {
                self.end_stage();
                true
            }
            Next::Done => {
                self.plan_done();
                false
            }
        }
    }

    fn anything_checked(&self) -> bool {
        self.configurations.iter().any(|c| !c.checking.is_empty())
    }

    pub fn end_stage(&mut self) {
        if let Some((_, stage)) = self.progress.stage() {
            let stage = stage.name.clone();
            self.journal.note(EventKind::StageEnded { stage });
        }
        self.progress.advance();
    }

    fn start_planned(&mut self, alone: bool, cells: Vec<PlannedCell>) -> bool {
        if self.agent.is_none() {
            return false;
        }
        if alone && self.runner_is_busy() {
            return false;
        }
        let next: Vec<_> = cells
            .iter()
            .map(|cell| (&cell.configuration, cell.load, cell.warmup_s + cell.measure_s))
            .collect();
        if !self.guard_allows(&next) {
            if !self.runner_is_busy() {
                self.begin_teardown("the guard: no new cells may start", 5);
            }
            return false;
        }
        let mut started = false;
        for cell in cells {
            let Some(at) = self.configurations.iter().position(|c| c.plan.id == cell.configuration)
            else {
                continue;
            };
            if !self.configurations[at].is_idle() {
                continue;
            }
            self.progress.started(&cell);
            let request = Request {
                number: cell.number,
                load: self.configurations[at].plan.shape.applied_to(cell.load),
                warmup_s: cell.warmup_s,
                measure_s: cell.measure_s,
                stage: self.progress.stage().map(|(_, s)| s.name.clone()).unwrap_or_default(),
                by: "plan".to_owned(),
                planned: Some(cell),
            };
            self.start_cell(at, request);
            started = true;
        }
        started
    }

    fn start_cell(&mut self, at: usize, request: Request) {
        let running: BTreeSet<ConfigurationId> = self
            .configurations
            .iter()
            .filter(|c| c.cell.is_some())
            .map(|c| c.plan.id.clone())
            .collect();
        let configuration = &mut self.configurations[at];
        let Some(target) = configuration.target.clone() else { return };
        configuration.cells_made += 1;
        let id = configuration.plan.id.clone();
        let cell = CellId::new(format!("{id}-{:03}", configuration.cells_made));
        let traffic = (configuration.plan.shape, configuration.plan.life);
        let order = self.order(cell.clone(), id.clone(), target, &request, traffic);
        // The ids are on disk before the first is used: a later attempt can never count them as
        // its own, whatever happens to this engine.
        let reserved =
            EventKind::AttemptReserved { cell: cell.clone(), range: order.attempt.clone() };
        if let Err(error) = self.journal.write(reserved) {
            self.journal.note(EventKind::Note {
                level: Level::Error,
                text: format!("{cell} does not start: its ids cannot be put on disk: {error}"),
            });
            self.give_up(request.planned);
            self.failure.get_or_insert("a cell's ids could not be put on disk".to_owned());
            self.exit_code = self.exit_code.max(1);
            return;
        }
        self.journal.note(EventKind::CellStarted {
            cell: cell.clone(),
            configuration: id.clone(),
            stage: request.stage.clone(),
            load: request.load,
            warmup_s: request.warmup_s,
            measure_s: request.measure_s,
            by: request.by.clone(),
            beside: running.iter().cloned().collect(),
        });
        for other in &mut self.configurations {
            if let Some(active) = &mut other.cell {
                active.tracker.beside.insert(id.clone());
            }
        }
        if let Some(agent) = &self.agent {
            agent.send(AgentCommand::Run(Box::new(order.clone())));
        }
        let tracker = Tracker::new(order, request.stage, running);
        let log = self.histogram_log(&tracker);
        self.configurations[at].cell =
            Some(ActiveCell { tracker, log, planned: request.planned, cut: None });
    }

    /// The log of a cell's windows; without it (a full disk) the cell still runs.
    fn histogram_log(&self, tracker: &Tracker) -> Option<HlogWriter> {
        let order = &tracker.order;
        let header = CellHeader {
            cell: order.cell.clone(),
            configuration: order.configuration.clone(),
            stage: tracker.stage.clone(),
            attempt: order.attempt.ordinal,
            load: order.load,
            warmup_s: order.warmup_s,
            measure_s: order.measure_s,
            conditions: self.conditions(tracker, None),
            started: tracker.started,
        };
        self.folder
            .create_hlog(&header)
            .inspect_err(|e| tracing::error!("no histogram log for {}: {e}", order.cell))
            .ok()
    }

    fn order(
        &mut self,
        cell: CellId,
        configuration: ConfigurationId,
        target: TargetSpec,
        request: &Request,
        (shape, life): (Shape, ConnectionLife),
    ) -> CellOrder {
        self.attempts += 1;
        let ordinal = self.attempts;
        let first_id = i64::try_from(ordinal.saturating_mul(IDS_PER_ATTEMPT)).unwrap_or(i64::MAX);
        CellOrder {
            cell,
            configuration,
            target,
            load: request.load,
            warmup_s: request.warmup_s,
            measure_s: request.measure_s,
            drain_s: self.plan.load.drain_s,
            seed: self.plan.seed,
            attempt: AttemptRange {
                ordinal,
                first_id,
                ids: IDS_PER_ATTEMPT,
                prefix: format!("{}.{ordinal}.", self.header.id),
            },
            workload: WorkloadSpec { mix: self.plan.mix, scale: self.plan.scale },
            retry: self.plan.retry,
            backlog: self.plan.load.backlog,
            shape,
            life,
        }
    }

    /// A cell of the plan that cannot be run at all counts as ended.
    fn give_up(&mut self, planned: Option<PlannedCell>) {
        if planned.is_some() {
            self.progress.ended();
        }
    }

    pub fn agent_report(&mut self, report: AgentReport) {
        self.agent_care.heard();
        match report {
            AgentReport::Ready { pid, processors } => {
                self.agent_status.pid = Some(pid);
                self.agent_status.processors = processors;
                self.journal.note(EventKind::AgentStarted { pid, processors });
            }
            AgentReport::Phase { cell, phase } => self.phase(&cell, phase),
            AgentReport::Window(window) => self.window(*window),
            AgentReport::Ended(result) => self.load_ended(*result),
            AgentReport::Runner(sample) => self.runner_sample(&sample),
            AgentReport::Log { warning, text } => {
                let level = if warning { Level::Warning } else { Level::Info };
                self.journal.note(EventKind::Note { level, text });
            }
        }
    }

    fn phase(&mut self, cell: &CellId, phase: Phase) {
        let Some(at) = self.running(cell) else { return };
        if let Some(active) = &mut self.configurations[at].cell {
            active.tracker.enter(phase);
        }
        self.journal.note(EventKind::CellPhase { cell: cell.clone(), phase });
    }

    fn window(&mut self, window: Window) {
        let Some(at) = self.running(&window.cell) else { return };
        self.meter.attempts(&window.configuration, window.counts.attempts);
        if let Some(broken) = window.counts.violated_identity(window.in_flight_before) {
            let text = format!("{} window {}: {broken}", window.cell, window.seq);
            self.journal.note(EventKind::Note { level: Level::Error, text });
        }
        let configuration = &mut self.configurations[at];
        let Some(active) = &mut configuration.cell else { return };
        if let Some(log) = &mut active.log
            && let Err(error) = log.append(&window)
        {
            tracing::error!("the histogram log of {} cannot be written: {error}", window.cell);
            active.log = None;
        }
        let point = active.tracker.window(window);
        configuration.remember(point);
    }

    fn runner_sample(&mut self, sample: &RunnerSample) {
        self.agent_status.processors = sample.processors;
        self.agent_status.cpu_percent = sample.cpu_percent;
        self.agent_status.host_cpu_percent = sample.host_cpu_percent;
        self.agent_status.rss_mib = sample.rss_mib;
        self.agent_status.loop_lag_p99_ms = sample
            .threads
            .iter()
            .filter_map(|thread| thread.loop_lag.p99)
            .max_by(f64::total_cmp)
            .or_else(|| sample.loop_lag.quantile_ms(0.99));
        self.agent_status.at = Some(UnixMs::now());
    }

    fn running(&self, cell: &CellId) -> Option<usize> {
        self.configurations
            .iter()
            .position(|c| c.cell.as_ref().is_some_and(|a| a.tracker.order.cell == *cell))
    }

    /// The load of a cell has ended: its invariants are checked while the next one may start.
    pub fn load_ended(&mut self, result: CellResult) {
        let Some(at) = self.running(&result.cell) else { return };
        let Some(active) = self.configurations[at].cell.take() else { return };
        let ActiveCell { tracker, planned, cut, .. } = active;
        self.plan_cell_over(planned.clone(), cut, &result.end);
        // A step whose next cell has been taken back ends the chain, too.
        if cut != Some(Cut::Stepped) || self.configurations[at].queue.is_empty() {
            self.end_ramp(at, "its cell has ended");
            self.configurations[at].rates.clear();
        }
        let conditions = self.conditions(&tracker, result.round_trip_ms);
        let order = tracker.order;
        let checkable = !matches!(result.end, CellEnd::Failed { .. });
        let acknowledged = result.acknowledged;
        self.configurations[at].checking.push(CheckingCell {
            request: Request {
                number: 0,
                load: order.load,
                warmup_s: order.warmup_s,
                measure_s: order.measure_s,
                stage: tracker.stage,
                by: String::new(),
                planned,
            },
            attempt: order.attempt.ordinal,
            conditions,
            result,
            cut,
        });
        let inputs = self.inputs.clone();
        let direct = self.configurations[at].direct.clone();
        let direct = direct.filter(|_| checkable);
        tokio::spawn(async move {
            let attempt = order.attempt;
            let check = tokio::spawn(async move {
                let Some(direct) = direct else {
                    return Err("the cell did not run to its end, so what it acknowledged is not \
                                known"
                        .to_owned());
                };
                crate::workload::invariants::check(&direct, &attempt, &acknowledged)
                    .await
                    .map_err(|e| e.to_string())
            });
            // Whatever becomes of the check, the run hears of it: it waits for no one for ever.
            let limited = tokio::time::timeout(CHECK_LIMIT, AbortOnDropHandle::new(check)).await;
            let report = match limited {
                Ok(Ok(report)) => report,
                Ok(Err(broken)) => Err(format!("the check broke: {broken}")),
                Err(_) => Err(format!("no answer within {} s", CHECK_LIMIT.as_secs())),
            };
            let _ = inputs.send(Input::Checked { cell: order.cell, report }).await;
        });
        self.advance();
    }

    /// The plan goes on, or runs the cell again where it was cut for the operator's sake.
    fn plan_cell_over(&mut self, planned: Option<PlannedCell>, cut: Option<Cut>, end: &CellEnd) {
        match (planned, cut) {
            (None, _) => {}
            // One that had measured all it should needs no repeat, whoever was impatient.
            (Some(planned), Some(Cut::Stepped | Cut::Replaced)) if *end != CellEnd::Complete => {
                self.progress.repeat(planned);
            }
            (Some(_), _) => self.progress.ended(),
        }
    }

    /// The agent has died: every cell it ran is invalid, the run goes on with a new one.
    pub fn agent_gone(&mut self, why: &str) {
        let generation = self.agent_generation;
        self.agent = None;
        self.agent_status.pid = None;
        self.resource_gone(&format!("load agent {generation}"));
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return;
        }
        self.journal.note(EventKind::AgentLost { text: why.to_owned() });
        let partial: Vec<CellResult> = self
            .configurations
            .iter()
            .filter_map(|c| c.cell.as_ref())
            .map(|active| active.tracker.partial_result(format!("the load agent was lost: {why}")))
            .collect();
        self.agent_again();
        for configuration in &mut self.configurations {
            if let Some(active) = &mut configuration.cell {
                active.cut = Some(Cut::AgentLost);
            }
        }
        for result in partial {
            self.load_ended(result);
        }
    }

    /// Tells the running cell of a configuration to stop, for a reason that is kept with it.
    pub fn cut(&mut self, at: usize, cut: Cut) {
        let Some(active) = &mut self.configurations[at].cell else { return };
        active.cut.get_or_insert(cut);
        let cell = active.tracker.order.cell.clone();
        if let Some(agent) = &self.agent {
            agent.send(AgentCommand::Stop { cell });
        }
    }

    pub fn cut_all(&mut self, cut: Cut) {
        for at in 0..self.configurations.len() {
            self.cut(at, cut);
        }
    }

    /// Whether the configuration runs a cell that has not been told to stop.
    pub fn runs(configuration: &Configuration) -> bool {
        configuration.cell.as_ref().is_some_and(|active| active.cut.is_none())
    }
}
