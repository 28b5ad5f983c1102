//! Time: stalls, freezes, overload, and the generator's own stalls.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{
    READS, ask,
    fake::{FakeServer, Reply},
    open, order, run,
};
use crate::{
    load::tally::POOL_TIMEOUT,
    model::{Arrivals, CellEnd, Class, LOWEST_DISCERNIBLE_NS, Load, Phase, RetryPolicy},
    target::{Session, SessionError, Statement},
    workload::{AttemptError, Done, Reached, Workload},
};

#[test]
fn a_stall_is_seen_by_every_arrival_that_falls_into_it_and_counted_once() {
    let stalled = AtomicBool::new(false);
    let server = FakeServer::start(move |query| {
        let stall = query.text == "WORK 1000" && !stalled.swap(true, Ordering::SeqCst);
        if stall { Reply::Later(Duration::from_millis(10)) } else { Reply::Rows(1) }
    });
    let ran = run(order(server.target(), open(1_000.0, Arrivals::Constant, 1)), READS);
    let counts = &ran.result.counts;
    assert_eq!((counts.offered, counts.succeeded), (2_000, 2_000));
    let parts = &ran.result.classes.product_lookup;
    // The arrival that met the stall took 10 ms, the next waited 9 ms, and so on: noise can only
    // add to that.
    for later in 0..10u32 {
        let at_least = 10.0 - f64::from(later) - 0.05;
        let slower = parts.response.count_above_ms(at_least);
        assert!(slower > u64::from(later), "{slower} above {at_least} ms");
    }
    // They waited for the connection; the database is not blamed for more than the one stall.
    assert!(parts.connection_wait.count_above_ms(0.95) >= 8);
    assert_eq!(ran.result.end, CellEnd::Complete);
    assert!((ran.result.measured_s - 2.0).abs() < 1e-6);
    assert!(ran.result.round_trip_ms.is_some());
}

#[test]
fn the_arrivals_of_a_freeze_are_all_in_the_percentiles_and_the_freeze_is_in_the_timeline() {
    let started = std::sync::OnceLock::new();
    let server = FakeServer::start(move |_| {
        let since = started.get_or_init(Instant::now).elapsed().as_millis();
        let (from, to) = (1_500, 3_000);
        if (from..to).contains(&since) {
            let left = u64::try_from(to - since).unwrap();
            Reply::Later(Duration::from_millis(left))
        } else {
            Reply::Rows(1)
        }
    });
    let mut order = order(server.target(), open(100.0, Arrivals::Constant, 2));
    order.measure_s = 4.0;
    let ran = run(order, READS);
    assert_eq!(ran.result.counts.succeeded, 400);
    let response = &ran.result.classes.product_lookup.response;
    // 150 arrivals fell into 1.5 s of freeze; those of its first second waited at least 0.5 s.
    assert!(response.count_above_ms(490.0) >= 99, "{}", response.count_above_ms(490.0));
    assert!(ran.windows.iter().any(|w| w.counts.completed < 50 && w.counts.in_flight > 40));
}

#[test]
fn overload_is_bounded_shed_and_on_time() {
    let server = FakeServer::start(|_| Reply::Later(Duration::from_millis(5)));
    let mut order = order(server.target(), open(4_000.0, Arrivals::Poisson, 2));
    order.backlog = Some(50);
    let begun = Instant::now();
    let ran = run(order, READS);
    assert!(begun.elapsed() < Duration::from_secs(30));
    let counts = &ran.result.counts;
    assert!(counts.offered > 7_500, "{counts:?}");
    assert!(counts.completed < 1_000 && counts.shed > 6_500, "{counts:?}");
    assert_eq!(counts.in_flight, 0);
    assert!(ran.windows.iter().all(|w| w.counts.in_flight <= 52));
    let tail = ran.result.tail.mean_above(0.99).unwrap();
    assert!(tail.connection_wait_ms > tail.service_ms + tail.schedule_lag_ms, "{tail:?}");
}

#[test]
fn when_every_connection_is_held_for_ever_the_wait_is_bounded_and_has_its_own_name() {
    let server = FakeServer::start(|_| Reply::Silence);
    let mut order = order(server.target(), open(200.0, Arrivals::Constant, 2));
    order.retry = RetryPolicy { connection_wait_timeout_ms: 200, ..order.retry };
    order.drain_s = 0.5;
    order.warmup_s = 0.0;
    let ran = run(order, READS);
    let counts = &ran.result.counts;
    assert_eq!((counts.offered, counts.in_flight, counts.attempts), (400, 2, 0));
    assert_eq!((counts.failed, counts.never_attempted), (398, 398));
    assert_eq!(ran.result.sqlstates[POOL_TIMEOUT], 398);
    assert_eq!(ran.result.sqlstates.len(), 1, "{:?}", ran.result.sqlstates);
}

#[test]
fn a_closed_loop_keeps_its_connections_busy() {
    let server = FakeServer::start(|_| Reply::Later(Duration::from_millis(2)));
    let ran = run(order(server.target(), Load::Closed { connections: 4 }), READS);
    let counts = &ran.result.counts;
    assert!(counts.succeeded > 200 && counts.succeeded <= 4_000, "{counts:?}");
    assert_eq!(counts.in_flight, 0);
    let wait = &ran.result.classes.product_lookup.connection_wait;
    let longest = wait.quantile_ns(1.0).unwrap();
    assert!(longest < LOWEST_DISCERNIBLE_NS, "a closed loop does not wait for connections");
    assert_eq!(server.accepted(), 4);
    let phases: Vec<Phase> = ran.windows.iter().map(|w| w.phase).collect();
    assert_eq!(phases, [Phase::WarmUp, Phase::Measure, Phase::Measure, Phase::Drain]);
    assert_eq!(ran.windows[1].connections, 4);
    assert_eq!(ran.windows[0].counts.in_flight, 4);
}

#[test]
fn at_a_low_rate_arrivals_start_on_time_and_the_generator_sleeps() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    let mut order = order(server.target(), open(50.0, Arrivals::Poisson, 8));
    order.measure_s = 3.0;
    let ran = run(order, READS);
    let lag = &ran.result.classes.product_lookup.schedule_lag;
    let median = lag.quantile_ms(0.5).unwrap();
    assert!(median < 1.0, "half of the arrivals started {median} ms late or more");
    assert!(ran.result.runner.loop_lag.count() > 100);
    assert!(ran.result.runner.cpu_percent < 50.0, "{}", ran.result.runner.cpu_percent);
}

/// Holds the whole load thread up once.
struct StallsItsThread {
    at: u64,
    stall: Duration,
    seen: AtomicU64,
}

impl Workload for StallsItsThread {
    type Transaction = u64;

    fn statements(&self) -> &[Statement] {
        &[]
    }

    fn draw(&self, arrival: u64) -> u64 {
        arrival
    }

    fn class(&self, _: &u64) -> Class {
        Class::ProductLookup
    }

    async fn attempt<S: Session>(&self, session: &mut S, n: &u64) -> Result<Done, AttemptError> {
        if *n == self.at {
            self.seen.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(self.stall);
        }
        ask(session, "WORK", Reached::BeforeCommit).await?;
        Ok(Done::Committed)
    }

    async fn look_up<S: Session>(&self, _: &mut S, _: &u64) -> Result<bool, SessionError> {
        Ok(false)
    }

    fn committed(&self, _: &u64) {}
}

#[test]
fn while_one_load_thread_is_stalled_the_others_take_its_arrivals() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let server = FakeServer::start(|_| Reply::Rows(1));
    let stall = Duration::from_millis(500);
    let workload = StallsItsThread { at: 200, stall, seen: AtomicU64::new(0) };
    let ran = run(order(server.target(), open(200.0, Arrivals::Constant, 8)), workload);
    assert_eq!(ran.result.counts.succeeded, 400);
    // A hundred arrivals fell into the stall: only what the stalled thread had in its hands then
    // is late.
    let parts = &ran.result.classes.product_lookup;
    let late = parts.response.count_above_ms(100.0);
    assert!(late <= 20, "{late} arrivals were held up");
    let worst = ran.result.runner.loop_lag.quantile_ms(1.0).unwrap();
    assert!(worst > 400.0, "the stall shows as loop lag: {worst} ms");
}
