//! Looking at reality again after a removal.

use crate::model::{Resource, ResourceKind, ResourceState, RunId, TargetSpec};

use super::{
    lab::{is_marked, server},
    postgres, process,
    remove::{data_of, path_of, swept},
};

/// Something of a run that is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    pub kind: ResourceKind,
    pub id: String,
    /// What it is doing, in a word or two.
    pub state: String,
    /// How it was found, or why nobody can tell.
    pub why: String,
}

/// What of the run is still there, whatever the record says of it: every resource that was ever
/// recorded is looked for, the gone ones as well, and the machine is swept for the run's mark.
/// `target_of` gives the way to the database of a schema, with its password. A schema that cannot
/// be looked at counts as remaining, unless its record says that it is gone.
pub async fn verify(
    run: &RunId,
    resources: &[Resource],
    target_of: impl Fn(&Resource) -> Option<TargetSpec>,
) -> Vec<Remaining> {
    let mut remaining = Vec::new();
    for resource in resources.iter().cloned().chain(swept(run, resources)) {
        let found = match resource.kind {
            ResourceKind::Schema => look_for_schema(run, &resource, target_of(&resource)).await,
            _ => look(run, &resource),
        };
        if let Some((state, why)) = found {
            let Resource { kind, id, .. } = resource;
            remaining.push(Remaining { kind, id, state: state.into(), why });
        }
    }
    remaining.sort_by(|a, b| (a.kind, &a.id).cmp(&(b.kind, &b.id)));
    remaining.dedup();
    remaining
}

fn look(run: &RunId, resource: &Resource) -> Option<(&'static str, String)> {
    let alive = resource.process.filter(process::is_alive);
    match resource.kind {
        ResourceKind::Server => {
            let running = server::postmaster(&data_of(run, resource)).or(alive)?;
            Some(("running", format!("process {}", running.pid)))
        }
        ResourceKind::Folder => {
            let path = path_of(run, resource);
            let marked = is_marked(&path, run);
            path.symlink_metadata().ok()?;
            let why = if marked { "it is on the disk" } else { "it does not carry the run's mark" };
            Some(("exists", why.into()))
        }
        // Dropped on a server that lived on. Where that is still there, it is told itself.
        ResourceKind::Database if resource.state == ResourceState::Gone => None,
        ResourceKind::Database => {
            let data = data_of(run, resource);
            data.symlink_metadata().ok()?;
            Some(("exists", format!("its data folder {} is on the disk", data.display())))
        }
        ResourceKind::Agent | ResourceKind::Gate | ResourceKind::Schema => {
            Some(("running", format!("process {}", alive?.pid)))
        }
    }
}

async fn look_for_schema(
    run: &RunId,
    resource: &Resource,
    target: Option<TargetSpec>,
) -> Option<(&'static str, String)> {
    let unseen = |why: String| {
        let recorded_gone = resource.state == ResourceState::Gone;
        (!recorded_gone).then(|| ("unknown", format!("cannot be looked at: {why}")))
    };
    let Some(target) = target else {
        return unseen("nobody knows how to reach its database".into());
    };
    match postgres::schema_of(&target, run).await {
        Ok(false) => None,
        Ok(true) => Some(("exists", format!("schema {} of the run is there", target.schema))),
        Err(error) => unseen(error.to_string()),
    }
}
