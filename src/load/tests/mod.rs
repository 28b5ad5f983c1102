//! The load core against a scripted server, and against a real one.
//!
//! The cells run one at a time: two at once on a small machine would measure each other.

mod agent;
mod attribution;
mod business;
mod cells;
mod fake;
mod outcomes;
mod pools;
mod timing;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::cell::{self, Ran};
use crate::{
    model::{
        Arrivals, AttemptRange, CellId, CellOrder, Class, ConfigurationId, ConnectionLife, Load,
        Mix, RetryPolicy, Shape, TargetSpec, WorkloadSpec,
    },
    target::{Request, Session, SessionError, Statement},
    workload::{AttemptError, Done, Reached, Workload},
};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a test's cells with the machine to themselves.
fn alone<T>(work: impl Future<Output = T>) -> T {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), work).await.unwrap() })
}

/// Runs one cell and checks what must hold of every cell.
fn run(order: CellOrder, workload: impl Workload) -> Ran {
    let ran = alone(cell::run(order, workload)).unwrap();
    check(&ran);
    ran
}

/// The identities: in every window, from window to window, and of the cell.
fn check(ran: &Ran) {
    let mut in_flight = 0;
    for (seq, window) in ran.windows.iter().enumerate() {
        assert_eq!(window.seq, seq as u64);
        assert_eq!(window.in_flight_before, in_flight, "window {seq}");
        assert_eq!(window.counts.violated_identity(in_flight), None, "window {seq}");
        let recorded: u64 = Class::ALL.iter().map(|c| window.classes[*c].response.count()).sum();
        assert_eq!(recorded, window.counts.succeeded, "window {seq}");
        in_flight = window.counts.in_flight;
    }
    let counts = &ran.result.counts;
    assert_eq!(counts.violated_identity(0), None);
    let failed: u64 = ran.result.failed.iter().map(|(_, failed)| failed).sum();
    assert!(failed <= counts.failed && counts.failed <= failed + counts.never_attempted);
    assert_eq!(ran.result.unknown.iter().map(|(_, unknown)| unknown).sum::<u64>(), counts.unknown);
    let recorded: u64 = Class::ALL.iter().map(|c| ran.result.classes[*c].response.count()).sum();
    assert_eq!(recorded, ran.result.counts.succeeded, "nothing interpolated, nothing lost");
}

fn order(target: TargetSpec, load: Load) -> CellOrder {
    CellOrder {
        cell: CellId::new("T1-001"),
        configuration: ConfigurationId::new("T1"),
        target,
        load,
        warmup_s: 0.3,
        measure_s: 2.0,
        drain_s: 10.0,
        seed: 7,
        attempt: AttemptRange { ordinal: 1, first_id: 1, ids: 1 << 20, prefix: "t.1.".into() },
        workload: WorkloadSpec { mix: Mix::default(), scale: 0.001 },
        retry: RetryPolicy { base_ms: 1.0, cap_ms: 20.0, ..RetryPolicy::default() },
        backlog: None,
        shape: Shape::default(),
        life: ConnectionLife::default(),
    }
}

fn open(rate: f64, arrivals: Arrivals, connections: u32) -> Load {
    Load::Open { rate, arrivals, connections }
}

/// One round trip; where it fails, `reached` is how far the transaction had come.
async fn ask<S: Session>(
    session: &mut S,
    text: &str,
    reached: Reached,
) -> Result<(), AttemptError> {
    let asked = session.trip(&[Request::Text(text)]).await;
    asked.map(|_| ()).map_err(|failed| AttemptError { reached, error: failed.error })
}

/// Transactions of the scripted server: `WORK <ordinal>`, and for writes `COMMIT <ordinal>`.
struct Scripted {
    class: Class,
}

impl Workload for Scripted {
    type Transaction = u64;

    fn statements(&self) -> &[Statement] {
        &[]
    }

    fn draw(&self, arrival: u64) -> u64 {
        arrival
    }

    fn class(&self, _: &u64) -> Class {
        self.class
    }

    async fn attempt<S: Session>(
        &self,
        session: &mut S,
        transaction: &u64,
    ) -> Result<Done, AttemptError> {
        ask(session, &format!("WORK {transaction}"), Reached::BeforeCommit).await?;
        if self.class.is_write() {
            ask(session, &format!("COMMIT {transaction}"), Reached::CommitSent).await?;
        }
        Ok(Done::Committed)
    }

    async fn look_up<S: Session>(
        &self,
        session: &mut S,
        transaction: &u64,
    ) -> Result<bool, SessionError> {
        let text = format!("LOOK {transaction}");
        let replies = session.trip(&[Request::Text(&text)]).await.map_err(|failed| failed.error)?;
        Ok(replies.affected(0) == 1)
    }

    fn committed(&self, _: &u64) {}
}

const READS: Scripted = Scripted { class: Class::ProductLookup };
const WRITES: Scripted = Scripted { class: Class::OrderCreate };
