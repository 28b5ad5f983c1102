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
    has_terminal, headless,
    registry::{self, Entry},
};
use crate::{
    engine::Launch,
    link::Role,
    model::UnixMs,
    plan::{self, PlanSource},
    provider::process,
    report::RunFolder,
};

/// How long an engine may take until its socket answers: it checks the machine first.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How often the engine's socket is tried.
const START_POLL: Duration = Duration::from_millis(20);

/// Runs a plan.
pub async fn run(source: PlanSource, args: RunArgs) -> Result<u8> {
    let plan = plan::load(source.clone(), &args.overrides)?;
    let answers = headless::parse_answers(&args.answers).map_err(|e| Usage(e.to_string()))?;
    let console = !args.headless && has_terminal();
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
    };
    let mut entry =
        Entry { run: id, plan: plan.name, folder, socket, started: UnixMs::now(), engine: None };
    // Before the engine: one that nobody can find again must not run.
    entry.save()?;
    let engine = spawn_engine(&launch, &mut entry).inspect_err(|_| entry.forget())?;
    wait_for(engine, &entry).await?;
    eprintln!("rampdeck: run {} in {}", entry.run, entry.folder.display());
    if console {
        super::watch(&entry, &args.screen).await
    } else {
        headless::follow(&entry, &answers).await
    }
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

/// Waits until the engine's socket answers; an engine that ends before says why in its log.
async fn wait_for(mut engine: Child, entry: &Entry) -> Result<()> {
    let began = Instant::now();
    loop {
        if super::client::Client::connect(&entry.socket, Role::CommandLine).await.is_ok() {
            return Ok(());
        }
        if let Some(status) = engine.try_wait()? {
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
