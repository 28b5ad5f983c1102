//! The lines of the help, made from the live keymap: what counts where it was opened comes first.

use super::{
    action::{Action, Layer},
    keymap::{Binding, Keymap},
    state::HelpPanel,
};

/// A line of the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Heading(&'static str),
    /// All keys of one action, which share a description.
    Keys(Vec<&'a Binding>),
    /// A command of the palette that takes words.
    Command(Action),
    Gap,
}

/// The help as it is opened, only with what it is searched for.
pub(super) fn lines<'a>(keymap: &'a Keymap, panel: &HelpPanel) -> Vec<Line<'a>> {
    let search = panel.search.value().trim().to_lowercase();
    let mut all = Vec::new();
    for (heading, lines) in sections(keymap, panel.from) {
        let found: Vec<_> = lines.into_iter().filter(|line| contains(line, &search)).collect();
        if found.is_empty() {
            continue;
        }
        if !all.is_empty() {
            all.push(Line::Gap);
        }
        all.push(Line::Heading(heading));
        all.extend(found);
    }
    all
}

fn contains(line: &Line<'_>, search: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(search);
    match line {
        Line::Keys(rows) => {
            rows.iter().any(|row| has(&row.desc) || has(row.action.name()) || has(&row.text(true)))
        }
        Line::Command(action) => {
            has(action.name()) || has(action.arguments()) || has(action.what())
        }
        Line::Heading(_) | Line::Gap => true,
    }
}

/// The sections: the layer that the help was opened from, the keys of every view that count in it,
/// `Everywhere`, then what counts elsewhere.
fn sections(keymap: &Keymap, from: Layer) -> Vec<(&'static str, Vec<Line<'_>>)> {
    let own = keymap.layer(from);
    let here: Vec<_> = keymap.rows(from).skip(own.len()).collect();
    let mut sections = vec![
        (from.heading(), grouped(own.iter())),
        (Layer::Views.heading(), grouped(here.iter().copied())),
    ];
    if from != Layer::Everywhere {
        sections
            .push((Layer::Everywhere.heading(), grouped(keymap.layer(Layer::Everywhere).iter())));
    }
    for layer in Layer::ALL {
        match layer {
            Layer::Views => {
                let elsewhere = keymap.layer(layer).iter().filter(|row| !here.contains(row));
                let heading = if here.is_empty() { layer.heading() } else { "In other views" };
                sections.push((heading, grouped(elsewhere)));
            }
            Layer::Everywhere => {}
            layer if layer == from => {}
            layer => sections.push((layer.heading(), grouped(keymap.layer(layer).iter()))),
        }
        if layer == Layer::Palette {
            let commands = Action::with_arguments().map(Line::Command).collect();
            sections.push(("Commands that take words in the palette", commands));
        }
    }
    sections
}

/// A line for each action, in the order of its first key.
fn grouped<'a>(rows: impl Iterator<Item = &'a Binding>) -> Vec<Line<'a>> {
    let mut groups: Vec<Vec<&Binding>> = Vec::new();
    for row in rows {
        let same = |group: &&mut Vec<&Binding>| {
            group.first().is_some_and(|first| first.action == row.action && first.desc == row.desc)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.into_iter().map(Line::Keys).collect()
}
