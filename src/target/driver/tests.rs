//! The driver on a real server: whatever the shape, the same comes back.

use std::{future::poll_fn, time::Duration};

use super::*;
use crate::target::{
    session,
    session::{ParameterType, Value},
    testing::TestServer,
};

const SHAPES: [(Statements, RoundTrips); 6] = [
    (Statements::Prepared, RoundTrips::Sequential),
    (Statements::Prepared, RoundTrips::Pipelined),
    (Statements::Unnamed, RoundTrips::Sequential),
    (Statements::Unnamed, RoundTrips::Pipelined),
    (Statements::Simple, RoundTrips::Sequential),
    (Statements::Simple, RoundTrips::Pipelined),
];

fn statements() -> [Statement; 3] {
    use ParameterType::{Int4s, Int8, Int8s, Text};
    let insert = "INSERT INTO t SELECT a, $1, b, $2::bigint - $3 \
                  FROM unnest($4, $5) AS line (a, b)";
    let select = "SELECT a, name, b, c FROM t WHERE name = $1 ORDER BY a";
    [
        Statement::new(0, insert.into(), &[Text, Int8, Int8, Int8s, Int4s]),
        Statement::new(1, select.into(), &[Text]),
        Statement::new(2, "SELECT 1 / $1".into(), &[Int8]),
    ]
}

async fn driver(server: &TestServer, shape: (Statements, RoundTrips)) -> Driver {
    let target = server.target("postgres");
    let mut driver = Driver::open(&target, None, shape.0, shape.1).await.unwrap();
    driver
        .trip(&[Request::Text("CREATE TEMP TABLE t (a bigint, name text, b int, c bigint)")])
        .await
        .unwrap();
    driver.prepare(&statements()).await.unwrap();
    driver
}

#[tokio::test]
async fn whatever_the_shape_the_same_comes_back() {
    let server = TestServer::shared().await;
    for shape in SHAPES {
        let mut driver = driver(&server, shape).await;
        let [insert, select, _] = statements();
        let name = "O'Neill \\ $1";
        let values = [
            Value::Text(name),
            Value::Int8(-5),
            Value::Int8(-1 << 40),
            Value::Int8s(&[2, i64::MIN]),
            Value::Int4s(&[-7, 8]),
        ];
        let replies = driver
            .trip(&[Request::Begin, Request::Run(&insert, &values), Request::Commit])
            .await
            .unwrap();
        assert_eq!(replies.affected(1), 2, "{shape:?}");
        assert!(!driver.in_transaction() && driver.is_usable() && driver.commit_sent());
        assert!(driver.take_first_sent().is_some() && driver.take_first_sent().is_none());

        let find = [Value::Text(name)];
        let nobody = [Value::Text("nobody")];
        let replies = driver
            .trip(&[Request::Begin, Request::Run(&select, &nobody), Request::Run(&select, &find)])
            .await
            .unwrap();
        assert_eq!((replies.affected(1), replies.rows(1).len()), (0, 0), "{shape:?}");
        let rows: Vec<_> = replies
            .rows(2)
            .map(|row| {
                let name = row.text(1).unwrap().to_owned();
                (row.int8(0).unwrap(), name, row.int4(2).unwrap(), row.int8(3).unwrap())
            })
            .collect();
        let difference = (1 << 40) - 5;
        let expected =
            [(i64::MIN, name.to_owned(), 8, difference), (2, name.to_owned(), -7, difference)];
        assert_eq!(rows, expected, "{shape:?}");
        assert!(driver.in_transaction() && !driver.commit_sent());
        driver.trip(&[Request::Rollback]).await.unwrap();
        driver.ping().await.unwrap();
        assert!(!driver.in_transaction());
        driver.close().await;
    }
}

#[tokio::test]
async fn an_error_stops_a_trip_and_leaves_the_connection_sound() {
    let server = TestServer::shared().await;
    for shape in SHAPES {
        let mut driver = driver(&server, shape).await;
        let [insert, select, divide] = statements();
        let zero = [Value::Int8(0)];
        let values = [
            Value::Text("x"),
            Value::Int8(1),
            Value::Int8(1),
            Value::Int8s(&[1]),
            Value::Int4s(&[1]),
        ];
        let error = driver
            .trip(&[
                Request::Begin,
                Request::Run(&divide, &zero),
                Request::Run(&insert, &values),
                Request::Commit,
            ])
            .await
            .unwrap_err();
        assert_eq!(error.error.code(), Some("22012"), "{shape:?}");
        assert_eq!(error.commit_sent, shape.1 == RoundTrips::Pipelined, "{shape:?}");
        assert!(driver.in_transaction() && driver.is_usable(), "{shape:?}");
        driver.trip(&[Request::Rollback]).await.unwrap();
        assert!(!driver.in_transaction());
        let find = [Value::Text("x")];
        let replies = driver.trip(&[Request::Run(&select, &find)]).await.unwrap();
        assert_eq!(replies.rows(0).len(), 0, "{shape:?}");
    }
}

#[tokio::test]
async fn a_failed_transaction_is_not_taken_for_committed() {
    let server = TestServer::shared().await;
    let mut driver = driver(&server, (Statements::Prepared, RoundTrips::Sequential)).await;
    let [.., divide] = statements();
    driver.trip(&[Request::Begin, Request::Run(&divide, &[Value::Int8(0)])]).await.unwrap_err();
    let error = driver.trip(&[Request::Commit]).await.unwrap_err();
    assert!(matches!(error.error, SessionError::Protocol(_)) && error.commit_sent, "{error:?}");
    assert!(!driver.is_usable());
}

#[tokio::test]
async fn an_end_is_noticed_while_idle_and_while_busy() {
    let server = TestServer::shared().await;
    let admin = session(&server.target("postgres")).await.unwrap();
    let terminate = |name: &'static str| {
        let admin = &admin;
        async move {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                       WHERE application_name = $1";
            let ended: i64 = admin.query_one(sql, &[&name]).await.unwrap().get(0);
            assert_eq!(ended, 1);
        }
    };
    let open = |name: &str| {
        let target = TargetSpec { application_name: name.into(), ..server.target("postgres") };
        async move {
            let (statements, round_trips) = SHAPES[0];
            Driver::open(&target, None, statements, round_trips).await.unwrap()
        }
    };
    let mut idle = open("driver-idle").await;
    terminate("driver-idle").await;
    tokio::time::timeout(Duration::from_secs(20), poll_fn(|context| idle.poll_end(context)))
        .await
        .unwrap();
    assert_eq!(idle.end().unwrap().code(), Some("57P01"));
    assert!(!idle.is_usable());
    assert_eq!(idle.ping().await.unwrap_err().code(), Some("57P01"));

    let mut busy = open("driver-busy").await;
    let sleep = [Request::Text("SELECT pg_sleep(60)")];
    let (ended, ()) = tokio::join!(busy.trip(&sleep), async {
        let asleep = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'driver-busy' \
                      AND wait_event = 'PgSleep'";
        while admin.query(asleep, &[]).await.unwrap().is_empty() {}
        terminate("driver-busy").await;
    });
    assert_eq!(ended.unwrap_err().error.code(), Some("57P01"));
    assert!(!busy.is_usable());
}

#[tokio::test]
async fn a_trip_that_was_given_up_leaves_a_connection_that_is_of_no_more_use() {
    let server = TestServer::shared().await;
    let mut driver = driver(&server, SHAPES[0]).await;
    let sleep = [Request::Begin, Request::Text("SELECT pg_sleep(60)")];
    let given_up = tokio::time::timeout(Duration::from_millis(100), driver.trip(&sleep)).await;
    assert!(given_up.is_err());
    assert!(!driver.is_usable() && driver.commit_sent(), "what a text does is not known");
    assert!(matches!(driver.ping().await, Err(SessionError::Lost(_))));
}
