//! Outcomes: conflicts, errors, time limits, lost replies.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    READS, WRITES,
    fake::{FakeServer, Reply},
    open, order, run,
};
use crate::{
    load::failure::{CONNECTION_LOST, TIMEOUT},
    model::{Acknowledged, Arrivals, RetryPolicy},
};

/// How often each text was asked for.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<String, u64>>>);

impl Seen {
    /// Counts a query; how often it has come before.
    fn before(&self, text: &str) -> u64 {
        let mut all = self.0.lock().unwrap();
        let count = all.entry(text.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

fn ordinal(text: &str) -> u64 {
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn attempts_that_all_lose_are_one_failure() {
    let server = FakeServer::start(|_| Reply::Error { sqlstate: "40001", message: "try again" });
    let mut order = order(server.target(), open(50.0, Arrivals::Constant, 4));
    order.retry = RetryPolicy { max_attempts: 4, ..order.retry };
    let ran = run(order, READS);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.failed), (0, 100));
    assert_eq!((counts.attempts, counts.retries), (400, 300));
    assert_eq!(ran.result.sqlstates["40001"], 400);
    assert_eq!(server.accepted(), 4, "a conflict keeps its connection");
}

#[test]
fn a_conflict_is_tried_again_with_the_same_transaction() {
    let seen = Seen::default();
    let server = FakeServer::start({
        let seen = seen.clone();
        move |query| {
            let first = query.text.starts_with("COMMIT") && seen.before(query.text) == 0;
            let wrapped = "server error: OC000 conflict";
            if first {
                Reply::Error { sqlstate: "XX000", message: wrapped }
            } else {
                Reply::Rows(1)
            }
        }
    });
    let ran = run(order(server.target(), open(50.0, Arrivals::Constant, 4)), WRITES);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.retries), (100, 100));
    assert!(seen.0.lock().unwrap().values().all(|&n| n == 2));
    assert_eq!(server.accepted(), 4, "the connections proved to be sound");
}

#[test]
fn after_a_commit_that_leaves_the_protocol_in_doubt_the_retry_has_a_fresh_connection() {
    let seen = Seen::default();
    let server = FakeServer::start(move |query| {
        let first = query.text == "COMMIT 30" && seen.before(query.text) == 0;
        if first { Reply::ErrorOnly { sqlstate: "40001" } } else { Reply::Rows(1) }
    });
    let ran = run(order(server.target(), open(50.0, Arrivals::Constant, 2)), WRITES);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.retries), (100, 1));
    assert_eq!(server.accepted(), 3);
}

#[test]
fn errors_are_fast_but_never_fast_successes() {
    let server = FakeServer::start(|query| {
        if ordinal(query.text).is_multiple_of(6) {
            Reply::Error { sqlstate: "42P01", message: "no such table" }
        } else {
            Reply::Later(Duration::from_millis(100))
        }
    });
    let ran = run(order(server.target(), open(60.0, Arrivals::Constant, 16)), READS);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.failed), (100, 20));
    assert_eq!(ran.result.sqlstates["42P01"], 20);
    let response = &ran.result.classes.product_lookup.response;
    assert!(response.quantile_ms(0.0).unwrap() > 99.0, "only successes are recorded");
}

#[test]
fn what_takes_too_long_fails_and_its_connection_is_replaced() {
    let server = FakeServer::start(|query| {
        if ordinal(query.text).is_multiple_of(10) { Reply::Silence } else { Reply::Rows(1) }
    });
    let mut order = order(server.target(), open(50.0, Arrivals::Constant, 8));
    order.retry = RetryPolicy { transaction_timeout_ms: 150, ..order.retry };
    let ran = run(order, READS);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.failed, counts.unknown), (90, 10, 0));
    assert_eq!(ran.result.sqlstates[TIMEOUT], 10);
    // A tenth of them took for ever: whatever the rest did, the p95 of all has no bound.
    assert_eq!(ran.result.failed.product_lookup, 10);
    let adjusted = ran.result.classes.product_lookup.response.error_adjusted(10);
    assert!(adjusted.p50.is_some());
    assert_eq!((adjusted.p95, adjusted.unbounded_from), (None, Some(0.9)));
    assert!(server.accepted() > 8);
}

#[test]
fn a_commit_whose_reply_was_lost_is_looked_up_and_counted_once() {
    let committed = Arc::new(Mutex::new(Vec::new()));
    let seen = Seen::default();
    let server = FakeServer::start({
        let committed = Arc::clone(&committed);
        move |query| {
            let n = ordinal(query.text);
            if query.text.starts_with("LOOK") {
                return Reply::Rows(u64::from(committed.lock().unwrap().contains(&n)));
            }
            if query.text.starts_with("WORK") {
                return Reply::Rows(1);
            }
            let cut = seen.before(query.text) == 0;
            match n % 10 {
                // Carried out, reply lost.
                3 if cut => {
                    committed.lock().unwrap().push(n);
                    Reply::Cut
                }
                // Lost before it was carried out.
                7 if cut => Reply::Cut,
                _ => {
                    committed.lock().unwrap().push(n);
                    Reply::Rows(1)
                }
            }
        }
    });
    let mut order = order(server.target(), open(50.0, Arrivals::Constant, 4));
    order.warmup_s = 0.0;
    let ran = run(order, WRITES);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.unknown, counts.failed), (100, 0, 0));
    assert_eq!(counts.retries, 10, "only what was not carried out is run again");
    assert_eq!(ran.result.sqlstates[CONNECTION_LOST], 20);
    let mut receipts = committed.lock().unwrap().clone();
    receipts.sort_unstable();
    assert_eq!(receipts, (0..100).collect::<Vec<_>>());
    let acknowledged = Acknowledged { creates: 100, cancels: 0, unresolved: 0 };
    assert_eq!(ran.result.acknowledged, acknowledged);
}

#[test]
fn an_outcome_that_nobody_tells_is_unknown() {
    let server = FakeServer::start(|query| match query.text {
        "COMMIT 20" => Reply::Silence,
        "LOOK 20" => Reply::Cut,
        _ => Reply::Rows(1),
    });
    let mut order = order(server.target(), open(20.0, Arrivals::Constant, 2));
    order.retry = RetryPolicy { transaction_timeout_ms: 200, ..order.retry };
    order.warmup_s = 0.0;
    let ran = run(order, WRITES);
    let counts = &ran.result.counts;
    assert_eq!((counts.succeeded, counts.unknown, counts.failed), (39, 1, 0));
    assert_eq!(ran.result.acknowledged.unresolved, 1);
    assert_eq!(ran.result.acknowledged.creates, 39);
}

#[test]
fn a_server_that_shuts_down_costs_a_retry_on_a_new_connection() {
    let seen = Seen::default();
    let server = FakeServer::start(move |query| {
        let first = ordinal(query.text) == 10 && seen.before("all") == 0;
        let message = "terminating connection due to administrator command";
        if first { Reply::Error { sqlstate: "57P01", message } } else { Reply::Rows(1) }
    });
    let mut order = order(server.target(), open(20.0, Arrivals::Constant, 2));
    order.warmup_s = 0.0;
    let ran = run(order, READS);
    assert_eq!((ran.result.counts.succeeded, ran.result.counts.retries), (40, 1));
    assert_eq!(ran.result.sqlstates["57P01"], 1);
    assert_eq!(server.accepted(), 3);
}
