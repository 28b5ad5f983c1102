//! What a run needs is made, listed, removed and verified here.
//!
//! The engine calls it to make things, through a [`Recorder`] that puts each intent on disk before
//! the act. Removal and its verification need no engine: they go by the journal's resources and by
//! a sweep for what carries the run's mark.

pub mod lab;
pub mod postgres;
mod preflight;
pub mod process;
mod recorder;
mod remove;
#[cfg(test)]
mod testing;
mod verify;

pub use preflight::{Check, Needs, checks};
pub use recorder::{RecordError, Recorder, RecorderMessage};
pub use remove::{remove, remove_only};
pub use verify::{Remaining, verify};

/// An identifier between double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The server's own words where it has said something, else what broke.
fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} (SQLSTATE {})", said.message(), said.code().code()),
        None => error.to_string(),
    }
}
