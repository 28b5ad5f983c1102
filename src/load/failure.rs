//! What an error of an attempt means for the transaction.

use std::borrow::Cow;

use tokio_postgres::error::SqlState;

use crate::target::SessionError;

/// What follows from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The transaction lost against another: the whole of it again.
    Conflict,
    /// The server or this session of it cannot go on: again on a new connection. If COMMIT had
    /// been sent, its outcome is not known.
    Unavailable,
    /// The server refused: nothing is gained by trying again.
    Refused,
}

/// An error in the load core's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) meaning: Meaning,
    /// The SQLSTATE, or one of our own names.
    pub(super) name: Cow<'static, str>,
}

/// The name of a connection that broke.
pub(super) const CONNECTION_LOST: &str = "connection_lost";
/// The name of a connection that could not be made.
pub(super) const CONNECT_FAILED: &str = "connect_failed";
/// The name of a transaction that took too long.
pub(super) const TIMEOUT: &str = "timeout";

impl Failure {
    /// A connection that broke without a word of the server.
    pub(super) const fn lost() -> Self {
        Self { meaning: Meaning::Unavailable, name: Cow::Borrowed(CONNECTION_LOST) }
    }

    /// Reads an error of an attempt.
    pub(super) fn read(error: &SessionError) -> Self {
        match error {
            SessionError::Server(error) => Self {
                meaning: meaning(&error.code, &error.message),
                name: Cow::Owned(error.code.clone()),
            },
            SessionError::Lost(_) | SessionError::Protocol(_) => Self::lost(),
        }
    }
}

fn meaning(code: &str, message: &str) -> Meaning {
    let unavailable = [
        SqlState::ADMIN_SHUTDOWN.code(),
        SqlState::CRASH_SHUTDOWN.code(),
        SqlState::CANNOT_CONNECT_NOW.code(),
        // The server closed the session because it was idle, in a transaction or at all.
        "25P03",
        "57P05",
        // The outcome is not known, says the server itself.
        "40003",
    ];
    // 08 connection, 53 resources, 58 system, XX internal; 25 means that the session is not in
    // the state that it should be in: a new one is.
    let classes = ["08", "53", "58", "XX", "25"];
    match code {
        "40001" | "40P01" => Meaning::Conflict,
        // DSQL's own codes for conflicts in data and schema, also where a driver or proxy has
        // wrapped them.
        "OC000" | "OC001" => Meaning::Conflict,
        "XX000" if message.contains("OC000") || message.contains("OC001") => Meaning::Conflict,
        code if unavailable.contains(&code) => Meaning::Unavailable,
        code if classes.iter().any(|class| code.starts_with(class)) => Meaning::Unavailable,
        _ => Meaning::Refused,
    }
}

/// Whether a refusal is a duplicate key: after an unknown outcome that is the transaction's own
/// earlier commit more likely than not.
pub(super) fn is_duplicate(failure: &Failure) -> bool {
    failure.name == SqlState::UNIQUE_VIOLATION.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_retryable_also_inside_an_internal_error() {
        assert_eq!(meaning("40001", ""), Meaning::Conflict);
        assert_eq!(meaning("40P01", ""), Meaning::Conflict);
        let text = "change conflicts with another transaction, please retry: (OC000)";
        assert_eq!(meaning("XX000", text), Meaning::Conflict);
        assert_eq!(meaning("XX000", "server unavailable"), Meaning::Unavailable);
    }

    #[test]
    fn what_a_new_connection_cures_is_told_from_what_nothing_cures() {
        for code in ["08006", "57P01", "57P02", "57P03", "53300", "53400", "25P02", "58030"] {
            assert_eq!(meaning(code, ""), Meaning::Unavailable, "{code}");
        }
        for code in ["42P01", "23505", "57014", "22012", "28P01"] {
            assert_eq!(meaning(code, ""), Meaning::Refused, "{code}");
        }
    }

    #[test]
    fn an_error_without_a_server_s_word_is_a_lost_connection() {
        let failure = Failure::read(&SessionError::Lost("reset by peer".into()));
        assert_eq!(failure.meaning, Meaning::Unavailable);
        assert_eq!(failure.name, CONNECTION_LOST);
    }
}
