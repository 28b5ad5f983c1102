//! The rooms' boundaries: what each may import, held by reading the sources.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Each room and the rooms it may know, as ARCHITECTURE.md draws them.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("plan", &["model"]),
    ("aws", &["model"]),
    ("target", &["model", "aws"]),
    ("workload", &["model", "target"]),
    ("load", &["model", "link", "target", "workload"]),
    ("wire", &["model"]),
    ("provider", &["model", "plan", "target"]),
    ("cost", &["model", "plan"]),
    ("link", &["model"]),
    ("console", &["model", "link"]),
    ("report", &["model"]),
    (
        "engine",
        &[
            "model", "plan", "target", "workload", "load", "wire", "provider", "cost", "link",
            "report",
        ],
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a source names after `crate::`, in `use` lists and in paths.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find("crate::") {
        rest = &rest[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            rooms.extend(top_level_names(list));
        } else {
            rooms.insert(first_name(rest));
        }
    }
    rooms
}

fn first_name(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first name of each entry of a `{…}` list, nested lists skipped.
fn top_level_names(list: &str) -> Vec<String> {
    let (mut depth, mut names, mut fresh) = (0, Vec::new(), true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if depth == 0 && fresh && !c.is_whitespace() => {
                names.push(first_name(&list[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn no_room_imports_what_it_may_not_know() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all: BTreeSet<&str> = MAY_KNOW.iter().map(|(room, _)| *room).chain(["cli"]).collect();
    let (mut files, mut wrong, mut looked) = (Vec::new(), Vec::new(), 0);
    sources(&src, &mut files);
    for file in files {
        let within = file.strip_prefix(&src).unwrap();
        let room = within.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some((_, allowed)) = MAY_KNOW.iter().find(|(name, _)| *name == room) else {
            assert!(
                ["cli", "lib", "main", "build"].contains(&room),
                "{} is in no room: add it to ARCHITECTURE.md and here",
                within.display()
            );
            continue;
        };
        looked += 1;
        for named in rooms_named(&fs::read_to_string(&file).unwrap()) {
            let known = named == room || allowed.contains(&named.as_str());
            if all.contains(named.as_str()) && !known {
                wrong.push(format!("{} imports {named}", within.display()));
            }
        }
    }
    assert!(looked > 30, "only {looked} files were looked at");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_boundary_test_sees_each_way_of_naming_a_room() {
    let text = "use crate::{\n    model::{A, engine},\n    plan,\n};\nuse crate::load::X; let a = crate::wire::gate();";
    let named: Vec<String> = rooms_named(text).into_iter().collect();
    assert_eq!(named, ["load", "model", "plan", "wire"]);
}
