use super::{SMALL, load, load_with};
use crate::{
    model::{ConnectionLife, Load, PasswordSource, PoolShape, RoundTrips, Shape, Statements},
    plan::{Plan, Source, StageKind, to_toml},
};

const TWO: &str = "\
name = \"two\"
[budget]
cap = 10
[load]
open_connections = 8
statements = \"unnamed\"
[load.connections]
open_per_second = 50
max_age_s = 3_000
[[configuration]]
id = \"D1\"
kind = \"lab\"
round_trips = \"pipelined\"
pool = { size = 16, partitions = 4, wait_timeout_ms = 2_000 }
connections = { open_burst = 20, max_age_s = 600 }
[[configuration]]
id = \"R1\"
kind = \"lab\"
statements = \"simple\"
[[stage]]
name = \"main\"
open = [100]
closed = [500]
";

fn shapes(plan: &Plan) -> Vec<Shape> {
    plan.configurations.iter().map(|c| c.shape).collect()
}

#[test]
fn a_configuration_has_what_the_load_says_unless_it_says_otherwise() {
    assert_eq!(shapes(&load(SMALL).unwrap()), [Shape::default()]);
    assert_eq!(load(SMALL).unwrap().configurations[0].life, ConnectionLife::default());
    let plan = load(TWO).unwrap();
    let pool = PoolShape::Pool { size: 16, partitions: 4, wait_timeout_ms: 2_000 };
    assert_eq!(
        shapes(&plan),
        [
            Shape { statements: Statements::Unnamed, round_trips: RoundTrips::Pipelined, pool },
            Shape { statements: Statements::Simple, ..Shape::default() },
        ]
    );
    let life =
        |open_burst, max_age_s| ConnectionLife { open_per_second: 50.0, open_burst, max_age_s };
    assert_eq!(plan.configurations[0].life, life(20, Some(600.0)));
    assert_eq!(plan.configurations[1].life, life(1_000, Some(3_000.0)));
    assert_eq!(load(&to_toml(&plan)).unwrap_or_else(|e| panic!("{e}")), plan);
}

#[test]
fn a_pool_decides_the_connections_of_an_open_loop_and_serves_the_clients_of_a_closed_one() {
    let plan = load(TWO).unwrap();
    let [pooled, plain] = &plan.configurations[..] else { panic!("not two") };
    let StageKind::Cells { levels, .. } = &plan.stages[0].kind else { panic!("a decision") };
    assert_eq!(pooled.shape.applied_to(levels[0]).connections(), 64);
    assert_eq!(plain.shape.applied_to(levels[0]).connections(), 8);
    assert_eq!(pooled.shape.applied_to(levels[1]), Load::Closed { connections: 500 });
    assert_eq!((plan.largest_cell(pooled), plan.largest_cell(plain)), (64, 500));
    // What a stage says must be the pool's, for each configuration in it that has one.
    let says = |connections: &str, which: &str| {
        load(&TWO.replace("closed = [500]", &format!("connections = {connections}\n{which}")))
    };
    let error = says("8", "").unwrap_err();
    assert_eq!(
        error,
        "plan.toml:23: stage.main.connections: found 8, allowed: 64, the connections of D1's pool \
         (16 × 4), or no connections in a stage with it"
    );
    let agreed = says("64", "").unwrap();
    assert_eq!(load(&to_toml(&agreed)).unwrap(), agreed);
    says("8", "configurations = [\"R1\"]").unwrap();
}

#[test]
fn what_is_not_allowed_is_told_with_what_is() {
    for (found, expected) in [
        (
            "statements = \"named\"",
            "statements: found \"named\", allowed: \"prepared\" or \"unnamed\" or \"simple\"",
        ),
        ("round_trips = 2", "round_trips: found 2, allowed: \"sequential\" or \"pipelined\""),
        ("pool = \"16\"", "pool: found \"16\", allowed: \"claim\""),
        (
            "pool = 16",
            "pool: found 16, allowed: \"claim\", or a pool such as { size = 16, partitions = 16 }",
        ),
        (
            "pool = { partitions = 2 }",
            "pool.size: found nothing, allowed: the connections of one partition",
        ),
        ("pool = { size = 16, partition = 2 }", "did you mean \"partitions\"?"),
        (
            "pool = { size = 200, partitions = 200 }",
            "pool: found 200 × 200 = 40000 connections, allowed: at most 10000 in all (load.max_connections)",
        ),
        (
            "pool = { size = 0 }",
            "pool.size: found 0, allowed: 1 to 10000 connections of one partition",
        ),
        (
            "pool = { size = 1, wait_timeout_ms = 0 }",
            "pool.wait_timeout_ms: found 0, allowed: 1 to 3600000 ms",
        ),
        (
            "connections = 16",
            "connections: found 16, allowed: a table with open_per_second, open_burst, max_age_s",
        ),
        (
            "connections = { open_per_second = 0 }",
            "connections.open_per_second: found 0, allowed: a number, above 0 to 100000",
        ),
        (
            "connections = { open_burst = 0 }",
            "connections.open_burst: found 0, allowed: 1 to 100000",
        ),
        (
            "connections = { max_age_s = 0.5 }",
            "connections.max_age_s: found 0.5, allowed: a number, 1 to 604800 seconds",
        ),
    ] {
        let plan = SMALL.replace("kind = \"lab\"", &format!("kind = \"lab\"\n{found}"));
        let error = load(&plan).unwrap_err();
        assert!(
            error.contains(&format!("plan.toml:7: configuration.D1.{expected}"))
                || error.contains(expected),
            "{found}: {error}"
        );
        assert!(error.starts_with("plan.toml:7: configuration.D1."), "{error}");
    }
    let set = ["configuration.D1.pool={ size = 8, partitions = 8 }", "load.max_connections=32"];
    let error = load_with(SMALL, &set, &[]).unwrap_err();
    assert!(
        error.starts_with(
            "--set: configuration.D1.pool: found 8 × 8 = 64 connections, allowed: at most 32"
        ),
        "{error}"
    );
}

#[test]
fn connections_that_would_age_faster_than_new_ones_may_be_opened_are_refused() {
    let plan = |max_age_s: f64| {
        let life = format!(
            "kind = \"lab\"\nconnections = {{ open_per_second = 10, max_age_s = {max_age_s} }}"
        );
        load(&SMALL.replace("kind = \"lab\"", &life).replace("open = [100]", "closed = [256]"))
    };
    // 256 connections at 10 a second take 25.6 s, and they leave at 85 % of their age on average.
    let error = plan(30.0).unwrap_err();
    assert!(
        error.contains("found max_age_s = 30 for D1, whose 256 connections would need 10.0")
            && error.contains("allowed: max_age_s of 30.1 or more"),
        "{error}"
    );
    assert!(plan(30.2).is_ok());
}

const OWN: &str = "\
name = \"own\"
[budget]
cap = 10
[configuration]
id = \"D1\"
kind = \"postgres\"
url = \"postgres://admin@db.example/postgres\"
password_command = [\"token\", \"--region\", \"x 1\"]
password_lifetime_s = 600
[[stage]]
name = \"pilot\"
open = [100]
";

#[test]
fn a_password_command_is_kept_with_the_plan_and_no_password_is() {
    let standard = [("PGPASSWORD", "s3cret")];
    let plan = load_with(OWN, &[], &standard).unwrap();
    let target = |plan: &Plan| match &plan.configurations[0].source {
        Source::Postgres { target, .. } => (**target).clone(),
        Source::Lab { .. } => panic!("a lab"),
    };
    let Some(PasswordSource::Command(command)) = target(&plan).password_source else {
        panic!("no command")
    };
    assert_eq!(command.words, ["token", "--region", "x 1"]);
    assert_eq!(command.lifetime_ms, 600_000);
    assert_eq!(target(&plan).password, None, "the command stands before PGPASSWORD");
    let stored = to_toml(&plan);
    assert!(!stored.contains("s3cret"), "{stored}");
    assert_eq!(load(&stored).unwrap(), plan);
    // A password in the URL stands before the command.
    let url = ["configuration.url=postgres://admin:s3cret@db.example/postgres"];
    let fixed = target(&load_with(OWN, &url, &[]).unwrap());
    assert_eq!((fixed.password_source, fixed.password.unwrap().reveal()), (None, "s3cret"));
}

#[test]
fn a_password_command_goes_alone_and_is_a_list_of_texts() {
    for (from, to, expected) in [
        (
            "password_lifetime_s",
            "password_env = \"P\"\npassword_lifetime_s",
            "configuration.D1.password_env: found a key that has no effect here, allowed: only without password_command",
        ),
        (
            "[\"token\", \"--region\", \"x 1\"]",
            "\"token\"",
            "configuration.D1.password_command: found a value that is not shown, allowed: a list of texts",
        ),
        (
            "[\"token\", \"--region\", \"x 1\"]",
            "[]",
            "configuration.D1.password_command: found an empty list",
        ),
        (
            "= 600",
            "= 5",
            "configuration.D1.password_lifetime_s: found 5, allowed: 10 to 604800 seconds",
        ),
        (
            "password_command = [\"token\", \"--region\", \"x 1\"]\n",
            "",
            "configuration.D1.password_lifetime_s: found a key that has no effect here, allowed: only with password_command or password_token",
        ),
    ] {
        let error = load(&OWN.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let lab = OWN.replace("\"postgres\"\nurl", "\"lab\"\n#");
    assert!(load(&lab).unwrap_err().contains("allowed: only with kind = \"postgres\""));
}

const DSQL: &str = "postgres://admin@abc.dsql.ap-northeast-2.on.aws/postgres";

#[test]
fn a_token_is_for_the_region_and_the_role_that_the_url_names() {
    let with = |url: &str| {
        OWN.replace("postgres://admin@db.example/postgres", url).replace(
            "password_command = [\"token\", \"--region\", \"x 1\"]",
            "password_token = \"dsql\"",
        )
    };
    let token = |url: &str| {
        let plan = load(&with(url)).unwrap();
        assert_eq!(load(&to_toml(&plan)).unwrap(), plan);
        let Source::Postgres { target, .. } = &plan.configurations[0].source else { panic!("lab") };
        match target.password_source.clone() {
            Some(PasswordSource::DsqlToken(token)) => token,
            other => panic!("{other:?}"),
        }
    };
    let admin = token(DSQL);
    assert_eq!(
        (admin.region.as_str(), admin.admin, admin.lifetime_ms),
        ("ap-northeast-2", true, 600_000)
    );
    assert_eq!(admin.host, "abc.dsql.ap-northeast-2.on.aws");
    assert!(!token(&DSQL.replace("admin@", "shop@")).admin);
    assert_eq!(token(&DSQL.replace("dsql.", "dsql-fnh4.")).region, "ap-northeast-2");
    for (url, found) in [
        ("postgres://admin@db.example/postgres".to_owned(), "found it with the host db.example"),
        (format!("{DSQL}?sslmode=disable"), "found it with sslmode=disable"),
    ] {
        let error = load(&with(&url)).unwrap_err();
        assert!(error.contains("configuration.D1.password_token"), "{error}");
        assert!(error.contains(found) && error.contains("CLUSTER.dsql.REGION.on.aws"), "{error}");
    }
    let both = with(DSQL).replace("password_token", "password_env = \"P\"\npassword_token");
    let error = load(&both).unwrap_err();
    assert!(error.contains("only without password_token"), "{error}");
}
