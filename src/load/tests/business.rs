//! Against a real server: transactions of three round trips, sessions that are terminated.

use tokio_postgres::{Client, Error, Statement};

use super::{alone, check, open, order};
use crate::{
    load::cell,
    model::{Arrivals, Class},
    target::{self, testing::TestServer},
    workload::{AttemptError, Done, Reached, Workload},
};

/// BEGIN, an insert, COMMIT; every fiftieth terminates its own session before the COMMIT, once.
struct Inserts;

impl Workload for Inserts {
    type Session = Statement;
    type Transaction = i64;

    async fn prepare(&self, client: &Client) -> Result<Statement, Error> {
        client.prepare("INSERT INTO receipts VALUES ($1)").await
    }

    fn draw(&self, arrival: u64) -> i64 {
        i64::try_from(arrival).unwrap()
    }

    fn class(&self, _: &i64) -> Class {
        Class::OrderCreate
    }

    async fn attempt(
        &self,
        client: &Client,
        insert: &Statement,
        id: &i64,
    ) -> Result<Done, AttemptError> {
        let before = |error| AttemptError { reached: Reached::BeforeCommit, error };
        client.batch_execute("BEGIN").await.map_err(before)?;
        client.execute(insert, &[id]).await.map_err(before)?;
        if id % 50 == 49 {
            let once = "SELECT pg_terminate_backend(pg_backend_pid()) WHERE nextval('cuts') <= 4";
            client.batch_execute(once).await.map_err(before)?;
        }
        let commit = client.batch_execute("COMMIT").await;
        commit.map_err(|error| AttemptError { reached: Reached::CommitSent, error })?;
        Ok(Done::Committed)
    }

    async fn look_up(&self, client: &Client, id: &i64) -> Result<bool, Error> {
        Ok(client.query_opt("SELECT 1 FROM receipts WHERE id = $1", &[id]).await?.is_some())
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
        let ran = cell::run(order(target, open(200.0, Arrivals::Poisson, 8)), Inserts).await;
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
