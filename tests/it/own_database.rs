//! A database of one's own: measured, judged, and left as it was.

use crate::{
    contract,
    server::{PASSWORD, Server},
    support::{Place, json},
};

const QUICK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/quick.toml");
const SHORT: &[&str] = &[
    "--headless",
    "--set",
    "load.warmup_s=1",
    "--set",
    "load.measure_s=3",
    "--set",
    "scale=0.002",
];

#[test]
fn a_database_of_ones_own_is_measured_and_left_as_it_was() {
    let server = Server::start();
    server.query(
        "create schema shop; create table shop.mine (id int); insert into shop.mine values (1)",
    );
    server.query("create table public.orders (id int)");
    let place = Place::new();
    let out = place.path("out");
    let set = format!("configuration.url={}", server.url());
    let arguments =
        [&["run", QUICK, "--out", out.to_str().unwrap(), "--set", &set], SHORT].concat();
    let mut run = place.headless(&arguments);
    assert_eq!(run.end(), 0);
    run.wait("the schema made", |line| {
        line["event"] == "resource_made" && line["resource"]["kind"] == "schema"
    });
    let summary = json(&out.join("summary.json"));
    contract::assert_holds(&summary);
    let cells = contract::cells(&summary);
    assert!(cells.len() >= 2);
    for cell in cells {
        contract::assert_invariants(cell);
    }
    assert_eq!(summary["run"]["rehearsal"], false, "nothing is added to one's own database");
    assert_eq!(
        server.query("select nspname from pg_namespace where nspname !~ '^pg_|^information_schema$' order by 1"),
        ["public", "shop"]
    );
    assert_eq!(server.query("select count(*) from shop.mine"), ["1"]);
    assert_eq!(server.query("select count(*) from pg_class where relname = 'orders'"), ["1"]);
    for file in ["plan.toml", "journal.jsonl", "engine.log", "summary.json"] {
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        for secret in [PASSWORD, "rehearse%20me"] {
            assert!(!text.contains(secret), "the password is in {file}");
        }
    }
    place.assert_nothing_left();
}

#[test]
fn a_lost_engine_leaves_its_schema_to_be_found_and_removed() {
    let server = Server::start();
    let place = Place::new();
    let set = format!("configuration.url={}", server.url());
    let arguments = [&["run", QUICK, "--set", &set], SHORT].concat();
    let run = place.headless(&arguments);
    run.wait("a measuring cell", |line| line["state"] == "measure");
    let started = run.event("run_started");
    let (name, pid) = (started["run"].as_str().unwrap().to_owned(), started["pid"].to_string());
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());

    // Without the password the schema can be neither seen nor removed: that is said, not passed over.
    let blind = place.output(&["teardown", &name, "--yes"]);
    assert_eq!(blind.status.code(), Some(4), "{}", String::from_utf8_lossy(&blind.stdout));
    let mut seeing = place.rampdeck(&["teardown", &name, "--yes"]);
    let seeing = seeing.env("PGPASSWORD", PASSWORD).output().unwrap();
    assert_eq!(seeing.status.code(), Some(0), "{}", String::from_utf8_lossy(&seeing.stdout));
    assert_eq!(server.query("select count(*) from pg_namespace where nspname ~ 'rampdeck'"), ["0"]);
    place.assert_nothing_left();
}

#[test]
fn a_password_that_a_command_prints_serves_the_whole_run_and_its_removal() {
    let server = Server::start();
    let place = Place::new();
    let (out, runs) = (place.path("out"), place.path("runs"));
    let script =
        place.file("token", &format!("echo run >> '{}'\necho '{PASSWORD}'\n", runs.display()));
    let plan = std::fs::read_to_string(QUICK).unwrap().replace(
        "kind = \"postgres\"",
        &format!(
            "kind = \"postgres\"\npassword_command = [\"sh\", \"{}\"]\n\
             statements = \"unnamed\"\npool = {{ size = 2, partitions = 3 }}",
            script.display()
        ),
    );
    let plan = place.file("own.toml", &plan.replace("connections = 8", ""));
    let set = format!("configuration.url={}", server.url_without_password());
    let out_text = out.to_str().unwrap();
    let arguments =
        [&["run", plan.to_str().unwrap(), "--out", out_text, "--set", &set], SHORT].concat();
    let mut run = place.headless(&arguments);
    assert_eq!(run.end(), 0, "{:?}", run.lines());
    let summary = json(&out.join("summary.json"));
    let cells = contract::cells(&summary);
    assert_eq!(cells.len(), 2, "{summary}");
    for cell in cells {
        contract::assert_invariants(cell);
        let shape = &cell["conditions"]["shape"];
        assert_eq!((&shape["statements"], &shape["pool"]["size"]), (&"unnamed".into(), &2.into()));
        if cell["load"]["kind"] == "open" {
            assert_eq!(cell["load"]["connections"], 6, "those of the pool: {}", cell["load"]);
        }
    }
    // Once in each process that needed it: the engine and the load agent.
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 2);
    for file in ["plan.toml", "journal.jsonl", "engine.log", "summary.json"] {
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(!text.contains(PASSWORD), "the password is in {file}");
    }
    // Without an engine the stored plan says how to look again.
    let name = run.event("run_started")["run"].as_str().unwrap().to_owned();
    let verify = place.output(&["verify", &name]);
    assert_eq!(verify.status.code(), Some(0), "{}", String::from_utf8_lossy(&verify.stdout));
    place.assert_nothing_left();
}

#[test]
fn a_database_that_cannot_be_reached_is_said_and_nothing_is_left() {
    let place = Place::new();
    let server = Server::start();
    let set = format!("configuration.url={}", server.url_without_password());
    let arguments = [&["run", QUICK, "--set", &set], SHORT].concat();
    let mut run = place.headless(&arguments);
    assert_eq!(run.end(), 1);
    let text = format!("{:?}", run.lines());
    assert!(text.contains("password"), "{text}");
    place.assert_nothing_left();
}
