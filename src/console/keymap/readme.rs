//! The README's key table is made from the keymaps that come along, and held to them.

use std::{fmt::Write as _, path::Path};

use super::*;

const BEGIN: &str = "<!-- keys -->\n";
const END: &str = "<!-- /keys -->";
/// Set in the environment, the test writes the table into the README instead of holding it to it.
const UPDATE: &str = "RAMPDECK_UPDATE_README";

/// The keys of an action that share a description, as Markdown code.
fn keys(keymap: &Keymap, layer: Layer, action: Action, desc: Option<&str>) -> String {
    let rows = keymap.layer(layer).iter().filter(|row| row.action == action);
    let rows = rows.filter(|row| desc.is_none_or(|desc| row.desc == desc));
    let texts: Vec<_> = rows.map(|row| format!("`{}`", row.text(false))).collect();
    texts.join(" ")
}

/// The table: a row for each action of each layer.
fn table() -> String {
    let (default, vim) = (Keymap::named("default").unwrap(), Keymap::named("vim").unwrap());
    let mut table = "| | Key | With `--keymap vim` | Does |\n|---|---|---|---|\n".to_owned();
    for layer in Layer::ALL {
        let mut done: Vec<(Action, &str)> = Vec::new();
        for row in default.layer(layer) {
            if done.contains(&(row.action, &row.desc)) {
                continue;
            }
            let heading =
                if done.is_empty() { format!("**{}**", layer.heading()) } else { String::new() };
            done.push((row.action, &row.desc));
            let ours = keys(&default, layer, row.action, Some(&row.desc));
            let theirs = keys(&vim, layer, row.action, None);
            let theirs =
                if theirs == keys(&default, layer, row.action, None) { "" } else { &theirs };
            writeln!(table, "| {heading} | {ours} | {theirs} | {} |", row.desc).unwrap();
        }
    }
    table
}

/// What the palette takes, a row for each command with words.
fn commands() -> String {
    let mut table = "| Command | Does |\n|---|---|\n".to_owned();
    for action in Action::with_arguments() {
        let arguments = action.arguments().replace('|', "\\|");
        writeln!(table, "| `:{} {arguments}` | {} |", action.name(), action.what()).unwrap();
    }
    table
}

#[test]
fn the_readme_has_the_keys_as_they_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let begin = readme.find(BEGIN).expect("the README has its marker") + BEGIN.len();
    let end = begin + readme[begin..].find(END).expect("the README has its closing marker");
    let wanted = format!("\n{}\n{}\n", table(), commands());
    if std::env::var_os(UPDATE).is_some() {
        let updated = format!("{}{wanted}{}", &readme[..begin], &readme[end..]);
        return std::fs::write(&path, updated).unwrap();
    }
    assert!(
        readme[begin..end] == wanted,
        "the README's keys are not those of the keymaps; this writes them anew:\n\
         {UPDATE}=1 cargo test --lib the_readme_has_the_keys_as_they_are"
    );
}
