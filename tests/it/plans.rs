//! Plans that are wrong: one message, nothing started.

use crate::support::Place;

const GOOD: &str = r#"name = "good"
[budget]
cap = 10
guard = 9
[[configuration]]
id = "D1"
title = "one"
kind = "lab"
[[stage]]
name = "pilot"
open = [100]
warmup_s = 1
measure_s = 2
"#;

/// Each: what is replaced, by what, and what the message must say.
const WRONG: &[(&str, &str, &[&str])] = &[
    ("guard = 9", "gard = 9", &[":4:", "gard", "guard"]),
    ("open = [100]", "open = [100]\nconfigurations = [\"D2\"]", &["D2", "D1"]),
    ("measure_s = 2", "measure_s = -2", &[":13:", "measure_s", "-2"]),
    ("measure_s = 2", "measure_s = nan", &[":13:", "measure_s", "nan"]),
    ("open = [100]", "open = [inf]", &[":11:", "open", "inf"]),
    ("open = [100]", "closed = [0]", &[":11:", "closed", "found 0", "1 to"]),
    ("warmup_s = 1", "warmup_s = 3", &[":12:", "warmup_s", "3"]),
    (
        "[budget]",
        "[mix]\nproduct_lookup = 40\norder_history = 30\norder_create = 20\norder_cancel = 20\n[budget]",
        &["mix", "110", "100"],
    ),
    ("title = \"one\"", "title = one", &[":7:"]),
    ("guard = 9", "guard = 11", &["guard", "11", "10"]),
];

#[test]
fn every_wrong_plan_gets_a_message_with_its_place_and_starts_nothing() {
    let place = Place::new();
    for (good, wrong, said) in WRONG {
        let text = GOOD.replace(good, wrong);
        assert_ne!(&text, GOOD);
        let file = place.file("wrong.toml", &text);
        for arguments in [
            vec!["run", file.to_str().unwrap(), "--headless"],
            vec!["plan", "check", file.to_str().unwrap()],
        ] {
            let output = place.output(&arguments);
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{wrong}: {message}");
            for part in *said {
                assert!(message.contains(part), "{wrong}: `{part}` is not in: {message}");
            }
        }
    }
    let good = place.file("good.toml", GOOD);
    let output = place.output(&["plan", "check", good.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(place.newest_run().is_none(), "nothing was started");
    place.assert_nothing_left();
}

#[test]
fn a_file_that_cannot_be_read_as_a_plan_is_named() {
    let place = Place::new();
    let utf16 = place.path("utf16.toml");
    std::fs::write(&utf16, b"\xff\xfen\0a\0m\0e\0").unwrap();
    let latin = place.path("latin.toml");
    std::fs::write(&latin, b"name = \"caf\xe9\"").unwrap();
    let missing = place.path("missing.toml");
    let folder = place.path("lab");
    for (path, said) in
        [(&utf16, "UTF-16"), (&latin, "UTF-8"), (&missing, "missing.toml"), (&folder, "lab")]
    {
        let output = place.output(&["run", path.to_str().unwrap(), "--headless"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn wrong_usage_ends_with_two_and_help_with_zero() {
    let place = Place::new();
    for (arguments, code) in [
        (vec!["no-such-command"], 2),
        (vec!["rehearse", "--require", "fail"], 2),
        (vec!["rehearse", "--headless", "--answer", "nonsense"], 2),
        (vec!["--help"], 0),
        (vec!["rehearse", "--help"], 0),
        (vec!["--version"], 0),
    ] {
        let output = place.output(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
    for command in ["rehearse", "run", "attach", "status", "stop", "teardown", "verify", "runs"] {
        let help = place.output(&[command, "--help"]);
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(text.contains("Example: rampdeck"), "{command}: {text}");
    }
    let full = place.path("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("precious"), "").unwrap();
    let output = place.output(&["rehearse", "--headless", "--out", full.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("precious"));
}
