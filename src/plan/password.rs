//! Where a configuration's password comes from: its URL, else the kind of token or the command that
//! the plan gives, else the variable that it names, else the file that it names, else `PGPASSWORD`, else none.

use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use super::{
    basics::WEEK_S,
    section::{Item, Section, Whole},
};
use crate::model::{
    DsqlToken, PasswordCommand, PasswordSource, Secret, TargetAddress, TargetSpec, TlsMode,
};

/// Reads a variable of the environment.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What every PostgreSQL program looks at.
const STANDARD_VARIABLE: &str = "PGPASSWORD";
const MAX_BYTES: u64 = 64 * 1024;
/// The keys that say where a password comes from.
pub(super) const KEYS: [&str; 5] =
    ["password_env", "password_file", "password_command", "password_token", "password_lifetime_s"];
/// What DSQL's admin is called.
const ADMIN: &str = "admin";
/// As long as tokens for a log-in are commonly good: 15 minutes, which is also what AWS's own
/// generator takes for a DSQL token.
const DEFAULT_LIFETIME_S: u64 = 900;

/// What was found of a password.
pub(super) enum Found {
    Nothing,
    Fixed(Secret),
    Source(PasswordSource),
}

/// The password of a configuration whose URL has none; `None` with problems reported.
pub(super) fn find(
    section: &Section<'_>,
    target: &TargetSpec,
    environment: Environment<'_>,
) -> Option<Found> {
    if let Some(item) = section.item("password_token") {
        let others = ["password_env", "password_file", "password_command"];
        section.refuse(&others, "without password_token");
        let token = from_token(section, &item, target)?;
        return Some(Found::Source(PasswordSource::DsqlToken(token)));
    }
    if let Some(item) = section.item("password_command") {
        section.refuse(&["password_env", "password_file"], "without password_command");
        let command = from_command(section, &item)?;
        return Some(Found::Source(PasswordSource::Command(command)));
    }
    section.refuse(&["password_lifetime_s"], "with password_command or password_token");
    if let Some(item) = section.item("password_env") {
        return from_variable(&item, environment).map(Found::Fixed);
    }
    if let Some(item) = section.item("password_file") {
        return from_file(&item).map(Found::Fixed);
    }
    match environment(STANDARD_VARIABLE).filter(|value| !value.is_empty()) {
        None => Some(Found::Nothing),
        Some(value) => match value.into_string() {
            Ok(text) => Some(Found::Fixed(Secret::new(text))),
            Err(_) => {
                section.report(format!(
                    "found a {STANDARD_VARIABLE} in the environment that is not UTF-8, allowed: \
                     UTF-8"
                ));
                None
            }
        },
    }
}

/// The command is not run here: a plan is checked without side effects.
fn from_command(section: &Section<'_>, item: &Item<'_>) -> Option<PasswordCommand> {
    const ALLOWED: &str = "a list of texts, a program that prints the password and its arguments";
    let entries = item.entries(ALLOWED, |_| None)?;
    if entries.is_empty() {
        item.report(format!("found an empty list, allowed: {ALLOWED}"));
    }
    let words: Vec<_> = entries.iter().map(|entry| entry.text("a text")).collect();
    let lifetime_s = lifetime_s(section);
    let words = words.into_iter().collect::<Option<Vec<_>>>()?;
    let lifetime_ms = lifetime_s? * 1_000;
    (!words.is_empty()).then_some(PasswordCommand { words, lifetime_ms })
}

fn lifetime_s(section: &Section<'_>) -> Option<u64> {
    let seconds = Whole { from: 10, to: WEEK_S, unit: "seconds" };
    section.whole_or("password_lifetime_s", &seconds, DEFAULT_LIFETIME_S)
}

/// No token is made here: a plan is checked without side effects. The Region is read off the
/// cluster's name.
fn from_token(section: &Section<'_>, item: &Item<'_>, target: &TargetSpec) -> Option<DsqlToken> {
    const HOST: &str = "a URL whose host is CLUSTER.dsql.REGION.on.aws, with sslmode=verify-full";
    let lifetime_s = lifetime_s(section);
    item.choice(&["dsql"])?;
    let TargetAddress::Tcp { host, .. } = &target.address else {
        item.report(format!("found it with a Unix socket, allowed: {HOST}"));
        return None;
    };
    let Some(region) = region_of(host) else {
        item.report(format!("found it with the host {host}, allowed: {HOST}"));
        return None;
    };
    if target.tls == TlsMode::Off {
        item.report(format!("found it with sslmode=disable, allowed: {HOST}"));
        return None;
    }
    Some(DsqlToken {
        host: host.clone(),
        region,
        admin: target.user == ADMIN,
        lifetime_ms: lifetime_s? * 1_000,
        credential: None,
    })
}

/// The Region in the name of a DSQL cluster's endpoint, also of one in another partition or behind
/// a private link.
fn region_of(host: &str) -> Option<String> {
    let mut labels = host.split('.').skip_while(|label| !label.starts_with("dsql")).skip(1);
    let region = labels.next()?;
    let is_region = region.contains('-') && host.split('.').next() != Some(region);
    (is_region && labels.next().is_some()).then(|| region.to_owned())
}

fn from_variable(item: &Item<'_>, environment: Environment<'_>) -> Option<Secret> {
    const ALLOWED: &str = "the name of an environment variable that holds the password";
    let name = item.text(ALLOWED)?;
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !fits {
        // Not shown: it may be the password itself.
        item.report(format!("found what is no name of a variable, allowed: {ALLOWED}"));
        return None;
    }
    // Shown only where it is set: an unset one may be the password itself, written in its place.
    match environment(&name).map(OsString::into_string) {
        Some(Ok(text)) if !text.is_empty() => return Some(Secret::new(text)),
        Some(Ok(_)) => item.report(format!("found ${name} set but empty, allowed: {ALLOWED}")),
        Some(Err(_)) => item.report(format!("found ${name} not UTF-8, allowed: a text in UTF-8")),
        None => item.report(format!(
            "found a variable that is not set in the environment, allowed: {ALLOWED} (export it \
             before the start)"
        )),
    }
    None
}

fn from_file(item: &Item<'_>) -> Option<Secret> {
    let text = item.text("a file that holds the password and that only its owner may read")?;
    let path = Path::new(&text);
    read_password(path).map_err(|complaint| item.report(complaint)).ok()
}

fn read_password(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    // The name is not shown before such a file is found: it may be the password itself, written
    // in its place.
    let unreadable = |error: std::io::Error| {
        format!("found no file that can be read ({error}), allowed: a file with the password")
    };
    // The open file is looked at, so that what is checked is what is read.
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(format!("found {shown}, which is not a file, allowed: a file"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "found {shown} with mode {mode:04o}, allowed: 0600 or 0400, so that only its owner may \
             read it; fix it with: chmod 600 {shown}"
        ));
    }
    if metadata.size() > MAX_BYTES {
        return Err(format!("found {shown} longer than {MAX_BYTES} bytes, allowed: a password"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() || password.contains(['\n', '\0']) {
        return Err(format!("found {shown} empty or of several lines, allowed: one line"));
    }
    Ok(Secret::new(password))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_file_must_be_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pw");
        fs::write(&path, "s3cret\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let complaint = read_password(&path).unwrap_err();
        assert!(complaint.contains("mode 0644"), "{complaint}");
        assert!(complaint.contains("chmod 600"), "{complaint}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_password(&path).unwrap().reveal(), "s3cret");
        fs::write(&path, "\n").unwrap();
        assert!(read_password(&path).unwrap_err().contains("empty"));
        assert!(read_password(folder.path()).unwrap_err().contains("not a file"));
        assert!(
            read_password(&folder.path().join("no"))
                .unwrap_err()
                .contains("no file that can be read")
        );
    }
}
