//! The null endpoint as a driver sees it.

use tokio_postgres::{Client, NoTls};

use super::*;

async fn connect(null: &NullEndpoint) -> Client {
    let settings = format!("host=127.0.0.1 port={} user=t dbname=t", null.addr().port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn a_driver_finds_a_server_in_either_protocol() {
    let null = NullEndpoint::start(NullScript::default()).unwrap();
    let mut client = connect(&null).await;
    client.batch_execute("SELECT 1; INSERT INTO t VALUES (1)").await.unwrap();
    assert!(client.query("SELECT a FROM t", &[]).await.unwrap().is_empty());
    let transaction = client.transaction().await.unwrap();
    let text = "UPDATE t SET a = $1";
    assert_eq!(transaction.execute(text, &[&"a"]).await.unwrap(), 1);
    transaction.rollback().await.unwrap();
    client.batch_execute("").await.unwrap();
    assert_eq!((null.commits(), null.sessions()), (0, 1));
}

#[tokio::test]
async fn a_stall_holds_replies_once_and_the_delay_is_kept() {
    let stall =
        Stall { after_first_query: Duration::from_millis(50), length: Duration::from_millis(400) };
    let reply_delay = Duration::from_millis(5);
    let script = NullScript { reply_delay, stalls: vec![stall], ..NullScript::default() };
    let null = NullEndpoint::start(script).unwrap();
    let client = connect(&null).await;
    let started = Instant::now();
    let mut longest = Duration::ZERO;
    while started.elapsed() < Duration::from_millis(600) {
        let asked = Instant::now();
        client.batch_execute("SELECT 1").await.unwrap();
        assert!(asked.elapsed() >= reply_delay);
        longest = longest.max(asked.elapsed());
    }
    assert!(longest >= Duration::from_millis(300), "{longest:?}");
}

#[tokio::test]
async fn failures_fall_on_one_in_so_many_and_a_transaction_stays_failed() {
    let fail = NullFailure {
        sqlstate: "53000".into(),
        every: 2,
        on: FailOn::Statement,
        reply_delay: None,
    };
    let null =
        NullEndpoint::start(NullScript { fail: Some(fail), ..NullScript::default() }).unwrap();
    let client = connect(&null).await;
    let code = |result: Result<(), tokio_postgres::Error>| {
        result.err().map(|error| error.code().unwrap().code().to_owned())
    };
    assert_eq!(code(client.batch_execute("BEGIN; SELECT 1").await), None);
    assert_eq!(code(client.batch_execute("SELECT 1").await).as_deref(), Some("53000"));
    assert_eq!(code(client.batch_execute("SELECT 1").await).as_deref(), Some("25P02"));
    assert_eq!(code(client.batch_execute("COMMIT").await), None);
    assert_eq!(null.commits(), 0, "a failed transaction is not committed");
    let result = client.execute("SELECT 1", &[]).await;
    assert_eq!(code(result.map(|_| ())), None);
    let result = client.execute("SELECT 1", &[]).await;
    assert_eq!(code(result.map(|_| ())).as_deref(), Some("53000"));
}

#[tokio::test]
async fn a_commit_fails_or_is_cut_as_scripted() {
    let fail =
        NullFailure { sqlstate: "40001".into(), every: 2, on: FailOn::Commit, reply_delay: None };
    let script =
        NullScript { fail: Some(fail), cut_after_commit: Some(2), ..NullScript::default() };
    let null = NullEndpoint::start(script).unwrap();
    let client = connect(&null).await;
    client.batch_execute("BEGIN; COMMIT").await.unwrap();
    let error = client.batch_execute("BEGIN; COMMIT").await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "40001");
    let error = client.batch_execute("BEGIN; COMMIT").await.unwrap_err();
    assert!(error.code().is_none() && client.is_closed(), "{error}");
    assert_eq!(null.commits(), 2);
}
