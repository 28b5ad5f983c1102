//! Requests as text, with their values written in it: the simple protocol's way.

use super::session::{BEGIN, COMMIT, ROLLBACK, Request, Value};

/// A request as text, with its values written in it.
pub(super) fn spelled(out: &mut Vec<u8>, request: &Request<'_>) {
    match request {
        Request::Begin => out.extend_from_slice(BEGIN.as_bytes()),
        Request::Commit => out.extend_from_slice(COMMIT.as_bytes()),
        Request::Rollback => out.extend_from_slice(ROLLBACK.as_bytes()),
        Request::Text(sql) => out.extend_from_slice(sql.as_bytes()),
        Request::Run(statement, values) => {
            for (piece, parameter) in &statement.pieces {
                out.extend_from_slice(&statement.sql.as_bytes()[piece.clone()]);
                if let Some(value) = parameter.and_then(|place| values.get(place)) {
                    put_literal(out, value);
                }
            }
        }
    }
}

/// A value as a literal. Numbers stand in parentheses: `stock + -5` reads well, `stock--5` would
/// be a comment.
fn put_literal(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Int8(number) => {
            out.push(b'(');
            put_number(out, *number);
            out.push(b')');
        }
        Value::Text(text) => {
            // Quotes are doubled; a backslash means nothing with standard_conforming_strings,
            // which every connection of ours has on.
            out.push(b'\'');
            for byte in text.bytes() {
                if byte == b'\'' {
                    out.push(b'\'');
                }
                out.push(byte);
            }
            out.push(b'\'');
        }
        Value::Int8s(numbers) => {
            put_array(out, numbers.iter().copied(), "bigint");
        }
        Value::Int4s(numbers) => {
            put_array(out, numbers.iter().map(|number| i64::from(*number)), "integer");
        }
    }
}

fn put_array(out: &mut Vec<u8>, numbers: impl Iterator<Item = i64>, element: &str) {
    out.extend_from_slice(b"'{");
    for (place, number) in numbers.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        put_number(out, number);
    }
    out.extend_from_slice(b"}'::");
    out.extend_from_slice(element.as_bytes());
    out.extend_from_slice(b"[]");
}

/// Writes a number in digits.
pub(super) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::session::Statement;

    #[test]
    fn values_are_written_in_their_places() {
        let sql = "SELECT $2, $1 WHERE a = ANY($3) AND b = $4";
        let statement = Statement::new(3, sql.into(), &[]);
        let values =
            [Value::Int8(-5), Value::Text("it's"), Value::Int8s(&[1, -2]), Value::Int4s(&[])];
        let mut out = Vec::new();
        spelled(&mut out, &Request::Run(&statement, &values));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "SELECT 'it''s', (-5) WHERE a = ANY('{1,-2}'::bigint[]) AND b = '{}'::integer[]"
        );
    }
}
