//! `--set key=value`: values of the command line laid over a plan's tree before it is checked.

use super::{
    problem::{Place, Problems, did_you_mean},
    tree::{self, Node, Table, Value},
};

/// Lays every override over the tree, in order: a later one wins.
pub(super) fn apply(root: &mut Node, overrides: &[String], problems: &Problems) {
    let Value::Table(table) = &mut root.value else { return };
    for key in ["configuration", "stage"] {
        make_list(table, key);
    }
    for text in overrides {
        if let Err((key, complaint)) = apply_one(table, text) {
            problems.add(Place::Set, key, complaint);
        }
    }
    // An override may have made one of them as a table.
    for key in ["configuration", "stage"] {
        make_list(table, key);
    }
}

/// `[configuration]` is a list of one.
fn make_list(table: &mut Table, key: &str) {
    if let Some(node) = table.get_mut(key)
        && matches!(node.value, Value::Table(_))
    {
        let only = node.clone();
        node.value = Value::List(vec![only]);
    }
}

type Complaint = (String, String);

fn apply_one(root: &mut Table, text: &str) -> Result<(), Complaint> {
    const ALLOWED: &str = "allowed: --set key=value with a key such as seed, load.max_rate, \
                           configuration.D1.url or stage.pilot.measure_s";
    let Some((key, value)) = text.split_once('=') else {
        return Err((String::new(), format!("found no `=`, {ALLOWED}")));
    };
    let parts: Vec<&str> = key.trim().split('.').collect();
    if !parts.iter().all(|part| is_plain(part)) {
        // Not shown: it may be a URL whose key was forgotten, and hold a password.
        return Err((String::new(), format!("found something else before the `=`, {ALLOWED}")));
    }
    put_in_table(root, "", &parts, tree::parse_typed(value.trim()))
}

fn put_in_table(
    table: &mut Table,
    path: &str,
    parts: &[&str],
    node: Node,
) -> Result<(), Complaint> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    let path = if path.is_empty() { (*first).to_owned() } else { format!("{path}.{first}") };
    if rest.is_empty() {
        table.insert((*first).to_owned(), node);
        return Ok(());
    }
    let below = table.entry((*first).to_owned()).or_insert_with(|| Node {
        place: Place::Set,
        value: Value::Table(Table::new()),
        typed: None,
    });
    match &mut below.value {
        Value::Table(table) => put_in_table(table, &path, rest, node),
        Value::List(list) => put_in_list(list, &path, rest, node),
        other => {
            let found = other.found();
            Err((path, format!("found {found} in the plan, allowed: a key without parts below it")))
        }
    }
}

/// The next part names an entry by its `id`, `name` or `key`, or by its index; where there is only
/// one entry, the part may be a key of it.
fn put_in_list(list: &mut [Node], path: &str, parts: &[&str], node: Node) -> Result<(), Complaint> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    let labels: Vec<Option<String>> = list.iter().map(label).collect();
    let by_label = labels.iter().position(|l| l.as_deref() == Some(*first));
    let by_index = || first.parse().ok().filter(|i| *i < list.len());
    let (index, rest) = match by_label.or_else(by_index) {
        Some(index) => (index, rest),
        None if list.len() == 1 => (0, parts),
        None => {
            let names: Vec<&str> = labels.iter().flatten().map(String::as_str).collect();
            let hint = did_you_mean(first, names.iter().copied());
            let text = format!("found no entry \"{first}\", allowed: {}{hint}", names.join(", "));
            return Err((format!("{path}.{first}"), text));
        }
    };
    let path = format!("{path}.{}", labels[index].clone().unwrap_or_else(|| index.to_string()));
    match &mut list[index].value {
        Value::Table(table) if !rest.is_empty() => put_in_table(table, &path, rest, node),
        Value::Table(table) => {
            let keys: Vec<&str> = table.keys().map(String::as_str).collect();
            Err((
                path,
                format!("found no key of the entry, allowed: one such as {}", keys.join(", ")),
            ))
        }
        other => Err((path, format!("found {}, allowed: to set the whole list", other.found()))),
    }
}

fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
}

/// What an entry of a list is called, if that can be part of a key.
pub(super) fn label(node: &Node) -> Option<String> {
    let Value::Table(table) = &node.value else { return None };
    ["id", "name", "key"]
        .iter()
        .find_map(|key| table.get(*key)?.as_text().filter(|text| is_plain(text)))
        .map(ToOwned::to_owned)
}
