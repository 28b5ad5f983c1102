//! The null endpoint as a process: what a generator is measured against.

use std::{
    io::{BufRead, BufReader, Write},
    net::Ipv4Addr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rampdeck::{
    load::cell,
    model::{
        Arrivals, AttemptRange, CellId, CellOrder, ConfigurationId, ConnectionLife, Load, Mix,
        NullConfig, NullListening, NullReport, RetryPolicy, RoundTrips, Shape, TargetAddress,
        TargetSpec, WorkloadSpec,
    },
    workload::{OrderWorkload, null_answers},
};

use crate::{server::program, support::wait_for};

struct Endpoint {
    child: Child,
    port: u16,
    reports: BufReader<std::process::ChildStdout>,
}

impl Endpoint {
    fn start(config: &NullConfig) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rampdeck"))
            .arg("null-endpoint")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = serde_json::to_string(config).unwrap() + "\n";
        child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let mut reports = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reports.read_line(&mut line).unwrap();
        let NullListening { listening } = serde_json::from_str(&line).unwrap();
        Self { child, port: listening, reports }
    }

    fn report(&mut self) -> NullReport {
        let mut line = String::new();
        self.reports.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Closes its input and waits until it has ended.
    fn end(mut self) {
        drop(self.child.stdin.take());
        let status = wait_for("the null endpoint to end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Gone already unless a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config() -> NullConfig {
    NullConfig {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        unix_directory: None,
        round_trip_ms: 0.0,
        commit_write_ms: 0.0,
        threads: None,
        answers: null_answers("shop"),
    }
}

fn order(port: u16) -> CellOrder {
    CellOrder {
        cell: CellId::new("N1-001"),
        configuration: ConfigurationId::new("N1"),
        target: TargetSpec::plain(TargetAddress::loopback(port), "app", "app", "shop"),
        load: Load::Open { rate: 300.0, arrivals: Arrivals::Poisson, connections: 32 },
        warmup_s: 0.5,
        measure_s: 2.0,
        drain_s: 20.0,
        seed: 7,
        attempt: AttemptRange {
            ordinal: 1,
            first_id: 1 << 40,
            ids: 1 << 20,
            prefix: "t.1.".into(),
        },
        workload: WorkloadSpec { mix: Mix::default(), scale: 0.01 },
        retry: RetryPolicy::default(),
        backlog: None,
        shape: Shape::default(),
        life: ConnectionLife::default(),
    }
}

#[test]
fn every_transaction_of_the_mix_takes_its_full_path_and_commits() {
    let config = NullConfig { round_trip_ms: 1.0, commit_write_ms: 5.0, ..config() };
    let mut endpoint = Endpoint::start(&config);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for round_trips in [RoundTrips::Sequential, RoundTrips::Pipelined] {
        let mut order = order(endpoint.port);
        order.shape.round_trips = round_trips;
        let workload = OrderWorkload::new(&order).unwrap();
        let ran = runtime.block_on(cell::run(order, workload)).unwrap().result;
        let counts = &ran.counts;
        assert!(counts.succeeded > 400, "{counts:?} {:?}", ran.end);
        let others = (counts.failed, counts.business_rejected, counts.unknown, counts.retries);
        assert_eq!(others, (0, 0, 0, 0), "{counts:?} {:?}", ran.sqlstates);
        assert!(ran.acknowledged.creates > 50 && ran.acknowledged.cancels > 20);
        for (class, parts) in ran.classes.iter() {
            let fastest = parts.service.quantile_ms(0.0).unwrap();
            assert!(fastest >= 1.0, "{class:?} took {fastest} ms: no round trip is faster");
        }
    }
    // Two cells with more than 400 each.
    wait_for("the commits to be reported", || {
        let report = endpoint.report();
        (report.sessions >= 64 && report.commits > 800).then_some(())
    });
    endpoint.end();
}

const SCRIPT: &str = "\\set id random(1, 100)
BEGIN;
SELECT product_id, name, price_cents, stock FROM \"shop\".products WHERE product_id = :id \\gset
SELECT product_id, price_cents, stock FROM \"shop\".products WHERE product_id = ANY(ARRAY[:id]::bigint[]) \\gset p_
\\if :product_id != :id or :p_product_id != :id
SELECT wrong;
\\endif
UPDATE t SET a = :id;
COMMIT;
";

const PIPELINED: &str = "\\set id random(1, 100)
\\startpipeline
BEGIN;
SELECT product_id, name, price_cents, stock FROM \"shop\".products WHERE product_id = :id;
COMMIT;
\\endpipeline
";

/// Runs pgbench with a script; it fails at the first error of a server.
fn pgbench(folder: &Path, host: &str, port: u16, protocol: &str, script: &str) -> String {
    let file = folder.join("script.sql");
    std::fs::write(&file, script).unwrap();
    let done = Command::new(program("pgbench"))
        .args(["-n", "-c", "8", "-j", "2", "-t", "25", "-M", protocol, "-f"])
        .arg(&file)
        .args(["-h", host, "-p", &port.to_string(), "-U", "app", "app"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{protocol}: {said}\n{errors}");
    assert!(said.contains("processed: 200/200"), "{protocol}: {said}\n{errors}");
    said
}

#[test]
fn pgbench_is_served_in_every_protocol_over_either_socket() {
    let folder = tempfile::Builder::new().prefix("rd-").tempdir_in("/tmp").unwrap();
    let unix_directory = Some(folder.path().to_owned());
    let mut endpoint = Endpoint::start(&NullConfig { unix_directory, ..config() });
    let port = endpoint.port;
    for protocol in ["simple", "extended", "prepared"] {
        pgbench(folder.path(), "127.0.0.1", port, protocol, SCRIPT);
    }
    for protocol in ["extended", "prepared"] {
        pgbench(folder.path(), folder.path().to_str().unwrap(), port, protocol, PIPELINED);
    }
    wait_for("5 × 200 commits", || (endpoint.report().commits >= 1_000).then_some(()));
    endpoint.end();
    assert!(!folder.path().join(format!(".s.PGSQL.{port}")).exists(), "the socket is left behind");
}

#[test]
fn a_configuration_that_cannot_be_followed_is_refused_in_words() {
    let refusal = |config: &NullConfig| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rampdeck"))
            .arg("null-endpoint")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let line = serde_json::to_string(config).unwrap() + "\n";
        child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(!done.status.success());
        String::from_utf8(done.stderr).unwrap()
    };
    let said = refusal(&NullConfig { listen: ([192, 0, 2, 1], 0).into(), ..config() });
    assert!(said.contains("192.0.2.1") && said.contains("loopback"), "{said}");
    let said = refusal(&NullConfig { round_trip_ms: -1.0, ..config() });
    assert!(said.contains("round_trip_ms") && said.contains("-1"), "{said}");
}

#[test]
fn replies_come_when_they_are_due_with_many_connections_waiting() {
    const CONNECTIONS: usize = 200;
    let endpoint = Endpoint::start(&NullConfig { round_trip_ms: 50.0, ..config() });
    let settings = format!("host=127.0.0.1 port={} user=app dbname=app", endpoint.port);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let asked = (0..CONNECTIONS).map(|_| {
            let settings = settings.clone();
            tokio::spawn(async move {
                let (client, connection) =
                    tokio_postgres::connect(&settings, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                let started = Instant::now();
                client.batch_execute("SELECT 1").await.unwrap();
                started.elapsed()
            })
        });
        let asked: Vec<_> = asked.collect();
        let mut fastest = Duration::MAX;
        for took in asked {
            let took = took.await.unwrap();
            assert!(took >= Duration::from_millis(50), "{took:?}");
            fastest = fastest.min(took);
        }
        assert!(fastest < Duration::from_secs(5), "{fastest:?}");
    });
    endpoint.end();
}
