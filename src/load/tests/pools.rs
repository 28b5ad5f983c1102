//! An application's pools: each arrival keeps to its partition.

use std::time::Duration;

use super::{
    READS, WRITES,
    fake::{FakeServer, Reply},
    open, order, run,
};
use crate::{
    load::tally::POOL_TIMEOUT,
    model::{Arrivals, CellOrder, Load, PoolShape, Shape},
};

fn pooled(order: CellOrder, size: u32, partitions: u32, wait_timeout_ms: u64) -> CellOrder {
    let pool = PoolShape::Pool { size, partitions, wait_timeout_ms };
    CellOrder { shape: Shape { pool, ..order.shape }, ..order }
}

#[test]
fn every_partition_has_its_share_of_arrivals_and_connections() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let server = FakeServer::start(|_| Reply::Rows(1));
        let order = pooled(order(server.target(), open(400.0, arrivals, 8)), 2, 4, 5_000);
        let ran = run(order, WRITES);
        let counts = &ran.result.counts;
        assert!((700..900).contains(&counts.offered), "{counts:?}");
        assert_eq!((counts.succeeded, counts.retries), (counts.offered, 0));
        assert_eq!(server.accepted(), 8);
        assert!(ran.windows.iter().any(|window| window.connections == 8));
        let parts = &ran.result.classes.order_create;
        assert!(parts.connection_wait.quantile_ms(0.5).unwrap() < 1.0);
        assert!(ran.result.round_trip_ms.is_some());
    }
}

#[test]
fn a_pool_whose_connections_are_all_held_fails_what_waits_too_long() {
    // The first two transactions are never answered.
    let server = FakeServer::start(|query| match query.text {
        "WORK 0" | "WORK 1" => Reply::Silence,
        _ => Reply::Rows(1),
    });
    let mut order = pooled(order(server.target(), open(50.0, Arrivals::Constant, 2)), 1, 2, 200);
    order.warmup_s = 0.0;
    let ran = run(order, READS);
    let counts = &ran.result.counts;
    assert_eq!(counts.succeeded, 0, "{counts:?}");
    let timeouts = ran.result.sqlstates[POOL_TIMEOUT];
    assert!(timeouts >= 90 && counts.never_attempted == timeouts, "{counts:?} {timeouts}");
}

#[test]
fn one_partition_s_trouble_is_not_the_others() {
    // Every transaction of the first of two partitions takes 50 ms: it can serve 20 a second of its
    // 50, however idle the other is.
    let server = FakeServer::start(|query| {
        let ordinal: u64 = query.text.split(' ').nth(1).unwrap().parse().unwrap();
        if ordinal.is_multiple_of(2) {
            Reply::Later(Duration::from_millis(50))
        } else {
            Reply::Rows(1)
        }
    });
    let ran = run(
        pooled(order(server.target(), open(100.0, Arrivals::Constant, 2)), 1, 2, 30_000),
        READS,
    );
    let parts = &ran.result.classes.product_lookup;
    let waited = parts.connection_wait.count_above_ms(100.0);
    let all = parts.connection_wait.count();
    assert!(waited > all * 4 / 10 && waited <= all / 2 + 1, "{waited} of {all}");
}

#[test]
fn the_clients_of_a_closed_loop_compete_for_the_pool() {
    let server = FakeServer::start(|_| Reply::Later(Duration::from_millis(5)));
    let order = pooled(order(server.target(), Load::Closed { connections: 8 }), 1, 2, 5_000);
    let ran = run(order, READS);
    assert_eq!(server.accepted(), 2);
    let parts = &ran.result.classes.product_lookup;
    // Four clients for a connection: each waits for the other three.
    let wait = parts.connection_wait.quantile_ms(0.5).unwrap();
    let service = parts.service.quantile_ms(0.5).unwrap();
    assert!(wait > 2.0 * service, "{wait} ms, {service} ms");
}

#[test]
fn what_exceeds_the_backlog_is_shed() {
    let server = FakeServer::start(|_| Reply::Later(Duration::from_millis(100)));
    let mut order = pooled(order(server.target(), open(200.0, Arrivals::Constant, 2)), 1, 2, 5_000);
    order.backlog = Some(4);
    let ran = run(order, READS);
    let counts = &ran.result.counts;
    assert!(counts.shed > counts.offered / 2, "{counts:?}");
    let wait = ran.result.classes.product_lookup.connection_wait.quantile_ms(1.0).unwrap();
    assert!(wait < 1_000.0, "two may wait, {wait} ms");
}

#[test]
fn a_pool_s_connections_leave_before_their_age() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    let mut order = pooled(order(server.target(), open(100.0, Arrivals::Constant, 4)), 2, 2, 5_000);
    order.life.max_age_s = Some(0.6);
    let ran = run(order, WRITES);
    let counts = &ran.result.counts;
    assert_eq!((counts.failed, counts.retries), (0, 0), "{:?}", ran.result.sqlstates);
    assert!(server.accepted() >= 4 * 3, "{}", server.accepted());
}
