//! The command line: what each command does, and the exit codes.

/// Prints a line on standard output. A reader that has gone, or a full disk, is no reason to panic:
/// what a command does matters more than what it says.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($words)*);
    }};
}

/// As `say!`, on standard error.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($words)*);
    }};
}

mod args;
mod calibrate;
mod client;
mod data;
mod headless;
mod output;
mod registry;
mod start;
mod status;
mod teardown;

use std::io::IsTerminal;

use clap::Parser;
use color_eyre::eyre::{Result, bail, eyre};

use args::{Cli, Command, DataCommand, PlanCommand, ScreenArgs};
pub use start::STEADY_MEMORY;

use crate::{
    console::{ConsoleExit, ConsoleOptions},
    link::Role,
    model::Command as RunCommand,
    plan::{PlanErrors, PlanSource},
};

/// Exit codes beside those that a run ends with.
mod exit {
    pub const DONE: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
}

/// Parses the command line, does what it says, and gives the exit code.
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { exit::USAGE } else { exit::DONE };
            // A closed pipe is no reason to fail.
            let _ = error.print();
            return code;
        }
    };
    match dispatch(cli.command) {
        Ok(code) => code,
        Err(error) => {
            if error.downcast_ref::<PlanErrors>().is_some() {
                tell!("{error}");
                return exit::USAGE;
            }
            if let Some(usage) = error.downcast_ref::<Usage>() {
                tell!("rampdeck: {usage}");
                return exit::USAGE;
            }
            tell!("rampdeck: {}", sentence(&error));
            exit::FAILED
        }
    }
}

/// Wrong usage that clap cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// An error and what led to it, in one line.
fn sentence(error: &color_eyre::Report) -> String {
    let mut parts: Vec<String> = error.chain().map(ToString::to_string).collect();
    parts.dedup();
    parts.join(": ")
}

fn dispatch(command: Command) -> Result<u8> {
    match command {
        // These have standard streams that carry frames, and no terminal.
        Command::Engine => helper_process(start::engine()),
        Command::Agent => agent(),
        Command::Gate => crate::wire::gate::main().map(|()| exit::DONE).map_err(Into::into),
        Command::NullEndpoint => {
            crate::wire::null::process::main().map(|()| exit::DONE).map_err(Into::into)
        }
        other => {
            color_eyre::install()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let code = runtime.block_on(operator_command(other));
            // A task that still reads the terminal must not hold the process.
            runtime.shutdown_background();
            code
        }
    }
}

fn helper_process(work: impl Future<Output = Result<u8>>) -> Result<u8> {
    log_to_stderr();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn agent() -> Result<u8> {
    log_to_stderr();
    crate::load::agent::run(tokio::io::stdin(), tokio::io::stdout())?;
    Ok(exit::DONE)
}

/// The log of the engine and its children goes to standard error, which is `engine.log`.
fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // It would print to standard error, and panic where that is a full disk: a run that
        // cannot log goes on.
        .log_internal_errors(false)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RAMPDECK_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info")),
        )
        .init();
}

async fn operator_command(command: Command) -> Result<u8> {
    match command {
        Command::Rehearse(args) => start::run(PlanSource::Rehearse, args).await,
        Command::Run { plan, args } => start::run(PlanSource::File(plan), args).await,
        Command::Attach { run, screen } => attach(run.as_deref(), &screen).await,
        Command::Status { run, json } => status::print(run.as_deref(), json).await,
        Command::Stop { run } => stop(run.as_deref()).await,
        Command::Teardown { run, yes, json, urls } => {
            let form = if json { teardown::Form::Json } else { teardown::Form::Text };
            teardown::run(&run, yes, &urls, form).await
        }
        Command::Verify { run, urls } => teardown::verify(&run, &urls).await,
        Command::Runs { json } => status::list(json),
        Command::Calibrate { seconds, json } => calibrate::run(seconds, json).await,
        Command::Plan { command: PlanCommand::Check { plan, overrides } } => {
            status::check_plan(&PlanSource::File(plan), &overrides)
        }
        Command::Schema { configuration, plan, schema } => {
            let plan = plan.map_or(PlanSource::Rehearse, PlanSource::File);
            data::print_schema(&configuration, plan, &schema)
        }
        Command::Data { command: DataCommand::Load(args) } => data::load(&args).await,
        Command::Data { command: DataCommand::Status(args) } => data::print_status(&args).await,
        Command::Engine | Command::Agent | Command::Gate | Command::NullEndpoint => {
            bail!("this command is for rampdeck's own processes")
        }
    }
}

async fn attach(name: Option<&str>, screen: &ScreenArgs) -> Result<u8> {
    let entry = registry::find_or_only(name)?;
    if !entry.is_going_on() {
        bail!(
            "run {} is not going on; look at it with `rampdeck status {}`, at what remains with `rampdeck verify {}`",
            entry.run,
            entry.run,
            entry.run
        );
    }
    if !has_terminal() {
        return headless::follow(&entry, &headless::Answers::new()).await;
    }
    watch(&entry, screen).await
}

fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Shows the console on a run until the operator leaves or the run ends.
async fn watch(entry: &registry::Entry, screen: &ScreenArgs) -> Result<u8> {
    let options = ConsoleOptions {
        socket: entry.socket.clone(),
        build: crate::engine::build().to_owned(),
        keymap: screen.keymap(),
        no_color: screen.no_color,
        tone: screen.theme.into(),
        ascii: screen.ascii,
    };
    match crate::console::run(options).await? {
        // Nothing is said to a terminal that is gone.
        ConsoleExit::HungUp { .. } => Ok(exit::DONE),
        ConsoleExit::Detached { .. } => {
            say!(
                "detached: run {0} goes on. Return with: rampdeck attach {0}\nRemove everything it made with: rampdeck teardown {0}",
                entry.run
            );
            Ok(exit::DONE)
        }
        ConsoleExit::Ended { exit_code, text } => {
            say!("{text}\nsummary at {}", entry.folder.join("summary.json").display());
            Ok(exit_code)
        }
        ConsoleExit::Lost { .. } => Err(eyre!(
            "the engine of {0} has gone without ending the run; remove what it made with: rampdeck teardown {0}",
            entry.run
        )),
    }
}

async fn stop(name: Option<&str>) -> Result<u8> {
    let entry = registry::find_or_only(name)?;
    if !entry.is_going_on() {
        bail!("run {} is not going on: there is nothing to stop", entry.run);
    }
    let mut client = client::Client::connect(&entry.socket, Role::CommandLine).await?;
    client.command(RunCommand::Stop).await?;
    let deadline = client.snapshot().await?.decision.map_or_else(String::new, |decision| {
        format!(" until {} UTC", decision.deadline.time_of_day())
    });
    say!(
        "run {0}: cells and plan ended, resources kept{deadline}. Remove them with: rampdeck teardown {0}",
        entry.run
    );
    Ok(exit::DONE)
}
