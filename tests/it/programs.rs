//! Where PostgreSQL's programs are, and how root runs them. Everything here that starts a server
//! of its own takes this file in: the tests beside the code, these tests and the benchmarks.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// One of PostgreSQL's programs: in `RAMPDECK_TEST_PG_BIN`, on the search path, or in the newest
/// of the folders of a package manager. `None` where the machine has none.
pub fn find(name: &str) -> Option<PathBuf> {
    let named = env::var_os("RAMPDECK_TEST_PG_BIN").map(PathBuf::from).into_iter();
    let path = env::var_os("PATH").unwrap_or_default();
    let packaged = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"];
    let packaged = packaged.into_iter().flat_map(|base| {
        let listing = fs::read_dir(base).into_iter().flatten().flatten();
        let mut folders: Vec<_> = listing.map(|entry| entry.path().join("bin")).collect();
        folders.sort();
        folders.into_iter().rev()
    });
    named
        .chain(env::split_paths(&path))
        .chain(packaged)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The program, run by an unprivileged user where we are root: PostgreSQL refuses root. In the root
/// folder, since that user may not enter ours.
pub fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = account() {
        command.uid(uid).gid(gid);
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// Who runs the servers where we are root; `None` where we are not.
pub fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let of = |name: &str| {
        let line = passwd.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}
