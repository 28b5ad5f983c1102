//! Starting a run: the engine as a process of its own, then a console or JSON lines on it.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use color_eyre::eyre::{Context, Result, bail};

use super::{
    Usage,
    args::RunArgs,
    calibrate, has_terminal, headless,
    registry::{self, Entry},
};
use crate::{
    engine::Launch,
    link::Role,
    model::{EventKind, UnixMs},
    plan::{self, PlanSource},
    provider::process,
    report::RunFolder,
};

/// How long an engine may take until its socket answers: it checks the machine first.
const START_LIMIT: Duration = Duration::from_secs(30);
/// For glibc, in the engine and its children: what is a histogram or larger goes back to the system
/// when it is freed, so that resident memory is what is in use, and growth can be seen. Its own
/// threshold rises with use, and memory then wavers by some MiB.
pub const STEADY_MEMORY: [(&str, &str); 3] = [
    ("MALLOC_MMAP_THRESHOLD_", "65536"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
    ("MALLOC_ARENA_MAX", "1"),
];
/// How often the engine's socket is tried.
const START_POLL: Duration = Duration::from_millis(20);

/// Runs a plan.
pub async fn run(source: PlanSource, args: RunArgs) -> Result<u8> {
    let plan = plan::load(source.clone(), &args.overrides)?;
    let answers = headless::parse_answers(&args.answers).map_err(|e| Usage(e.to_string()))?;
    check_answers(&plan, &answers)?;
    let console = !args.headless && has_terminal();
    if console {
        crate::console::check_keymap(args.screen.keymap().as_deref())
            .map_err(|e| Usage(e.to_string()))?;
    }
    let id = registry::new_run_id(&plan.name)?;
    let folder = match &args.out {
        Some(out) => std::path::absolute(out)?,
        None => registry::run_folder(&id)?,
    };
    RunFolder::create(folder.clone()).map_err(|e| Usage(e.to_string()))?;
    let socket = registry::socket_path(&id)?;
    let launch = Launch {
        run: id.clone(),
        folder: folder.clone(),
        socket: socket.clone(),
        plan: source,
        overrides: args.overrides,
        require_pass: args.require.is_some(),
        expect_console: console,
        calibration: calibrate::of_this_machine(),
    };
    let mut entry =
        Entry { run: id, plan: plan.name, folder, socket, started: UnixMs::now(), engine: None };
    // Before the engine: one that nobody can find again must not run.
    entry.save()?;
    let engine = spawn_engine(&launch, &mut entry).inspect_err(|_| entry.forget())?;
    if let Some(code) = wait_for(engine, &entry).await? {
        return Ok(code);
    }
    tell!("rampdeck: run {} in {}", entry.run, entry.folder.display());
    if console {
        super::watch(&entry, &args.screen).await
    } else {
        headless::follow(&entry, &answers).await
    }
}

/// Answers given beforehand must be to decisions that the plan asks.
fn check_answers(plan: &plan::Plan, answers: &headless::Answers) -> Result<()> {
    let decisions: Vec<(&str, Vec<&str>)> = plan
        .stages
        .iter()
        .filter_map(|stage| match &stage.kind {
            plan::StageKind::Decision { options, .. } => {
                Some((stage.name.as_str(), options.iter().map(|o| o.key.as_str()).collect()))
            }
            plan::StageKind::Cells { .. } => None,
        })
        .collect();
    for (decision, option) in answers {
        let Some((_, options)) = decisions.iter().find(|(name, _)| name == decision) else {
            let known: Vec<_> = decisions.iter().map(|(name, _)| *name).collect();
            return Err(Usage(format!(
                "--answer: found decision `{decision}`, allowed: {}",
                known.join(", ")
            ))
            .into());
        };
        if !options.contains(&option.as_str()) {
            return Err(Usage(format!(
                "--answer {decision}: found `{option}`, allowed: {}",
                options.join(", ")
            ))
            .into());
        }
    }
    Ok(())
}

/// Starts the engine's process, puts it in the registry, and only then tells it what to do.
fn spawn_engine(launch: &Launch, entry: &mut Entry) -> Result<Child> {
    let log_path = log_path(&launch.folder);
    let log = File::options()
        .create(true)
        .append(true)
        .open(&log_path)
        .wrap_err_with(|| format!("cannot write {}", log_path.display()))?;
    let mut engine = Command::new(std::env::current_exe()?)
        .arg("engine")
        .envs(STEADY_MEMORY)
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .wrap_err("the engine cannot be started")?;
    entry.engine = process::identity(engine.id());
    let told = entry.save().and_then(|()| tell(&mut engine, launch));
    if told.is_err() {
        // It has done nothing yet: it waits for the end of what it is told.
        let _ = engine.kill();
        let _ = engine.wait();
    }
    told.map(|()| engine)
}

/// Over a pipe, not as arguments: a connection string may hold a password.
fn tell(engine: &mut Child, launch: &Launch) -> Result<()> {
    let launch = serde_json::to_vec(launch)?;
    if let Some(mut stdin) = engine.stdin.take() {
        stdin.write_all(&launch)?;
    }
    Ok(())
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("engine.log")
}

/// What an engine that has ended already says of its run, and its exit code.
fn said_of_its_end(folder: &Path) -> Option<u8> {
    let journal = RunFolder::open(folder).ok()?.read_journal().ok()?;
    let end = journal.events().iter().rev().find_map(|event| match &event.kind {
        EventKind::RunEnded { exit_code, text, .. } => Some((*exit_code, text)),
        _ => None,
    });
    let (code, text) = end?;
    tell!("rampdeck: {text}");
    Some(code)
}

/// Waits until the engine's socket answers; an engine that ends before says why in its log. Gives
/// the exit code of a run that was over before anyone could attach.
async fn wait_for(mut engine: Child, entry: &Entry) -> Result<Option<u8>> {
    let began = Instant::now();
    loop {
        if super::client::Client::connect(&entry.socket, Role::CommandLine).await.is_ok() {
            return Ok(None);
        }
        if let Some(status) = engine.try_wait()? {
            if let Some(code) = said_of_its_end(&entry.folder) {
                return Ok(Some(code));
            }
            bail!("the engine did not start ({status}): {}", last_words(&entry.folder));
        }
        if began.elapsed() > START_LIMIT {
            let _ = engine.kill();
            let _ = engine.wait();
            bail!(
                "the engine did not answer within {} s: {}",
                START_LIMIT.as_secs(),
                last_words(&entry.folder)
            );
        }
        tokio::time::sleep(START_POLL).await;
    }
}

fn last_words(folder: &Path) -> String {
    let path = log_path(folder);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    match text.lines().last() {
        Some(line) => line.to_owned(),
        None => format!("its log {} is empty", path.display()),
    }
}

/// The engine's process: told what to do on standard input.
pub async fn engine() -> Result<u8> {
    let launch: Launch = serde_json::from_reader(std::io::stdin().lock())
        .wrap_err("the engine is started by `rampdeck run`, which tells it what to do")?;
    match crate::engine::run(launch).await {
        Ok(code) => Ok(code),
        Err(error) => bail!("{error}"),
    }
}
