//! Removing what a run has made, with or without its engine.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use crate::model::{
    ProcessIdentity, Resource, ResourceKind, ResourceState, RunId, TargetSpec, TeardownItem,
    TeardownStatus, UnixMs,
};

use super::{
    lab::{self, Layout, server},
    postgres, process,
};

/// How long a process may take to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Every removal is tried this often before it is given up as remaining.
const TRIES: u32 = 3;

/// Removes what `resources` (the journal's, newest state of each) and a sweep for the run's mark
/// show: in the order of [`ResourceKind`], each until it is seen to be gone. What is gone already
/// is found to be so: it may be called again and again. `target_of` gives the way to the database
/// of a schema, with its password. `progress` hears of every change of an item.
pub async fn remove(
    run: &RunId,
    resources: &[Resource],
    target_of: impl Fn(&Resource) -> Option<TargetSpec>,
    progress: impl FnMut(&TeardownItem),
) -> TeardownStatus {
    let mut known = not_gone(resources);
    known.extend(swept(run, &known));
    remove_all(run, known, Databases::GoWithTheirFolder, target_of, progress).await
}

/// Removes exactly these resources of a run that goes on: no sweep, so that nothing else of it is
/// touched. A database of the lab is dropped, since its server lives on; `target_of` gives the way
/// to that server for it, by another database than the one to drop. Else as [`remove`].
pub async fn remove_only(
    run: &RunId,
    resources: &[Resource],
    target_of: impl Fn(&Resource) -> Option<TargetSpec>,
    progress: impl FnMut(&TeardownItem),
) -> TeardownStatus {
    remove_all(run, not_gone(resources), Databases::AreDropped, target_of, progress).await
}

/// What becomes of the lab's databases.
#[derive(Clone, Copy)]
enum Databases {
    GoWithTheirFolder,
    AreDropped,
}

fn not_gone(resources: &[Resource]) -> Vec<Resource> {
    resources.iter().filter(|r| r.state != ResourceState::Gone).cloned().collect()
}

async fn remove_all(
    run: &RunId,
    mut known: Vec<Resource>,
    databases: Databases,
    target_of: impl Fn(&Resource) -> Option<TargetSpec>,
    mut progress: impl FnMut(&TeardownItem),
) -> TeardownStatus {
    let started = UnixMs::now();
    // Databases come last: whoever uses them is gone by then, and so is a folder that they are in.
    known.sort_by_key(|r| (r.kind == ResourceKind::Database, r.kind));
    let mut items: Vec<TeardownItem> = known.iter().map(waiting).collect();
    for (resource, item) in known.iter().zip(&mut items) {
        report(item, "deleting", &mut progress);
        for attempt in 1..=TRIES {
            match remove_one(run, resource, databases, &target_of).await {
                Ok(()) => {
                    report(item, "gone", &mut progress);
                    break;
                }
                Err(why) if attempt < TRIES => {
                    report(item, &format!("retrying: {why}"), &mut progress);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(why) => report(item, &format!("remains: {why}"), &mut progress),
            }
        }
    }
    let remaining = items.iter().filter(|item| !item.gone).count();
    TeardownStatus {
        started,
        ended: Some(UnixMs::now()),
        remaining_count: remaining.try_into().unwrap_or(u64::MAX),
        items,
    }
}

fn waiting(resource: &Resource) -> TeardownItem {
    TeardownItem {
        kind: resource.kind,
        id: resource.id.clone(),
        state: "waiting".into(),
        gone: false,
        since: UnixMs::now(),
    }
}

fn report(item: &mut TeardownItem, state: &str, progress: &mut impl FnMut(&TeardownItem)) {
    item.state = state.to_owned();
    item.gone = state == "gone";
    item.since = UnixMs::now();
    progress(item);
}

async fn remove_one(
    run: &RunId,
    resource: &Resource,
    databases: Databases,
    target_of: &impl Fn(&Resource) -> Option<TargetSpec>,
) -> Result<(), String> {
    match resource.kind {
        ResourceKind::Agent | ResourceKind::Gate => end_process(resource.process).await,
        ResourceKind::Schema => {
            let target = target_of(resource).ok_or("nobody knows how to reach its database")?;
            postgres::drop_schema(&target, run).await.map_err(|error| error.to_string())
        }
        ResourceKind::Server => {
            let data = data_of(run, resource);
            server::stop(&data, resource.process).await.map_err(|error| error.to_string())?;
            Ok(())
        }
        ResourceKind::Folder => remove_folder(run, resource).await,
        ResourceKind::Database => {
            let data = data_of(run, resource);
            match databases {
                _ if !data.exists() => Ok(()),
                Databases::GoWithTheirFolder => {
                    Err(format!("its server's data folder {} is still there", data.display()))
                }
                Databases::AreDropped => {
                    let target =
                        target_of(resource).ok_or("nobody knows how to reach its server")?;
                    let name = resource.id.strip_prefix("database ").unwrap_or(&resource.id);
                    let dropped = postgres::drop_database(&target, name).await;
                    dropped.map_err(|error| error.to_string())
                }
            }
        }
    }
}

/// One that was only intended has no identity on record; if it was started all the same, the sweep
/// has found it, and without its parent it ends by itself.
async fn end_process(process: Option<ProcessIdentity>) -> Result<(), String> {
    let Some(process) = process else { return Ok(()) };
    process::end(&process, GRACE).await.map(drop).map_err(|error| error.to_string())
}

async fn remove_folder(run: &RunId, resource: &Resource) -> Result<(), String> {
    let path = path_of(run, resource);
    let data = path.join("data");
    // A server that was started and never recorded, or `initdb` still at work.
    server::stop(&data, None).await.map_err(|error| error.to_string())?;
    let run = run.clone();
    let removal = tokio::task::spawn_blocking(move || lab::remove_marked(&path, &run));
    removal.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    lab::remove_empty_base();
    Ok(())
}

/// Data folder of a server or database.
pub(super) fn data_of(run: &RunId, resource: &Resource) -> PathBuf {
    resource.path.clone().unwrap_or_else(|| Layout::of(run).data())
}

/// The folder itself.
pub(super) fn path_of(run: &RunId, resource: &Resource) -> PathBuf {
    resource.path.clone().unwrap_or_else(|| Layout::of(run).folder)
}

/// What carries the run's mark and is not among the `known`.
pub(super) fn swept(run: &RunId, known: &[Resource]) -> Vec<Resource> {
    let processes: BTreeSet<u32> =
        known.iter().filter_map(|r| r.process.map(|process| process.pid)).collect();
    let folders: BTreeSet<PathBuf> =
        known.iter().filter(|r| r.kind == ResourceKind::Folder).map(|r| path_of(run, r)).collect();
    let data_folders: BTreeSet<PathBuf> =
        known.iter().filter(|r| r.kind == ResourceKind::Server).map(|r| data_of(run, r)).collect();
    let mut swept = Vec::new();
    for process in process::of_run(run) {
        if !processes.contains(&process.pid) {
            let stray = found(ResourceKind::Gate, format!("process {}", process.pid));
            swept.push(Resource { process: Some(process), ..stray });
        }
    }
    for folder in lab::marked_folders(run) {
        let data = folder.join("data");
        let running = server::postmaster(&data).filter(|_| !data_folders.contains(&data));
        if let Some(process) = running {
            let server = found(ResourceKind::Server, format!("server in {}", data.display()));
            swept.push(Resource { process: Some(process), path: Some(data), ..server });
        }
        if !folders.contains(&folder) {
            let marked = found(ResourceKind::Folder, folder.display().to_string());
            swept.push(Resource { path: Some(folder), ..marked });
        }
    }
    swept
}

fn found(kind: ResourceKind, id: String) -> Resource {
    Resource {
        kind,
        id,
        configuration: None,
        process: None,
        path: None,
        port: None,
        note: "found by the run's mark, not in its journal".into(),
        state: ResourceState::Made,
        since: UnixMs::now(),
    }
}
