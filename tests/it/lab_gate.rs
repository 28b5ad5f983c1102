//! A real client through a real gate process to a real server of the lab.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use rampdeck::{
    model::{ConfigurationId, Fault, FaultKind, GateProfile, Resource, RunId, TargetSpec},
    plan::LabPlan,
    provider::{
        Recorder, RecorderMessage,
        lab::{Gate, GateOrder, Lab},
        process, remove, remove_only, verify,
    },
};
use tokio_postgres::{Client, NoTls};

/// A lab that is removed at the test's end, also of one that fails.
struct TestLab {
    run: RunId,
    lab: Lab,
    /// What was made, as it was recorded last.
    made: Arc<Mutex<Vec<Resource>>>,
}

impl TestLab {
    async fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let run = RunId::new(format!("test-gate-{}-{count}", std::process::id()));
        let (recorder, mut messages) = Recorder::channel();
        let made = Arc::new(Mutex::new(Vec::new()));
        let records = Arc::clone(&made);
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                match message {
                    RecorderMessage::Intend { on_disk, .. } => on_disk.send(Ok(())).unwrap(),
                    RecorderMessage::Made { resource } => records.lock().unwrap().push(resource),
                    _ => {}
                }
            }
        });
        let lab = Lab::start(&run, &LabPlan::default(), 16, &recorder).await.unwrap();
        let this = Self { run, lab, made };
        this.lab.create_database("d1", None).await.unwrap();
        let admin = connect(&this.lab.admin_target("d1")).await;
        admin.batch_execute("CREATE TABLE t (a int)").await.unwrap();
        this
    }

    async fn gate(&self, profile: GateProfile, faults: Vec<Fault>) -> Gate {
        self.gate_of("D1", "d1", profile, faults).await
    }

    async fn gate_of(
        &self,
        configuration: &str,
        database: &str,
        profile: GateProfile,
        faults: Vec<Fault>,
    ) -> Gate {
        let order = GateOrder {
            configuration: ConfigurationId::new(configuration),
            profile,
            faults,
            database: database.into(),
            seed: 1,
        };
        let exe = Path::new(env!("CARGO_BIN_EXE_rampdeck"));
        self.lab.start_gate(exe, order).await.unwrap()
    }

    async fn rows(&self) -> i64 {
        let admin = connect(&self.lab.admin_target("d1")).await;
        admin.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0)
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        let run = self.run.clone();
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                remove(&run, &[], |_| None, |_| {}).await;
                verify(&run, &[], |_| None).await
            })
        });
        let remaining = removal.join().unwrap_or_default();
        assert!(remaining.is_empty() || std::thread::panicking(), "{remaining:?}");
    }
}

async fn connect(target: &TargetSpec) -> Client {
    rampdeck::target::session(target).await.unwrap()
}

fn at_once(kind: FaultKind) -> Vec<Fault> {
    vec![Fault { after_s: 0.0, for_s: None, kind }]
}

#[tokio::test]
async fn round_trips_and_commits_cost_what_the_profile_says() {
    let lab = TestLab::start().await;
    let profile = GateProfile {
        round_trip_ms: 40.0,
        commit_write_ms: 900.0,
        commit_read_ms: 60.0,
        ..GateProfile::default()
    };
    let gate = lab.gate(profile, Vec::new()).await;
    let mut client = connect(&gate.target).await;
    let started = Instant::now();
    for _ in 0..3 {
        client.query_one("SELECT 1", &[]).await.unwrap();
    }
    // The text is prepared first: two round trips each.
    assert!(started.elapsed() >= Duration::from_millis(6 * 40), "{:?}", started.elapsed());

    let started = Instant::now();
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("SELECT count(*) FROM t").await.unwrap();
    transaction.commit().await.unwrap();
    let reading = started.elapsed();
    assert!(reading >= Duration::from_millis(3 * 40 + 60), "{reading:?}");
    assert!(reading < Duration::from_millis(900), "{reading:?}");

    let started = Instant::now();
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    transaction.commit().await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(3 * 40 + 900), "{:?}", started.elapsed());
    assert_eq!(lab.rows().await, 1);

    let mut status = gate.status.clone();
    let report = status.wait_for(|r| r.is_some_and(|r| r.round_trips >= 12)).await.unwrap();
    assert_eq!(report.unwrap().connections, 1);
}

#[tokio::test]
async fn copy_and_many_rows_pass() {
    let lab = TestLab::start().await;
    let profile = GateProfile { round_trip_ms: 2.0, ..GateProfile::default() };
    let gate = lab.gate(profile, Vec::new()).await;
    let client = connect(&gate.target).await;
    let sink = client.copy_in("COPY t FROM STDIN").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    for n in 0..100 {
        let rows: String = (0..1_000).map(|i| format!("{}\n", n * 1_000 + i)).collect();
        futures_util::SinkExt::send(&mut sink, bytes::Bytes::from(rows)).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 100_000);
    let rows = client.query("SELECT a, repeat('x', 50) FROM t ORDER BY a", &[]).await.unwrap();
    assert_eq!(rows.len(), 100_000);
    assert!(rows.iter().enumerate().all(|(n, row)| row.get::<_, i32>(0) as usize == n));
    assert_eq!(client.query("SELECT 1", &[]).await.unwrap().len(), 1, "still in step");
}

#[tokio::test]
async fn a_failed_commit_leaves_nothing_and_a_cut_one_leaves_its_row() {
    let lab = TestLab::start().await;
    let fail = FaultKind::FailCommit { sqlstate: "40001".into(), every: 1 };
    let gate = lab.gate(GateProfile::default(), at_once(fail)).await;
    let mut client = connect(&gate.target).await;
    for _ in 0..2 {
        let transaction = client.transaction().await.unwrap();
        transaction.execute("INSERT INTO t VALUES ($1)", &[&1_i32]).await.unwrap();
        let error = transaction.commit().await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "40001");
    }
    client.batch_execute("BEGIN").await.unwrap();
    client.execute_typed("INSERT INTO t VALUES (1)", &[]).await.unwrap();
    let error = client.execute_typed("COMMIT", &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "40001");
    client.batch_execute("SELECT 1").await.unwrap();
    assert_eq!(lab.rows().await, 0);
    gate.stop().await.unwrap();

    let gate =
        lab.gate(GateProfile::default(), at_once(FaultKind::CutAfterCommit { every: 1 })).await;
    let mut client = connect(&gate.target).await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute("INSERT INTO t VALUES ($1)", &[&1_i32]).await.unwrap();
    assert!(transaction.commit().await.unwrap_err().code().is_none());
    assert_eq!(lab.rows().await, 1);
}

#[tokio::test]
async fn a_statement_can_be_cancelled_through_the_gate() {
    let lab = TestLab::start().await;
    let gate = lab.gate(GateProfile::default(), Vec::new()).await;
    let client = connect(&gate.target).await;
    let cancel = client.cancel_token();
    let admin = connect(&lab.lab.admin_target("d1")).await;
    let sleeping = tokio::spawn(async move { client.batch_execute("SELECT pg_sleep(600)").await });
    let runs = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' \
                AND state = 'active'";
    while admin.query_one(runs, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cancel.cancel_query(NoTls).await.unwrap();
    let error = sleeping.await.unwrap().unwrap_err();
    assert_eq!(error.code().unwrap().code(), "57014", "{error}");
}

#[tokio::test]
async fn a_gate_ends_with_its_pipe_and_can_be_told_from_others() {
    let lab = TestLab::start().await;
    let gate = lab.gate(GateProfile::default(), Vec::new()).await;
    let process = gate.process;
    assert!(gate.is_alive());
    assert_eq!(
        process::of_run(&lab.run),
        if cfg!(target_os = "linux") { vec![process] } else { vec![] }
    );
    drop(gate);
    assert!(process::gone_within(&process, Duration::from_secs(30)).await);
}

#[tokio::test]
async fn one_configuration_is_taken_out_and_the_others_live_on() {
    let lab = TestLab::start().await;
    let r1 = ConfigurationId::new("R1");
    lab.lab.create_database("r1", Some(&r1)).await.unwrap();
    let kept = lab.gate(GateProfile::default(), Vec::new()).await;
    let taken = lab.gate_of("R1", "r1", GateProfile::default(), Vec::new()).await;
    let (kept_client, taken_client) = (connect(&kept.target).await, connect(&taken.target).await);
    taken_client.batch_execute("SELECT 1").await.unwrap();
    let admin = lab.lab.admin_target("postgres");
    let admin_session = connect(&admin).await;
    let mut its_own = Vec::new();
    while its_own.len() < 2 {
        let all = lab.made.lock().unwrap().clone();
        its_own = all.into_iter().filter(|r| r.configuration.as_ref() == Some(&r1)).collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    for _ in 0..2 {
        let status = remove_only(&lab.run, &its_own, |_| Some(admin.clone()), |_| {}).await;
        assert_eq!((status.remaining_count, status.items.len()), (0, 2), "{status:?}");
    }
    assert!(!process::is_alive(&taken.process) && kept.is_alive() && lab.lab.is_alive());
    kept_client.batch_execute("SELECT count(*) FROM t").await.unwrap();
    let databases = "SELECT datname FROM pg_database WHERE datname IN ('d1', 'r1')";
    let left = admin_session.query(databases, &[]).await.unwrap();
    assert_eq!(left.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["d1"]);
}
