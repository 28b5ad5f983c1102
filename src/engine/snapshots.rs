//! What the consoles see, and the look at the money that comes with it.

use super::supervisor::{Configuration, Supervisor};
use crate::{
    cost::{self, Ahead, Exposure},
    model::{
        ConfigurationId, ConfigurationState, ConfigurationStatus, CostStatus, EventKind,
        GateStatus, GuardState, Load, Money, RunState, Snapshot, StageStatus, UnixMs,
    },
    plan::Stage,
};

/// What a cell takes beside its warm-up and measured span: opening, drain, checks. Seen in
/// rehearsals: one to three seconds.
pub const CELL_OVERHEAD_S: f64 = 3.0;
/// How long a lab's teardown takes, generously: two to five seconds were seen.
const TEARDOWN_S: f64 = 10.0;

/// Events that a snapshot carries.
const RECENT: usize = 50;

impl Supervisor {
    pub fn send_snapshot(&mut self) {
        self.snapshot_seq += 1;
        let snapshot = self.snapshot();
        self.broadcaster.snapshot(snapshot);
    }

    fn snapshot(&self) -> Snapshot {
        let now = UnixMs::now();
        Snapshot {
            header: self.header.clone(),
            seq: self.snapshot_seq,
            at: now,
            engine_pid: std::process::id(),
            engine_rss_mib: super::machine::resident_mib().unwrap_or_default(),
            state: self.state.clone(),
            stage: self.progress.stage().map(|(index, stage)| StageStatus {
                name: stage.name.clone(),
                index: index + 1,
                of: self.progress.stages(),
            }),
            configurations: self
                .configurations
                .iter()
                .map(|configuration| self.configuration_status(configuration, now))
                .collect(),
            decision: self.decision.clone(),
            cost: self.cost_status(now),
            agent: self.agent_status.clone(),
            resources: self.resources.values().cloned().collect(),
            teardown: self.teardown.clone(),
            control: self.control.status().clone(),
            queue: self.queue(),
            recent: self.journal.recent(RECENT),
        }
    }

    fn configuration_status(
        &self,
        configuration: &Configuration,
        now: UnixMs,
    ) -> ConfigurationStatus {
        let id = &configuration.plan.id;
        let waiting = configuration.queue.len() + self.progress.waiting(id);
        ConfigurationStatus {
            id: id.clone(),
            title: configuration.plan.title.clone(),
            kind: configuration.plan.source.kind().to_owned(),
            state: state(configuration),
            cell: configuration.cell.as_ref().map(|active| active.tracker.live().clone()),
            last: configuration.last.clone(),
            queued: u32::try_from(waiting).unwrap_or(u32::MAX),
            cells_done: configuration.cells_done,
            accrued: self.meter.accrued_of(id, now),
            per_hour: self.meter.per_hour_of(id),
            gate: gate(configuration),
            ramp: configuration.rates.ramp(),
            undo_rate: configuration.rates.undo_rate(),
            point: configuration.history.back().cloned(),
        }
    }

    pub fn cost_status(&self, now: UnixMs) -> CostStatus {
        let accrued = self.meter.accrued(now);
        let stages = self.progress.remaining_stages();
        let configurations = self.present();
        let ahead = self.ahead(&stages, &configurations);
        let over = matches!(self.state, RunState::Ended { .. }) || self.meter_has_stopped();
        let ahead = cost::projection(&self.plan, &ahead, &self.rates).spends
            + self.attempts_cost(self.cells_left());
        let projected = if over { accrued } else { accrued + ahead };
        CostStatus {
            accrued,
            // A simulated or estimated meter publishes at once.
            unpublished: (Money::ZERO, Money::ZERO),
            per_hour: self.meter.per_hour(),
            projected,
            guard: self.plan.budget.guard,
            cap: self.plan.budget.cap,
            basis: self.meter.basis(),
            state: self.guard_state(),
        }
    }

    /// Configurations that bill and are still in the plan.
    pub fn present(&self) -> Vec<ConfigurationId> {
        self.configurations
            .iter()
            .filter(|c| c.base != ConfigurationState::Removed)
            .map(|c| c.plan.id.clone())
            .collect()
    }

    /// What is still to come, for projections.
    pub fn ahead<'a>(
        &self,
        stages: &'a [Stage],
        configurations: &'a [ConfigurationId],
    ) -> Ahead<'a> {
        let cell_overhead_s = self.plan.load.drain_s.min(CELL_OVERHEAD_S);
        let running = self.configurations.iter().filter_map(|c| c.cell.as_ref());
        let waiting = self.progress.remaining_seconds(cell_overhead_s);
        let current_s = running.map(|active| active.tracker.seconds_left()).fold(0.0, f64::max);
        Ahead {
            stages,
            configurations,
            current_s: current_s + waiting,
            cell_overhead_s,
            teardown_s: TEARDOWN_S,
        }
    }

    /// Everything that billed has been removed.
    fn meter_has_stopped(&self) -> bool {
        self.teardown.as_ref().is_some_and(|t| t.ended.is_some() && t.remaining_count == 0)
    }

    /// What is left of the running cells and of those of the stage that wait.
    fn cells_left(&self) -> Vec<(ConfigurationId, Load, f64)> {
        let waiting = self
            .progress
            .remaining_cells()
            .map(|cell| (cell.configuration.clone(), cell.load, cell.warmup_s + cell.measure_s));
        self.running_left().into_iter().chain(waiting).collect()
    }

    fn running_left(&self) -> Vec<(ConfigurationId, Load, f64)> {
        let active = self.configurations.iter().filter_map(|c| c.cell.as_ref());
        active
            .map(|active| {
                let order = &active.tracker.order;
                (order.configuration.clone(), order.load, active.tracker.seconds_left())
            })
            .collect()
    }

    /// What the attempts of these cells add to the bill: configuration, load and seconds of each.
    pub fn attempts_cost(&self, cells: Vec<(ConfigurationId, Load, f64)>) -> Money {
        let cost = |(id, load, seconds): (ConfigurationId, Load, f64)| {
            let millions = self.rates.of(&id, load) * seconds / 1e6;
            let configuration = self.configuration(&id)?;
            Some(cost::per_million_attempts(&configuration.plan).times(millions))
        };
        cells.into_iter().filter_map(cost).sum()
    }

    /// What is spent, and what the running cells, the `next` ones and the teardown will take.
    fn exposure(&self, accrued: Money, next: &[(&ConfigurationId, Load, f64)]) -> Exposure {
        let burn = self.meter.per_hour();
        let mut cells = self.running_left();
        cells.extend(next.iter().map(|(id, load, seconds)| ((*id).clone(), *load, *seconds)));
        let seconds = cells.iter().map(|(_, _, seconds)| *seconds).fold(0.0, f64::max);
        Exposure {
            accrued,
            unpublished_high: Money::ZERO,
            next_cell: burn.times(seconds / 3600.0) + self.attempts_cost(cells),
            teardown: burn.times(TEARDOWN_S / 3600.0),
        }
    }

    /// Whether these cells may start: the guard counts what they will take. A refusal stands.
    pub fn guard_allows(&mut self, next: &[(&ConfigurationId, Load, f64)]) -> bool {
        let accrued = self.meter.accrued(UnixMs::now());
        let mut judge = self.guard;
        if !self.no_new_cells
            && judge.assess(&self.exposure(accrued, next)) >= GuardState::NoNewCells
        {
            self.no_new_cells = true;
            let guard = self.plan.budget.guard;
            let text =
                format!("no new cells: {accrued} USD accrued, the next would pass {guard} USD");
            self.journal.note(EventKind::Guard { state: GuardState::NoNewCells, accrued, text });
        }
        !self.no_new_cells
    }

    fn guard_state(&self) -> GuardState {
        let floor = if self.no_new_cells { GuardState::NoNewCells } else { GuardState::Ok };
        self.guard.state().max(floor)
    }

    /// The guard acts here, whether anyone watches or not.
    pub fn look_after_money(&mut self) {
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return;
        }
        let now = UnixMs::now();
        let accrued = self.meter.accrued(now);
        let before = self.guard.state();
        let exposure = self.exposure(accrued, &[]);
        let state = self.guard.assess(&exposure);
        if state == before {
            return;
        }
        self.no_new_cells |= state == GuardState::NoNewCells;
        let guard = self.plan.budget.guard;
        let text = match state {
            GuardState::Ok => "within the budget".to_owned(),
            GuardState::Warn => format!("warning: {accrued} USD accrued of the guard's {guard}"),
            GuardState::NoNewCells => {
                format!("no new cells: {accrued} USD accrued, another cell could pass {guard}")
            }
            GuardState::Teardown => {
                format!("teardown: {accrued} USD accrued, guard {guard} USD")
            }
        };
        self.journal.note(EventKind::Guard { state, accrued, text });
        if state == GuardState::Teardown {
            self.begin_teardown("the guard", 5);
        }
    }
}

fn state(configuration: &Configuration) -> ConfigurationState {
    if let Some(active) = &configuration.cell {
        let (elapsed_s, total_s) = active.tracker.progress();
        ConfigurationState::Cell { phase: active.tracker.phase(), elapsed_s, total_s }
    } else if !configuration.checking.is_empty() {
        ConfigurationState::Checking
    } else {
        configuration.base.clone()
    }
}

fn gate(configuration: &Configuration) -> Option<GateStatus> {
    let crate::plan::Source::Lab { gate, .. } = &configuration.plan.source else { return None };
    let report = (*configuration.gate.as_ref()?.status.borrow())?;
    Some(GateStatus { cpu_percent: report.cpu_percent, round_trip_ms: gate.round_trip_ms })
}
