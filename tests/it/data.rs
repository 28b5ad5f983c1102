//! Data without a run: the schema of a configuration, a load that is killed and gone on with, and what
//! is said of it.

use std::{
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::{server::Server, support::Place};

const PLAN: &str = r#"name = "data"
seed = 11
scale = 0.002
[budget]
cap = 1
[[configuration]]
id = "L1"
kind = "lab"
[[configuration]]
id = "DB"
kind = "postgres"
url = "URL"
[[configuration.prices]]
item = "instance"
per = "hour"
price = 3_600
source = "a price that shows within a second"
[[configuration]]
id = "D1"
kind = "postgres"
url = "URL"
dialect = "dsql"
[[stage]]
name = "pilot"
open = [1]
"#;

/// A server, and a place with a plan for it.
struct Shop {
    server: Server,
    place: Place,
    plan: String,
}

impl Shop {
    fn new() -> Self {
        let (server, place) = (Server::start(), Place::new());
        let plan = place.file("data.toml", &PLAN.replace("URL", &server.url()));
        let plan = plan.to_str().unwrap().to_owned();
        Self { server, place, plan }
    }

    fn command(&self, what: &[&str]) -> Command {
        self.place.rampdeck(&[what, &["--plan", &self.plan]].concat())
    }

    fn output(&self, what: &[&str]) -> Output {
        self.command(what).output().unwrap()
    }

    /// The last line of a command that must do its work, as JSON.
    fn said(&self, what: &[&str]) -> Value {
        let output = self.output(what);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{what:?}: {out}{err}");
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }

    fn number(&self, query: &str) -> u64 {
        self.server.query(query)[0].parse().unwrap()
    }

    /// Rows in the chunks that the book of the load has, of all chunks that it will have.
    fn chunks(&self) -> u64 {
        let book = "select to_regclass('rampdeck_data.load_chunks') is not null";
        if self.server.query(book) == ["f"] {
            return 0;
        }
        self.number("select count(*) from rampdeck_data.load_chunks where part !~ ' '")
    }
}

/// Numbers that look random, the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn kill(child: &mut Child) {
    // SIGKILL; one that has ended already is no error.
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_load_that_is_killed_twenty_times_is_exact() {
    let shop = Shop::new();
    let load = ["data", "load", "DB", "--json", "--workers", "2", "--set", "scale=0.01"];
    // How long a load takes here, all of it and its rows alone, says when it can be killed.
    let first = shop.said(&load);
    let (whole, rows) = (first["seconds"].as_f64().unwrap(), first["loading_s"].as_f64().unwrap());
    let (due, all_chunks) = (digests(&shop), shop.chunks());
    let mut dice = Dice(7);
    let (mut kills, mut in_the_middle) = (0, 0);
    while kills < 20 {
        shop.server.query("drop schema rampdeck_data cascade");
        // Several kills of one load, so that what resumes is killed, too: three while rows are loaded
        // (each may load a part of them), one whenever it is.
        for span in [rows * 0.6, rows * 0.6, rows * 0.6, whole] {
            let mut child =
                shop.command(&load).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let share = dice.below(1_000) as f64 / 1_000.0;
            std::thread::sleep(Duration::from_secs_f64(share * span));
            kill(&mut child);
            kills += 1;
            in_the_middle += u32::from((1..all_chunks).contains(&shop.chunks()));
        }
        // The command itself counts and compares checksums, and fails where they differ.
        shop.said(&load);
        assert_eq!(digests(&shop), due, "after {kills} kills");
    }
    assert!(in_the_middle >= 5, "only {in_the_middle} of {kills} kills met rows being loaded");
}

/// Counts and contents of the tables, by another way than the loader's own.
fn digests(shop: &Shop) -> Vec<String> {
    let tables = ["customers", "products", "orders", "order_items", "ledger", "receipts"];
    let digest = |table| {
        let query = format!(
            "select count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 3)::numeric), 0) \
             from rampdeck_data.{table} as t"
        );
        shop.server.query(&query).remove(0)
    };
    tables.into_iter().map(digest).collect()
}

#[test]
fn status_says_what_is_loaded_what_has_grown_and_what_a_fresh_load_takes() {
    let shop = Shop::new();
    let status = ["data", "status", "DB", "--json"];
    let nothing = shop.said(&status);
    assert_eq!((&nothing["is_loaded"], &nothing["tables"]), (&false.into(), &Value::Array(vec![])));

    let progress = shop.output(&["data", "load", "DB"]);
    let told = String::from_utf8_lossy(&progress.stderr).into_owned();
    assert!(told.contains("loading: ") && told.contains("USD "), "{told}");
    let loaded = shop.said(&status);
    assert_eq!(loaded["is_loaded"], true);
    let counts = [("customers", 2_000), ("products", 400), ("orders", 22_000)];
    let counts = counts.into_iter().chain([("order_items", 55_000), ("ledger", 22_000)]);
    for ((table, rows), said) in counts.zip(loaded["tables"].as_array().unwrap()) {
        assert_eq!(shop.number(&format!("select count(*) from rampdeck_data.{table}")), rows);
        assert_eq!(said["table"], table);
        assert_eq!(
            (&said["due"], &said["loaded"], &said["grown"]),
            (&rows.into(), &rows.into(), &0.into())
        );
    }
    assert_eq!(loaded["growth_percent"], 0.0);
    let seconds = loaded["fresh_load"]["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds} s");
    // A dollar each second.
    let usd: f64 = loaded["fresh_load"]["usd"].as_str().unwrap().parse().unwrap();
    assert!((usd - seconds).abs() < 1e-3, "{usd} USD for {seconds} s");

    // What a cell writes: ids beyond the load's, receipts.
    shop.server.query(
        "insert into rampdeck_data.orders select 1000000 + n, 1, 'placed', 1, now() \
         from generate_series(1, 1000) as n",
    );
    shop.server
        .query("insert into rampdeck_data.receipts values ('r.1', 'create', 1000001, now())");
    shop.server.query("delete from rampdeck_data.ledger where order_id = 5");
    let grown = shop.said(&status);
    let of = |table: usize, what: &str| grown["tables"][table][what].as_u64().unwrap();
    assert_eq!((of(2, "loaded"), of(2, "grown"), of(5, "grown")), (22_000, 1_000, 1));
    assert_eq!((of(4, "due"), of(4, "loaded")), (22_000, 21_999));
    let percent = grown["growth_percent"].as_f64().unwrap();
    assert!((percent - 100.0 * 1_001.0 / 101_400.0).abs() < 1e-9, "{percent}");

    // A second load looks, and does not take what has changed for what it loaded.
    let again = shop.output(&["data", "load", "DB"]);
    assert_eq!(again.status.code(), Some(1));
    let words = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(words.contains("table orders") && words.contains("23000"), "{words}");
}

#[test]
fn a_database_with_tables_of_others_is_left_alone() {
    let shop = Shop::new();
    shop.server.query("create schema rampdeck_data; create table rampdeck_data.orders (id int)");
    let output = shop.output(&["data", "load", "DB"]);
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("already holds the table orders"), "{words}");
    assert_eq!(shop.number("select count(*) from pg_tables where schemaname = 'rampdeck_data'"), 1);
}

#[test]
fn the_schema_of_each_configuration_is_in_its_dialect() {
    let shop = Shop::new();
    let schema = |id| {
        let output = shop.output(&["schema", id]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let dsql = schema("D1");
    assert!(dsql.contains("CREATE INDEX ASYNC ledger_order"), "{dsql}");
    assert!(dsql.contains("sys.wait_for_job(") && dsql.contains("indisvalid"), "{dsql}");
    for id in ["DB", "L1"] {
        let text = schema(id);
        assert!(!text.contains("ASYNC") && text.contains("ADD PRIMARY KEY"), "{text}");
    }
    // What is printed makes the tables.
    shop.server.query(&schema("DB"));
    assert_eq!(shop.number("select count(*) from pg_tables where schemaname = 'rampdeck_data'"), 7);
    let absent = shop.output(&["schema", "R9"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("L1, DB, D1"));
    let lab = shop.output(&["data", "status", "L1"]);
    assert_eq!(lab.status.code(), Some(2), "{}", String::from_utf8_lossy(&lab.stderr));
}
