//! Keymap files: TOML, checked row by row; what is refused is refused with its line.

use std::{collections::BTreeMap, fmt, ops::Range};

use crokey::KeyCombination;
use crossterm::event::{KeyCode, KeyModifiers};
use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};
use toml::Spanned;

use super::{
    super::{
        action::{Action, Layer},
        form,
    },
    KeymapError, clash, names, plain,
};

/// What stands for a layer at the top of a file to say what the file is laid over.
const BASE: &str = "base";
/// The most keys that a chord has.
const LONGEST_CHORD: usize = 4;

/// A file that has been checked.
pub(super) struct File {
    /// The name of the keymap that it is laid over.
    pub base: Option<&'static str>,
    pub changes: Vec<Change>,
}

/// A row that has been checked.
pub(super) struct Change {
    pub layer: Layer,
    pub keys: Vec<KeyCombination>,
    /// `None` takes the keys away.
    pub binding: Option<super::Binding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    on: Spanned<String>,
    run: Spanned<String>,
    #[serde(default)]
    desc: String,
    hint: Option<String>,
}

/// What stands at the top of a file. Not an untagged enum: that would lose the places in the text.
enum Entry {
    Name(String),
    Rows(Vec<Row>),
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor;
        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rows, or the name of a keymap after `base`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Entry, E> {
                Ok(Entry::Name(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Entry, A::Error> {
                let mut all = Vec::new();
                while let Some(row) = rows.next_element()? {
                    all.push(row);
                }
                Ok(Entry::Rows(all))
            }
        }
        deserializer.deserialize_any(EntryVisitor)
    }
}

/// Reads a file's text.
///
/// # Errors
/// When it is not TOML, or a row is refused: with the file's name and the line.
pub(super) fn parse(file: &str, text: &str) -> Result<File, KeymapError> {
    let refuse = |at: usize, what: String| KeymapError::Refused {
        file: file.to_owned(),
        line: line_of(text, at),
        what,
    };
    let tables: BTreeMap<Spanned<String>, Spanned<Entry>> =
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span: Range<usize>| span.start);
            refuse(at, error.message().to_owned())
        })?;
    let mut parsed = File { base: None, changes: Vec::new() };
    for (name, entry) in tables {
        let (at, value) = (name.span().start, entry.span().start);
        match (name.get_ref().as_str(), entry.into_inner()) {
            (BASE, Entry::Name(base)) => {
                parsed.base = Some(base_of(&base).map_err(|what| refuse(value, what))?);
            }
            (BASE, Entry::Rows(_)) => {
                let what = format!("`{BASE}` is not a list: it is one of {}", names().join(", "));
                return Err(refuse(value, what));
            }
            (name, entry) => {
                let layer = layer_of(name).map_err(|what| refuse(at, what))?;
                let Entry::Rows(rows) = entry else {
                    return Err(refuse(value, format!("`{name}` is not a name: it is a list")));
                };
                let changes = changes(layer, rows, text);
                parsed.changes.extend(changes.map_err(|(at, what)| refuse(at, what))?);
            }
        }
    }
    Ok(parsed)
}

fn base_of(name: &str) -> Result<&'static str, String> {
    let known = names().into_iter().find(|known| *known == name);
    known.ok_or_else(|| format!("no keymap `{name}`; there are {}", names().join(", ")))
}

fn layer_of(name: &str) -> Result<Layer, String> {
    Layer::ALL.into_iter().find(|layer| layer.name() == name).ok_or_else(|| {
        let known: Vec<_> = Layer::ALL.into_iter().map(Layer::name).collect();
        format!("no layer `{name}`; there are {}, and `{BASE}`", known.join(", "))
    })
}

/// The rows of a layer. What is refused comes with its place in the text.
fn changes(layer: Layer, rows: Vec<Row>, text: &str) -> Result<Vec<Change>, (usize, String)> {
    let mut changes: Vec<(usize, Change)> = Vec::new();
    for row in rows {
        let (at, run) = (row.on.span().start, row.run.span().start);
        let on = row.on.get_ref().clone();
        let keys = parse_keys(&on).map_err(|what| (at, what))?;
        fits(layer, &keys, &on).map_err(|what| (at, what))?;
        if changes.iter().any(|(_, change)| change.keys == keys) {
            return Err((at, format!("key `{on}` is bound twice in {layer}")));
        }
        let binding = check(layer, &keys, row).map_err(|what| (run, what))?;
        let other = changes.iter().find(|(_, change)| {
            change.binding.is_some() && binding.is_some() && clash(&change.keys, &keys)
        });
        if let Some((other, _)) = other {
            let line = line_of(text, *other);
            let what = format!(
                "`{on}` and the row of line {line} begin alike in {layer}: the first keys of a \
                 chord cannot be a command of their own"
            );
            return Err((at, what));
        }
        changes.push((at, Change { layer, keys, binding }));
    }
    Ok(changes.into_iter().map(|(_, change)| change).collect())
}

fn check(
    layer: Layer,
    keys: &[KeyCombination],
    row: Row,
) -> Result<Option<super::Binding>, String> {
    let name = row.run.get_ref();
    if name == "none" {
        return Ok(None);
    }
    let known = || {
        let names: Vec<_> = Action::in_layer(layer).map(Action::name).collect();
        names.join(", ")
    };
    let action = Action::named(name)
        .ok_or_else(|| format!("no command `{name}`; {layer} has {}", known()))?;
    if !action.belongs_in(layer) {
        return Err(format!("command `{name}` means nothing in {layer}, which has {}", known()));
    }
    let desc = if row.desc.is_empty() { action.what().to_owned() } else { row.desc };
    Ok(Some(super::Binding { keys: keys.to_vec(), action, desc, hint: row.hint }))
}

/// Whether keys can be bound where they are typed as text.
fn fits(layer: Layer, keys: &[KeyCombination], on: &str) -> Result<(), String> {
    let Some(KeyCode::Char(c)) = keys.first().map(|key| *key.codes.first()) else { return Ok(()) };
    let control = KeyModifiers::CONTROL | KeyModifiers::ALT;
    let is_text = match layer {
        Layer::Palette | Layer::Search | Layer::Teardown => true,
        Layer::Form => form::is_of_number(c),
        _ => false,
    };
    if is_text && keys[0].modifiers.intersection(control).is_empty() {
        return Err(format!(
            "`{on}` is typed as text in {layer}: a key there is no character, or has ctrl- or alt- \
             before it"
        ));
    }
    Ok(())
}

/// The keys of a row: one, or those of a chord with spaces between them.
pub(super) fn parse_keys(text: &str) -> Result<Vec<KeyCombination>, String> {
    if text.chars().count() == 1 {
        return Ok(vec![parse_key(text)?]);
    }
    let keys: Vec<_> = text.split_whitespace().map(parse_key).collect::<Result<_, _>>()?;
    match keys.len() {
        1 => Ok(keys),
        2..=LONGEST_CHORD if keys.iter().any(|key| *key.codes.first() == KeyCode::Esc) => {
            Err(format!("`{text}` has esc in it, which gives a chord up"))
        }
        2..=LONGEST_CHORD => Ok(keys),
        count => Err(format!("`{text}` has {count} keys; a chord has 2 to {LONGEST_CHORD}")),
    }
}

pub(super) fn parse_key(text: &str) -> Result<KeyCombination, String> {
    let mut characters = text.chars();
    if let (Some(c), None) = (characters.next(), characters.next()) {
        return Ok(plain(KeyCombination::one_key(KeyCode::Char(c), KeyModifiers::NONE)));
    }
    let unknown = || {
        format!(
            "`{text}` is not a key; a key is a character, esc, enter, tab, backtab, space, up, \
             down, left, right, home, end, pageup, pagedown, backspace, delete or f1 to f24, \
             with ctrl- or alt- before it"
        )
    };
    let key: KeyCombination = text.parse().map_err(|_| unknown())?;
    if !key.is_ansi_compatible() {
        return Err(unknown());
    }
    Ok(plain(key))
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
