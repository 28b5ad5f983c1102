use super::{
    file::{parse_key, parse_keys},
    *,
};

fn empty() -> Keymap {
    Keymap { layers: BTreeMap::new() }
}

fn refusal(text: &str) -> String {
    empty().lay_over("my.toml", text).unwrap_err().to_string()
}

fn found<'a>(keymap: &'a Keymap, layer: Layer, keys: &str) -> Lookup<'a> {
    keymap.find(layer, &parse_keys(keys).unwrap())
}

fn of_file(text: &str) -> Result<Keymap, KeymapError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    std::fs::write(&path, text).unwrap();
    Keymap::load(Some(&path))
}

#[test]
fn the_keymaps_that_come_along_are_sound() {
    for name in names() {
        let keymap = Keymap::load(Some(Path::new(name))).unwrap();
        let tmux = parse_key("ctrl-b").unwrap();
        for layer in Layer::ALL {
            assert!(!keymap.layer(layer).is_empty(), "{name} {layer}");
            for row in keymap.layer(layer) {
                assert!(!row.desc.is_empty());
                assert!(!row.keys.contains(&tmux), "{name} {layer}: ctrl-b belongs to tmux");
            }
        }
        assert_eq!(keymap.key_for(Layer::Overview, Action::Teardown).as_deref(), Some("T"));
        assert_eq!(keymap.key_for(Layer::Form, Action::Detach).as_deref(), Some("ctrl-c"));
    }
}

#[test]
fn what_can_be_done_by_default_can_be_done_with_every_keymap() {
    let default = Keymap::named("default").unwrap();
    for name in names() {
        let keymap = Keymap::named(name).unwrap();
        for layer in Layer::ALL {
            for row in default.rows(layer) {
                let key = keymap.key_for(layer, row.action);
                assert!(key.is_some(), "{name} {layer}: no key for {}", row.action.name());
            }
        }
    }
}

#[test]
fn a_key_bound_twice_is_refused_with_its_line() {
    let text = "overview = [\n { on = \"s\", run = \"start\" },\n { on = \"s\", run = \"stop-cell\" },\n]\n";
    assert_eq!(refusal(text), "my.toml:3: key `s` is bound twice in overview");
    let text = "overview = [\n { on = \"g o\", run = \"start\" },\n { on = \"g  o\", run = \"stop-cell\" },\n]\n";
    assert_eq!(refusal(text), "my.toml:3: key `g  o` is bound twice in overview");
}

#[test]
fn unknown_commands_keys_layers_and_columns_are_refused_with_their_line() {
    let row = |row: &str| refusal(&format!("# mine\noverview = [\n{row}\n]\n"));
    let text = row("{ on = \"s\", run = \"explode\" }");
    assert!(text.starts_with("my.toml:3: no command `explode`; overview has "), "{text}");
    let text = row("{ on = \"hyper-s\", run = \"start\" }");
    assert!(text.starts_with("my.toml:3: `hyper-s` is not a key; a key is "), "{text}");
    let text = row("{ on = \"g hyper-s\", run = \"start\" }");
    assert!(text.starts_with("my.toml:3: `hyper-s` is not a key; a key is "), "{text}");
    let text = row("{ on = \"s\", run = \"submit\" }");
    assert!(text.starts_with("my.toml:3: command `submit` means nothing in overview"));
    let text = row("{ on = \"s\", run = \"help\", colour = 1 }");
    assert!(text.starts_with("my.toml:3: unknown field `colour`"), "{text}");
    assert!(refusal("\nzoom = []\n").starts_with("my.toml:2: no layer `zoom`; there are "));
    assert_eq!(refusal("help = \"vim\""), "my.toml:1: `help` is not a name: it is a list");
    assert!(refusal("\n\nhelp = 3").starts_with("my.toml:3: invalid type: integer `3`"));
}

#[test]
fn a_chords_first_key_cannot_be_a_command_too() {
    let alike = |first: &str, second: &str| {
        refusal(&format!(
            "overview = [\n{{ on = \"{first}\", run = \"start\" }},\n{{ on = \"{second}\", run = \"help\" }},\n]"
        ))
    };
    for (first, second) in [("g", "g o"), ("g o", "g"), ("g o", "g o x")] {
        let expected = format!(
            "my.toml:3: `{second}` and the row of line 2 begin alike in overview: the first keys \
             of a chord cannot be a command of their own"
        );
        assert_eq!(alike(first, second), expected);
    }
    assert_eq!(alike("a", ""), "my.toml:3: `` has 0 keys; a chord has 2 to 4");
    assert_eq!(alike("a", "g a b c d"), "my.toml:3: `g a b c d` has 5 keys; a chord has 2 to 4");
    let esc = "my.toml:3: `g esc` has esc in it, which gives a chord up";
    assert_eq!(alike("a", "g esc"), esc);
}

#[test]
fn where_text_is_typed_a_character_is_no_key() {
    for (layer, key, run) in [
        ("palette", "j", "next"),
        ("search", "space", "submit"),
        ("teardown", "g g", "first"),
        ("form", "4", "submit"),
    ] {
        let text = refusal(&format!("{layer} = [{{ on = \"{key}\", run = \"{run}\" }}]"));
        let expected = format!("my.toml:1: `{key}` is typed as text in {layer}: ");
        assert!(text.starts_with(&expected), "{text}");
    }
    let mut keymap = empty();
    keymap.lay_over("my.toml", "palette = [{ on = \"ctrl-j\", run = \"next\" }]").unwrap();
}

#[test]
fn an_operators_file_changes_only_what_it_names() {
    let keymap = of_file(
        "views = [{ on = \"x\", run = \"none\" }, { on = \"s\", run = \"help\" }, { on = \"W\", run = \"rate-double\" }]",
    )
    .unwrap();
    let key = |key| found(&keymap, Layer::Overview, key);
    assert_eq!(key("x"), Lookup::NotFound);
    assert_eq!(key("s"), Lookup::Matched(Action::Help));
    assert_eq!(key("W"), Lookup::Matched(Action::RateDouble));
    assert_eq!(key("p"), Lookup::Matched(Action::PauseResume));
}

#[test]
fn a_file_says_what_it_is_laid_over() {
    let keymap = of_file("base = \"vim\"\nviews = [{ on = \"g o\", run = \"none\" }]").unwrap();
    assert_eq!(found(&keymap, Layer::Overview, "g o"), Lookup::NotFound);
    assert_eq!(found(&keymap, Layer::Overview, "g c"), Lookup::Matched(Action::Compare));
    let refused = of_file("\nbase = \"emacs\"").unwrap_err().to_string();
    assert!(refused.ends_with("my.toml:2: no keymap `emacs`; there are default, vim"), "{refused}");
    let refused = Keymap::load(Some(Path::new("/no/such/file"))).unwrap_err().to_string();
    assert!(refused.starts_with("/no/such/file cannot be read: "), "{refused}");
    assert!(refused.ends_with("; a name is one of default, vim"), "{refused}");
}

#[test]
fn keys_are_matched_pending_or_not_found() {
    let mut keymap = empty();
    let text = "views = [{ on = \"g o\", run = \"overview\" }, { on = \"g l x\", run = \"log\" }, { on = \"s\", run = \"start\" }]\n\
                cells = [{ on = \"g g\", run = \"first\" }, { on = \"s s\", run = \"last\" }]";
    keymap.lay_over("my.toml", text).unwrap();
    let pending = |layer, keys| match found(&keymap, layer, keys) {
        Lookup::Pending(rows) => rows.iter().map(|row| row.text(true)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(pending(Layer::Overview, "g"), ["g o", "g l x"]);
    assert_eq!(pending(Layer::Cells, "g"), ["g g", "g o", "g l x"]);
    assert_eq!(pending(Layer::Cells, "g l"), ["g l x"]);
    assert_eq!(found(&keymap, Layer::Cells, "g g"), Lookup::Matched(Action::First));
    assert_eq!(found(&keymap, Layer::Overview, "g g"), Lookup::NotFound);
    assert_eq!(found(&keymap, Layer::Overview, "s"), Lookup::Matched(Action::StartCell));
    // A view's own chord hides the command of every view on its first key.
    assert_eq!(pending(Layer::Cells, "s"), ["s s"]);
    assert_eq!(found(&keymap, Layer::Form, "g o"), Lookup::NotFound);
}

#[test]
fn a_later_file_may_make_a_command_a_chord_and_the_other_way_round() {
    let mut keymap = empty();
    let lay = |keymap: &mut Keymap, rows: &str| {
        keymap.lay_over("my.toml", &format!("views = [{rows}]")).unwrap();
    };
    lay(&mut keymap, "{ on = \"g\", run = \"log\" }");
    lay(&mut keymap, "{ on = \"g o\", run = \"overview\" }, { on = \"g c\", run = \"compare\" }");
    assert_eq!(found(&keymap, Layer::Log, "g o"), Lookup::Matched(Action::Overview));
    lay(&mut keymap, "{ on = \"g\", run = \"log\" }");
    assert_eq!(found(&keymap, Layer::Log, "g"), Lookup::Matched(Action::Log));
    lay(&mut keymap, "{ on = \"g o\", run = \"overview\" }, { on = \"g c\", run = \"compare\" }");
    // Taking the first key away takes its chords away, also beside new ones of the same file.
    lay(&mut keymap, "{ on = \"g l\", run = \"log\" }, { on = \"g\", run = \"none\" }");
    assert_eq!(found(&keymap, Layer::Log, "g o"), Lookup::NotFound);
    assert_eq!(found(&keymap, Layer::Log, "g l"), Lookup::Matched(Action::Log));
}

#[test]
fn a_capital_is_the_same_with_and_without_shift() {
    let keymap = Keymap::load(None).unwrap();
    for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
        let key = |c| [KeyCombination::one_key(KeyCode::Char(c), modifiers)];
        assert_eq!(keymap.find(Layer::Everywhere, &key('T')), Lookup::Matched(Action::Teardown));
        assert_eq!(keymap.find(Layer::Overview, &key('+')), Lookup::Matched(Action::RateUp));
    }
}
