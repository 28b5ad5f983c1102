//! Keys: looked up by layer, alone or as a chord. Help, hints and the README's table are made from
//! here; the files are read by [`file`].

mod file;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, path::Path};

use crokey::{KeyCombination, KeyCombinationFormat};
use crossterm::event::{KeyCode, KeyModifiers};

use self::file::{Change, parse};
use super::action::{Action, Layer};

/// The keymaps that rampdeck brings: name, file, text. The first lies below every other.
const BUILT_IN: [(&str, &str, &str); 2] = [
    ("default", "keymaps/default.toml", include_str!("../../keymaps/default.toml")),
    ("vim", "keymaps/vim.toml", include_str!("../../keymaps/vim.toml")),
];

/// Why a keymap was refused. The text names the file, the line, what was found and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum KeymapError {
    #[error("{file} cannot be read: {source}; a name is one of {names}", names = names().join(", "))]
    Unreadable { file: String, source: io::Error },
    #[error("{file}:{line}: {what}")]
    Refused { file: String, line: usize, what: String },
}

/// The names of the keymaps that rampdeck brings.
pub(super) fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, ..)| *name).collect()
}

/// One key of a layer, or one chord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// One key, or those of a chord in their order.
    pub keys: Vec<KeyCombination>,
    pub action: Action,
    pub desc: String,
    pub hint: Option<String>,
}

impl Binding {
    /// The key as the screen has it; those of a chord with a space between them.
    pub(super) fn text(&self, ascii: bool) -> String {
        keys_text(&self.keys, ascii)
    }
}

/// What keys that were pressed one after the other mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lookup<'a> {
    Matched(Action),
    /// A chord has begun: how it can go on.
    Pending(Vec<&'a Binding>),
    NotFound,
}

/// The live keymap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keymap {
    /// No keys of a layer's row begin with those of another one.
    layers: BTreeMap<Layer, Vec<Binding>>,
}

impl Keymap {
    /// The keymap that rampdeck brings, with one laid over it: by its name, or the operator's file.
    ///
    /// # Errors
    /// When a file cannot be read or a line of it is refused.
    pub(super) fn load(overlay: Option<&Path>) -> Result<Self, KeymapError> {
        let name = overlay.map_or(Some("default"), Path::to_str);
        let built_in = name.and_then(|name| names().into_iter().find(|known| *known == name));
        match (built_in, overlay) {
            (None, Some(path)) => Self::of_file(path),
            (name, _) => Self::named(name.unwrap_or("default")),
        }
    }

    /// A keymap that rampdeck brings.
    ///
    /// # Errors
    /// When a line of it is refused; a test holds that none is.
    pub(super) fn named(name: &str) -> Result<Self, KeymapError> {
        let mut keymap = Self { layers: BTreeMap::new() };
        let (_, below, text) = BUILT_IN[0];
        keymap.lay_over(below, text)?;
        if let Some((_, file, text)) = BUILT_IN[1..].iter().find(|(known, ..)| *known == name) {
            keymap.lay_over(file, text)?;
        }
        Ok(keymap)
    }

    fn of_file(path: &Path) -> Result<Self, KeymapError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| KeymapError::Unreadable { file: file.clone(), source })?;
        let parsed = parse(&file, &text)?;
        let mut keymap = Self::named(parsed.base.unwrap_or("default"))?;
        keymap.take(parsed.changes);
        Ok(keymap)
    }

    fn lay_over(&mut self, file: &str, text: &str) -> Result<(), KeymapError> {
        self.take(parse(file, text)?.changes);
        Ok(())
    }

    /// Takes a file's rows: first what they take away, so that their order does not matter.
    fn take(&mut self, changes: Vec<Change>) {
        let (removed, bound): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.binding.is_none());
        for change in removed {
            let rows = self.layers.entry(change.layer).or_default();
            rows.retain(|row| !row.keys.starts_with(&change.keys));
        }
        for Change { layer, keys, binding } in bound {
            let Some(binding) = binding else { continue };
            let rows = self.layers.entry(layer).or_default();
            let place = rows.iter().position(|row| row.keys == keys);
            match place {
                Some(place) => rows[place] = binding,
                None => {
                    rows.retain(|row| !clash(&row.keys, &keys));
                    rows.push(binding);
                }
            }
        }
    }

    /// What keys mean in a layer, in a view also by the keys of every view; `Everywhere` is not
    /// counted.
    pub(super) fn find(&self, layer: Layer, keys: &[KeyCombination]) -> Lookup<'_> {
        let keys: Vec<_> = keys.iter().copied().map(plain).collect();
        let begun: Vec<_> = self.rows(layer).filter(|row| row.keys.starts_with(&keys)).collect();
        match begun[..] {
            [] => Lookup::NotFound,
            [row] if row.keys == keys => Lookup::Matched(row.action),
            _ => Lookup::Pending(begun),
        }
    }

    /// The rows that count in a layer, its own first; of those of every view only what means
    /// something in this one and has not been bound anew.
    pub(super) fn rows(&self, layer: Layer) -> impl Iterator<Item = &Binding> {
        let own = self.layer(layer);
        let views = if layer.is_view() { self.layer(Layer::Views) } else { &[] };
        let views = views.iter().filter(move |row| {
            row.action.belongs_in(layer) && own.iter().all(|known| !clash(&known.keys, &row.keys))
        });
        own.iter().chain(views)
    }

    /// The rows of a layer, in the order of the file.
    pub(super) fn layer(&self, layer: Layer) -> &[Binding] {
        self.layers.get(&layer).map_or(&[], Vec::as_slice)
    }

    /// The first key that does something in a layer or everywhere, as text.
    pub(super) fn key_for(&self, layer: Layer, action: Action) -> Option<String> {
        let mut rows = self.rows(layer).chain(self.layer(Layer::Everywhere));
        rows.find(|row| row.action == action).map(|row| row.text(true))
    }
}

/// Whether one cannot be told from the beginning of the other.
fn clash(one: &[KeyCombination], other: &[KeyCombination]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Keys as the screen has them, with spaces between them.
pub(super) fn keys_text(keys: &[KeyCombination], ascii: bool) -> String {
    let keys: Vec<_> = keys.iter().map(|key| key_text(*key, ascii)).collect();
    keys.join(" ")
}

/// A key as the screen has it: `s`, `T`, `ctrl-c`, `enter`, an arrow as a word in ASCII mode.
pub(super) fn key_text(key: KeyCombination, ascii: bool) -> String {
    let code = *key.codes.first();
    if let KeyCode::Char(c) = code
        && c != ' '
        && (key.modifiers - KeyModifiers::SHIFT).is_empty()
    {
        return c.to_string();
    }
    let arrow = match code {
        KeyCode::Up => "↑",
        KeyCode::Down => "↓",
        KeyCode::Left => "←",
        KeyCode::Right => "→",
        KeyCode::BackTab => return "shift-tab".to_owned(),
        _ => "",
    };
    if !ascii && !arrow.is_empty() && key.modifiers.is_empty() {
        return arrow.to_owned();
    }
    KeyCombinationFormat::default().to_string(key).to_lowercase()
}

/// Terminals differ in whether they tell shift with a character that has it already.
fn plain(mut key: KeyCombination) -> KeyCombination {
    if let KeyCode::Char(c) = *key.codes.first() {
        key.modifiers.set(KeyModifiers::SHIFT, c.is_uppercase());
    }
    key
}
