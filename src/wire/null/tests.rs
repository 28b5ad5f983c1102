//! The null endpoint as a driver sees it.

use std::time::Instant;

use tokio_postgres::{Client, NoTls, SimpleQueryMessage, types::Type};

use super::*;
use crate::model::{NullColumn, NullRows, NullStatement, NullType, NullValue};

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

fn column(name: &str, kind: NullType, value: NullValue) -> NullColumn {
    NullColumn { name: name.into(), kind, value }
}

/// Two rows for each element of the list, and the one row of a single id.
fn with_rows() -> NullScript {
    let answer = |text: &str, columns, rows| NullAnswer {
        to: NullStatement::StartsWith(text.into()),
        columns,
        rows,
    };
    let time = NullValue::Fixed("2026-01-31 12:00:00+00".into());
    let answers = vec![
        answer(
            "SELECT id, no FROM t WHERE id = ANY(",
            vec![
                column("id", NullType::Int8, NullValue::Element),
                column("no", NullType::Int4, NullValue::RowNumber),
            ],
            NullRows::PerElement { argument: 0, rows: 2 },
        ),
        answer(
            "SELECT id, name, at FROM t WHERE id = ",
            vec![
                column("id", NullType::Int8, NullValue::Argument(0)),
                column("name", NullType::Text, NullValue::Fixed("a name".into())),
                column("at", NullType::Timestamptz, time),
            ],
            NullRows::Fixed(1),
        ),
    ];
    NullScript { answers, ..NullScript::default() }
}

#[tokio::test]
async fn a_driver_gets_the_rows_of_an_answer_in_the_binary_format() {
    let null = NullEndpoint::start(with_rows()).unwrap();
    let client = connect(&null).await;
    let list = "SELECT id, no FROM t WHERE id = ANY($1)";
    let prepared = client.prepare_typed(list, &[Type::INT8_ARRAY]).await.unwrap();
    for ids in [vec![7_i64, 9], vec![], vec![5]] {
        let rows = client.query(&prepared, &[&ids]).await.unwrap();
        let found: Vec<(i64, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let wanted: Vec<_> = ids.iter().flat_map(|id| [(*id, 1), (*id, 2)]).collect();
        assert_eq!(found, wanted);
    }
    let single = "SELECT id, name, at FROM t WHERE id = $1";
    let row = client.query_typed_one(single, &[(&42_i64, Type::INT8)]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (42, "a name"));
    let since_2000 = row.columns()[2].type_();
    assert_eq!(*since_2000, Type::TIMESTAMPTZ);
}

#[tokio::test]
async fn values_in_the_text_stand_for_parameters_in_the_simple_protocol() {
    let null = NullEndpoint::start(with_rows()).unwrap();
    let client = connect(&null).await;
    for list in ["ARRAY[7,9]::bigint[]", "'{7,9}'"] {
        let text = format!("BEGIN; SELECT id, no FROM t WHERE id = ANY({list}); COMMIT");
        let rows: Vec<_> = client
            .simple_query(&text)
            .await
            .unwrap()
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(format!("{:?} {:?}", row.get(0), row.get(1))),
                _ => None,
            })
            .collect();
        let wanted = [("7", "1"), ("7", "2"), ("9", "1"), ("9", "2")]
            .map(|(id, no)| format!("{:?} {:?}", Some(id), Some(no)));
        assert_eq!(rows, wanted, "{list}");
    }
    assert_eq!(null.commits(), 2);
}

#[tokio::test]
async fn round_trips_that_are_under_way_together_take_as_long_as_one() {
    let reply_delay = Duration::from_millis(300);
    let null = NullEndpoint::start(NullScript { reply_delay, ..with_rows() }).unwrap();
    let client = connect(&null).await;
    let started = Instant::now();
    let one = || client.batch_execute("SELECT 1");
    tokio::try_join!(one(), one(), one(), one(), one()).unwrap();
    let took = started.elapsed();
    assert!(took >= reply_delay && took < reply_delay * 3, "{took:?}");
}

#[tokio::test]
async fn only_a_commit_that_follows_a_write_takes_longer() {
    let commit_write_delay = Duration::from_millis(200);
    let null =
        NullEndpoint::start(NullScript { commit_write_delay, ..NullScript::default() }).unwrap();
    let client = connect(&null).await;
    let took = async |text| {
        let started = Instant::now();
        client.batch_execute(text).await.unwrap();
        started.elapsed()
    };
    for reads in ["BEGIN; SELECT 1; COMMIT", "BEGIN; UPDATE t SET a = 1; ROLLBACK"] {
        let shortest = [took(reads).await, took(reads).await, took(reads).await];
        let shortest = shortest.into_iter().min().unwrap();
        assert!(shortest < commit_write_delay, "{reads} took {shortest:?}");
    }
    for writes in ["BEGIN; UPDATE t SET a = 1; COMMIT", "INSERT INTO t VALUES (1)"] {
        assert!(took(writes).await >= commit_write_delay, "{writes}");
    }
}

#[tokio::test]
async fn a_statement_that_is_no_query_has_no_columns() {
    let null = NullEndpoint::start(NullScript::default()).unwrap();
    let client = connect(&null).await;
    let messages = client.simple_query("SET a TO b").await.unwrap();
    assert!(matches!(messages[..], [SimpleQueryMessage::CommandComplete(0)]), "{messages:?}");
    let prepared = client.prepare("UPDATE t SET a = $1 WHERE b = $2").await.unwrap();
    assert_eq!((prepared.params().len(), prepared.columns().len()), (2, 0));
}
