//! Keys: read from TOML, checked, and looked up by layer. Help and hints are made from here.

use std::{collections::BTreeMap, io, ops::Range, path::Path};

use crokey::{KeyCombination, KeyCombinationFormat};
use crossterm::event::{KeyCode, KeyModifiers};
use serde::Deserialize;
use toml::Spanned;

use super::action::{Action, Layer};

const DEFAULT: &str = include_str!("../../keymaps/default.toml");

/// Why a keymap was refused. The text names the file, the line, what was found and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum KeymapError {
    #[error("{file} cannot be read: {source}")]
    Unreadable { file: String, source: io::Error },
    #[error("{file}:{line}: {what}")]
    Refused { file: String, line: usize, what: String },
}

/// One key of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub key: KeyCombination,
    pub action: Action,
    pub desc: String,
    pub hint: Option<String>,
}

/// The live keymap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keymap {
    layers: BTreeMap<Layer, Vec<Binding>>,
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

/// A row that has been checked; `None` takes a key away.
struct Change {
    layer: Layer,
    key: KeyCombination,
    binding: Option<Binding>,
}

impl Keymap {
    /// The keymap that rampdeck brings, with the operator's file laid over it.
    ///
    /// # Errors
    /// When a file cannot be read or a line of it is refused.
    pub(super) fn load(overlay: Option<&Path>) -> Result<Self, KeymapError> {
        let mut keymap = Self { layers: BTreeMap::new() };
        keymap.lay_over("keymaps/default.toml", DEFAULT)?;
        if let Some(path) = overlay {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|source| KeymapError::Unreadable { file: file.clone(), source })?;
            keymap.lay_over(&file, &text)?;
        }
        Ok(keymap)
    }

    fn lay_over(&mut self, file: &str, text: &str) -> Result<(), KeymapError> {
        for change in parse(file, text)? {
            let rows = self.layers.entry(change.layer).or_default();
            let place = rows.iter().position(|row| row.key == change.key);
            match (place, change.binding) {
                (Some(place), Some(binding)) => rows[place] = binding,
                (Some(place), None) => drop(rows.remove(place)),
                (None, Some(binding)) => rows.push(binding),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// What a key does in a layer, in a view also by the keys of every view; `Everywhere` is not
    /// counted.
    pub(super) fn action(&self, layer: Layer, key: KeyCombination) -> Option<Action> {
        let key = plain(key);
        self.rows(layer).find(|row| row.key == key).map(|row| row.action)
    }

    /// The rows that count in a layer, its own first; of those of every view only what means
    /// something in this one and has not been bound anew.
    pub(super) fn rows(&self, layer: Layer) -> impl Iterator<Item = &Binding> {
        let own = self.layer(layer);
        let views = if layer.is_view() { self.layer(Layer::Views) } else { &[] };
        let views = views.iter().filter(move |row| {
            row.action.belongs_in(layer) && own.iter().all(|known| known.key != row.key)
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
        rows.find(|row| row.action == action).map(|row| key_text(row.key, true))
    }
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

fn parse(file: &str, text: &str) -> Result<Vec<Change>, KeymapError> {
    let refuse = |at: usize, what: String| KeymapError::Refused {
        file: file.to_owned(),
        line: line_of(text, at),
        what,
    };
    let tables: BTreeMap<Spanned<String>, Vec<Row>> = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span: Range<usize>| span.start);
        refuse(at, error.message().to_owned())
    })?;
    let mut changes: Vec<Change> = Vec::new();
    for (name, rows) in tables {
        let layer =
            Layer::ALL.into_iter().find(|l| l.name() == name.get_ref()).ok_or_else(|| {
                let known: Vec<_> = Layer::ALL.into_iter().map(Layer::name).collect();
                let what = format!("no layer `{}`; there are {}", name.get_ref(), known.join(", "));
                refuse(name.span().start, what)
            })?;
        let first = changes.len();
        for row in rows {
            let at = row.on.span().start;
            let key = parse_key(row.on.get_ref()).map_err(|what| refuse(at, what))?;
            if changes[first..].iter().any(|change| change.key == key) {
                let what = format!("key `{}` is bound twice in {layer}", row.on.get_ref());
                return Err(refuse(at, what));
            }
            let run = row.run.span().start;
            let binding = check(layer, key, row).map_err(|what| refuse(run, what))?;
            changes.push(Change { layer, key, binding });
        }
    }
    Ok(changes)
}

fn check(layer: Layer, key: KeyCombination, row: Row) -> Result<Option<Binding>, String> {
    let name = row.run.get_ref();
    if name == "none" {
        return Ok(None);
    }
    let known = || {
        let names: Vec<_> = Action::in_layer(layer).map(|action| action.words().0).collect();
        names.join(", ")
    };
    let action = Action::named(name)
        .ok_or_else(|| format!("no command `{name}`; {layer} has {}", known()))?;
    if !action.belongs_in(layer) {
        return Err(format!("command `{name}` means nothing in {layer}, which has {}", known()));
    }
    let desc = if row.desc.is_empty() { name.replace('-', " ") } else { row.desc };
    Ok(Some(Binding { key, action, desc, hint: row.hint }))
}

fn parse_key(text: &str) -> Result<KeyCombination, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let mut keymap = Keymap { layers: BTreeMap::new() };
        keymap.lay_over("my.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_keymap_that_comes_along_is_sound() {
        let keymap = Keymap::load(None).unwrap();
        for layer in Layer::ALL {
            assert!(!keymap.layer(layer).is_empty(), "{layer}");
            for row in keymap.layer(layer) {
                assert!(!row.desc.is_empty());
            }
        }
        assert_eq!(keymap.key_for(Layer::Overview, Action::Teardown).as_deref(), Some("T"));
        assert_eq!(keymap.key_for(Layer::Form, Action::Detach).as_deref(), Some("ctrl-c"));
    }

    #[test]
    fn a_key_bound_twice_is_refused_with_its_line() {
        let text = "overview = [\n { on = \"s\", run = \"start-cell\" },\n { on = \"s\", run = \"stop-cell\" },\n]\n";
        assert_eq!(refusal(text), "my.toml:3: key `s` is bound twice in overview");
    }

    #[test]
    fn unknown_commands_keys_layers_and_columns_are_refused_with_their_line() {
        let row = |row: &str| refusal(&format!("# mine\noverview = [\n{row}\n]\n"));
        let text = row("{ on = \"s\", run = \"explode\" }");
        assert!(text.starts_with("my.toml:3: no command `explode`; overview has start-cell, "));
        let text = row("{ on = \"hyper-s\", run = \"start-cell\" }");
        assert!(text.starts_with("my.toml:3: `hyper-s` is not a key; a key is "), "{text}");
        let text = row("{ on = \"s\", run = \"submit\" }");
        assert!(text.starts_with("my.toml:3: command `submit` means nothing in overview"));
        let text = row("{ on = \"s\", run = \"help\", colour = 1 }");
        assert!(text.starts_with("my.toml:3: unknown field `colour`"), "{text}");
        assert!(refusal("\nzoom = []\n").starts_with("my.toml:2: no layer `zoom`; there are "));
    }

    #[test]
    fn an_operators_file_changes_only_what_it_names() {
        let mut keymap = Keymap::load(None).unwrap();
        let text = "overview = [{ on = \"x\", run = \"none\" }, { on = \"s\", run = \"help\" }, { on = \"w\", run = \"rate-double\" }]";
        keymap.lay_over("my.toml", text).unwrap();
        let action = |key| keymap.action(Layer::Overview, parse_key(key).unwrap());
        assert_eq!(action("x"), None);
        assert_eq!(action("s"), Some(Action::Help));
        assert_eq!(action("w"), Some(Action::RateDouble));
        assert_eq!(action("p"), Some(Action::PauseResume));
    }

    #[test]
    fn a_capital_is_the_same_with_and_without_shift() {
        let keymap = Keymap::load(None).unwrap();
        for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
            let key = KeyCombination::one_key(KeyCode::Char('T'), modifiers);
            assert_eq!(keymap.action(Layer::Everywhere, key), Some(Action::Teardown));
            let plus = KeyCombination::one_key(KeyCode::Char('+'), modifiers);
            assert_eq!(keymap.action(Layer::Overview, plus), Some(Action::RateUp));
        }
    }
}
