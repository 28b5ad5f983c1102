//! The console: a terminal screen that shows a run and drives it through the engine's socket.
//!
//! It owns nothing of the run: losing it loses nothing. Its shape is Elm's: [`state`] holds a copy
//! of the last snapshot and what the operator is at, [`update`] changes it and names effects,
//! [`view`] draws it; [`session`] is the loop around them, [`terminal`] takes and gives back the
//! screen. The command line calls [`run`].

mod action;
mod copy;
mod engine;
#[cfg(test)]
mod fixture;
mod form;
mod help;
mod keymap;
mod looks;
mod palette;
mod record;
mod removal;
mod session;
mod state;
mod terminal;
mod theme;
mod update;
mod view;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use keymap::KeymapError;
pub use session::run;
pub use theme::Tone;

use crate::model::RunId;

/// How to open a console.
#[derive(Clone, Debug)]
pub struct ConsoleOptions {
    /// The engine's Unix socket.
    pub socket: PathBuf,
    /// This program's version and commit.
    pub build: String,
    /// A keymap laid over the default one: the name of one that comes along, or a file.
    pub keymap: Option<PathBuf>,
    /// No colours, whatever the terminal can do; `NO_COLOR` in the environment says the same.
    pub no_color: bool,
    /// What the colours are to be read on.
    pub tone: Tone,
    /// Only ASCII characters; a locale without UTF-8 says the same.
    pub ascii: bool,
}

/// How a console came to its end. Whatever it is, the terminal has been given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsoleExit {
    /// The operator detached, or a signal asked for it; the run goes on.
    Detached { run: Option<RunId> },
    /// The terminal is gone; the run goes on. Writing to the terminal would fail or block.
    HungUp { run: Option<RunId> },
    /// The run has ended and the operator has read its summary.
    Ended { exit_code: u8, text: String },
    /// The operator left while the engine did not answer: `rampdeck teardown` removes what is
    /// left.
    Lost { run: Option<RunId> },
}

/// Why a console could not be opened or go on.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    #[error("standard input and output are not a terminal; use --headless to run without one")]
    NoTerminal,
    #[error("no engine answers at {}: {source}", socket.display())]
    NoEngine { socket: PathBuf, source: io::Error },
    #[error("the engine at {} did not answer as one does: {what}", socket.display())]
    BadEngine { socket: PathBuf, what: String },
    #[error(
        "this console ({build}, protocol {ours}) and the engine ({engine_build}, protocol \
         {theirs}) cannot talk: the {} is older; use the same build for both",
        if ours < theirs { "console" } else { "engine" }
    )]
    Protocol { ours: u32, build: String, theirs: u32, engine_build: String },
    #[error("keymap refused: {0}")]
    Keymap(#[from] KeymapError),
    #[error("the terminal failed: {0}")]
    Terminal(#[source] io::Error),
}

/// Checks a keymap, by name or file, before anything is started with it.
///
/// # Errors
/// When it cannot be read, or a line of it is refused.
pub fn check_keymap(overlay: Option<&Path>) -> Result<(), KeymapError> {
    keymap::Keymap::load(overlay).map(|_| ())
}
