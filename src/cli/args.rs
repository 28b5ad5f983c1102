//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::console::Tone;

/// A terminal operator console for OLTP capacity experiments.
#[derive(Parser)]
#[command(
    name = "rampdeck",
    version = crate::engine::build(),
    about = "Learn how much load PostgreSQL-compatible databases carry under one SLO, at what latency and cost",
    after_help = "Exit codes: 0 done · 1 failed · 2 wrong usage or plan · 3 a cell did not pass (--require pass)\n            4 something remains · 5 stopped by the guard\n\nBegin with: rampdeck rehearse",
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Rehearse a whole run for nothing: four configurations on a private PostgreSQL
    #[command(
        after_help = "Example: rampdeck rehearse\n         rampdeck rehearse --headless --out /tmp/rehearsal"
    )]
    Rehearse(RunArgs),
    /// Run a plan, watched from the console
    #[command(
        after_help = "Example: rampdeck run configs/quick.toml --set configuration.url=postgres://app@db.example/shop"
    )]
    Run {
        /// The plan, a TOML file
        plan: PathBuf,
        #[command(flatten)]
        args: RunArgs,
    },
    /// Attach a console to a run that is going on
    #[command(after_help = "Example: rampdeck attach\n         rampdeck attach rehearse-1130-a7f3")]
    Attach {
        /// The run; without a name, the one that is going on
        run: Option<String>,
        #[command(flatten)]
        screen: ScreenArgs,
    },
    /// Say how a run stands
    #[command(after_help = "Example: rampdeck status --json")]
    Status {
        /// The run; without a name, the one that is going on, or the last one
        run: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a run's cells and its plan, keep its resources
    #[command(after_help = "Example: rampdeck stop rehearse-1130-a7f3")]
    Stop {
        /// The run; without a name, the one that is going on
        run: Option<String>,
    },
    /// Remove everything a run made, with or without its engine
    #[command(
        after_help = "Example: rampdeck teardown rehearse-1130-a7f3\n         rampdeck teardown rehearse-1130-a7f3 --yes"
    )]
    Teardown {
        /// The run
        run: String,
        /// Do not ask for the run's name to be typed
        #[arg(long)]
        yes: bool,
        /// A line of JSON for each thing whose state changes, and one with what remains
        #[arg(long)]
        json: bool,
        /// Connection string of a database of one's own, where its password is not in the
        /// environment: CONFIGURATION=URL
        #[arg(long = "url", value_name = "CONFIGURATION=URL")]
        urls: Vec<String>,
    },
    /// Look whether anything of a run remains
    #[command(after_help = "Example: rampdeck verify rehearse-1130-a7f3")]
    Verify {
        /// The run
        run: String,
        /// Connection string of a database of one's own, where its password is not in the
        /// environment: CONFIGURATION=URL
        #[arg(long = "url", value_name = "CONFIGURATION=URL")]
        urls: Vec<String>,
    },
    /// List the runs of this machine
    #[command(after_help = "Example: rampdeck runs")]
    Runs {
        /// As JSON, one run a line
        #[arg(long)]
        json: bool,
    },
    /// Measure what this machine can generate, against a database that is none; about a minute
    #[command(
        after_help = "Example: rampdeck calibrate\n         rampdeck calibrate --seconds 10 --json"
    )]
    Calibrate {
        /// Length of each of the 25 or so steps, 1 to 600
        #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = step_seconds)]
        seconds: f64,
        /// As JSON; what is under way goes to standard error
        #[arg(long)]
        json: bool,
    },
    /// Work with plans
    Plan {
        #[command(subcommand)]
        command: PlanCommand,
    },
    /// Print the statements that make a configuration's tables and indexes
    #[command(after_help = "Example: rampdeck schema DB --plan configs/quick.toml")]
    Schema {
        /// The configuration
        configuration: String,
        /// The plan that has it, a TOML file; without one, the rehearsal
        #[arg(long, value_name = "FILE")]
        plan: Option<PathBuf>,
        /// The schema that holds the tables
        #[arg(long, value_name = "NAME", default_value = DATA_SCHEMA)]
        schema: String,
    },
    /// Load data without a run, and look at it
    Data {
        #[command(subcommand)]
        command: DataCommand,
    },
    #[command(hide = true)]
    Engine,
    #[command(hide = true)]
    Agent,
    #[command(hide = true)]
    Gate,
    #[command(hide = true)]
    NullEndpoint,
}

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Check a plan and say what it would do
    #[command(after_help = "Example: rampdeck plan check configs/rehearse.toml")]
    Check {
        /// The plan, a TOML file
        plan: PathBuf,
        /// Change a value of the plan
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
}

/// Where data is loaded without a run.
const DATA_SCHEMA: &str = "rampdeck_data";

#[derive(Subcommand)]
pub enum DataCommand {
    /// Load a configuration's data, or go on with a load that was cut off; counts and verifies
    #[command(
        after_help = "Example: rampdeck data load DB --plan configs/quick.toml --set configuration.url=postgres://app@db.example/shop"
    )]
    Load(LoadArgs),
    /// Say what is loaded, how far cells have made it grow, and what a fresh load would take
    #[command(
        after_help = "Example: rampdeck data status DB --plan configs/quick.toml --set configuration.url=postgres://app@db.example/shop"
    )]
    Status(DataArgs),
}

#[derive(Args, Clone)]
pub struct DataArgs {
    /// The configuration, of kind "postgres"
    pub configuration: String,
    /// The plan that has it, a TOML file; its scale and seed say what the data is
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// Change a value of the plan, for example scale=0.02
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The schema that holds the data; a run's is rampdeck_ and its name, with _ for -
    #[arg(long, value_name = "NAME", default_value = DATA_SCHEMA)]
    pub schema: String,
    /// As JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Clone)]
pub struct LoadArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Connections that load side by side, 1 to 256; without it, as suits the database
    #[arg(long, value_name = "NUMBER", value_parser = workers)]
    pub workers: Option<usize>,
}

fn workers(text: &str) -> Result<usize, String> {
    let workers = text.parse::<usize>().ok().filter(|workers| (1..=256).contains(workers));
    workers.ok_or_else(|| "allowed: 1 to 256".to_owned())
}

#[derive(Args, Clone)]
pub struct RunArgs {
    /// The run folder, exactly this one; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON lines instead of a console; chosen by itself without a terminal
    #[arg(long)]
    pub headless: bool,
    /// Change a value of the plan, for example scale=0.002 or stage.pilot.measure_s=30
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// End with exit code 3 unless every cell passed
    #[arg(long, value_name = "WHAT", value_parser = ["pass"])]
    pub require: Option<String>,
    /// Headless: answer a decision of the plan as soon as it is asked
    #[arg(long = "answer", value_name = "DECISION=OPTION")]
    pub answers: Vec<String>,
    #[command(flatten)]
    pub screen: ScreenArgs,
}

#[derive(Args, Clone)]
pub struct ScreenArgs {
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// Draw without colours; NO_COLOR in the environment says the same
    #[arg(long)]
    pub no_color: bool,
    /// What the colours are to be read on
    #[arg(long, value_enum, value_name = "THEME", env = "RAMPDECK_THEME", default_value_t)]
    pub theme: ThemeName,
    /// The keys: default, vim, or a file that changes what it names (./vim for one of that name);
    /// RAMPDECK_KEYMAP in the environment says the same
    #[arg(long, value_name = "NAME|FILE")]
    keymap: Option<PathBuf>,
}

impl ScreenArgs {
    /// The keymap that is asked for: by the argument, or else by the environment.
    pub fn keymap(&self) -> Option<PathBuf> {
        let environment = || std::env::var_os("RAMPDECK_KEYMAP").filter(|value| !value.is_empty());
        self.keymap.clone().or_else(|| environment().map(PathBuf::from))
    }
}

/// The themes by their names.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
pub enum ThemeName {
    /// For a terminal with a dark background
    #[default]
    Dark,
    /// For a terminal with a light background
    Light,
    /// White and bright colours on black, nothing dimmed
    Contrast,
}

impl From<ThemeName> for Tone {
    fn from(name: ThemeName) -> Self {
        match name {
            ThemeName::Dark => Self::Dark,
            ThemeName::Light => Self::Light,
            ThemeName::Contrast => Self::Contrast,
        }
    }
}

fn step_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (1.0..=600.0).contains(seconds));
    seconds.ok_or_else(|| "allowed: 1 to 600 seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(args: &[&str]) -> Result<Tone, String> {
        let parsed = Cli::try_parse_from(["rampdeck", "attach"].iter().chain(args));
        match parsed.map_err(|error| error.to_string())?.command {
            Command::Attach { screen, .. } => Ok(screen.theme.into()),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn a_theme_is_named_and_a_wrong_one_is_told_which_there_are() {
        assert_eq!(theme(&["--theme", "light"]), Ok(Tone::Light));
        assert_eq!(theme(&["--theme", "contrast"]), Ok(Tone::Contrast));
        let refused = theme(&["--theme", "pink"]).unwrap_err();
        assert!(refused.contains("'pink' for '--theme <THEME>'"), "{refused}");
        assert!(refused.contains("dark, light, contrast"), "{refused}");
    }

    #[test]
    fn the_environment_names_a_theme_too() {
        let argument = |command: &clap::Command| {
            let theme = command.get_arguments().find(|arg| arg.get_id() == "theme");
            theme.and_then(|arg| arg.get_env()).map(std::ffi::OsStr::to_owned)
        };
        let cli = <Cli as clap::CommandFactory>::command();
        for name in ["rehearse", "run", "attach"] {
            let command = cli.find_subcommand(name).unwrap();
            assert_eq!(argument(command), Some("RAMPDECK_THEME".into()), "{name}");
        }
    }
}
