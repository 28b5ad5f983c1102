//! The loader's way into DSQL, against a relay in front of PostgreSQL that answers a few things as DSQL
//! does (no COPY, no VACUUM, indexes by jobs that are valid later, limits of a transaction) and that
//! fails on a plan.

use std::{
    future::pending,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{tests::digest, *};
use crate::{
    model::{Dialect, TargetAddress, TargetSpec},
    target::testing::TestServer,
    workload::testing::Shop,
};

const SCALE: f64 = 0.002;
/// How often an index must have been looked at before it becomes valid.
const LOOKS: usize = 3;

/// What the relay does to INSERTs and connections: each so many'th (0: none).
#[derive(Clone, Copy, Default)]
struct Faults {
    unavailable: u64,
    conflict: u64,
    /// The statement goes out, its answer never comes.
    cut: u64,
    too_many_connections: u64,
}

#[derive(Default)]
struct Seen {
    inserts: AtomicU64,
    connections: AtomicU64,
    most_rows: AtomicUsize,
    most_bytes: AtomicUsize,
    faults: AtomicU64,
    looks: AtomicUsize,
    jobs_waited_for: AtomicUsize,
    /// Statements that DSQL does not have.
    refused: Mutex<Vec<String>>,
}

struct Relay {
    target: TargetSpec,
    seen: Arc<Seen>,
    _accepting: AbortOnDropHandle<()>,
}

impl Relay {
    async fn start(behind: &TargetSpec, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let TargetAddress::Unix { directory, port: number } = &behind.address else { panic!() };
        let socket = directory.join(format!(".s.PGSQL.{number}"));
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(relay(client, socket.clone(), faults, Arc::clone(&shared)));
            }
        });
        let target = TargetSpec {
            dialect: Dialect::Dsql,
            ..TargetSpec::plain(
                TargetAddress::loopback(port),
                &behind.user,
                &behind.database,
                &behind.schema,
            )
        };
        Self { target, seen, _accepting: AbortOnDropHandle::new(accepting) }
    }
}

async fn relay(client: TcpStream, socket: PathBuf, faults: Faults, seen: Arc<Seen>) {
    let number = seen.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let server = UnixStream::connect(socket).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let Ok(length) = from_client.read_u32().await else { return };
    let mut startup = vec![0; length as usize - 4];
    if from_client.read_exact(&mut startup).await.is_err() {
        return;
    }
    if each(number, faults.too_many_connections) {
        seen.faults.fetch_add(1, Ordering::Relaxed);
        let fields = b"SFATAL\0VFATAL\0C53300\0Mtoo many connections\0\0";
        to_client.write_all(&message(b'E', fields)).await.ok();
        return;
    }
    to_server.write_u32(length).await.unwrap();
    to_server.write_all(&startup).await.unwrap();
    let back = async {
        tokio::io::copy(&mut from_server, &mut to_client).await.ok();
    };
    let forth = async {
        while let Ok(kind) = from_client.read_u8().await {
            let length = from_client.read_u32().await.unwrap();
            let mut body = vec![0; length as usize - 4];
            from_client.read_exact(&mut body).await.unwrap();
            let passed = pass(kind, body, faults, &seen);
            to_server.write_all(&passed.message).await.unwrap();
            if passed.cut {
                // Long enough for it to be committed, or not.
                tokio::task::yield_now().await;
                return;
            }
        }
    };
    tokio::select! {
        () = back => {}
        () = forth => {}
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

fn each(number: u64, of: u64) -> bool {
    of > 0 && number.is_multiple_of(of)
}

struct Passed {
    message: Vec<u8>,
    cut: bool,
}

fn pass(kind: u8, body: Vec<u8>, faults: Faults, seen: &Seen) -> Passed {
    let text = String::from_utf8_lossy(&body).into_owned();
    if kind == b'P' && text.contains("indisvalid") {
        seen.looks.fetch_add(1, Ordering::Relaxed);
    }
    let absent = ["COPY ", "VACUUM", "SET ", "ADD PRIMARY KEY", "TRUNCATE", "SAVEPOINT"];
    if matches!(kind, b'P' | b'Q') && absent.iter().any(|word| text.contains(word)) {
        seen.refused.lock().unwrap().push(text.clone());
    }
    let mut cut = false;
    let sql = (kind == b'Q').then(|| {
        let sql = text.trim_end_matches('\0');
        let (sql, cuts) = as_dsql(sql, faults, seen);
        cut = cuts;
        sql
    });
    let body = sql.map_or(body, |sql| [sql.as_bytes(), b"\0"].concat());
    Passed { message: message(kind, &body), cut }
}

/// What the server behind is asked in its place, and whether the connection ends with it.
fn as_dsql(sql: &str, faults: Faults, seen: &Seen) -> (String, bool) {
    if sql.starts_with("ANALYZE") {
        return (raise("0A000", "unsupported statement"), false);
    }
    if sql.starts_with("SELECT sys.wait_for_job(") {
        return (raise("42809", "wait_for_job is a procedure"), false);
    }
    if sql.starts_with("CALL sys.wait_for_job(") {
        seen.jobs_waited_for.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(rest) = sql.strip_prefix("CREATE INDEX ASYNC ") {
        let name = rest.split(' ').next().unwrap();
        return (
            format!("SELECT sys.begin('CREATE INDEX {rest}', 'shop.{name}') AS job_id"),
            false,
        );
    }
    if !sql.starts_with("INSERT") || sql.contains("load_chunks") {
        return (sql.to_owned(), false);
    }
    let rows = sql.matches("\n(").count();
    seen.most_rows.fetch_max(rows, Ordering::Relaxed);
    seen.most_bytes.fetch_max(sql.len(), Ordering::Relaxed);
    if rows > 3_000 || sql.len() > 10 * 1024 * 1024 {
        return (raise("54000", "transaction row limit exceeded"), false);
    }
    let number = seen.inserts.fetch_add(1, Ordering::Relaxed) + 1;
    let unavailable = each(number, faults.unavailable);
    let (conflict, cut) = (each(number, faults.conflict), each(number, faults.cut));
    seen.faults.fetch_add(u64::from(unavailable || conflict || cut), Ordering::Relaxed);
    match (unavailable, conflict) {
        (true, _) => (raise("XX000", "server unavailable"), false),
        (_, true) => (raise("40001", "change conflicts with another transaction (OC000)"), false),
        _ => (sql.to_owned(), cut),
    }
}

fn raise(code: &str, text: &str) -> String {
    format!("DO $$ BEGIN RAISE EXCEPTION '{text}' USING ERRCODE = '{code}'; END $$")
}

/// A database with DSQL's jobs, which say at once that they stand so; an index becomes valid later, if
/// somebody makes it so.
async fn database(server: &TestServer, jobs: &str) -> TargetSpec {
    let target = server.database().await;
    let client = crate::target::session(&target).await.unwrap();
    client
        .batch_execute(&format!(
            "CREATE SCHEMA sys;
             CREATE TABLE sys.jobs (job_id text, status text);
             CREATE FUNCTION sys.begin(create_index text, name text) RETURNS text LANGUAGE plpgsql AS
             $$ BEGIN
                 EXECUTE create_index;
                 UPDATE pg_index SET indisvalid = false WHERE indexrelid = name::regclass;
                 INSERT INTO sys.jobs VALUES ('job-' || name, '{jobs}');
                 RETURN 'job-' || name;
             END $$;
             CREATE PROCEDURE sys.wait_for_job(id text) LANGUAGE plpgsql AS $$ BEGIN END $$;",
        ))
        .await
        .unwrap();
    target
}

/// Makes indexes valid, each only after the loader has looked at some index several times.
async fn build(target: &TargetSpec, seen: &Seen) {
    let client = crate::target::session(target).await.unwrap();
    let mut looked = 0;
    loop {
        while seen.looks.load(Ordering::Relaxed) < looked + LOOKS {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let next = "UPDATE pg_index SET indisvalid = true WHERE indexrelid = (SELECT indexrelid \
             FROM pg_index WHERE NOT indisvalid LIMIT 1)";
        if client.execute(next, &[]).await.unwrap() == 1 {
            looked = seen.looks.load(Ordering::Relaxed);
        } else {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

async fn invalid_indexes(target: &TargetSpec) -> i64 {
    let client = crate::target::session(target).await.unwrap();
    let query = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn assert_exact(target: &TargetSpec) {
    let shop = Shop::of(target.clone()).await;
    let plain = Shop::load(SCALE).await;
    assert_eq!(digest(&shop).await, digest(&plain).await, "the rows are those of PostgreSQL");
    verify_rows(target, SCALE, 1).await.unwrap();
}

#[tokio::test]
async fn a_load_into_dsql_stays_below_its_limits_and_waits_until_each_index_is_valid() {
    let server = TestServer::shared().await;
    let behind = database(&server, "completed").await;
    let relay = Relay::start(&behind, Faults::default()).await;
    let order = LoadOrder { scale: SCALE, seed: 1, workers: Some(6) };
    let report = tokio::select! {
        report = load_with(&relay.target, order, |_| {}) => report.unwrap(),
        () = build(&behind, &relay.seen) => unreachable!(),
    };
    assert_eq!(report.loaded, expected(SCALE).unwrap().total());
    assert_eq!(invalid_indexes(&behind).await, 0);
    let seen = &relay.seen;
    assert_eq!(seen.jobs_waited_for.load(Ordering::Relaxed), 3);
    let most = seen.most_rows.load(Ordering::Relaxed);
    assert!((500..=1_003).contains(&most), "batches of up to {most} rows");
    assert!(seen.most_bytes.load(Ordering::Relaxed) < 1 << 20);
    assert_eq!(*seen.refused.lock().unwrap(), Vec::<String>::new());
    assert_exact(&behind).await;
    let standing = status(&relay.target, SCALE).await.unwrap();
    assert!(standing.is_loaded && standing.tables.iter().all(|table| table.due == table.loaded));
}

#[tokio::test]
async fn an_index_that_is_not_valid_keeps_the_load_from_its_end() {
    let server = TestServer::shared().await;
    let behind = database(&server, "completed").await;
    let relay = Relay::start(&behind, Faults::default()).await;
    let order = LoadOrder { scale: 0.0002, seed: 1, workers: Some(2) };
    // Nobody makes it valid: the loader looks again and again, and does not end.
    let looks = async {
        while relay.seen.looks.load(Ordering::Relaxed) < 8 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        ended = load_with(&relay.target, order, |_| {}) => panic!("{ended:?}"),
        () = looks => {}
    }
    assert!(relay.seen.jobs_waited_for.load(Ordering::Relaxed) >= 1);
    assert!(invalid_indexes(&behind).await >= 1);
    assert!(!status(&relay.target, 0.0002).await.unwrap().is_loaded);
}

#[tokio::test]
async fn a_load_into_dsql_outlasts_faults_and_being_cut_off() {
    let server = TestServer::shared().await;
    let behind = database(&server, "completed").await;
    let faults = Faults { unavailable: 20, conflict: 17, cut: 13, too_many_connections: 5 };
    let relay = Relay::start(&behind, faults).await;
    let order = LoadOrder { scale: SCALE, seed: 1, workers: Some(6) };
    for part in 1..=3_u64 {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let enough = async {
            while let Some(progress) = told.recv().await {
                let progress: LoadProgress = progress;
                if progress.rows > part * 20_000 {
                    return;
                }
            }
            pending().await
        };
        tokio::select! {
            ended = load_with(&relay.target, order, move |p| { let _ = tell.send(p); }) => panic!("{ended:?}"),
            () = enough => {}
        }
    }
    let report = tokio::select! {
        report = load_with(&relay.target, order, |_| {}) => report.unwrap(),
        () = build(&behind, &relay.seen) => unreachable!(),
    };
    assert!(report.retries > 0 && report.loaded < report.rows.total(), "{report:?}");
    let faults = relay.seen.faults.load(Ordering::Relaxed);
    assert!(faults > 20, "only {faults} faults");
    assert_eq!(*relay.seen.refused.lock().unwrap(), Vec::<String>::new());
    assert_exact(&behind).await;
}

#[tokio::test]
async fn a_job_that_has_failed_ends_the_load_in_words() {
    let server = TestServer::shared().await;
    let behind = database(&server, "failed").await;
    let relay = Relay::start(&behind, Faults::default()).await;
    let order = LoadOrder { scale: 0.0002, seed: 1, workers: Some(2) };
    let error = load_with(&relay.target, order, |_| {}).await.unwrap_err();
    assert!(matches!(error, WorkloadError::IndexJob { .. }), "{error}");
    assert!(error.to_string().contains("has failed"), "{error}");
}
