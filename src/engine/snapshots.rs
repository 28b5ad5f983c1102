//! What the consoles see, and the look at the money that comes with it.

use super::supervisor::{Configuration, Supervisor};
use crate::{
    cost,
    model::{
        ConfigurationState, ConfigurationStatus, CostStatus, EventKind, GateStatus, GuardState,
        Money, RunState, Snapshot, StageStatus, UnixMs,
    },
};

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
            engine_rss_mib: crate::provider::process::resident_mib().unwrap_or_default(),
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
            consoles: u32::try_from(self.consoles).unwrap_or(u32::MAX),
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
            point: configuration.history.back().cloned(),
        }
    }

    pub fn cost_status(&self, now: UnixMs) -> CostStatus {
        let accrued = self.meter.accrued(now);
        let projected = accrued + cost::projection(&self.plan, &self.meter, &self.progress.remaining_stages());
        CostStatus {
            accrued,
            // A simulated or estimated meter publishes at once.
            unpublished: (Money::ZERO, Money::ZERO),
            per_hour: self.meter.per_hour(),
            projected,
            guard: self.plan.budget.guard,
            cap: self.plan.budget.cap,
            basis: self.meter.basis(),
            state: self.guard,
        }
    }

    /// The guard acts here, whether anyone watches or not.
    pub fn look_after_money(&mut self) {
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return;
        }
        let now = UnixMs::now();
        let accrued = self.meter.accrued(now);
        let state = cost::assess(&self.plan, &self.meter, now).max(self.guard);
        if state == self.guard {
            return;
        }
        self.guard = state;
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
    let report = configuration.gate.as_ref()?.borrow().clone()?;
    Some(GateStatus { cpu_percent: report.cpu_percent, round_trip_ms: gate.round_trip_ms })
}
