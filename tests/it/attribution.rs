//! Who is blamed for a tail: the agent, as a process of its own, against an endpoint whose every
//! delay is known. The generator is stopped, one of its threads is stalled, the endpoint stalls,
//! and the connections are too few; each must be told apart from the others.

use std::{
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rampdeck::{
    engine::{JudgeInput, judge},
    link::{FrameReader, FrameWriter},
    model::{
        AgentCommand, AgentReport, Arrivals, AttemptRange, Blamed, CellId, CellOrder, CellResult,
        ConfigurationId, ConnectionLife, InvariantReport, LatencyObjective, Load, Mix, Phase,
        Reason, ReasonCode, RetryPolicy, RoundTrips, Shape, Slo, TargetAddress, TargetSpec,
        Verdict, WorkloadSpec,
    },
    report::tail_words,
    wire::{NullEndpoint, NullScript, Stall},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::PATIENCE;

/// The cells run one at a time: two at once on a small machine would measure each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What the endpoint takes for each round trip.
const ROUND_TRIP: Duration = Duration::from_millis(10);
const STALL: Duration = Duration::from_millis(250);
/// From one stall's beginning to the next one's.
const EVERY: Duration = Duration::from_millis(1_250);
const STALLS: u32 = 4;

/// The agent's process and its frames; it ends when this is dropped.
struct Agent {
    child: tokio::process::Child,
    reader: FrameReader<tokio::process::ChildStdout>,
    writer: FrameWriter<tokio::process::ChildStdin>,
}

impl Agent {
    fn start() -> Self {
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_rampdeck"))
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let reader = FrameReader::new(child.stdout.take().unwrap());
        let writer = FrameWriter::new(child.stdin.take().unwrap());
        Self { child, reader, writer }
    }

    async fn send(&mut self, command: AgentCommand) {
        self.writer.send(&command).await.unwrap();
    }

    async fn until<T>(&mut self, mut wanted: impl FnMut(AgentReport) -> Option<T>) -> T {
        loop {
            let report = self.reader.next().await.unwrap().expect("the agent goes on");
            if let Some(found) = wanted(report) {
                return found;
            }
        }
    }

    async fn measured_window(&mut self) {
        self.until(|report| match report {
            AgentReport::Window(window) if window.phase == Phase::Measure => Some(()),
            _ => None,
        })
        .await;
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

/// What is done to the generator in the measured span, [`STALLS`] times.
#[derive(Clone, Copy)]
enum Disturb {
    Nothing,
    /// All of the agent.
    Agent,
    /// One load thread of it.
    #[cfg(debug_assertions)]
    Thread(usize),
}

fn order(endpoint: &NullEndpoint, rate: f64, connections: u32) -> CellOrder {
    CellOrder {
        cell: CellId::new("N1-001"),
        configuration: ConfigurationId::new("N1"),
        target: TargetSpec::plain(
            TargetAddress::loopback(endpoint.addr().port()),
            "tester",
            "shop",
            "shop",
        ),
        load: Load::Open { rate, arrivals: Arrivals::Poisson, connections },
        warmup_s: 1.5,
        measure_s: 6.0,
        drain_s: 10.0,
        seed: 11,
        attempt: AttemptRange {
            ordinal: 1,
            first_id: 1 << 40,
            ids: 1 << 20,
            prefix: "n.1.".into(),
        },
        workload: WorkloadSpec { mix: Mix::default(), scale: 0.001 },
        retry: RetryPolicy::default(),
        backlog: None,
        shape: Shape::default(),
        life: ConnectionLife::default(),
    }
}

/// Runs a cell in an agent of its own.
fn run(order: CellOrder, disturb: Disturb) -> CellResult {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cell = order.cell.clone();
    runtime.block_on(async {
        let ran = async {
            let mut agent = Agent::start();
            agent.send(AgentCommand::Run(Box::new(order))).await;
            let measuring = AgentReport::Phase { cell, phase: Phase::Measure };
            agent.until(|report| (report == measuring).then_some(())).await;
            let stalls = if matches!(disturb, Disturb::Nothing) { 0 } else { STALLS };
            for _ in 0..stalls {
                // A window lasts a second and begins where the one before it ended.
                agent.measured_window().await;
                match disturb {
                    Disturb::Nothing => {}
                    Disturb::Agent => {
                        agent.signal(Signal::STOP);
                        // How long the stop lasts is what is tested.
                        tokio::time::sleep(STALL).await;
                        agent.signal(Signal::CONT);
                    }
                    #[cfg(debug_assertions)]
                    Disturb::Thread(thread) => {
                        let ms = u64::try_from(STALL.as_millis()).unwrap();
                        agent.send(AgentCommand::Stall { thread, ms }).await;
                    }
                }
            }
            let result = agent
                .until(|report| match report {
                    AgentReport::Ended(result) => Some(*result),
                    _ => None,
                })
                .await;
            agent.send(AgentCommand::Shutdown).await;
            assert!(agent.child.wait().await.unwrap().success());
            result
        };
        tokio::time::timeout(PATIENCE, ran).await.unwrap()
    })
}

/// The verdict under limits that a stall breaks, and that a busy machine's noise does not.
fn judged(result: &CellResult) -> (Verdict, Vec<Reason>) {
    let limit = LatencyObjective { p95_ms: 180.0, p99_ms: 180.0 };
    judge(&JudgeInput {
        slo: &Slo { read: limit, write: limit, failed_percent: 1.0 },
        mix: &Mix::default(),
        result,
        invariants: Some(&InvariantReport { checked: 1, ..InvariantReport::default() }),
        beside: &[],
        rehearsal: false,
        cut: None,
        stepped: None,
    })
}

fn blamed(result: &CellResult) -> Blamed {
    result.tail.mean_above(0.99).unwrap().blamed()
}

fn endpoint(stalls: Vec<Stall>) -> NullEndpoint {
    let script = NullScript { reply_delay: ROUND_TRIP, stalls, ..NullScript::default() };
    NullEndpoint::start(script).unwrap()
}

#[test]
fn an_agent_that_is_stopped_is_blamed_itself() {
    let endpoint = endpoint(Vec::new());
    let result = run(order(&endpoint, 200.0, 12), Disturb::Agent);
    assert_eq!(blamed(&result), Blamed::Generator, "{}", tail_words(&result));
    assert!(tail_words(&result).ends_with("stalled"), "{}", tail_words(&result));
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Invalid, "{reasons:?}");
    assert_eq!(reasons[0].code, ReasonCode::Generator, "{reasons:?}");
    assert!(result.runner.threads.iter().all(|thread| thread.stalls >= u64::from(STALLS)));
}

/// The hook that stalls a thread is not in a release.
#[cfg(debug_assertions)]
#[test]
fn one_stalled_load_thread_is_named_and_the_others_take_its_arrivals() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let endpoint = endpoint(Vec::new());
    let result = run(order(&endpoint, 200.0, 24), Disturb::Thread(1));
    assert_eq!(blamed(&result), Blamed::Generator, "{}", tail_words(&result));
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Invalid, "{reasons:?}");
    let named = |reason: &&Reason| reason.text.starts_with("loop lag of thread 1 p99");
    assert!(reasons.iter().any(|reason| named(&reason)), "{reasons:?}");
    let stalls = |thread: u32| {
        result.runner.threads.iter().find(|sample| sample.thread == thread).unwrap().stalls
    };
    assert!(stalls(1) >= u64::from(STALLS), "{:?}", result.runner.threads);
    // 200 arrivals fell into the four stalls. Late is only what the thread had in its hands.
    let late: u64 = result.classes.iter().map(|(_, c)| c.response.count_above_ms(150.0)).sum();
    assert!(late <= 60, "{late} were held up");
}

#[test]
fn an_endpoint_that_stalls_is_the_database_for_all_that_waited_for_it() {
    let stalls = (0..STALLS)
        .map(|n| Stall {
            after_first_query: Duration::from_millis(2_500) + EVERY * n,
            length: STALL,
        })
        .collect();
    let endpoint = endpoint(stalls);
    // Few connections: most arrivals of a stall wait for one that it holds.
    let result = run(order(&endpoint, 200.0, 12), Disturb::Nothing);
    assert_eq!(blamed(&result), Blamed::Database, "{}", tail_words(&result));
    let slow = result.tail.mean_above(0.9).unwrap();
    assert_eq!(slow.blamed(), Blamed::Database, "{slow:?}");
    assert!(slow.wait_on_database_ms > slow.connection_wait_ms / 2.0, "{slow:?}");
    assert!(slow.connection_wait_ms > 1.0, "{slow:?}");
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail, "{} {reasons:?}", tail_words(&result));
    assert_eq!(reasons[0].code, ReasonCode::Latency);
}

#[test]
fn too_few_connections_for_ordinary_service_are_the_pools() {
    let endpoint = endpoint(Vec::new());
    let mut order = order(&endpoint, 300.0, 4);
    order.backlog = Some(100);
    let result = run(order, Disturb::Nothing);
    assert_eq!(blamed(&result), Blamed::Pool, "{}", tail_words(&result));
    let (verdict, reasons) = judged(&result);
    assert_eq!(verdict, Verdict::Fail, "{reasons:?}");
    assert_eq!(reasons[0].code, ReasonCode::Overload);
    assert!(reasons[0].text.contains("ms pool"), "{}", reasons[0].text);
}

#[test]
fn a_fast_database_looks_fast_at_five_thousand_a_second_or_the_cell_is_invalid() {
    let reply_delay = Duration::from_micros(200);
    let script = NullScript { reply_delay, ..NullScript::default() };
    let endpoint = NullEndpoint::start(script).unwrap();
    let mut order = order(&endpoint, 5_000.0, 16);
    // One round trip each.
    order.workload.mix =
        Mix { product_lookup: 100, order_history: 0, order_create: 0, order_cancel: 0 };
    order.shape.round_trips = RoundTrips::Pipelined;
    order.measure_s = 3.0;
    let result = run(order, Disturb::Nothing);
    let parts = &result.classes.product_lookup;
    let p50 = parts.response.quantile_ms(0.5).unwrap();
    let late = parts.schedule_lag.quantile_ms(0.5).unwrap();
    let (verdict, reasons) = judged(&result);
    let owned_up = verdict == Verdict::Invalid && reasons[0].code == ReasonCode::Generator;
    assert!(p50 - late < 0.5 || owned_up, "p50 {p50} ms, schedule lag {late} ms, {reasons:?}");
}
