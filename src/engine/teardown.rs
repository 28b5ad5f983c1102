//! The end of a run: load stopped, everything it made removed and looked for again, the summary
//! written.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use super::{
    input::Input,
    supervisor::{Cut, Supervisor},
};
use crate::{
    model::{
        ConfigurationId, EventKind, Resource, ResourceKind, RunState, TeardownItem, TeardownStatus,
        UnixMs, Verdict,
    },
    provider, report,
};

/// How long cells may drain before what they have is kept as it is.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

impl Supervisor {
    /// Begins the removal of everything the run made. `exit_code` is what the run ends with if
    /// nothing worse comes.
    pub fn begin_teardown(&mut self, by: &str, exit_code: u8) {
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return;
        }
        self.state = RunState::TearingDown;
        self.exit_code = self.exit_code.max(exit_code);
        self.decision = None;
        for configuration in &mut self.configurations {
            configuration.queue.clear();
        }
        self.cut_all(Cut::RunEnding);
        if let Some(setup) = self.setup.take() {
            setup.abort();
        }
        self.journal.note(EventKind::TeardownStarted {
            by: by.to_owned(),
            resources: u64::try_from(self.resources.len()).unwrap_or(u64::MAX),
        });
        self.teardown = Some(TeardownStatus {
            started: UnixMs::now(),
            ended: None,
            items: self.resources.values().map(waiting_item).collect(),
            remaining_count: u64::try_from(self.resources.len()).unwrap_or(u64::MAX),
        });
        self.teardown_since = Some(Instant::now());
    }

    /// Removes once the cells have drained and been checked, or have had their time.
    pub fn look_after_teardown(&mut self) {
        let Some(since) = self.teardown_since else { return };
        if self.removal_running || (self.runner_is_busy() && since.elapsed() < DRAIN_LIMIT) {
            return;
        }
        self.removal_running = true;
        self.record_what_is_left();
        // Its standard input closes, which ends it; the removal waits for that.
        self.agent = None;
        self.lab = None;
        for configuration in &mut self.configurations {
            configuration.gate = None;
        }
        let resources: Vec<Resource> = self.resources.values().cloned().collect();
        let run = self.header.id.clone();
        let schemas = super::setup::schema_targets(&self.plan, &self.header.id);
        let inputs = self.inputs.clone();
        tokio::spawn(async move {
            let progress = inputs.clone();
            let target_of = |resource: &Resource| super::setup::target_of(&schemas, resource);
            let status = provider::remove(&run, &resources, target_of, |item| {
                // A full queue loses a line of progress, never the removal.
                let _ = progress.try_send(Input::TeardownProgress(item.clone()));
            })
            .await;
            let _ = inputs.send(Input::TornDown(status)).await;
        });
    }

    pub fn teardown_progress(&mut self, item: TeardownItem) {
        if item.gone {
            self.resource_gone(&item.id);
        }
        if let Some(teardown) = &mut self.teardown {
            match teardown.items.iter_mut().find(|known| known.id == item.id) {
                Some(known) => *known = item,
                None => teardown.items.push(item),
            }
            let remaining = teardown.items.iter().filter(|item| !item.gone).count();
            teardown.remaining_count = u64::try_from(remaining).unwrap_or(u64::MAX);
        }
        self.send_snapshot();
    }

    pub fn torn_down(&mut self, status: TeardownStatus) {
        for item in status.items.iter().filter(|item| item.gone) {
            self.resource_gone(&item.id);
        }
        self.stop_meters(&status);
        let remaining: Vec<String> = status
            .items
            .iter()
            .filter(|item| !item.gone)
            .map(|item| format!("{}: {}", item.kind.named(&item.id), item.state))
            .collect();
        self.journal.note(EventKind::TeardownEnded {
            remaining_count: status.remaining_count,
            remaining: remaining.clone(),
        });
        if status.remaining_count > 0 {
            self.exit_code = 4;
        }
        self.teardown = Some(status);
        self.finish();
    }

    /// What remains goes on billing; what is gone does not. A thing that belongs to no one
    /// configuration (the lab's server) bills for all.
    fn stop_meters(&mut self, status: &TeardownStatus) {
        let now = UnixMs::now();
        let remains = |id: &ConfigurationId| {
            status.items.iter().filter(|item| !item.gone).any(|item| {
                let resource = self.resources.get(&item.id);
                resource.is_none_or(|r| r.configuration.as_ref().is_none_or(|c| c == id))
            })
        };
        let gone: Vec<ConfigurationId> = self
            .configurations
            .iter()
            .map(|c| c.plan.id.clone())
            .filter(|id| !remains(id))
            .collect();
        for id in gone {
            self.meter.gone_at(&id, now);
        }
    }

    fn finish(&mut self) {
        if self.exit_code == 0
            && self.launch.require_pass
            && (self.cells.is_empty()
                || self.cells.iter().any(|(_, cell)| cell.verdict != Verdict::Pass))
        {
            self.exit_code = 3;
        }
        if !self.write_summary(Some(UnixMs::now())) {
            self.exit_code = self.exit_code.max(1);
        }
        let remaining = self.teardown.as_ref().map_or(0, |t| t.remaining_count);
        let ended = match &self.failure {
            Some(why) => format!("failed: {why}"),
            None => "ended".to_owned(),
        };
        let text = format!(
            "run {} {ended}: {} cells, remaining {remaining}, exit code {}",
            self.header.id,
            self.cells.len(),
            self.exit_code
        );
        self.state = RunState::Ended { exit_code: self.exit_code };
        self.journal.note(EventKind::RunEnded {
            exit_code: self.exit_code,
            text: text.clone(),
            folder: self.folder.path().to_path_buf(),
        });
        self.finished = Some((self.exit_code, text));
    }

    /// Writes the summary as the run stands: at its start, after every cell and at its end, so
    /// that a lost engine leaves one to go on from. `false` when it could not be written.
    pub fn write_summary(&self, ended: Option<UnixMs>) -> bool {
        let now = UnixMs::now();
        let configurations: Vec<report::ConfigurationInfo> = self
            .configurations
            .iter()
            .map(|c| report::ConfigurationInfo {
                id: c.plan.id.clone(),
                kind: c.plan.source.kind().to_owned(),
                title: c.plan.title.clone(),
                accrued: self.meter.accrued_of(&c.plan.id, now),
                basis: self.meter.basis(),
            })
            .collect();
        let summary = report::build(&report::SummaryInputs {
            header: &self.header,
            ended,
            configurations: &configurations,
            cells: &self.cells,
            cost: &self.cost_status(now),
            cost_lines: &self.meter.lines(now),
            teardown: self.teardown.as_ref(),
        });
        self.folder
            .write_summary(&summary)
            .inspect_err(|error| tracing::error!("the summary cannot be written: {error}"))
            .is_ok()
    }

    pub fn removed(&mut self, id: &ConfigurationId, items: &[TeardownItem]) {
        for item in items {
            if item.gone {
                self.resource_gone(&item.id);
            } else {
                let text = format!("{id}: {} remains: {}", item.id, item.state);
                self.journal.note(EventKind::Note { level: crate::model::Level::Error, text });
            }
        }
        if items.iter().all(|item| item.gone) {
            self.meter.gone_at(id, UnixMs::now());
        }
    }
}

/// The removal of one configuration's own resources: its gate, then its database or schema.
pub fn removal_of(
    supervisor: &Supervisor,
    id: &ConfigurationId,
) -> impl Future<Output = Vec<TeardownItem>> + use<> {
    let run = supervisor.header.id.clone();
    let resources: Vec<Resource> = supervisor
        .resources
        .values()
        .filter(|resource| resource.configuration.as_ref() == Some(id))
        .cloned()
        .collect();
    let schemas = super::setup::schema_targets(&supervisor.plan, &supervisor.header.id);
    let lab = supervisor.lab.as_ref().map(|lab| lab.admin_target("postgres"));
    async move {
        let target_of = |resource: &Resource| match resource.kind {
            ResourceKind::Database => lab.clone(),
            _ => super::setup::target_of(&schemas, resource),
        };
        provider::remove_only(&run, &resources, target_of, |_| {}).await.items
    }
}

fn waiting_item(resource: &Resource) -> TeardownItem {
    TeardownItem {
        kind: resource.kind,
        id: resource.id.clone(),
        state: "waiting".to_owned(),
        gone: false,
        since: UnixMs::now(),
    }
}
