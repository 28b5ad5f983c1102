//! Requests as bytes of the protocol.
//!
//! Message formats: PostgreSQL documentation, "Frontend/Backend Protocol", "Message Formats".

use crate::target::{
    session::{BEGIN, COMMIT, ParameterType, ROLLBACK, Request, Statement, Value},
    spelling::put_number,
};

/// Every parameter and every column in binary: one format code for all.
const ALL_BINARY: [u8; 4] = [0, 1, 0, 1];

/// Writes a message: its tag, its length and what `body` writes.
pub(super) fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    untagged(out, body);
}

/// Writes a message that has no tag (start-up).
pub(super) fn untagged(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = length(out.len() - at).to_be_bytes();
    out[at..at + 4].copy_from_slice(&length);
}

/// Writes a text and the zero that ends it.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// A simple query.
pub(super) fn query(out: &mut Vec<u8>, sql: &str) {
    message(out, b'Q', |out| text(out, sql));
}

pub(super) fn sync(out: &mut Vec<u8>) {
    message(out, b'S', |_| {});
}

/// Under which name a connection has a statement prepared.
#[derive(Clone, Copy)]
enum Name {
    Unnamed,
    Numbered(usize),
    /// `BEGIN` and its like.
    Own(&'static str),
}

impl Name {
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::Unnamed => {}
            Self::Numbered(number) => {
                out.push(b's');
                put_number(out, number as u64);
            }
            Self::Own(name) => out.extend_from_slice(name.as_bytes()),
        }
        out.push(0);
    }
}

const BEGIN_NAME: &str = "begin";
const COMMIT_NAME: &str = "commit";
const ROLLBACK_NAME: &str = "rollback";

/// Asks for the statements, and what begins and ends a transaction, to be prepared.
pub(super) fn prepare(out: &mut Vec<u8>, statements: &[Statement]) {
    for (name, sql) in [(BEGIN_NAME, BEGIN), (COMMIT_NAME, COMMIT), (ROLLBACK_NAME, ROLLBACK)] {
        parse(out, Name::Own(name), sql, &[]);
    }
    for statement in statements {
        parse(out, Name::Numbered(statement.number), &statement.sql, statement.parameters);
    }
    sync(out);
}

fn parse(out: &mut Vec<u8>, name: Name, sql: &str, parameters: &[ParameterType]) {
    message(out, b'P', |out| {
        name.put(out);
        text(out, sql);
        out.extend_from_slice(&short(parameters.len()).to_be_bytes());
        for parameter in parameters {
            out.extend_from_slice(&parameter.oid().to_be_bytes());
        }
    });
}

/// One request of the extended protocol, without the Sync that ends a trip; `prepared`: under the
/// name it has on this connection.
pub(super) fn extended(out: &mut Vec<u8>, request: &Request<'_>, prepared: bool) {
    let (name, sql, parameters, values): (_, &str, &[_], &[_]) = match request {
        Request::Begin => (Name::Own(BEGIN_NAME), BEGIN, &[], &[]),
        Request::Commit => (Name::Own(COMMIT_NAME), COMMIT, &[], &[]),
        Request::Rollback => (Name::Own(ROLLBACK_NAME), ROLLBACK, &[], &[]),
        Request::Text(sql) => (Name::Unnamed, sql, &[], &[]),
        Request::Run(statement, values) => {
            let name = Name::Numbered(statement.number);
            (name, &statement.sql, statement.parameters, values)
        }
    };
    let name = if prepared { name } else { Name::Unnamed };
    if matches!(name, Name::Unnamed) {
        parse(out, name, sql, parameters);
    }
    bind(out, name, values);
    execute(out);
}

fn bind(out: &mut Vec<u8>, name: Name, values: &[Value<'_>]) {
    message(out, b'B', |out| {
        // The unnamed portal.
        out.push(0);
        name.put(out);
        out.extend_from_slice(&ALL_BINARY);
        out.extend_from_slice(&short(values.len()).to_be_bytes());
        for value in values {
            put_value(out, value);
        }
        out.extend_from_slice(&ALL_BINARY);
    });
}

fn execute(out: &mut Vec<u8>) {
    // The unnamed portal, all rows.
    message(out, b'E', |out| out.extend_from_slice(&[0; 5]));
}

/// A value's length, which does not count itself, and its bytes.
fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match value {
        Value::Int8(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Int8s(numbers) => {
            array_head(out, ParameterType::Int8.oid(), numbers.len());
            for number in *numbers {
                out.extend_from_slice(&8_u32.to_be_bytes());
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        Value::Int4s(numbers) => {
            array_head(out, INT4_OID, numbers.len());
            for number in *numbers {
                out.extend_from_slice(&4_u32.to_be_bytes());
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }
    let length = length(out.len() - at - 4).to_be_bytes();
    out[at..at + 4].copy_from_slice(&length);
}

/// `integer` (`pg_type.dat`).
const INT4_OID: u32 = 23;

/// Dimensions, no nulls, the elements' type; one dimension from 1 on, none where it is empty.
fn array_head(out: &mut Vec<u8>, oid: u32, elements: usize) {
    let dimensions = u32::from(elements > 0);
    for word in [dimensions, 0, oid] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    if elements > 0 {
        out.extend_from_slice(&length(elements).to_be_bytes());
        out.extend_from_slice(&1_u32.to_be_bytes());
    }
}

/// A length as the protocol has it; ours are far below its bound.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_themselves_in_messages_and_not_in_values() {
        let mut out = Vec::new();
        query(&mut out, "x");
        assert_eq!(out, [b'Q', 0, 0, 0, 6, b'x', 0]);
        out.clear();
        put_value(&mut out, &Value::Int8s(&[7]));
        assert_eq!(out[..4], 32_u32.to_be_bytes());
        assert_eq!(out.len(), 36);
    }
}
