//! What the tests of this room share: a loaded database and a way to run transactions.

use std::sync::Arc;

use tokio_postgres::Client;

use super::{
    Done, OrderTransaction, OrderWorkload, Workload,
    data::{LoadOrder, load_with},
};
use crate::{
    model::{
        Acknowledged, AttemptRange, Class, Mix, RoundTrips, Statements, TargetSpec, WorkloadSpec,
    },
    target::{Driver, session, testing::TestServer},
};

/// A database of a test's own with the order business loaded.
pub(super) struct Shop {
    pub(super) target: TargetSpec,
    pub(super) client: Client,
    pub(super) spec: WorkloadSpec,
    _server: Arc<TestServer>,
}

impl Shop {
    pub(super) async fn load(scale: f64) -> Self {
        Self::load_by(scale, 2).await
    }

    /// Loaded by so many workers, with seed 1.
    pub(super) async fn load_by(scale: f64, workers: usize) -> Self {
        let server = TestServer::shared().await;
        let target = server.database().await;
        let order = LoadOrder { scale, seed: 1, workers: Some(workers) };
        load_with(&target, order, |_| {}).await.unwrap();
        let shop = Self::of(target).await;
        Self { spec: WorkloadSpec { scale, ..shop.spec }, ..shop }
    }

    /// One that is loaded already.
    pub(super) async fn of(target: TargetSpec) -> Self {
        let client = session(&target).await.unwrap();
        let spec = WorkloadSpec { mix: Mix::default(), scale: 1.0 };
        Self { target, client, spec, _server: TestServer::shared().await }
    }

    /// The workload and range of an attempt with this ordinal.
    pub(super) fn attempt(&self, ordinal: u64) -> (OrderWorkload, AttemptRange) {
        let range = range(ordinal);
        let schema = &self.target.schema;
        (OrderWorkload::from_parts(schema, &self.spec, &range, 7).unwrap(), range)
    }

    /// A connection as the load core has it, ready for the workload's transactions.
    pub(super) async fn driver(&self, workload: &OrderWorkload) -> Driver {
        driver(&self.target, workload).await
    }

    pub(super) async fn execute(&self, statement: &str) -> u64 {
        self.client.execute(statement, &[]).await.unwrap()
    }

    pub(super) async fn number(&self, query: &str) -> i64 {
        self.client.query_one(query, &[]).await.unwrap().get(0)
    }
}

/// A connection as the load core has it, ready for the workload's transactions.
pub(super) async fn driver(target: &TargetSpec, workload: &OrderWorkload) -> Driver {
    let (statements, round_trips) = (Statements::default(), RoundTrips::default());
    let mut driver = Driver::open(target, None, statements, round_trips).await.unwrap();
    driver.prepare(workload.statements()).await.unwrap();
    driver
}

pub(super) fn range(ordinal: u64) -> AttemptRange {
    AttemptRange {
        ordinal,
        first_id: 1_000_000_000 + (ordinal << 20).cast_signed(),
        ids: 1 << 20,
        prefix: format!("test.{ordinal}."),
    }
}

/// Runs the arrivals one after the other, as a load core would; all must come to an end.
pub(super) async fn run(
    workload: &OrderWorkload,
    driver: &mut Driver,
    arrivals: std::ops::Range<u64>,
) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    for arrival in arrivals {
        let transaction: OrderTransaction = workload.draw(arrival);
        let done = workload.attempt(driver, &transaction).await.unwrap();
        if done == Done::Committed {
            tally(workload, &transaction, &mut acknowledged);
        }
    }
    acknowledged
}

/// Counts a transaction that was committed, and tells the workload of it.
pub(super) fn tally(
    workload: &OrderWorkload,
    transaction: &OrderTransaction,
    acknowledged: &mut Acknowledged,
) {
    workload.committed(transaction);
    match workload.class(transaction) {
        Class::OrderCreate => acknowledged.creates += 1,
        Class::OrderCancel => acknowledged.cancels += 1,
        Class::ProductLookup | Class::OrderHistory => {}
    }
}
