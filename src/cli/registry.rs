//! Where runs are found by name: one small file for each in the data folder.

use std::path::{Path, PathBuf};

use color_eyre::eyre::{Context, Result, bail, eyre};
use serde::{Deserialize, Serialize};

use crate::{
    model::{ProcessIdentity, RunId, UnixMs},
    provider::process,
};

/// A run of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub run: RunId,
    pub plan: String,
    pub folder: PathBuf,
    pub socket: PathBuf,
    pub started: UnixMs,
    pub engine: Option<ProcessIdentity>,
}

impl Entry {
    /// Whether the run's engine is alive.
    pub fn is_going_on(&self) -> bool {
        self.engine.as_ref().is_some_and(process::is_alive)
    }

    /// A run that the registry does not know: in the folder where it would be by default.
    pub fn unknown(run: RunId) -> Result<Self> {
        let folder = run_folder(&run)?;
        let (plan, socket) = (String::new(), PathBuf::new());
        Ok(Self { run, plan, folder, socket, started: UnixMs(0), engine: None })
    }

    fn path(&self) -> Result<PathBuf> {
        Ok(registry_folder()?.join(format!("{}.json", self.run)))
    }

    /// Takes the entry of a run that was never started back.
    pub fn forget(&self) {
        let forgotten = self.path().and_then(|path| Ok(std::fs::remove_file(path)?));
        if let Err(error) = forgotten {
            tell!("rampdeck: {} stays in the list of runs: {error}", self.run);
        }
    }

    pub fn save(&self) -> Result<()> {
        let folder = registry_folder()?;
        std::fs::create_dir_all(&folder)
            .wrap_err_with(|| format!("cannot make {}", folder.display()))?;
        let path = self.path()?;
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec_pretty(self)?)
            .and_then(|()| std::fs::rename(&new, &path))
            .wrap_err_with(|| format!("cannot write {}", path.display()))
    }
}

/// rampdeck's data folder: `$XDG_DATA_HOME/rampdeck`, or `~/.local/share/rampdeck`.
pub fn data_folder() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("XDG_DATA_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("rampdeck"))
        .ok_or_else(|| eyre!("neither XDG_DATA_HOME nor HOME says where run data may be kept"))
}

fn registry_folder() -> Result<PathBuf> {
    Ok(data_folder()?.join("registry"))
}

/// Where a run's files are unless the operator says otherwise.
pub fn run_folder(run: &RunId) -> Result<PathBuf> {
    Ok(data_folder()?.join("runs").join(run.as_str()))
}

/// A socket's path has at most 107 bytes on Linux, 103 elsewhere.
const SOCKET_PATH_LIMIT: usize = 100;

/// Where a run's socket is: in the data folder, or where that has too long a name, in one of the
/// user's own in `/tmp`. Not in `$XDG_RUNTIME_DIR`: that goes with the user's last session, and a
/// run goes on.
pub fn socket_path(run: &RunId) -> Result<PathBuf> {
    let name = format!("{run}.sock");
    let data = data_folder()?;
    let user = rustix::process::geteuid().as_raw();
    let mut folder = data.join("sockets");
    if folder.join(&name).as_os_str().len() < SOCKET_PATH_LIMIT {
        std::fs::create_dir_all(&data)
            .wrap_err_with(|| format!("cannot make {}", data.display()))?;
    } else {
        folder = PathBuf::from(format!("/tmp/rampdeck-{user}"));
    }
    make_private(&folder, user)?;
    Ok(folder.join(name))
}

/// A folder that only this user can look into.
fn make_private(folder: &Path, user: u32) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    if let Err(error) = std::fs::DirBuilder::new().mode(0o700).create(folder)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        bail!("the folder for sockets {} cannot be made: {error}", folder.display());
    }
    let metadata = std::fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || metadata.uid() != user {
        bail!("the folder for sockets {} is not a folder of this user's", folder.display());
    }
    if metadata.mode() & 0o777 != 0o700 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
            .wrap_err_with(|| format!("{} cannot be made private", folder.display()))?;
    }
    Ok(())
}

/// Every run, oldest first; a file that is not ours is passed over.
pub fn all() -> Result<Vec<Entry>> {
    let folder = registry_folder()?;
    let listing = match std::fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).wrap_err_with(|| format!("cannot read {}", folder.display()));
        }
    };
    let mut entries: Vec<Entry> = listing
        .filter_map(|file| std::fs::read(file.ok()?.path()).ok())
        .filter_map(|text| serde_json::from_slice(&text).ok())
        .collect();
    entries.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));
    Ok(entries)
}

/// The registry has no such run.
#[derive(Debug, thiserror::Error)]
#[error("found no run `{name}`: {known}")]
pub struct UnknownRun {
    name: String,
    known: String,
}

/// Whether this could be the whole name of a run.
pub fn is_run_id(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.chars().all(allowed)
}

/// The run of this name, or whose name begins so if there is only one, or in this folder.
pub fn find(name: &str) -> Result<Entry> {
    let entries = all()?;
    if let Some(exact) = entries.iter().find(|entry| entry.run.as_str() == name) {
        return Ok(exact.clone());
    }
    if let Ok(folder) = Path::new(name).canonicalize()
        && let Some(entry) = entries
            .iter()
            .rev()
            .find(|entry| entry.folder.canonicalize().ok().as_ref() == Some(&folder))
    {
        return Ok(entry.clone());
    }
    let beginning: Vec<&Entry> =
        entries.iter().filter(|entry| entry.run.as_str().starts_with(name)).collect();
    match beginning.as_slice() {
        [only] if !name.is_empty() => Ok((*only).clone()),
        [] | [_] => {
            let known: Vec<&str> = entries.iter().rev().take(5).map(|e| e.run.as_str()).collect();
            let known = if known.is_empty() {
                "there is no run yet".to_owned()
            } else {
                format!("the newest runs are {}", known.join(", "))
            };
            Err(UnknownRun { name: name.to_owned(), known }.into())
        }
        several => {
            let names: Vec<&str> = several.iter().map(|e| e.run.as_str()).collect();
            bail!("found several runs that begin with `{name}`: {}", names.join(", "))
        }
    }
}

/// The run of this name; without one, the one that is going on: with several, which is meant must
/// be said.
pub fn find_or_only(name: Option<&str>) -> Result<Entry> {
    let going_on: Vec<Entry> = match name {
        Some(_) => Vec::new(),
        None => all()?.into_iter().filter(Entry::is_going_on).collect(),
    };
    if going_on.len() > 1 {
        let names: Vec<&str> = going_on.iter().map(|e| e.run.as_str()).collect();
        bail!("several runs are going on, name one: {}", names.join(", "));
    }
    find_or_newest(name)
}

/// The run of this name; without one, the newest that is going on, or else the newest.
pub fn find_or_newest(name: Option<&str>) -> Result<Entry> {
    if let Some(name) = name {
        return find(name);
    }
    let entries = all()?;
    entries
        .iter()
        .rev()
        .find(|entry| entry.is_going_on())
        .or(entries.last())
        .cloned()
        .ok_or_else(|| eyre!("there is no run yet: begin with `rampdeck rehearse`"))
}

/// A name for a new run of a plan: the plan, the day, and four digits that no other run has.
pub fn new_run_id(plan: &str) -> Result<RunId> {
    let today = jiff::Timestamp::now().strftime("%m%d").to_string();
    let taken = all()?;
    // As many draws as there are names: where none is free by then, hardly any is.
    for _ in 0..u16::MAX {
        let id = RunId::new(format!("{plan}-{today}-{:04x}", rand::random::<u16>()));
        if taken.iter().all(|entry| entry.run != id) {
            return Ok(id);
        }
    }
    bail!("no free name for a run of {plan} is left today")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_folder_for_sockets_is_private_and_nobody_elses() {
        let place = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let folder = place.path().join("sockets");
        make_private(&folder, user).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        make_private(&folder, user).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert!(make_private(&folder, user + 1).is_err(), "someone else's");
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(make_private(&link, user).is_err(), "a link leads who knows where");
    }

    #[test]
    fn only_a_whole_name_is_a_runs() {
        assert!(is_run_id("rehearse-1130-a7f3"));
        for name in ["", "..", "a/b", "Rehearse"] {
            assert!(!is_run_id(name), "{name}");
        }
    }
}
