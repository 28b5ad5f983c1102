//! A plan's TOML as a tree whose every node knows where it was written.

use std::{collections::BTreeMap, ops::Range};

use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

use super::problem::{Place, Problems};

pub(super) type Table = BTreeMap<String, Node>;

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
    /// What was typed on the command line, so that `--set name=7` can be the text `7`.
    pub(super) typed: Option<String>,
}

impl Node {
    /// The text that the value is. What was typed after `--set` is a text whatever it looks like.
    pub(super) fn as_text(&self) -> Option<&str> {
        match (&self.value, &self.typed) {
            (Value::Text(text), _) => Some(text),
            (Value::List(_) | Value::Table(_), _) => None,
            (_, typed) => typed.as_deref(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// Out of the range of `i128` it is that range's nearer end: no key allows so much.
    Integer(i128),
    /// As written, so that money is exact.
    Float(String),
    Boolean(bool),
    Time(String),
    List(Vec<Node>),
    Table(Table),
}

/// The tree of a plan's text; `None` with the problems reported when it is not TOML.
pub(super) fn parse(text: &str, problems: &Problems) -> Option<Node> {
    let lines = Lines::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let place = error.span().map_or(Place::Whole, |span| lines.place(&span));
        // The parser's messages describe the grammar and never quote the file.
        problems.add(place, "", format!("not TOML: {}", error.message()));
    }
    if !errors.is_empty() {
        return None;
    }
    let value = Value::Table(table_of(table.get_ref(), &lines));
    Some(Node { place: Place::Whole, value, typed: None })
}

/// The value of a `--set`: TOML where it is TOML, and text otherwise.
pub(super) fn parse_typed(text: &str) -> Node {
    let everywhere = Lines::everywhere(Place::Set);
    let value = DeValue::parse(text)
        .map_or_else(|_| Value::Text(text.to_owned()), |v| value_of(v.get_ref(), &everywhere));
    Node { place: Place::Set, value, typed: Some(text.to_owned()) }
}

/// Finds the line of a byte.
struct Lines {
    starts: Vec<usize>,
    fixed: Option<Place>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let after_newlines =
            text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Self { starts: std::iter::once(0).chain(after_newlines).collect(), fixed: None }
    }

    const fn everywhere(place: Place) -> Self {
        Self { starts: Vec::new(), fixed: Some(place) }
    }

    fn place(&self, span: &Range<usize>) -> Place {
        self.fixed.unwrap_or_else(|| {
            Place::Line(self.starts.partition_point(|start| *start <= span.start))
        })
    }
}

fn table_of(table: &DeTable<'_>, lines: &Lines) -> Table {
    table
        .iter()
        .map(|(key, value)| {
            let node = Node {
                place: lines.place(&key.span()),
                value: value_of(value.get_ref(), lines),
                typed: None,
            };
            (key.get_ref().clone().into_owned(), node)
        })
        .collect()
}

fn element_of(value: &Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    Node { place: lines.place(&value.span()), value: value_of(value.get_ref(), lines), typed: None }
}

fn value_of(value: &DeValue<'_>, lines: &Lines) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => Value::Integer(integer_of(integer)),
        DeValue::Float(float) => Value::Float(float.as_str().to_owned()),
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(array) => Value::List(array.iter().map(|v| element_of(v, lines)).collect()),
        DeValue::Table(table) => Value::Table(table_of(table, lines)),
    }
}

fn integer_of(integer: &DeInteger<'_>) -> i128 {
    i128::from_str_radix(integer.as_str(), integer.radix())
        .unwrap_or_else(|_| if integer.as_str().starts_with('-') { i128::MIN } else { i128::MAX })
}

impl Value {
    /// What was found, for a message. A text that may hold a secret is not shown.
    pub(super) fn found(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Integer(i128::MIN | i128::MAX) => "a number beyond all bounds".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Float(text) | Self::Time(text) => text.clone(),
            Self::Boolean(boolean) => boolean.to_string(),
            Self::List(list) => format!("a list of {}", list.len()),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// A text in quotes as a message may show it: short, on one line, and not if it looks like
/// something with a password in it.
pub(super) fn quoted(text: &str) -> String {
    if may_hold_a_secret(text) {
        return "a text that is not shown, as it may hold a password,".to_owned();
    }
    const SHOWN: usize = 40;
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

pub(super) fn may_hold_a_secret(text: &str) -> bool {
    text.contains("://") || text.contains('@') || text.to_lowercase().contains("password")
}
