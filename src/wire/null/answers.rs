//! The rows that are given for a statement, as the protocol carries them.

use bytes::{BufMut, BytesMut};

use super::arguments::{Arguments, Bound, Value};
use crate::{
    model::{NullAnswer, NullColumn, NullRows, NullStatement, NullType, NullValue},
    wire::message,
};

/// Microseconds between the Unix epoch and PostgreSQL's, the beginning of 2000.
const EPOCH_US: i64 = 946_684_800_000_000;

/// An answer that cannot be given.
#[derive(Debug, thiserror::Error)]
#[error("column {column} of the answer to {to:?}: {what}")]
pub struct AnswerError {
    column: String,
    to: String,
    what: String,
}

/// An answer, made ready.
#[derive(Debug)]
pub(super) struct Answer {
    to: NullStatement,
    columns: Vec<Column>,
    rows: NullRows,
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: NullType,
    value: Cell,
}

#[derive(Debug)]
enum Cell {
    Fixed { text: Vec<u8>, binary: Vec<u8> },
    Argument(usize),
    Element,
    RowNumber,
}

/// In which format each column of a result is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Formats(Vec<bool>);

impl Formats {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, binary: bool) {
        self.0.push(binary);
    }

    /// None is text for all, one is for all.
    pub(super) fn is_binary(&self, index: usize) -> bool {
        match self.0[..] {
            [] => false,
            [all] => all,
            ref each => each.get(index).copied().unwrap_or(false),
        }
    }
}

impl Answer {
    /// Makes an answer ready.
    ///
    /// # Errors
    /// When a fixed value is not of its column's type, or a time is to be a number.
    pub(super) fn new(answer: NullAnswer) -> Result<Self, AnswerError> {
        let NullAnswer { to, columns, rows } = answer;
        let columns = columns
            .into_iter()
            .map(|column| {
                let name = column.name.clone();
                Column::new(column).map_err(|what| {
                    let (NullStatement::StartsWith(text) | NullStatement::Contains(text)) = &to;
                    AnswerError { column: name, to: text.clone(), what }
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { to, columns, rows })
    }

    /// What follows the fragment that is matched, where the statement is one of this answer's.
    pub(super) fn after_match<'a>(&self, statement: &'a [u8]) -> Option<&'a [u8]> {
        match &self.to {
            NullStatement::StartsWith(text) => statement.strip_prefix(text.as_bytes()),
            NullStatement::Contains(text) => {
                let at = statement
                    .windows(text.len().max(1))
                    .position(|window| window == text.as_bytes())?;
                statement.get(at + text.len()..)
            }
        }
    }

    /// Appends a `RowDescription`.
    pub(super) fn describe(&self, out: &mut BytesMut, formats: &Formats) {
        message::put(out, b'T', |out| {
            out.put_u16(u16::try_from(self.columns.len()).unwrap_or(u16::MAX));
            for (index, column) in self.columns.iter().enumerate() {
                let (oid, size) = column.wire_type();
                message::put_text(out, &column.name);
                // Of no table.
                out.put_u32(0);
                out.put_u16(0);
                out.put_u32(oid);
                out.put_i16(size);
                out.put_i32(-1);
                out.put_i16(formats.is_binary(index).into());
            }
        });
    }

    /// Appends the rows; how many they are. `elements` is the caller's so that its memory is kept.
    pub(super) fn put_rows(
        &self,
        out: &mut BytesMut,
        given: (&Arguments, &Bound),
        formats: &Formats,
        elements: &mut Vec<i64>,
    ) -> usize {
        elements.clear();
        let each = match self.rows {
            NullRows::Fixed(rows) => {
                elements.push(1);
                rows
            }
            NullRows::PerElement { argument, rows } => {
                collect(given, argument, elements);
                rows
            }
        };
        for element in elements.iter() {
            for row in 1..=each {
                self.put_row(out, given, formats, (*element, row));
            }
        }
        elements.len() * each as usize
    }

    fn put_row(
        &self,
        out: &mut BytesMut,
        given: (&Arguments, &Bound),
        formats: &Formats,
        (element, row): (i64, u32),
    ) {
        message::put(out, b'D', |out| {
            out.put_u16(u16::try_from(self.columns.len()).unwrap_or(u16::MAX));
            for (index, column) in self.columns.iter().enumerate() {
                let binary = formats.is_binary(index);
                let number = match &column.value {
                    Cell::Fixed { text, binary: bytes } => {
                        put_sized(out, if binary { bytes } else { text });
                        continue;
                    }
                    Cell::Argument(argument) => scalar(given, *argument),
                    Cell::Element => element,
                    Cell::RowNumber => row.into(),
                };
                put_number(out, column.kind, binary, number);
            }
        });
    }
}

/// The elements of a list; where the argument is a single value that is no array, itself.
fn collect((arguments, bound): (&Arguments, &Bound), argument: usize, elements: &mut Vec<i64>) {
    for value in arguments.of(argument) {
        match value {
            Value::Number(number) => elements.push(number),
            Value::Parameter(parameter) => match bound.number(parameter) {
                Some(number) => elements.push(number),
                None => bound.elements(parameter, elements),
            },
        }
    }
}

fn scalar((arguments, bound): (&Arguments, &Bound), argument: usize) -> i64 {
    let value = arguments.of(argument).next().and_then(|value| match value {
        Value::Number(number) => Some(number),
        Value::Parameter(parameter) => bound.number(parameter),
    });
    value.unwrap_or(1)
}

fn put_sized(out: &mut BytesMut, bytes: &[u8]) {
    out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.put_slice(bytes);
}

fn put_number(out: &mut BytesMut, kind: NullType, binary: bool, number: i64) {
    match (binary, kind) {
        (true, NullType::Int4) => {
            put_sized(out, &i32::try_from(number).unwrap_or(i32::MAX).to_be_bytes());
        }
        (true, NullType::Int8 | NullType::Timestamptz) => put_sized(out, &number.to_be_bytes()),
        (true, NullType::Text) | (false, _) => {
            put_sized(out, itoa::Buffer::new().format(number).as_bytes());
        }
    }
}

impl Column {
    fn new(column: NullColumn) -> Result<Self, String> {
        let NullColumn { name, kind, value } = column;
        let value = match value {
            NullValue::Fixed(text) => Cell::fixed(kind, text)?,
            _ if kind == NullType::Timestamptz => {
                return Err("a timestamptz is given as a fixed time, not as a number".into());
            }
            NullValue::Argument(argument) => Cell::Argument(argument),
            NullValue::Element => Cell::Element,
            NullValue::RowNumber => Cell::RowNumber,
        };
        Ok(Self { name, kind, value })
    }

    /// The type's id and size.
    const fn wire_type(&self) -> (u32, i16) {
        match self.kind {
            NullType::Int4 => (23, 4),
            NullType::Int8 => (20, 8),
            NullType::Text => (25, -1),
            NullType::Timestamptz => (1184, 8),
        }
    }
}

impl Cell {
    fn fixed(kind: NullType, text: String) -> Result<Self, String> {
        let refuse = |wanted: &str| format!("{text:?} is not {wanted}");
        let binary = match kind {
            NullType::Int4 => {
                let number: i32 = text.parse().map_err(|_| refuse("an int4"))?;
                number.to_be_bytes().to_vec()
            }
            NullType::Int8 => {
                let number: i64 = text.parse().map_err(|_| refuse("an int8"))?;
                number.to_be_bytes().to_vec()
            }
            NullType::Text => text.clone().into_bytes(),
            NullType::Timestamptz => {
                let time: jiff::Timestamp =
                    text.parse().map_err(|_| refuse("a time such as 2026-01-31 12:00:00+00"))?;
                (time.as_microsecond() - EPOCH_US).to_be_bytes().to_vec()
            }
        };
        Ok(Self::Fixed { text: text.into_bytes(), binary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: NullType, value: NullValue) -> NullColumn {
        NullColumn { name: "c".into(), kind, value }
    }

    fn answer(column: NullColumn) -> Result<Answer, AnswerError> {
        let to = NullStatement::Contains("FROM t WHERE a = ".into());
        Answer::new(NullAnswer { to, columns: vec![column], rows: NullRows::Fixed(1) })
    }

    #[test]
    fn a_fixed_value_that_is_not_of_its_type_is_refused_in_words() {
        let wrong = |kind, text: &str| {
            answer(column(kind, NullValue::Fixed(text.into()))).unwrap_err().to_string()
        };
        assert_eq!(
            wrong(NullType::Int4, "9999999999"),
            "column c of the answer to \"FROM t WHERE a = \": \"9999999999\" is not an int4"
        );
        assert!(wrong(NullType::Timestamptz, "now").contains("2026-01-31 12:00:00+00"));
        let number = answer(column(NullType::Timestamptz, NullValue::Element));
        assert!(number.unwrap_err().to_string().contains("fixed time"));
    }

    #[test]
    fn a_time_is_counted_from_the_beginning_of_2000() {
        let Cell::Fixed { binary, .. } =
            Cell::fixed(NullType::Timestamptz, "2000-01-01 00:00:01+00".into()).unwrap()
        else {
            panic!("a fixed value is fixed");
        };
        assert_eq!(binary, 1_000_000_i64.to_be_bytes());
    }

    #[test]
    fn a_fragment_is_found_and_what_follows_it() {
        let answer = answer(column(NullType::Int8, NullValue::Argument(0))).unwrap();
        assert_eq!(answer.after_match(b"SELECT a FROM t WHERE a = 5"), Some(&b"5"[..]));
        assert_eq!(answer.after_match(b"SELECT a FROM t"), None);
    }

    #[test]
    fn a_number_asked_for_as_text_is_written_in_digits() {
        for number in [0, 7, -1, 1_234_567_890, i64::MAX, i64::MIN] {
            let mut out = BytesMut::new();
            put_number(&mut out, NullType::Int8, false, number);
            assert_eq!(out[4..], *number.to_string().as_bytes());
        }
    }
}
