use std::path::PathBuf;

use super::load_with;
use crate::{
    model::{Dialect, TargetAddress, TargetSpec, TlsMode},
    plan::{Source, to_toml},
};

const PLAN: &str = "\
name = \"pg\"
budget = { cap = 1 }
[configuration]
id = \"DB\"
kind = \"postgres\"
[[stage]]
name = \"pilot\"
open = [1]
";

/// What a URL is read as: the stored form and the target.
fn read(url: &str, environment: &[(&str, &str)]) -> Result<(String, TargetSpec), String> {
    let plan = load_with(PLAN, &[&format!("configuration.url={url}")], environment)?;
    match plan.configurations.into_iter().next().unwrap().source {
        Source::Postgres { url, target } => Ok((url, *target)),
        Source::Lab { .. } => panic!("a lab"),
    }
}

fn tcp(host: &str, port: u16) -> TargetAddress {
    TargetAddress::Tcp { host: host.to_owned(), port, hostaddr: None }
}

#[test]
fn a_url_is_read_into_a_target_and_stored_without_its_password() {
    let (url, target) = read("postgres://me:p%40ss%2F@db.example:6000/my%20shop", &[]).unwrap();
    assert_eq!(url, "postgres://me@db.example:6000/my%20shop?sslmode=verify-full");
    assert_eq!(target.address, tcp("db.example", 6000));
    assert_eq!((target.user.as_str(), target.database.as_str()), ("me", "my shop"));
    assert_eq!(target.password.unwrap().reveal(), "p@ss/");
    assert_eq!(target.tls, TlsMode::Verified { ca_file: None });
    assert_eq!((target.schema.as_str(), target.application_name.as_str()), ("", "rampdeck"));
    assert_eq!(target.connect_timeout_ms, 10_000);
}

#[test]
fn a_database_speaks_postgresql_unless_the_plan_says_dsql() {
    let url = "configuration.url=postgres://me@db.example";
    let plan = load_with(PLAN, &[url], &[]).unwrap();
    assert_eq!(plan.configurations[0].source.dialect(), Dialect::Postgres);
    let plan = load_with(PLAN, &[url, "configuration.dialect=dsql"], &[]).unwrap();
    assert_eq!(plan.configurations[0].source.dialect(), Dialect::Dsql);
    let again = load_with(&to_toml(&plan), &[], &[]).unwrap();
    assert_eq!(again.configurations[0].source.dialect(), Dialect::Dsql);
    let error = load_with(PLAN, &[url, "configuration.dialect=mysql"], &[]).unwrap_err();
    assert!(error.contains("dialect: found \"mysql\", allowed: \"postgres\""), "{error}");
    let lab = PLAN.replace("\"postgres\"", "\"lab\"\ndialect = \"dsql\"");
    let error = load_with(&lab, &[], &[]).unwrap_err();
    assert!(error.contains("dialect"), "{error}");
}

#[test]
fn what_a_url_leaves_out_has_defaults() {
    let (_, target) = read("postgresql://me@db.example", &[]).unwrap();
    assert_eq!(target.address, tcp("db.example", 5432));
    assert_eq!(target.database, "me");
    assert_eq!(target.password, None);
}

#[test]
fn loopback_and_unix_sockets_are_plain_unless_told_otherwise() {
    for (url, address) in [
        ("postgres://me@localhost/d", tcp("localhost", 5432)),
        ("postgres://me@127.0.0.5:1/d", tcp("127.0.0.5", 1)),
        ("postgres://me@[::1]:7/d", tcp("::1", 7)),
        (
            "postgres://me@%2Frun%2Fpg:6/d",
            TargetAddress::Unix { directory: PathBuf::from("/run/pg"), port: 6 },
        ),
        (
            "postgres://me@/d?host=/run/pg",
            TargetAddress::Unix { directory: PathBuf::from("/run/pg"), port: 5432 },
        ),
        ("postgres://me@/d?host=db&sslmode=disable", tcp("db", 5432)),
    ] {
        let (stored, target) = read(url, &[]).unwrap_or_else(|e| panic!("{url}: {e}"));
        assert_eq!((target.tls.clone(), &target.address), (TlsMode::Off, &address), "{url}");
        assert_eq!(read(&stored, &[]).unwrap(), (stored.clone(), target), "{url}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let (_, target) = read(&format!("postgres://me@localhost/d?sslmode={mode}"), &[]).unwrap();
        assert_eq!(target.tls, TlsMode::Verified { ca_file: None });
    }
    let (_, target) = read("postgres://me@[2001:db8::1]/d", &[]).unwrap();
    assert_eq!(target.tls, TlsMode::Verified { ca_file: None });
}

#[test]
fn a_root_certificate_must_be_there_and_turns_tls_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "x").unwrap();
    let url = format!("postgres://me@localhost/d?sslrootcert={}", file.display());
    let (stored, target) = read(&url, &[]).unwrap();
    assert_eq!(target.tls, TlsMode::Verified { ca_file: Some(file) });
    assert_eq!(read(&stored, &[]).unwrap().1, target);
    let error = read("postgres://me@localhost/d?sslrootcert=/no/such.pem", &[]).unwrap_err();
    assert!(error.contains("no readable file for sslrootcert"), "{error}");
}

#[test]
fn what_a_url_must_not_have_is_told_without_the_url() {
    for (url, expected) in [
        ("mysql://me:s3cret@h/d", "allowed: postgres:// or postgresql://"),
        ("postgres://h/d", "found no user"),
        ("postgres://:s3cret@h/d", "found no user"),
        ("postgres://me:s3cret@/d", "found no host"),
        ("postgres://me:s3/cret@h/d", "found an @ after the host"),
        ("postgres://me:s3?cret@h/d", "found an @ after the host"),
        ("postgres://me:s3#cret@h/d", "found a # in the URL"),
        ("postgres://me:s3 cret@h/d", "found a blank in the URL"),
        ("postgres://me:s3%cret@h/d", "found a lone % in the password"),
        ("postgres://me:s3%ff@h/d", "found a password that is not text in UTF-8"),
        ("postgres://me:s3cret", "found no user"),
        ("postgres://me@h:s3cret/d", "found a port that is not allowed, allowed: 1 to 65535"),
        ("postgres://me@h:0/d", "found a port that is not allowed"),
        ("postgres://me@h:70000/d", "found a port that is not allowed"),
        ("postgres://me@::1/d", "in brackets"),
        ("postgres://me@[::g]/d", "found no IPv6 address"),
        ("postgres://me@a,b/d", "found several hosts"),
        ("postgres://me@a:1,b:2/d", "found a port that is not allowed"),
        ("postgres://me@h/d/e", "found a path of several parts"),
        ("postgres://me@h/d?host=/run", "found a host and the parameter"),
        ("postgres://me@h/d?sslmode=prefer", "may send the password and data unencrypted"),
        ("postgres://me@h/d?sslmode=allow", "may send the password and data unencrypted"),
        ("postgres://me@h/d?sslmode=on", "found an sslmode that is not known"),
        (
            "postgres://me@h/d?sslmode=disable&sslrootcert=x",
            "found sslrootcert with sslmode=disable",
        ),
        ("postgres://me@/d?host=/run&sslmode=require", "TLS asked for on a Unix socket"),
        ("postgres://me@h/d?ssl_mode=disable", "did you mean \"sslmode\"?"),
        ("postgres://me@h/d?password=s3cret", "found the parameter \"password\", allowed: sslmode"),
        ("postgres://me@h/d?s3cret", "found a parameter that is not known"),
        ("postgres://me@h/d?connect_timeout=0", "allowed: 1 to 3600 seconds"),
        ("postgres://me@h/d?sslmode=", "without a value"),
        ("postgres://me@h/d?host=a&host=b", "twice"),
    ] {
        let error = read(url, &[]).unwrap_err();
        assert!(error.starts_with("--set: configuration.DB.url: "), "{error}");
        assert!(error.contains(expected), "{url}: {error}");
        assert!(!error.contains("s3cret") && !error.contains("cret@"), "{error}");
    }
}

#[test]
fn a_password_comes_from_the_url_then_the_named_variable_then_the_standard_one() {
    let named = PLAN.replace("kind", "password_env = \"SHOP_PW\"\nkind");
    let password = |plan: &str, url: &str, environment: &[(&str, &str)]| {
        let plan = load_with(plan, &[&format!("configuration.url=postgres://{url}")], environment)?;
        match &plan.configurations[0].source {
            Source::Postgres { target, .. } => {
                Ok(target.password.as_ref().map(|p| p.reveal().to_owned()))
            }
            Source::Lab { .. } => panic!("a lab"),
        }
    };
    let both = [("SHOP_PW", "named"), ("PGPASSWORD", "standard")];
    assert_eq!(password(&named, "u:url@h", &both), Ok(Some("url".to_owned())));
    assert_eq!(password(&named, "u@h", &both), Ok(Some("named".to_owned())));
    assert_eq!(password(PLAN, "u@h", &both), Ok(Some("standard".to_owned())));
    assert_eq!(password(PLAN, "u@h", &[]), Ok(None));
    let error: String = password(&named, "u@h", &[]).unwrap_err();
    assert!(error.contains("configuration.DB.password_env: found a variable that is not set"));
    for key in ["password_env", "password_file"] {
        for misplaced in ["\"s3cret\"", "314159", "[\"s3cret\"]"] {
            let plan = PLAN.replace("kind", &format!("{key} = {misplaced}\nkind"));
            let error: String = password(&plan, "u@h", &[]).unwrap_err();
            assert!(!error.contains("s3cret") && !error.contains("314159"), "{error}");
        }
    }
}
