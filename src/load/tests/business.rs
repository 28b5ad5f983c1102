//! Against a real server: transactions of three round trips, sessions that are terminated.

use super::{alone, ask, check, open, order};
use crate::{
    load::cell,
    model::{Arrivals, Class, Load},
    target::{
        self, ParameterType, Request, Session, SessionError, Statement, TripError, Value,
        testing::TestServer,
    },
    workload::{AttemptError, Done, Reached, Workload},
};

/// BEGIN, an insert, COMMIT; every fiftieth terminates its own session before the COMMIT, once.
struct Inserts([Statement; 2]);

impl Inserts {
    fn new() -> Self {
        let insert = "INSERT INTO receipts VALUES ($1)".to_owned();
        let find = "SELECT id FROM receipts WHERE id = $1".to_owned();
        let id = &[ParameterType::Int8];
        Self([Statement::new(0, insert, id), Statement::new(1, find, id)])
    }
}

impl Workload for Inserts {
    type Transaction = i64;

    fn statements(&self) -> &[Statement] {
        &self.0
    }

    fn draw(&self, arrival: u64) -> i64 {
        i64::try_from(arrival).unwrap()
    }

    fn class(&self, _: &i64) -> Class {
        Class::OrderCreate
    }

    async fn attempt<S: Session>(&self, session: &mut S, id: &i64) -> Result<Done, AttemptError> {
        let failed = |TripError { commit_sent, error }| {
            let reached = if commit_sent { Reached::CommitSent } else { Reached::BeforeCommit };
            AttemptError { reached, error }
        };
        let value = [Value::Int8(*id)];
        let insert = [Request::Begin, Request::Run(&self.0[0], &value)];
        session.trip(&insert).await.map_err(failed)?;
        if id % 50 == 49 {
            let once = "SELECT pg_terminate_backend(pg_backend_pid()) WHERE nextval('cuts') <= 4";
            ask(session, once, Reached::BeforeCommit).await?;
        }
        session.trip(&[Request::Commit]).await.map_err(failed)?;
        Ok(Done::Committed)
    }

    async fn look_up<S: Session>(&self, session: &mut S, id: &i64) -> Result<bool, SessionError> {
        let value = [Value::Int8(*id)];
        let found = session.trip(&[Request::Run(&self.0[1], &value)]).await;
        found.map(|replies| replies.rows(0).len() == 1).map_err(|failed| failed.error)
    }

    fn committed(&self, _: &i64) {}
}

#[test]
fn a_real_server_agrees_with_what_was_acknowledged() {
    alone(async {
        let server = TestServer::shared().await;
        let target = server.database().await;
        let client = target::session(&target).await.unwrap();
        let schema = "CREATE TABLE receipts (id bigint PRIMARY KEY); CREATE SEQUENCE cuts";
        client.batch_execute(schema).await.unwrap();
        let ran = cell::run(order(target, open(200.0, Arrivals::Poisson, 8)), Inserts::new()).await;
        let ran = ran.unwrap();
        check(&ran);
        let counts = &ran.result.counts;
        assert_eq!((counts.failed, counts.unknown, counts.shed), (0, 0, 0), "{counts:?}");
        assert_eq!(counts.in_flight, 0);
        let rows: i64 =
            client.query_one("SELECT count(*) FROM receipts", &[]).await.unwrap().get(0);
        assert_eq!(ran.result.acknowledged.creates, u64::try_from(rows).unwrap());
        let cuts: u64 = ran.windows.iter().filter_map(|w| w.sqlstates.get("57P01")).sum();
        assert_eq!(cuts, 4, "{:?}", ran.result.sqlstates);
    });
}

/// Reads one row and writes it anew: of two at once one must lose.
struct Counter([Statement; 2]);

impl Counter {
    fn new() -> Self {
        let read = "SELECT value FROM counter WHERE id = 1".to_owned();
        let write = "UPDATE counter SET value = $1 WHERE id = 1".to_owned();
        Self([Statement::new(0, read, &[]), Statement::new(1, write, &[ParameterType::Int8])])
    }
}

impl Workload for Counter {
    type Transaction = ();

    fn statements(&self) -> &[Statement] {
        &self.0
    }

    fn draw(&self, _: u64) {}

    fn class(&self, (): &()) -> Class {
        Class::OrderCreate
    }

    async fn attempt<S: Session>(&self, session: &mut S, (): &()) -> Result<Done, AttemptError> {
        let failed = |TripError { commit_sent, error }| {
            let reached = if commit_sent { Reached::CommitSent } else { Reached::BeforeCommit };
            AttemptError { reached, error }
        };
        let read = [Request::Begin, Request::Run(&self.0[0], &[])];
        let replies = session.trip(&read).await.map_err(failed)?;
        let value = replies.rows(1).next().unwrap().int8(0).unwrap();
        let more = [Value::Int8(value + 1)];
        let write = [Request::Run(&self.0[1], &more), Request::Commit];
        if let Err(error) = session.trip(&write).await {
            if session.in_transaction() {
                session.trip(&[Request::Rollback]).await.map_err(failed)?;
            }
            return Err(failed(error));
        }
        Ok(Done::Committed)
    }

    async fn look_up<S: Session>(&self, _: &mut S, (): &()) -> Result<bool, SessionError> {
        Ok(false)
    }

    fn committed(&self, (): &()) {}
}

#[test]
fn writers_forced_into_conflict_are_counted_as_retries_and_lose_nothing() {
    alone(async {
        let server = TestServer::shared().await;
        let target = server.database().await;
        let client = target::session(&target).await.unwrap();
        let schema = "CREATE TABLE counter (id int PRIMARY KEY, value bigint); \
                      INSERT INTO counter VALUES (1, 0)";
        client.batch_execute(schema).await.unwrap();
        let mut order = order(target, Load::Closed { connections: 2 });
        order.retry.max_attempts = 1_000;
        let ran = cell::run(order, Counter::new()).await.unwrap();
        check(&ran);
        let counts = &ran.result.counts;
        assert_eq!((counts.failed, counts.unknown), (0, 0), "{:?}", ran.result.sqlstates);
        assert!(counts.retries >= 1, "{counts:?}");
        assert_eq!(ran.result.sqlstates["40001"], counts.retries);
        let value: i64 = client.query_one("SELECT value FROM counter", &[]).await.unwrap().get(0);
        assert_eq!(ran.result.acknowledged.creates, u64::try_from(value).unwrap());
    });
}
