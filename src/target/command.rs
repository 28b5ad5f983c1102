//! Running a command that prints a password.

use std::{process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
};

use crate::model::Secret;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Longer than any token.
const MOST_BYTES: u64 = 64 * 1024;
/// How much of what the command says on standard error is told.
const MOST_TOLD: usize = 400;
/// A shorter line of the output is too common to be looked for in what is told.
const LEAST_HIDDEN: usize = 4;

/// Runs the command to its end, on the caller's thread, and gives the one line that it printed.
///
/// # Errors
/// What went wrong, with what the command said on standard error and never with its output.
pub(super) fn output(words: &[String]) -> Result<Secret, String> {
    within(words, LIMIT)
}

fn within(words: &[String], limit: Duration) -> Result<Secret, String> {
    let name = words.first().map_or("", String::as_str);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    runtime.block_on(async {
        let child = start(words).map_err(|error| format!("`{name}` cannot be run: {error}"))?;
        finish(child, name, limit).await
    })
}

fn start(words: &[String]) -> std::io::Result<Child> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| std::io::Error::other("the command is empty"))?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that what it starts ends with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn finish(mut child: Child, name: &str, limit: Duration) -> Result<Secret, String> {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async { tokio::join!(child.wait(), read(stdout), read(stderr)) };
    let Ok((status, printed, said)) = tokio::time::timeout(limit, work).await else {
        if let Some(group) = group {
            // Refused only where it has just ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = tokio::time::timeout(Duration::from_secs(1), child.wait()).await;
        return Err(format!("`{name}` had not ended after {} s and was killed", limit.as_secs()));
    };
    let said = told(&said, &printed);
    match status {
        Ok(status) if status.success() => {
            password(&printed).map_err(|what| format!("`{name}` {what}{said}"))
        }
        Ok(status) => Err(format!("`{name}` ended with {status}{said}")),
        Err(error) => Err(format!("`{name}` cannot be waited for: {error}")),
    }
}

/// Everything up to the bound; the rest is read and dropped, so that the writer never blocks.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // What cannot be read any more is missed by the checks of what was read.
        let _ = (&mut stream).take(MOST_BYTES).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    bytes
}

fn password(printed: &[u8]) -> Result<Secret, &'static str> {
    let text = str::from_utf8(printed).map_err(|_| "printed what is not UTF-8")?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        Err("printed nothing, allowed: a password on one line")
    } else if line.contains(['\n', '\0'])
        || u64::try_from(printed.len()).is_ok_and(|n| n >= MOST_BYTES)
    {
        Err("printed more than one line, allowed: a password on one line")
    } else {
        Ok(Secret::new(line))
    }
}

/// What the command said, on one line and short, without anything that it printed: a script that
/// traces itself says its secrets there.
fn told(said: &[u8], printed: &[u8]) -> String {
    let mut said = String::from_utf8_lossy(said).into_owned();
    for line in String::from_utf8_lossy(printed).lines().map(str::trim) {
        if line.len() >= LEAST_HIDDEN {
            said = said.replace(line, "[secret]");
        }
    }
    let words: Vec<&str> = said.split_whitespace().collect();
    let said = words.join(" ");
    if said.is_empty() {
        return " and said nothing on standard error".to_owned();
    }
    let short: String = said.chars().take(MOST_TOLD).collect();
    let more = if short.len() < said.len() { "…" } else { "" };
    format!(": {short}{more}")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn run(script: &str) -> Result<Secret, String> {
        output(&["sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn one_line_is_a_password() {
        assert_eq!(run("printf 's3cret \\n'").unwrap().reveal(), "s3cret ");
        assert_eq!(run("printf 's3cret\\r\\n'").unwrap().reveal(), "s3cret");
    }

    #[test]
    fn a_failure_is_told_with_what_was_said_and_never_with_what_was_printed() {
        let error =
            run("echo s3cret; echo 'token s3cret is' >&2; echo over >&2; exit 3").unwrap_err();
        assert_eq!(error, "`sh` ended with exit status: 3: token [secret] is over");
        let error = run("echo s3cret; echo s3cret").unwrap_err();
        assert!(error.starts_with("`sh` printed more than one line"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        assert!(run("true").unwrap_err().contains("printed nothing"));
        let error = output(&["/nowhere/at/all".to_owned()]).unwrap_err();
        assert!(error.contains("`/nowhere/at/all` cannot be run"), "{error}");
        let error = run("yes s3cret | head -c 300000").unwrap_err();
        assert!(error.contains("more than one line") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn one_that_does_not_end_is_killed_with_what_it_started() {
        let began = Instant::now();
        let words = ["sh", "-c", "sleep 600 & sleep 600"].map(str::to_owned);
        let error = within(&words, Duration::from_millis(300)).unwrap_err();
        assert!(error.contains("had not ended"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
