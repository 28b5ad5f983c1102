//! A lab on a real server, from its making to the proof that nothing of it is left.

use crate::{
    model::{FaultKind, GateProfile},
    provider::{
        postgres::{self, DatabaseError},
        process, remove,
        testing::{TestRun, recorder, write_script},
        verify,
    },
};

use super::*;

async fn lab(run: &RunId, recorder: &Recorder) -> Lab {
    Lab::start(run, &LabPlan::default(), 16, recorder).await.unwrap()
}

async fn shown(lab: &Lab, setting: &str) -> String {
    let client = target::session(&lab.admin_target("postgres")).await.unwrap();
    client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap().get(0)
}

/// As an operator does it, with `pg_ctl`, to rehearse a crash.
async fn crash_and_restart(lab: &Lab) {
    let account = Account::for_server().unwrap();
    let status = lab
        .command("pg_ctl", account.as_ref())
        .args(["restart", "-w", "-m", "immediate", "-D"])
        .arg(lab.layout.data())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await
        .unwrap();
    assert!(status.success());
}

async fn start_fake_gate(lab: &Lab, script: &Path) -> Result<Gate, GateStartError> {
    let order = GateOrder {
        configuration: ConfigurationId::new("D1"),
        profile: GateProfile { round_trip_ms: 1.5, ..GateProfile::default() },
        faults: vec![crate::model::Fault { after_s: 1.0, for_s: None, kind: FaultKind::Freeze }],
        database: "d1".into(),
        seed: 7,
    };
    lab.start_gate(script, order).await
}

#[tokio::test]
async fn a_lab_lives_through_a_crash_and_is_removed_without_a_trace() {
    let run = TestRun::new();
    let (recorder, records) = recorder();
    let lab = lab(&run.0, &recorder).await;
    assert_eq!(shown(&lab, "listen_addresses").await, "");
    assert_eq!(shown(&lab, "synchronous_commit").await, "on");
    assert_eq!(shown(&lab, "server_encoding").await, "UTF8");

    lab.create_database("template", None).await.unwrap();
    let session = target::session(&lab.admin_target("template")).await.unwrap();
    session.batch_execute("CREATE TABLE t AS SELECT 42 AS a").await.unwrap();
    drop(session);
    lab.clone_database("template", "d1", Some(&ConfigurationId::new("D1"))).await.unwrap();
    let session = target::session(&lab.admin_target("d1")).await.unwrap();
    session.batch_execute("UPDATE t SET a = 43").await.unwrap();

    // As an operator's shell that stands in the data folder.
    let mut bystander = std::process::Command::new("sleep")
        .arg("600")
        .current_dir(lab.layout.data())
        .spawn()
        .unwrap();
    let before = lab.server().unwrap();
    crash_and_restart(&lab).await;
    let after = lab.server().unwrap();
    assert_ne!(before, after);
    assert!(lab.is_alive() && !process::is_alive(&before));
    let session = target::session(&lab.admin_target("d1")).await.unwrap();
    let kept: i32 = session.query_one("SELECT a FROM t", &[]).await.unwrap().get(0);
    assert_eq!(kept, 43, "what was acknowledged outlives the crash");
    assert_eq!(shown(&lab, "listen_addresses").await, "", "settings outlive it as well");

    let script = lab.folder().with_extension("gate");
    write_script(&script, FAKE_GATE);
    let gate = start_fake_gate(&lab, &script).await;
    fs::remove_file(&script).unwrap();
    let mut gate = gate.unwrap();
    gate.status.wait_for(|report| report.is_some_and(|r| r.round_trips == 3)).await.unwrap();
    let process = gate.process;

    let folder = lab.folder().to_owned();
    drop((lab, recorder));
    let resources = records.await.unwrap();
    let kinds: Vec<_> = resources.iter().map(|r| (r.kind, r.state)).collect();
    for kind in
        [ResourceKind::Folder, ResourceKind::Server, ResourceKind::Database, ResourceKind::Gate]
    {
        assert!(kinds.contains(&(kind, ResourceState::Made)), "{kind:?} in {kinds:?}");
    }
    assert!(verify(&run.0, &resources, |_| None).await.len() >= resources.len());
    let mut gone = Vec::new();
    let status = remove(
        &run.0,
        &resources,
        |_| None,
        |item| {
            if item.gone {
                gone.push(item.kind);
            }
        },
    )
    .await;
    assert_eq!(status.remaining_count, 0, "{status:?}");
    assert_eq!(gone.first(), Some(&ResourceKind::Gate), "{gone:?}");
    assert!(!folder.exists() && !process::is_alive(&after) && !process::is_alive(&process));
    assert_eq!(verify(&run.0, &resources, |_| None).await, []);
    let again = remove(&run.0, &resources, |_| None, |_| {}).await;
    assert_eq!(again.remaining_count, 0);
    let unharmed = bystander.try_wait().unwrap().is_none();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(unharmed, "whoever stands in the data folder is not the server's");
}

const FAKE_GATE: &str = r#"#!/bin/sh
read -r config
case $config in *'"round_trip_ms":1.5'*) ;; *) exit 1 ;; esac
echo '{"listening":5555}'
echo '{"cpu_percent":1.5,"connections":2,"round_trips":3}'
exec cat >/dev/null
"#;

#[tokio::test]
async fn what_was_made_without_a_record_is_found_by_its_mark() {
    let run = TestRun::new();
    let (recorder, records) = recorder();
    let lab = lab(&run.0, &recorder).await;
    let (folder, server) = (lab.folder().to_owned(), lab.server().unwrap());
    drop((lab, recorder));
    drop(records.await.unwrap());
    let found = verify(&run.0, &[], |_| None).await;
    let kinds: Vec<_> = found.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [ResourceKind::Server, ResourceKind::Folder]);
    let status = remove(&run.0, &[], |_| None, |_| {}).await;
    assert_eq!(status.remaining_count, 0, "{status:?}");
    assert!(!folder.exists() && !process::is_alive(&server));
    assert_eq!(verify(&run.0, &[], |_| None).await, []);
}

#[tokio::test]
async fn a_schema_is_made_marked_and_only_then_dropped() {
    let run = TestRun::new();
    let (recorder, records) = recorder();
    let lab = lab(&run.0, &recorder).await;
    let facts = postgres::preflight(&lab.admin_target("postgres")).await.unwrap();
    assert_eq!(facts.max_connections, 36);
    assert!(facts.connections_in_use >= 1);
    assert!(facts.clock_offset_ms.abs() <= facts.round_trip_ms + 1_000.0, "{facts:?}");

    let target = TargetSpec { schema: "it's \"ours\"".into(), ..lab.admin_target("postgres") };
    let d1 = ConfigurationId::new("D1");
    postgres::make_schema(&target, &run.0, &d1, &recorder).await.unwrap();
    postgres::make_schema(&target, &run.0, &d1, &recorder).await.unwrap();
    let other = RunId::new("other");
    let refused = postgres::make_schema(&target, &other, &d1, &recorder).await.unwrap_err();
    assert!(matches!(&refused, DatabaseError::NotOurs { .. }), "{refused}");
    let session = target::session(&target).await.unwrap();
    session.batch_execute("CREATE TABLE \"it's \"\"ours\"\"\".t (a int)").await.unwrap();

    drop(recorder);
    let folder = lab.folder().to_owned();
    drop(lab);
    let mut resources = records.await.unwrap();
    resources.retain(|r| r.kind == ResourceKind::Schema);
    assert_eq!(resources.len(), 1);
    assert!(postgres::schema_of(&target, &run.0).await.unwrap());
    assert!(postgres::drop_schema(&target, &other).await.is_err());
    let mut holder = target::session(&target).await.unwrap();
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE \"it's \"\"ours\"\"\".t").await.unwrap();
    let refused = postgres::drop_schema(&target, &run.0).await.unwrap_err().to_string();
    assert!(refused.ends_with("is locked by another session"), "{refused}");
    lock.rollback().await.unwrap();

    let nowhere = |_: &Resource| None;
    let unseen = verify(&run.0, &resources, nowhere).await;
    let of_schema = |r: &&crate::provider::Remaining| r.kind == ResourceKind::Schema;
    let why = &unseen.iter().find(of_schema).unwrap().why;
    assert!(why.starts_with("cannot be looked at: "), "{why}");
    let gone = [Resource { state: ResourceState::Gone, ..resources[0].clone() }];
    assert_eq!(verify(&run.0, &gone, nowhere).await.iter().find(of_schema), None);
    let target_of = |_: &Resource| Some(target.clone());
    assert!(verify(&run.0, &gone, target_of).await.iter().any(|r| of_schema(&r)), "it lies");
    let mut states = Vec::new();
    let status = remove(&run.0, &resources, target_of, |item| states.push(item.clone())).await;
    assert_eq!(status.remaining_count, 0, "{states:?}");
    assert!(states[0].kind == ResourceKind::Schema && !folder.exists());
}

#[tokio::test]
async fn a_gate_that_does_not_start_says_why() {
    let run = TestRun::new();
    let (recorder, _records) = recorder();
    let layout = Layout::of(&run.0);
    layout.make(&run.0, None).unwrap();
    let binaries = Binaries::find(None).unwrap();
    let lab = Lab { run: run.0.clone(), layout, binaries, recorder };
    let script = lab.folder().join("gate");
    write_script(&script, "#!/bin/sh\necho 'no descriptors left' >&2\nexit 1\n");
    let error = start_fake_gate(&lab, &script).await.unwrap_err().to_string();
    assert!(error.contains("D1") && error.contains("no descriptors left"), "{error}");
    let error = start_fake_gate(&lab, Path::new("/nowhere")).await.unwrap_err().to_string();
    assert!(error.contains("/nowhere"), "{error}");
}
