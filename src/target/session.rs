//! What transactions are run on: requests in, replies out, over whatever drives the connection.

use std::{fmt, future::Future, ops::Range};

use super::ReadLag;

/// The type of a statement's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterType {
    Int8,
    Int4s,
    Int8s,
    Text,
}

impl ParameterType {
    /// The type's object id, which is the same in every database (`pg_type.dat`).
    pub(super) const fn oid(self) -> u32 {
        match self {
            Self::Int8 => 20,
            Self::Int4s => 1007,
            Self::Int8s => 1016,
            Self::Text => 25,
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Int8(i64),
    Int4s(&'a [i32]),
    Int8s(&'a [i64]),
    Text(&'a str),
}

/// A statement that a connection may prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its place among the statements of its workload; its prepared name is made from it.
    pub(super) number: usize,
    pub(super) sql: String,
    pub(super) parameters: &'static [ParameterType],
    /// The text between the parameters, and which parameter follows it.
    pub(super) pieces: Vec<(Range<usize>, Option<usize>)>,
}

impl Statement {
    /// A statement with `$1` … `$n` in its text, as the `number`th (from 0) of its workload.
    #[must_use]
    pub fn new(number: usize, sql: String, parameters: &'static [ParameterType]) -> Self {
        let pieces = pieces(&sql);
        Self { number, sql, parameters, pieces }
    }

    /// The text.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

/// Cuts a text at its parameters.
fn pieces(sql: &str) -> Vec<(Range<usize>, Option<usize>)> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, _) in sql.match_indices('$') {
        let digits = sql[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = sql[at + 1..at + 1 + digits].parse::<usize>() else { continue };
        pieces.push((from..at, number.checked_sub(1)));
        from = at + 1 + digits;
    }
    pieces.push((from..sql.len(), None));
    pieces
}

/// One thing that is asked of the database.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    Begin,
    Commit,
    Rollback,
    /// A statement with its parameters' values, as many as it has parameters.
    Run(&'a Statement, &'a [Value<'a>]),
    /// A text without parameters, in the simple protocol whatever the shape.
    Text(&'a str),
}

/// `BEGIN` as it is sent: the one isolation level that all targets have.
pub const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
/// `COMMIT` as it is sent.
pub const COMMIT: &str = "COMMIT";
/// `ROLLBACK` as it is sent.
pub const ROLLBACK: &str = "ROLLBACK";

/// A connection, as a transaction sees it.
pub trait Session {
    /// Asks for all of it, in one round trip or in one for each request, as the session's shape
    /// says, and waits for the replies. Requests after one that fails are not carried out; a
    /// transaction that was open is left open, see [`Session::in_transaction`].
    ///
    /// What requests ask for must not depend on each other's replies.
    ///
    /// # Errors
    /// With what the server answered to the request that failed, or how the connection ended.
    fn trip(
        &mut self,
        requests: &[Request<'_>],
    ) -> impl Future<Output = Result<&Replies, TripError>>;

    /// Whether it can take further requests: it cannot once it has ended, or while a trip that was
    /// given up is still on its way.
    fn is_usable(&self) -> bool;

    /// Whether a transaction is open on it.
    fn in_transaction(&self) -> bool;

    /// Whether a COMMIT of the running or given-up transaction, or a text that may hold one, was
    /// handed to the system.
    fn commit_sent(&self) -> bool;

    /// When the first byte since the last time was handed to the system, in nanoseconds of the
    /// monotonic clock; `None` where that is not known.
    fn take_first_sent(&mut self) -> Option<u64> {
        None
    }

    /// How long replies lay unread since the last time; nothing where that is not known.
    fn take_read_lag(&mut self) -> ReadLag {
        ReadLag::default()
    }
}

/// How values are spelled in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Binary,
    Text,
}

/// The replies to the requests of a trip, in their order.
#[derive(Debug, Default)]
pub struct Replies {
    pub(super) format: Format,
    pub(super) replies: Vec<Reply>,
    /// Bodies of the rows' messages, end to end.
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<Range<usize>>,
}

/// The reply to one request: its rows and how many it touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) rows: Range<usize>,
    pub(super) affected: u64,
}

impl Replies {
    /// Rows that the request with this place (from 0) gave.
    pub fn rows(&self, request: usize) -> impl ExactSizeIterator<Item = Row<'_>> {
        let rows = self.replies.get(request).map_or(0..0, |reply| reply.rows.clone());
        self.rows[rows]
            .iter()
            .map(|range| Row { format: self.format, body: &self.bytes[range.clone()] })
    }

    /// Rows that the request with this place (from 0) read or wrote, as the server counts them.
    #[must_use]
    pub fn affected(&self, request: usize) -> u64 {
        self.replies.get(request).map_or(0, |reply| reply.affected)
    }

    /// How many requests have been replied to.
    pub(super) const fn count(&self) -> usize {
        self.replies.len()
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self, format: Format) {
        self.format = format;
        self.replies.clear();
        self.bytes.clear();
        self.rows.clear();
    }

    /// Takes a row's message in.
    pub(super) fn row(&mut self, body: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(body);
        self.rows.push(from..self.bytes.len());
    }

    /// Ends the reply that is being taken in.
    pub(super) fn complete(&mut self, affected: u64) {
        let from = self.replies.last().map_or(0, |reply| reply.rows.end);
        self.replies.push(Reply { rows: from..self.rows.len(), affected });
    }
}

/// A row of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    format: Format,
    /// The message's body: the number of columns, and for each its length and bytes.
    body: &'a [u8],
}

impl<'a> Row<'a> {
    /// A `bigint` column (from 0).
    ///
    /// # Errors
    /// When there is no such column, or it holds something else.
    pub fn int8(&self, column: usize) -> Result<i64, SessionError> {
        self.int(column, |bytes| bytes.try_into().ok().map(i64::from_be_bytes))
    }

    /// An `integer` column (from 0).
    ///
    /// # Errors
    /// When there is no such column, or it holds something else.
    pub fn int4(&self, column: usize) -> Result<i32, SessionError> {
        self.int(column, |bytes| bytes.try_into().ok().map(i32::from_be_bytes))
    }

    /// A `text` column (from 0).
    ///
    /// # Errors
    /// When there is no such column, or it holds something else.
    pub fn text(&self, column: usize) -> Result<&'a str, SessionError> {
        let bytes = self.bytes(column)?;
        std::str::from_utf8(bytes).map_err(|_| unexpected(column, "text"))
    }

    fn int<N: std::str::FromStr>(
        &self,
        column: usize,
        binary: impl FnOnce(&[u8]) -> Option<N>,
    ) -> Result<N, SessionError> {
        let bytes = self.bytes(column)?;
        let read = match self.format {
            Format::Binary => binary(bytes),
            Format::Text => std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()),
        };
        read.ok_or_else(|| unexpected(column, "an integer of its width"))
    }

    fn bytes(&self, column: usize) -> Result<&'a [u8], SessionError> {
        let missing = || unexpected(column, "a value");
        let mut rest = self.body.get(2..).ok_or_else(missing)?;
        for _ in 0..column {
            let length = field_length(rest).ok_or_else(missing)?.unwrap_or(0);
            rest = rest.get(4 + length..).ok_or_else(missing)?;
        }
        let length = field_length(rest).flatten().ok_or_else(missing)?;
        rest.get(4..4 + length).ok_or_else(missing)
    }
}

/// The length of the field at the beginning: `None` inside for NULL, outside where there is none.
fn field_length(bytes: &[u8]) -> Option<Option<usize>> {
    let length = i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    Some(usize::try_from(length).ok())
}

fn unexpected(column: usize, wanted: &str) -> SessionError {
    SessionError::Protocol(format!("column {column} of a reply is not {wanted}"))
}

/// What a server says of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The SQLSTATE.
    pub code: String,
    pub message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server answered with an error.
    #[error("{0}")]
    Server(ServerError),
    /// The connection broke without a word of the server.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// What came is not what was asked for.
    #[error("the server's answer cannot be read: {0}")]
    Protocol(String),
}

impl SessionError {
    /// The server's SQLSTATE, where the server answered.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => Some(&error.code),
            Self::Lost(_) | Self::Protocol(_) => None,
        }
    }
}

/// A trip that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TripError {
    /// Whether a COMMIT was among the requests that were sent last.
    pub commit_sent: bool,
    pub error: SessionError,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = u16::try_from(fields.len()).unwrap().to_be_bytes().to_vec();
        for field in fields {
            match field {
                Some(bytes) => {
                    body.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                    body.extend_from_slice(bytes);
                }
                None => body.extend((-1_i32).to_be_bytes()),
            }
        }
        body
    }

    #[test]
    fn a_text_is_cut_at_its_parameters() {
        let statement = Statement::new(0, "a = $1 AND b = $12::x$".into(), &[]);
        let cut: Vec<_> = statement
            .pieces
            .iter()
            .map(|(text, parameter)| (&statement.sql[text.clone()], *parameter))
            .collect();
        assert_eq!(cut, [("a = ", Some(0)), (" AND b = ", Some(11)), ("::x$", None)]);
    }

    #[test]
    fn replies_are_told_apart_and_their_columns_read_in_both_formats() {
        let mut replies = Replies::default();
        replies.complete(3);
        replies.row(&row(&[Some(&7_i64.to_be_bytes()), None, Some(b"placed")]));
        replies.row(&row(&[Some(&8_i64.to_be_bytes()), Some(&1_i32.to_be_bytes())]));
        replies.complete(2);
        assert_eq!((replies.affected(0), replies.rows(0).len()), (3, 0));
        let rows: Vec<_> = replies.rows(1).collect();
        assert_eq!((rows[0].int8(0), rows[0].text(2)), (Ok(7), Ok("placed")));
        assert_eq!((rows[1].int8(0), rows[1].int4(1)), (Ok(8), Ok(1)));
        assert!(rows[0].int4(1).is_err() && rows[0].text(3).is_err() && rows[1].int8(1).is_err());
        assert_eq!(replies.rows(5).len(), 0);

        replies.clear(Format::Text);
        replies.row(&row(&[Some(b"-12"), Some(b"x")]));
        replies.complete(1);
        let rows: Vec<_> = replies.rows(0).collect();
        assert_eq!(rows[0].int8(0), Ok(-12));
        assert!(rows[0].int8(1).is_err());
    }
}
