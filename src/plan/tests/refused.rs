use super::{SMALL, load, load_with, small_with};
use crate::plan::{PlanSource, load as load_source};

/// The small plan with one of its lines replaced.
fn changed(line: &str, by: &str) -> String {
    assert!(SMALL.contains(line), "{line}");
    load(&SMALL.replace(line, by)).unwrap_err()
}

#[track_caller]
fn assert_says(error: &str, expected: &str) {
    assert!(error.lines().any(|line| line.contains(expected)), "{expected}\nis not in\n{error}");
}

#[test]
fn every_problem_is_told_at_once_in_the_order_of_the_file() {
    let error = load(
        "name = \"Big Plan\"\nseed = -1\nscale = nan\nlaod = 1\n[budget]\ncap = 5\nguard = 6\n\
         [[configuration]]\nid = \"D1\"\nkind = \"lab\"\n[[stage]]\nname = \"explore\"\n\
         closed = [0]\nwarmup_s = inf\n",
    )
    .unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(
        lines,
        [
            "plan.toml:1: name: found \"Big Plan\", allowed: 1 to 24 lower-case letters, digits and \
             \"-\", the first a letter or digit",
            "plan.toml:2: seed: found -1, allowed: 0 to 9223372036854775807",
            "plan.toml:3: scale: found nan, allowed: a number, 0.0001 to 1 (a share of the full \
             data set)",
            "plan.toml:4: laod: found an unknown key, allowed: name, seed, scale, hold_s, notify, \
             zone, slo, mix, retry, lab, budget, load, configuration, stage; did you mean \"load\"?",
            "plan.toml:7: guard: found 6, allowed: at most the cap, 5"
                .replace("guard", "budget.guard")
                .as_str(),
            "plan.toml:13: stage.explore.closed[0]: found 0, allowed: 1 to 10000 connections",
            "plan.toml:14: stage.explore.warmup_s: found inf, allowed: a number, 0 to 86400 seconds",
        ]
    );
}

#[test]
fn unknown_keys_are_found_at_any_depth() {
    for (text, expected) in [
        ("[slo.read]\np95 = 1\n", "plan.toml:11: slo.read.p95: found an unknown key"),
        ("mesure_s = 1\n", "plan.toml:10: stage.pilot.mesure_s: found an unknown key"),
        ("[retry]\ncap = 1\n", "plan.toml:11: retry.cap: found an unknown key"),
    ] {
        assert_says(&small_with("", text).unwrap_err(), expected);
    }
    let error =
        changed("id = \"D1\"", "id = \"D1\"\ngate = { roundtrip_ms = 1 }\npassword = \"x1y\"");
    assert_says(&error, "plan.toml:6: configuration.D1.gate.roundtrip_ms: found an unknown key");
    assert_says(&error, "did you mean \"round_trip_ms\"?");
    assert_says(&error, "plan.toml:7: configuration.D1.password: found an unknown key");
    assert!(!error.contains("x1y"), "{error}");
}

#[test]
fn wrong_types_and_ranges_are_told_with_what_is_allowed() {
    for (line, by, expected) in [
        ("open = [100]", "open = 100", "stage.pilot.open: found 100, allowed: a list of 1 to 64"),
        ("open = [100]", "open = []", "stage.pilot.open: found a list of 0, allowed"),
        ("open = [100]", "open = [-1]", "open[0]: found -1, allowed: a number, above 0 to 10000"),
        ("open = [100]", "open = [\"x\"]", "open[0]: found \"x\", allowed: a number"),
        ("open = [100]", "closed = [1.5]", "closed[0]: found 1.5, allowed: a whole number, 1 to"),
        ("open = [100]", "", "stage.pilot: found nothing to do, allowed: open"),
        (
            "open = [100]",
            "closed = [1]\nconnections = 3",
            "pilot.connections: found a key that has",
        ),
        ("cap = 10", "cap = -1", "plan.toml:3: budget.cap: found -1, allowed: a decimal number"),
        ("cap = 10", "cap = 0", "budget.cap: found 0, allowed: above 0"),
        ("cap = 10", "cap = inf", "budget.cap: found inf, allowed"),
        ("cap = 10", "", "plan.toml:2: budget.cap: found nothing, allowed: the most"),
        (
            "kind = \"lab\"",
            "kind = \"labs\"",
            "found \"labs\", allowed: \"lab\" or \"postgres\"; did",
        ),
        ("kind = \"lab\"", "kind = 1979-05-27", "kind: found 1979-05-27, allowed"),
        (
            "kind = \"lab\"",
            "kind = \"lab\"\nurl = \"postgres://u@h\"",
            "D1.url: found a key that has no",
        ),
        ("id = \"D1\"", "id = \"\"", "configuration.0.id"),
        ("name = \"pilot\"", "name = \"a b\"", "found \"a b\", allowed: 1 to 24 letters"),
        (
            "[configuration]",
            "[configuration.gate]\njitter = 2\n[configuration]",
            "gate.jitter: found 2",
        ),
    ] {
        let error = changed(line, by).replace("configuration[0]", "configuration.0");
        assert_says(&error, expected);
    }
}

#[test]
fn a_warm_up_longer_than_the_measured_span_is_refused_once() {
    let expected = "found a warm-up of 20 s for a measured span of 5 s, allowed: a warm-up that is \
                    not longer";
    let error = small_with("", "warmup_s = 20\nmeasure_s = 5\n").unwrap_err();
    assert_says(&error, expected);
    assert_says(&error, "plan.toml:10: stage.pilot.warmup_s");
    let error = small_with("", "[load]\nwarmup_s = 20\nmeasure_s = 5\n").unwrap_err();
    assert_says(&error, "plan.toml:11: load.warmup_s");
    assert_eq!(error.lines().count(), 1, "{error}");
    let error = small_with("", "measure_s = 5\n").unwrap_err();
    assert_says(&error, "plan.toml:10: stage.pilot.measure_s: found a warm-up of 10 s");
}

#[test]
fn the_mix_must_add_up() {
    let error = small_with("", "[mix]\norder_create = 30\nproduct_lookup = 60\n").unwrap_err();
    assert_eq!(
        error,
        "plan.toml:10: mix: found 60 + 0 + 30 + 0 = 90 percent, allowed: exactly 100 in all"
    );
    let error = small_with("", "[mix]\norder_create = -30\n").unwrap_err();
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn names_must_be_of_the_plan_and_their_own() {
    let two = SMALL.replace(
        "[configuration]",
        "[[configuration]]\nid = \"R1\"\nkind = \"lab\"\n[[configuration]]",
    );
    let error = load(&format!("{two}configurations = [\"DD1\", \"R1\", \"R1\"]\n")).unwrap_err();
    assert_says(
        &error,
        "stage.pilot.configurations[0]: found \"DD1\", allowed: R1, D1; did you mean \"D1\"?",
    );
    assert_says(&error, "stage.pilot.configurations[2]: found \"R1\" a second time");
    let error = load(&two.replace("\"R1\"", "\"d1\"")).unwrap_err();
    assert_says(&error, "configuration.D1.id: found \"D1\" a second time");
    let error = small_with("", "[[stage]]\nname = \"pilot\"\nclosed = [1]\n").unwrap_err();
    assert_says(&error, "plan.toml:11: stage.pilot.name: found \"pilot\" a second time");
}

#[test]
fn there_are_at_most_eight_configurations() {
    use std::fmt::Write;
    let mut many = SMALL.replace("[configuration]", "[[configuration]]");
    for index in 0..8 {
        write!(many, "[[configuration]]\nid = \"X{index}\"\nkind = \"lab\"\n").unwrap();
    }
    let error = load(&many).unwrap_err();
    assert_says(&error, "configuration: found 9 configurations, allowed: 1 to 8");
}

fn decision(options: &str, safe: &str) -> String {
    let text = format!(
        "[[stage]]\nname = \"ask\"\n[stage.decision]\nquestion = \"?\"\nsafe = \"{safe}\"\n\
         options = [{options}]\n"
    );
    small_with("", &text).unwrap_err()
}

#[test]
fn a_safe_default_exists_and_does_not_go_on_spending() {
    let go = "{ key = \"go\", label = \"on\", action = \"continue\" }";
    let stop = "{ key = \"stop\", label = \"end\", action = \"teardown\" }";
    let error = decision(&format!("{go}, {stop}"), "go");
    assert_says(&error, "plan.toml:14: stage.ask.decision.safe: found \"go\", which goes on");
    assert_says(&error, "allowed: stop");
    let error = decision(&format!("{go}, {stop}"), "sotp");
    assert_says(
        &error,
        "found \"sotp\", which is no option, allowed: stop; did you mean \"stop\"?",
    );
    assert_says(&decision(go, "go"), "of which there is none");
    assert_says(&decision(&format!("{stop}, {stop}"), "stop"), "\"stop\" a second time");
    let without = |ids: &str| {
        format!(
            "{stop}, {{ key = \"w\", label = \"w\", action = \"continue_without\", without = {ids} }}"
        )
    };
    assert_says(&decision(&without("[\"D2\"]"), "w"), "without[0]: found \"D2\", allowed: D1");
    assert_says(&decision(&without("[]"), "w"), "without: found an empty list");
    assert_says(&decision(&without("[\"D1\"]"), "w"), "without: found every configuration");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let error = load("name = \"x\"\nseed = = 3\n").unwrap_err();
    assert_says(&error, "plan.toml:2: not TOML: ");
    let error = load("name = \"x\"\nname = \"y\"\n").unwrap_err();
    assert_says(&error, "plan.toml:2: not TOML: duplicate key");
    assert!(load("url = \"postgres://u:pw@h\n").unwrap_err().lines().all(|l| !l.contains("pw")));
}

#[test]
fn an_empty_plan_is_one_problem() {
    for text in ["", "# nothing\n"] {
        assert!(load(text).unwrap_err().starts_with("plan.toml: found an empty plan, allowed: "));
    }
}

#[test]
fn a_file_that_is_none_is_told_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let complaint = |path: std::path::PathBuf| {
        let error = load_source(PlanSource::File(path.clone()), &[]).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        error
    };
    assert_says(&complaint(folder.path().join("none.toml")), "found no such file");
    assert_says(&complaint(folder.path().to_owned()), "found a directory");
    let huge = folder.path().join("huge.toml");
    std::fs::write(&huge, vec![b'#'; 1024 * 1024 + 1]).unwrap();
    assert_says(&complaint(huge), "found more than 1048576 bytes");
}

#[test]
fn an_overrides_problem_names_set() {
    let says = |text: &str, expected: &str| {
        assert_says(&load_with(SMALL, &[text], &[]).unwrap_err(), expected);
    };
    says("seed=many", "--set: seed: found \"many\", allowed: a whole number, 0 to");
    says("sede=7", "--set: sede: found an unknown key");
    says("stage.pilto.measure_s=5", "--set: stage.pilot.pilto: found an unknown key");
    says("stage.pilot.measure_s=0", "--set: stage.pilot.measure_s: found 0, allowed");
    says("stage.pilot=0", "--set: stage.pilot: found no key of the entry");
    says("name.x=1", "--set: name: found \"small\" in the plan, allowed: a key without parts");
    says("seed", "--set: found no `=`, allowed: --set key=value");
    says("stage.pilot.open.0=7", "--set: stage.pilot.open.0: found 100, allowed: to set the whole");
    let two = format!("{SMALL}[[stage]]\nname = \"explore\"\nclosed = [1]\n");
    let error = load_with(&two, &["stage.exlpore.measure_s=5"], &[]).unwrap_err();
    assert_says(
        &error,
        "--set: stage.exlpore: found no entry \"exlpore\", allowed: pilot, explore; did you mean",
    );
}

#[test]
fn a_misplaced_url_of_the_command_line_is_not_echoed() {
    for text in [
        "postgres://u:s3cret@h/db?sslmode=require",
        "configuration.uri=postgres://u:s3cret@h/db",
        "seed=postgres://u:s3cret@h/db",
        "name=postgres://u:s3cret@h/db",
        "configuration.kind=postgres://u:s3cret@h/db",
        "stage.pilot.open=[\"postgres://u:s3cret@h/db\"]",
        "stage.pilot.configurations=[\"u:s3cret@h\"]",
        "s3cret@h",
    ] {
        let error = load_with(SMALL, &[text], &[]).unwrap_err();
        assert!(!error.contains("s3cret"), "{error}");
        assert!(error.contains("--set"), "{error}");
    }
}
