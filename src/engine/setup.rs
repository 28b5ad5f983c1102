//! Making what a run needs: the lab's server, the data, the gates, or rampdeck's schema in a
//! database of the operator's. A task of its own: it tells the supervisor what it is about to do
//! and waits until that is on disk.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{input::Input, launch::Launch};
use crate::{
    model::{ConfigurationId, Resource, ResourceKind, ResourceState, RunId, TargetSpec, UnixMs},
    plan::{ConfigurationPlan, Plan, Source},
    provider::{
        self, Recorder,
        lab::{Gate, GateOrder, Lab},
    },
    workload,
};

/// Connections of the checks and look-ups beside a cell's own.
const CHECKS: u32 = 2;
/// Connections that are not the load's: checks, look-ups, an operator's psql.
const SPARE_CONNECTIONS: u32 = 24;

/// What the setup has made.
pub struct Ready {
    pub lab: Option<Lab>,
    pub endpoints: Vec<Endpoint>,
}

/// One configuration, ready for load.
pub struct Endpoint {
    pub configuration: ConfigurationId,
    pub target: TargetSpec,
    pub direct: TargetSpec,
    /// The lab's: it exits when this is dropped.
    pub gate: Option<Gate>,
    pub rows: u64,
    pub seconds: f64,
}

/// A resource about to be made.
pub fn resource(kind: ResourceKind, id: impl Into<String>) -> Resource {
    Resource {
        kind,
        id: id.into(),
        configuration: None,
        process: None,
        path: None,
        port: None,
        note: String::new(),
        state: ResourceState::Intended,
        since: UnixMs::now(),
    }
}

/// How the databases of the operator's are reached with the run's schema in them.
#[must_use]
pub fn schema_targets(plan: &Plan, run: &RunId) -> SchemaTargets {
    let own = |c: &ConfigurationPlan| match &c.source {
        Source::Postgres { target, .. } => Some((c.id.clone(), TargetSpec::clone(target))),
        Source::Lab { .. } => None,
    };
    in_schemas(plan.configurations.iter().filter_map(own).collect(), run)
}

/// The same databases with the run's own schema. Where several configurations share a database, so
/// that two ways of using it can be compared, the later ones' schemas are numbered.
fn in_schemas(targets: Vec<(ConfigurationId, TargetSpec)>, run: &RunId) -> SchemaTargets {
    let name = format!("rampdeck_{}", run.as_str().replace('-', "_"));
    let is_same =
        |a: &TargetSpec, b: &TargetSpec| a.address == b.address && a.database == b.database;
    let schema = |at: usize, target: &TargetSpec| {
        let before = targets[..at].iter().filter(|(_, other)| is_same(other, target)).count();
        if before == 0 { name.clone() } else { format!("{name}_{}", before + 1) }
    };
    let own = |(at, (id, target)): (usize, &(ConfigurationId, TargetSpec))| {
        (id.clone(), TargetSpec { schema: schema(at, target), ..target.clone() })
    };
    targets.iter().enumerate().map(own).collect()
}

/// Targets by configuration.
pub type SchemaTargets = BTreeMap<ConfigurationId, TargetSpec>;

/// The database that a schema is in.
#[must_use]
pub fn target_of(targets: &SchemaTargets, resource: &Resource) -> Option<TargetSpec> {
    targets.get(resource.configuration.as_ref()?).cloned()
}

struct Setup {
    run: RunId,
    plan: Plan,
    exe: PathBuf,
    recorder: Recorder,
}

/// Starts the setup; its result comes as [`Input::SetUp`].
pub fn spawn(
    launch: &Launch,
    plan: &Plan,
    exe: &Path,
    inputs: mpsc::Sender<Input>,
) -> AbortOnDropHandle<()> {
    let (recorder, mut messages) = Recorder::channel();
    let forwarded = inputs.clone();
    tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            if forwarded.send(Input::Provider(message)).await.is_err() {
                return;
            }
        }
    });
    let setup =
        Setup { run: launch.run.clone(), plan: plan.clone(), exe: exe.to_path_buf(), recorder };
    AbortOnDropHandle::new(tokio::spawn(async move {
        // A panic in it is a failed setup, not one that never ends.
        let making = AbortOnDropHandle::new(tokio::spawn(setup.make()));
        let result = making.await.unwrap_or_else(|broken| Err(format!("it broke: {broken}")));
        let _ = inputs.send(Input::SetUp(Box::new(result))).await;
    }))
}

impl Setup {
    async fn make(self) -> Result<Ready, String> {
        let mut endpoints = Vec::new();
        let lab = self.make_lab(&mut endpoints).await?;
        let mut own = schema_targets(&self.plan, &self.run);
        for configuration in &self.plan.configurations {
            if let Some(target) = own.remove(&configuration.id) {
                endpoints.push(self.own_database(configuration, target).await?);
            }
        }
        // In the plan's order, whatever was made first.
        endpoints.sort_by_key(|endpoint| {
            self.plan.configurations.iter().position(|c| c.id == endpoint.configuration)
        });
        Ok(Ready { lab, endpoints })
    }

    /// One server, the data loaded once as a template, a copy and a gate for each configuration.
    async fn make_lab(&self, endpoints: &mut Vec<Endpoint>) -> Result<Option<Lab>, String> {
        let lab_configurations: Vec<_> = self
            .plan
            .configurations
            .iter()
            .filter(|c| matches!(c.source, Source::Lab { .. }))
            .collect();
        if lab_configurations.is_empty() {
            return Ok(None);
        }
        let began = Instant::now();
        let lab = Lab::start(&self.run, &self.plan.lab, self.connections(), &self.recorder)
            .await
            .map_err(|e| e.to_string())?;
        let template = "rampdeck_template";
        lab.create_database(template, None).await.map_err(|e| e.to_string())?;
        let rows = self.load_data(&lab.admin_target(template), None).await?;
        for configuration in lab_configurations {
            let Source::Lab { gate, faults } = &configuration.source else { continue };
            let id = &configuration.id;
            self.recorder.step(Some(id), "copying the data".to_owned());
            let database = format!("rampdeck_{}", id.as_str().to_lowercase());
            lab.clone_database(template, &database, Some(id)).await.map_err(|e| e.to_string())?;
            self.recorder.step(Some(id), "starting its gate".to_owned());
            let order = GateOrder {
                configuration: id.clone(),
                profile: gate.clone(),
                faults: faults.clone(),
                database: database.clone(),
                seed: self.plan.seed,
            };
            let gate = lab.start_gate(&self.exe, order).await.map_err(|e| e.to_string())?;
            endpoints.push(Endpoint {
                configuration: id.clone(),
                target: gate.target.clone(),
                direct: lab.admin_target(&database),
                gate: Some(gate),
                rows,
                seconds: began.elapsed().as_secs_f64(),
            });
        }
        Ok(Some(lab))
    }

    /// Connections that all configurations may hold at once, and some to spare.
    fn connections(&self) -> u32 {
        let configurations = u32::try_from(self.plan.configurations.len()).unwrap_or(8);
        let most = self.plan.load.max_connections.saturating_mul(configurations);
        most.saturating_add(SPARE_CONNECTIONS)
    }

    async fn own_database(
        &self,
        configuration: &ConfigurationPlan,
        target: TargetSpec,
    ) -> Result<Endpoint, String> {
        let began = Instant::now();
        let id = configuration.id.clone();
        self.check_own(&target, self.plan.largest_cell(configuration)).await?;
        provider::postgres::make_schema(&target, &self.run, &id, &self.recorder)
            .await
            .map_err(|e| e.to_string())?;
        let rows = self.load_data(&target, Some(&id)).await?;
        Ok(Endpoint {
            configuration: id,
            direct: target.clone(),
            target,
            gate: None,
            rows,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// What the server of the operator's says of itself against the plan, before anything is made.
    async fn check_own(&self, target: &TargetSpec, needed: u32) -> Result<(), String> {
        let facts = provider::postgres::preflight(target).await.map_err(|e| e.to_string())?;
        let free = facts.max_connections.saturating_sub(facts.connections_in_use);
        if needed + CHECKS > free {
            return Err(format!(
                "the server allows {} connections, {} are in use, and its largest cell in the plan needs {needed}, the checks {CHECKS}",
                facts.max_connections, facts.connections_in_use
            ));
        }
        if let Some(limit) = facts.connection_limit.filter(|limit| needed + CHECKS > *limit) {
            return Err(format!(
                "the role or the database allows {limit} connections, and its largest cell in the plan needs {needed}, the checks {CHECKS}"
            ));
        }
        self.recorder.step(None, format!("PostgreSQL {}", facts.version));
        Ok(())
    }

    /// Loads and counts; the number of rows as the database counts them.
    async fn load_data(
        &self,
        target: &TargetSpec,
        configuration: Option<&ConfigurationId>,
    ) -> Result<u64, String> {
        let report = workload::data::load(target, self.plan.scale, self.plan.seed, |progress| {
            let text = loading(progress);
            match configuration {
                Some(id) => self.recorder.step(Some(id), text),
                None => {
                    for c in &self.plan.configurations {
                        self.recorder.step(Some(&c.id), text.clone());
                    }
                }
            }
        })
        .await
        .map_err(|e| e.to_string())?;
        Ok(report.rows.total())
    }
}

fn loading(progress: workload::data::LoadProgress) -> String {
    use workload::data::LoadStep;
    match progress.step {
        LoadStep::Rows => {
            let left = progress.eta_s.map_or_else(String::new, |s| format!(", {s:.0} s left"));
            format!(
                "loading data, {} of {} rows, {:.0}/s{left}",
                progress.rows, progress.of, progress.rows_per_s
            )
        }
        LoadStep::Indexes => "building indexes".to_owned(),
        LoadStep::Statistics => "analyzing".to_owned(),
        LoadStep::Verify => format!("verifying, {} of {} rows", progress.rows, progress.of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TargetAddress;

    #[test]
    fn configurations_that_share_a_database_have_a_schema_each() {
        let target = |port, database: &str| {
            TargetSpec::plain(TargetAddress::loopback(port), "app", database, "")
        };
        let targets = [("A", 1, "shop"), ("B", 1, "shop"), ("C", 2, "shop"), ("D", 1, "shop")];
        let targets =
            targets.map(|(id, port, database)| (ConfigurationId::new(id), target(port, database)));
        let named = in_schemas(targets.to_vec(), &RunId::new("quick-1201-a7f3"));
        let schemas: Vec<&str> = named.values().map(|target| target.schema.as_str()).collect();
        let name = "rampdeck_quick_1201_a7f3";
        assert_eq!(schemas, [name, &format!("{name}_2"), name, &format!("{name}_3")]);
    }
}
