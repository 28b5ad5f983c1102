//! Cells one after another: stops, connections that are taken over, openings that fail.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{
    READS, alone,
    fake::{FakeServer, Reply},
    open, order,
};
use crate::{
    load::collector,
    model::{
        AgentCommand, AgentReport, Arrivals, CellEnd, CellId, CellOrder, CellResult,
        ConfigurationId, Load, Phase, TargetAddress,
    },
};

/// The collector with its channels.
pub(super) struct Agent {
    commands: UnboundedSender<AgentCommand>,
    reports: UnboundedReceiver<AgentReport>,
}

impl Agent {
    /// Runs `script` beside the collector.
    pub(super) fn with<F: Future<Output = ()>>(script: impl FnOnce(Self) -> F) {
        alone(async {
            let (commands, inbox) = unbounded_channel();
            let (outbox, reports) = unbounded_channel();
            let agent = Self { commands, reports };
            let serving = collector::serve(
                inbox,
                |_| Ok::<_, String>(READS),
                |report| {
                    let _ = outbox.send(report);
                },
            );
            let (served, ()) = futures_util::join!(serving, script(agent));
            served.unwrap();
        });
    }

    pub(super) fn run(&self, order: &CellOrder) {
        self.send(AgentCommand::Run(Box::new(order.clone())));
    }

    pub(super) fn send(&self, command: AgentCommand) {
        self.commands.send(command).unwrap();
    }

    async fn until<T>(&mut self, mut wanted: impl FnMut(AgentReport) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.reports.recv().await.unwrap()) {
                return found;
            }
        }
    }

    pub(super) async fn phase(&mut self, cell: &CellId, phase: Phase) {
        let wanted = AgentReport::Phase { cell: cell.clone(), phase };
        self.until(|report| (report == wanted).then_some(())).await;
    }

    pub(super) async fn measured_window(&mut self) {
        self.until(|report| match report {
            AgentReport::Window(window) if window.phase == Phase::Measure => Some(()),
            _ => None,
        })
        .await;
    }

    pub(super) async fn result(&mut self) -> CellResult {
        self.until(|report| match report {
            AgentReport::Ended(result) => Some(*result),
            _ => None,
        })
        .await
    }
}

fn long_order(server: &FakeServer, cell: &str) -> CellOrder {
    let mut order = order(server.target(), open(200.0, Arrivals::Poisson, 8));
    order.cell = CellId::new(cell);
    order.measure_s = 600.0;
    order
}

#[test]
fn a_step_keeps_the_result_so_far_and_the_connections() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    Agent::with(|mut agent| async move {
        let first = long_order(&server, "T1-001");
        agent.run(&first);
        agent.measured_window().await;
        let second = long_order(&server, "T1-002");
        let stepped = Instant::now();
        agent.send(AgentCommand::Stop { cell: first.cell.clone() });
        agent.run(&second);
        let result = agent.result().await;
        assert_eq!(result.end, CellEnd::Stopped);
        assert_eq!(result.counts.violated_identity(0), None);
        assert!(result.counts.succeeded > 100 && result.measured_s < 10.0, "{:?}", result.counts);
        agent.phase(&second.cell, Phase::WarmUp).await;
        assert!(stepped.elapsed() < Duration::from_secs(3), "{:?}", stepped.elapsed());
        assert_eq!(server.accepted(), 8, "the connections were taken over");
        agent.send(AgentCommand::Shutdown);
        assert_eq!(agent.result().await.cell, second.cell);
        drop(server);
    });
}

#[test]
fn a_server_is_reached_by_its_name_at_whichever_address_answers() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    Agent::with(|mut agent| async move {
        let mut order = long_order(&server, "T1-001");
        if let TargetAddress::Tcp { host, .. } = &mut order.target.address {
            // It may have an IPv6 address as well, at which nothing listens.
            *host = "localhost".to_owned();
        }
        agent.run(&order);
        agent.phase(&order.cell, Phase::WarmUp).await;
        assert_eq!(server.accepted(), 8);
        agent.send(AgentCommand::Shutdown);
        assert_eq!(agent.result().await.cell, order.cell);
        drop(server);
    });
}

#[test]
fn released_connections_are_closed_and_a_later_cell_opens_its_own() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    Agent::with(|mut agent| async move {
        for (cell, accepted) in [("T1-001", 8), ("T1-002", 16)] {
            let order = long_order(&server, cell);
            agent.run(&order);
            agent.phase(&order.cell, Phase::WarmUp).await;
            assert_eq!(server.accepted(), accepted);
            agent.send(AgentCommand::Stop { cell: order.cell.clone() });
            agent.result().await;
            let configuration = ConfigurationId::new("T1");
            agent.send(AgentCommand::Release { configuration });
        }
        agent.send(AgentCommand::Shutdown);
        drop(server);
    });
}

#[test]
fn a_stop_before_the_beginning_ends_the_cell_with_nothing_measured() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    Agent::with(|mut agent| async move {
        let order = long_order(&server, "T1-001");
        agent.run(&order);
        agent.send(AgentCommand::Stop { cell: order.cell.clone() });
        let result = agent.result().await;
        assert_eq!((result.end, result.counts.offered), (CellEnd::Stopped, 0));
        agent.send(AgentCommand::Shutdown);
        drop(server);
    });
}

#[test]
fn an_opening_that_cannot_work_ends_the_cell_and_says_why() {
    Agent::with(|mut agent| async move {
        let server = FakeServer::start(|_| Reply::Rows(1));
        let mut order = long_order(&server, "T1-001");
        drop(server);
        let crate::model::TargetAddress::Tcp { host, .. } = &mut order.target.address else {
            panic!("the fake server listens on TCP");
        };
        "127.0.0.1".clone_into(host);
        order.target.tls =
            crate::model::TlsMode::Verified { ca_file: Some("/nonexistent/ca.pem".into()) };
        agent.run(&order);
        let result = agent.result().await;
        let CellEnd::Failed { why } = result.end else { panic!("{:?}", result.end) };
        assert!(why.contains("0 of 8 connections"), "{why}");
        agent.send(AgentCommand::Shutdown);
    });
}

#[test]
fn when_the_engine_is_gone_everything_stops_at_once() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    let begun = Instant::now();
    Agent::with(|mut agent| async move {
        let order = long_order(&server, "T1-001");
        agent.run(&order);
        agent.phase(&order.cell, Phase::WarmUp).await;
        drop(agent);
        drop(server);
    });
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn connections_are_replaced_before_their_age_and_no_transaction_sees_it() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    for load in [open(200.0, Arrivals::Constant, 8), Load::Closed { connections: 2 }] {
        let mut order = order(server.target(), load);
        order.measure_s = 3.0;
        // Twice as old as one gets at most: none reaches it.
        order.life.max_age_s = Some(0.8);
        let before = server.accepted();
        let ran = super::run(order, super::WRITES);
        let counts = &ran.result.counts;
        assert_eq!((counts.failed, counts.retries), (0, 0), "{:?}", ran.result.sqlstates);
        assert!(ran.result.sqlstates.is_empty(), "{:?}", ran.result.sqlstates);
        assert_eq!(counts.succeeded, counts.offered);
        // In 3.3 s each is replaced at 0.76 s at the latest, and never before 0.6 s.
        let opened = server.accepted() - before;
        let connections = u64::from(load.connections());
        assert!((connections * 4..=connections * 7).contains(&opened), "{opened}");
    }
}

#[test]
fn a_replacement_that_is_refused_is_counted_and_costs_no_transaction() {
    let server = FakeServer::with_room_for(4, |_| Reply::Rows(1));
    let mut order = order(server.target(), open(200.0, Arrivals::Constant, 4));
    order.life.max_age_s = Some(0.8);
    let ran = super::run(order, super::WRITES);
    let counts = &ran.result.counts;
    assert_eq!((counts.failed, counts.retries), (0, 0), "{:?}", ran.result.sqlstates);
    let refused = ran.result.sqlstates.get("53300").copied().unwrap_or(0);
    // Each connection is tried once a second from 0.6 s on; the warm-up's are not the cell's.
    assert!((4..=12).contains(&refused), "{:?}", ran.result.sqlstates);
}

#[test]
fn connections_are_opened_at_the_pace_that_is_allowed() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    let mut order = order(server.target(), open(200.0, Arrivals::Constant, 12));
    order.measure_s = 0.5;
    (order.life.open_per_second, order.life.open_burst) = (10.0, 4);
    let begun = Instant::now();
    let ran = super::run(order, super::READS);
    // Four at once, eight more at ten a second.
    assert!(begun.elapsed() > Duration::from_millis(800 + 700), "{:?}", begun.elapsed());
    assert_eq!((server.accepted(), ran.result.counts.failed), (12, 0));
}
