//! Why the order business could not be set up, loaded or checked.

use std::error::Error as _;

use tokio_postgres::Error;

use crate::target::ConnectError;

/// A failure of set-up, loading or checking; its text says what was being done.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{doing}: {}", reason(source))]
    Database { doing: String, source: Error },
    #[error("scale {0} is out of range: above 0 and at most 1 is allowed")]
    Scale(f64),
    #[error("the mix adds up to {0} %: 100 is needed")]
    Mix(u32),
    #[error("attempt {ordinal}: {what}")]
    Range { ordinal: u64, what: String },
    #[error(
        "schema {schema} already holds the table {table}: remove the schema, or load into another"
    )]
    AlreadyThere { schema: String, table: &'static str },
    #[error(
        "table {table} of schema {schema} holds {found} rows after loading, {expected} are due"
    )]
    Count { schema: String, table: &'static str, found: u64, expected: u64 },
    #[error(
        "table {table} of schema {schema} holds as many rows as it should, but not those that were due: it has been changed, or loaded with another seed"
    )]
    Checksum { schema: String, table: &'static str },
    #[error(
        "schema {schema} holds the beginning of another data set (other scale or seed): finish that one, or load into another schema"
    )]
    OtherDesign { schema: String },
    #[error("index {index} did not become valid within {minutes} minutes")]
    Index { index: String, minutes: u64 },
    #[error("the job that builds index {index} has {status}: drop the index, then load again")]
    IndexJob { index: String, status: String },
    #[error("given up after {tries} tries: {last}")]
    GivenUp { tries: u32, last: Box<Self> },
}

/// The server's own words with the SQLSTATE, else the driver's.
fn reason(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(server), _) => format!("{} (SQLSTATE {})", server.message(), server.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// Says what was being done when the database failed.
pub(super) trait Doing<T> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, WorkloadError>;
}

impl<T> Doing<T> for Result<T, Error> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, WorkloadError> {
        self.map_err(|source| WorkloadError::Database { doing: doing(), source })
    }
}
