//! What this machine must offer before a run begins.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::model::UnixMs;

/// What a run needs of this machine.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Files and sockets open at once in one process.
    pub open_files: u64,
    /// Folders, which need not exist yet, and the bytes that will be written below each.
    pub folders: Vec<(PathBuf, u64)>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub ok: bool,
    /// What was found, with its figures.
    pub text: String,
}

/// Looks at this machine; the limit of open files is raised for this process where it must and
/// can be, and its children inherit that.
#[must_use]
pub fn checks(needs: &Needs) -> Vec<Check> {
    let mut checks = vec![open_files(needs.open_files)];
    checks.extend(needs.folders.iter().map(|(folder, bytes)| disk_space(folder, *bytes)));
    checks.push(clock());
    checks
}

fn open_files(needed: u64) -> Check {
    let limit = getrlimit(Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let (ok, text) = if soft >= needed {
        (true, format!("{needed} needed, {} allowed", count(soft)))
    } else if hard < needed {
        (false, format!("{needed} needed, at most {} allowed (ulimit -Hn)", count(hard)))
    } else {
        let raised = rustix::process::Rlimit { current: Some(needed), maximum: limit.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => (true, format!("{needed} needed, limit raised from {soft}")),
            Err(error) => (false, format!("{needed} needed, {soft} allowed, not raised: {error}")),
        }
    };
    Check { name: "open files", ok, text }
}

fn count(limit: u64) -> String {
    if limit == u64::MAX { "any number".into() } else { limit.to_string() }
}

fn disk_space(folder: &Path, needed: u64) -> Check {
    let name = "disk space";
    let existing = folder.ancestors().find(|ancestor| ancestor.exists());
    let Some(existing) = existing else {
        let text = format!("there is no {} nor anything above it", folder.display());
        return Check { name, ok: false, text };
    };
    match rustix::fs::statvfs(existing) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let (needs, has) = (mebibytes(needed), mebibytes(free));
            let text = format!("{needs} MiB needed, {has} MiB free for {}", folder.display());
            Check { name, ok: free >= needed, text }
        }
        Err(error) => {
            let text = format!("cannot be told for {}: {error}", existing.display());
            Check { name, ok: false, text }
        }
    }
}

const fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024 * 1024)
}

/// 2024-01-01: this program is younger than that.
const NO_EARLIER: UnixMs = UnixMs(1_704_067_200_000);

fn clock() -> Check {
    let (wall, steady) = (UnixMs::now(), Instant::now());
    std::thread::sleep(Duration::from_millis(20));
    let wall_moved = Duration::from_millis(UnixMs::now().0.saturating_sub(wall.0));
    let steady_moved = steady.elapsed();
    let apart = wall_moved.abs_diff(steady_moved);
    let (ok, text) = if wall < NO_EARLIER {
        (false, format!("it is {wall}, which cannot be: set the clock"))
    } else if apart > Duration::from_secs(1) {
        let apart = apart.as_secs_f64();
        (false, format!("the clock jumped by {apart:.1} s while it was looked at"))
    } else {
        (true, format!("{wall}, steady"))
    };
    Check { name: "clock", ok, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_ok_and_what_does_not_is_refused_with_its_figures() {
        let folder = tempfile::tempdir().unwrap();
        let not_there = folder.path().join("not/there/yet");
        let modest = Needs { open_files: 10, folders: vec![(not_there.clone(), 1)] };
        assert!(checks(&modest).iter().all(|check| check.ok), "{:?}", checks(&modest));
        let greedy = Needs { open_files: u64::MAX - 1, folders: vec![(not_there, u64::MAX)] };
        let found = checks(&greedy);
        assert!(!found[1].ok && found[1].text.contains("MiB free for"), "{found:?}");
        if getrlimit(Resource::Nofile).maximum.is_some() {
            assert!(!found[0].ok && found[0].text.contains("ulimit"), "{found:?}");
        }
    }
}
