//! Finding PostgreSQL's server programs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Major versions that a lab can be made with.
const SUPPORTED: std::ops::RangeInclusive<u32> = 14..=18;

/// Where a lab's server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// Folder with `initdb` and `postgres`.
    pub dir: PathBuf,
    /// Major version and the whole version as the program prints it, for example 15 and `15.13`.
    pub version: (u32, String),
    /// How they were found, in a sentence for the screen.
    pub how: String,
}

/// Why no server can be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinariesError {
    #[error(
        "lab.bin_dir is {}, but {why}; name a folder that holds initdb and postgres of \
         PostgreSQL 14 to 18", dir.display()
    )]
    Setting { dir: PathBuf, why: String },
    #[error(
        "no PostgreSQL server programs of version 14 to 18 found ({looked}){others}; install \
         PostgreSQL, or name the folder with initdb and postgres as lab.bin_dir in the plan"
    )]
    NotFound { looked: String, others: String },
}

impl Binaries {
    /// The programs in the plan's folder, else the newest ones that are installed in one of the
    /// usual places. Runs `postgres --version` for each place; blocks for some milliseconds.
    ///
    /// # Errors
    /// When the plan's folder does not hold both programs in a supported version, or there are
    /// none anywhere.
    pub fn find(plan_bin_dir: Option<&Path>) -> Result<Self, BinariesError> {
        match plan_bin_dir {
            Some(dir) => Self::of_setting(dir),
            None => newest_of(candidates()),
        }
    }

    /// The path of one of the programs.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The major version.
    #[must_use]
    pub const fn major(&self) -> u32 {
        self.version.0
    }

    fn of_setting(dir: &Path) -> Result<Self, BinariesError> {
        let refused = |why| BinariesError::Setting { dir: dir.to_owned(), why };
        let version = look_into(dir).map_err(refused)?;
        if !SUPPORTED.contains(&version.0) {
            return Err(refused(format!("it holds PostgreSQL {}", version.1)));
        }
        let how = format!("PostgreSQL {} from lab.bin_dir, {}", version.1, dir.display());
        Ok(Self { dir: dir.to_owned(), version, how })
    }
}

/// A folder that may hold the programs, and how we came to it.
struct Candidate {
    dir: PathBuf,
    by: &'static str,
}

fn newest_of(candidates: Vec<Candidate>) -> Result<Binaries, BinariesError> {
    let mut found: Vec<(Vec<u32>, Binaries)> = Vec::new();
    let mut others = Vec::new();
    for Candidate { dir, by } in candidates {
        let Ok(version) = look_into(&dir) else { continue };
        if SUPPORTED.contains(&version.0) {
            let how = format!("PostgreSQL {} found by {by} in {}", version.1, dir.display());
            found.push((numbers(&version.1), Binaries { dir, version, how }));
        } else {
            others.push(format!("{} in {}", version.1, dir.display()));
        }
    }
    // The first of the newest: the places are in the order of preference.
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    found.into_iter().next().map(|(_, binaries)| binaries).ok_or_else(|| BinariesError::NotFound {
        looked: "looked in PATH, pg_config, and the folders of Debian, Fedora, Homebrew and \
                 Postgres.app"
            .into(),
        others: if others.is_empty() {
            String::new()
        } else {
            format!(", only {}", others.join(", "))
        },
    })
}

/// `15.13` as numbers that sort.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The places to look, without repetition.
fn candidates() -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut add = |dir: PathBuf, by| {
        if !candidates.iter().any(|known| known.dir == dir) {
            candidates.push(Candidate { dir, by });
        }
    };
    if let Some(path) = env::var_os("PATH") {
        for dir in env::split_paths(&path).filter_map(|dir| resolved(&dir)) {
            add(dir, "PATH");
        }
    }
    if let Some(dir) = pg_config_dir() {
        add(dir, "pg_config");
    }
    for (parent, prefix, below, by) in [
        ("/usr/lib/postgresql", "", "bin", "its Debian folder"),
        ("/usr", "pgsql-", "bin", "its Fedora folder"),
        ("/usr/bin", "postgres", "", "its Fedora folder"),
        ("/opt/homebrew/opt", "postgresql@", "bin", "its Homebrew folder"),
        ("/usr/local/opt", "postgresql@", "bin", "its Homebrew folder"),
        ("/Applications/Postgres.app/Contents/Versions", "", "bin", "Postgres.app"),
    ] {
        for dir in below_each(Path::new(parent), prefix, below) {
            add(dir, by);
        }
    }
    candidates
}

/// The folder of the program that a name in this folder leads to: it may be a link.
fn resolved(dir: &Path) -> Option<PathBuf> {
    let program = fs::canonicalize(dir.join("postgres")).ok()?;
    Some(program.parent()?.to_owned())
}

fn pg_config_dir() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output().ok()?;
    let dir = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    dir.is_absolute().then_some(dir)
}

/// `parent/prefix*/below`, and for a file `parent/prefix` the parent itself.
fn below_each(parent: &Path, prefix: &str, below: &str) -> Vec<PathBuf> {
    if below.is_empty() {
        return resolved(parent).into_iter().collect();
    }
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .filter_map(|entry| resolved(&entry.path().join(below)))
        .collect()
}

/// The version of the programs in a folder, or why they cannot be used.
fn look_into(dir: &Path) -> Result<(u32, String), String> {
    for program in ["initdb", "postgres"] {
        if !dir.join(program).is_file() {
            return Err(format!("there is no {program} in it"));
        }
    }
    let postgres = dir.join("postgres");
    let output = Command::new(&postgres)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("its postgres cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse_version(&text).ok_or_else(|| format!("its postgres says {:?}", text.trim()))
}

/// `postgres (PostgreSQL) 15.13 (Debian …)` → 15, `15.13`.
fn parse_version(text: &str) -> Option<(u32, String)> {
    let version = text.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some((digits.parse().ok()?, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::testing::write_script;

    fn fake(parent: &Path, name: &str, version: &str) -> Candidate {
        let dir = parent.join(name);
        fs::create_dir_all(&dir).unwrap();
        for program in ["initdb", "postgres"] {
            let text = format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n");
            write_script(&dir.join(program), &text);
        }
        Candidate { dir, by: "the test" }
    }

    #[test]
    fn versions_are_read_in_every_packaging() {
        let parse = |text| parse_version(text).unwrap();
        assert_eq!(
            parse("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n"),
            (15, "15.13".into())
        );
        assert_eq!(parse("postgres (PostgreSQL) 18beta1"), (18, "18beta1".into()));
        assert_eq!(parse_version("mysqld 8"), None);
    }

    #[test]
    fn the_newest_supported_one_is_taken_by_number() {
        let folder = tempfile::tempdir().unwrap();
        let fakes = [("a", "9.6.24"), ("b", "14.9"), ("c", "14.10"), ("d", "19.1")];
        let candidates =
            fakes.iter().map(|(name, version)| fake(folder.path(), name, version)).collect();
        let found = newest_of(candidates).unwrap();
        assert_eq!(found.version, (14, "14.10".into()));
        assert!(found.how.contains("14.10 found by the test in"), "{}", found.how);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = newest_of(vec![fake(folder.path(), "old", "13.2")]).unwrap_err().to_string();
        assert!(error.contains("only 13.2 in") && error.contains("lab.bin_dir"), "{error}");
    }

    #[test]
    fn a_setting_that_does_not_hold_is_an_error_not_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let error = Binaries::find(Some(folder.path())).unwrap_err().to_string();
        assert!(error.contains("there is no initdb in it"), "{error}");
        let old = fake(folder.path(), "old", "12.1").dir;
        let error = Binaries::find(Some(&old)).unwrap_err().to_string();
        assert!(error.contains("it holds PostgreSQL 12.1"), "{error}");
    }
}
