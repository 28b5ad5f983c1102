//! The lab's folders: where they are, and the mark by which they are known to be ours.
//!
//! Where they are follows from the run's name alone, so that the intent can be on disk before a
//! folder is made, and a folder can be found again with nothing else left.

use std::{
    env, fs,
    hash::Hasher,
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use crate::model::RunId;

use super::account::Account;

/// The file that says which run a folder is of. Nothing without it is ever removed.
const MARKER: &str = "rampdeck-run";

/// PostgreSQL's and the system's limits for a socket's path are just above 100 bytes.
const LONGEST_SOCKET_PATH: usize = 99;

/// The port in the socket's name; nothing listens on the network.
pub(super) const PORT: u16 = 5432;

/// Why a folder could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot {act} {}: {source}", path.display())]
    Io { act: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "the lab's folder {} is not ours alone: it belongs to user {owner} with mode {mode:o}; \
         remove it or set RAMPDECK_LAB_DIR to a folder of your own", path.display()
    )]
    NotOurs { path: PathBuf, owner: u32, mode: u32 },
    #[error(
        "the lab's server runs as {account}, who may not pass {}; set RAMPDECK_LAB_DIR to a \
         folder that {account} can reach", closed.display()
    )]
    Closed { account: String, closed: PathBuf },
    #[error("{} exists already: a run of this name was not torn down", path.display())]
    Exists { path: PathBuf },
    #[error("{} does not carry the mark of run {run}: it is left alone", path.display())]
    NotMarked { path: PathBuf, run: RunId },
}

fn failed(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { act, path, source }
}

/// The folder that holds the labs of this user: `RAMPDECK_LAB_DIR`, else one in `/var/tmp` (which,
/// unlike `/tmp`, is on a disk), else one in the user's cache.
#[must_use]
pub fn base() -> PathBuf {
    if let Some(dir) = env::var_os("RAMPDECK_LAB_DIR").filter(|dir| !dir.is_empty()) {
        let dir = PathBuf::from(dir);
        return std::path::absolute(&dir).unwrap_or(dir);
    }
    let shared = Path::new("/var/tmp");
    let user = rustix::process::geteuid().as_raw();
    if fs::metadata(shared).is_ok_and(|meta| meta.is_dir() && meta.mode() & 0o002 != 0) {
        return shared.join(format!("rampdeck-{user}"));
    }
    cache().join("lab")
}

/// The user's cache folder for rampdeck.
pub(super) fn cache() -> PathBuf {
    let home = || absolute_from("HOME").unwrap_or_else(env::temp_dir).join(".cache");
    absolute_from("XDG_CACHE_HOME").unwrap_or_else(home).join("rampdeck")
}

fn absolute_from(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folder of a run's lab. The same on every call, whether it exists or not.
#[must_use]
pub fn folder_for(run: &RunId) -> PathBuf {
    base().join(run.as_str())
}

/// The lab's folders under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::provider) struct Layout {
    pub(in crate::provider) folder: PathBuf,
    /// Inside `folder`, unless the socket's path would be too long there.
    pub(in crate::provider) sockets: PathBuf,
}

impl Layout {
    pub(in crate::provider) fn of(run: &RunId) -> Self {
        Self::in_folder(folder_for(run))
    }

    fn in_folder(folder: PathBuf) -> Self {
        let inside = folder.join("socket");
        let longest = inside.join(format!(".s.PGSQL.{PORT}"));
        let sockets = if longest.as_os_str().len() <= LONGEST_SOCKET_PATH {
            inside
        } else {
            PathBuf::from(format!("/tmp/rampdeck-{:016x}", fingerprint(&folder)))
        };
        Self { folder, sockets }
    }

    pub(in crate::provider) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(super) fn server_output(&self) -> PathBuf {
        self.folder.join("server-output.log")
    }

    pub(super) fn server_log(&self) -> PathBuf {
        self.data().join("log").join("server.log")
    }

    /// Whether the socket has a folder of its own outside of the lab's.
    pub(in crate::provider) fn sockets_apart(&self) -> bool {
        !self.sockets.starts_with(&self.folder)
    }

    /// Makes the lab's folder, marked and owned by `account`.
    ///
    /// # Errors
    /// When it exists, is not to be made, or the account cannot reach it.
    pub(super) fn make(&self, run: &RunId, account: Option<&Account>) -> Result<(), FolderError> {
        self.make_below_base(run, account)?;
        let closed = account.and_then(|a| Some((a, a.first_closed(&self.folder)?)));
        if let Some((account, closed)) = closed {
            let (account, closed) = (account.name.clone(), closed.to_owned());
            // Nothing is in it yet but the mark.
            remove_marked(&self.folder, run)?;
            return Err(FolderError::Closed { account, closed });
        }
        Ok(())
    }

    /// Another run's removal takes the base away with the last folder in it: then once more.
    fn make_below_base(&self, run: &RunId, account: Option<&Account>) -> Result<(), FolderError> {
        const TRIES: usize = 3;
        let mut made = Ok(());
        for _ in 0..TRIES {
            if let Some(base) = self.folder.parent() {
                make_base(base)?;
            }
            made = make_marked(&self.folder, run, account);
            let Err(FolderError::Io { source, .. }) = &made else { break };
            if source.kind() != io::ErrorKind::NotFound {
                break;
            }
        }
        made
    }

    /// Makes the socket's folder.
    ///
    /// # Errors
    /// When it exists or is not to be made.
    pub(super) fn make_sockets(
        &self,
        run: &RunId,
        account: Option<&Account>,
    ) -> Result<(), FolderError> {
        make_marked(&self.sockets, run, account)
    }
}

/// A number that stays the same from build to build (FNV-1a).
fn fingerprint(path: &Path) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(path.as_os_str().as_bytes());
    hasher.finish()
}

/// Makes the folder of all labs, which others may pass but not read. In a place where everybody
/// may write, somebody else could have made it. The mode of one that exists is its owner's affair.
pub(super) fn make_base(base: &Path) -> Result<(), FolderError> {
    if fs::symlink_metadata(base).is_err() {
        fs::create_dir_all(base).map_err(failed("make", base))?;
        let passable = fs::Permissions::from_mode(0o711);
        fs::set_permissions(base, passable).map_err(failed("set the mode of", base))?;
    }
    let meta = fs::symlink_metadata(base).map_err(failed("look at", base))?;
    let ours = meta.uid() == rustix::process::geteuid().as_raw();
    if !ours || !meta.is_dir() || meta.mode() & 0o022 != 0 {
        let (owner, mode) = (meta.uid(), meta.mode() & 0o7777);
        return Err(FolderError::NotOurs { path: base.to_owned(), owner, mode });
    }
    Ok(())
}

fn make_marked(path: &Path, run: &RunId, account: Option<&Account>) -> Result<(), FolderError> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(FolderError::Exists { path: path.to_owned() });
        }
        made => made.map_err(failed("make", path))?,
    }
    let marker = path.join(MARKER);
    fs::write(&marker, mark(run, path)).map_err(failed("write", &marker))?;
    if let Some(account) = account {
        std::os::unix::fs::chown(path, Some(account.uid), Some(account.gid))
            .map_err(failed("give away", path))?;
    }
    Ok(())
}

/// What the marker of a folder says: a folder that was copied elsewhere is not the run's.
fn mark(run: &RunId, path: &Path) -> Vec<u8> {
    [run.as_str().as_bytes(), b"\n", path.as_os_str().as_bytes(), b"\n"].concat()
}

/// Whether a folder carries the mark of this run.
pub(in crate::provider) fn is_marked(path: &Path, run: &RunId) -> bool {
    let real = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    real && fs::read(path.join(MARKER)).is_ok_and(|found| found == mark(run, path))
}

/// The folders below the base, and the socket's own where it is elsewhere, that carry the mark of this run.
pub(in crate::provider) fn marked_folders(run: &RunId) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(base())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let layout = Layout::of(run);
    if layout.sockets_apart() {
        folders.push(layout.sockets);
    }
    folders.retain(|folder| is_marked(folder, run));
    folders
}

/// Removes the folder of all labs if nothing is in it and nobody else chose it.
pub(in crate::provider) fn remove_empty_base() {
    if absolute_from("RAMPDECK_LAB_DIR").is_none() {
        // Not empty, or gone: either is fine.
        let _removed = fs::remove_dir(base());
    }
}

/// Removes a marked folder with all that is in it; one that is empty, because its maker was killed
/// before it wrote the mark, needs none. The mark goes last, so that a removal that is cut off can
/// be taken up again.
///
/// # Errors
/// When it is not marked or something in it cannot be removed.
pub(in crate::provider) fn remove_marked(path: &Path, run: &RunId) -> Result<(), FolderError> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    if is_marked(path, run) {
        for entry in fs::read_dir(path).map_err(failed("read", path))? {
            let entry = entry.map_err(failed("read", path))?;
            if entry.file_name() == MARKER {
                continue;
            }
            let inner = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_dir { fs::remove_dir_all(&inner) } else { fs::remove_file(&inner) };
            removed.map_err(failed("remove", &inner))?;
        }
        let marker = path.join(MARKER);
        fs::remove_file(&marker).map_err(failed("remove", &marker))?;
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Err(FolderError::NotMarked { path: path.to_owned(), run: run.clone() })
        }
        removed => removed.map_err(failed("remove", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::new("rehearse-1130-a7f3")
    }

    #[test]
    fn a_socket_path_is_never_too_long_and_always_the_same() {
        let near = Layout::in_folder("/var/tmp/rampdeck-1000/rehearse-1130-a7f3".into());
        assert!(!near.sockets_apart());
        let far = PathBuf::from("/home/someone with a long name").join("x".repeat(80));
        let far = Layout::in_folder(far);
        assert!(far.sockets_apart());
        assert_eq!(far, Layout::in_folder(far.folder.clone()));
        let socket = far.sockets.join(".s.PGSQL.5432");
        assert!(socket.as_os_str().len() <= LONGEST_SOCKET_PATH, "{}", socket.display());
    }

    #[test]
    fn only_a_folder_with_this_runs_mark_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let ours = parent.path().join("ours");
        make_marked(&ours, &run(), None).unwrap();
        fs::create_dir_all(ours.join("data/base")).unwrap();
        fs::write(ours.join("data/base/1"), "x").unwrap();

        let other = RunId::new("other");
        assert!(matches!(remove_marked(&ours, &other), Err(FolderError::NotMarked { .. })));
        let copy = parent.path().join("copy");
        fs::create_dir(&copy).unwrap();
        fs::copy(ours.join(MARKER), copy.join(MARKER)).unwrap();
        assert!(matches!(remove_marked(&copy, &run()), Err(FolderError::NotMarked { .. })));
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        assert!(remove_marked(&link, &run()).is_err());

        remove_marked(&ours, &run()).unwrap();
        assert!(!ours.exists());
        remove_marked(&ours, &run()).unwrap();
        assert!(copy.exists());
    }

    #[test]
    fn a_folder_whose_maker_died_before_the_mark_can_be_removed() {
        let parent = tempfile::tempdir().unwrap();
        let half = parent.path().join("half");
        fs::create_dir(&half).unwrap();
        remove_marked(&half, &run()).unwrap();
        assert!(!half.exists());
    }

    #[test]
    fn a_base_that_others_may_write_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let base = parent.path().join("base");
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(make_base(&base), Err(FolderError::NotOurs { mode: 0o777, .. })));
        fs::set_permissions(&base, fs::Permissions::from_mode(0o700)).unwrap();
        make_base(&base).unwrap();
        assert_eq!(fs::metadata(&base).unwrap().mode() & 0o777, 0o700, "its owner's choice");
        let new = parent.path().join("new");
        make_base(&new).unwrap();
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o711);
    }
}
