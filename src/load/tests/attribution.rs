//! Whose doing a tail was: a freeze, a pool that is too small, a stalled load thread.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

#[cfg(debug_assertions)]
use super::cells::Agent;
use super::{
    READS,
    fake::{FakeServer, Reply},
    open, order, run,
};
#[cfg(debug_assertions)]
use crate::model::{AgentCommand, Phase};
use crate::model::{Arrivals, Blamed};

/// The database freezes for half of a cell: what waited behind it is the database's too, long
/// after it has thawed.
#[test]
fn a_freeze_is_the_databases_and_so_is_the_queue_it_leaves() {
    let started = OnceLock::new();
    let server = FakeServer::start(move |query| {
        let since = started.get_or_init(Instant::now).elapsed().as_millis();
        let (from, to) = (1_000, 2_500);
        if query.text.starts_with("WORK") && (from..to).contains(&since) {
            Reply::Later(Duration::from_millis(u64::try_from(to - since).unwrap()))
        } else {
            Reply::Later(Duration::from_millis(2))
        }
    });
    let mut order = order(server.target(), open(200.0, Arrivals::Constant, 4));
    order.measure_s = 3.0;
    let ran = run(order, READS);
    assert_eq!(ran.result.counts.succeeded, 600);
    // 300 arrivals fell into the freeze, of which the connections held four.
    let queue = ran.result.tail.mean_above(0.8).unwrap();
    assert!(queue.wait_on_database_ms > queue.service_ms, "{queue:?}");
    for quantile in [0.99, 0.8] {
        let tail = ran.result.tail.mean_above(quantile).unwrap();
        assert_eq!(tail.blamed(), Blamed::Database, "{quantile}: {tail:?}");
        assert!(tail.pool_ms() < tail.connection_wait_ms / 5.0, "{quantile}: {tail:?}");
        let sum = tail.generator_ms() + tail.pool_ms() + tail.database_ms();
        let whole = tail.schedule_lag_ms + tail.connection_wait_ms + tail.service_ms;
        assert!((sum - whole).abs() < 1e-6, "{quantile}: {tail:?}");
    }
}

#[test]
fn a_pool_that_is_too_small_for_steady_service_is_blamed_itself() {
    let server = FakeServer::start(|_| Reply::Later(Duration::from_millis(10)));
    // Three connections carry 300 a second less what the machine adds.
    let mut order = order(server.target(), open(400.0, Arrivals::Poisson, 3));
    order.backlog = Some(100);
    let ran = run(order, READS);
    let tail = ran.result.tail.mean_above(0.99).unwrap();
    assert_eq!(tail.blamed(), Blamed::Pool, "{tail:?}");
}

/// Stalls the last load thread in the middle of a cell.
#[cfg(debug_assertions)]
#[test]
fn while_one_load_thread_is_stalled_the_arrivals_of_the_others_start_on_time() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
    if threads < 2 {
        return;
    }
    let server = FakeServer::start(|_| Reply::Rows(1));
    let connections = u32::try_from(threads * 4).unwrap();
    let mut order = order(server.target(), open(200.0, Arrivals::Constant, connections));
    order.measure_s = 3.0;
    let stalled = threads - 1;
    Agent::with(|mut agent| async move {
        agent.run(&order);
        agent.phase(&order.cell, Phase::Measure).await;
        for _ in 0..2 {
            agent.measured_window().await;
            agent.send(AgentCommand::Stall { thread: stalled, ms: 500 });
        }
        let result = agent.result().await;
        // The stalls hold a third of the cell, 200 arrivals. What the thread had in its hands was
        // late; the others took the rest, the first of each stall after a millisecond.
        let lag = &result.classes.product_lookup.schedule_lag;
        assert_eq!(lag.count(), 600);
        let late = lag.count_above_ms(50.0);
        assert!(late <= 2 * 4, "{late} waited for the stalled thread");
        for sample in &result.runner.threads {
            let was_stalled = sample.loop_lag.max.unwrap() > 400.0 && sample.stalls >= 2;
            let index = usize::try_from(sample.thread).unwrap();
            assert_eq!(was_stalled, index == stalled, "{:?}", result.runner.threads);
        }
        agent.send(AgentCommand::Shutdown);
        drop(server);
    });
}
