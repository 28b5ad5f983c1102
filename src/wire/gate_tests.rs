//! A client through a gate, in front of the null endpoint or a server written for the test.

use tokio_postgres::{Client, NoTls, types::Type};

use super::*;
use crate::{
    model::{Fault, FaultKind},
    wire::{NullEndpoint, NullScript},
};

fn behind(null: &NullEndpoint) -> TargetAddress {
    tcp(null.addr())
}

fn tcp(address: SocketAddr) -> TargetAddress {
    TargetAddress::Tcp {
        host: address.ip().to_string(),
        port: address.port(),
        hostaddr: Some(address.ip()),
    }
}

async fn start(upstream: TargetAddress, profile: GateProfile, faults: Vec<Fault>) -> u16 {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = GateConfig { listen, upstream, profile, faults, seed: 1 };
    let gate = Gate::bind(config).await.unwrap();
    let port = gate.port();
    tokio::spawn(gate.serve());
    port
}

async fn try_connect(port: u16) -> Result<Client, tokio_postgres::Error> {
    let settings = format!("host=127.0.0.1 port={port} user=test dbname=test");
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn connect(port: u16) -> Client {
    try_connect(port).await.unwrap()
}

fn null() -> NullEndpoint {
    NullEndpoint::start(NullScript::default()).unwrap()
}

fn round_trip(ms: f64) -> GateProfile {
    GateProfile { round_trip_ms: ms, ..GateProfile::default() }
}

fn at_once(kind: FaultKind) -> Vec<Fault> {
    vec![Fault { after_s: 0.0, for_s: None, kind }]
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let done = work.await;
    (done, started.elapsed())
}

#[tokio::test]
async fn sequential_statements_take_a_round_trip_each_and_no_more_than_needed() {
    let null = null();
    let port = start(behind(&null), round_trip(2.0), Vec::new()).await;
    let client = connect(port).await;
    let mut shortest = Duration::MAX;
    for _ in 0..20 {
        let (_, took) = timed(async {
            for _ in 0..3 {
                client.batch_execute("SELECT 1").await.unwrap();
            }
        })
        .await;
        shortest = shortest.min(took);
    }
    assert!(shortest >= Duration::from_millis(6), "{shortest:?}");
    // The runtime's own timer alone would add up to a millisecond to each. The fastest of twenty
    // tells even on a busy machine.
    if cfg!(target_os = "linux") {
        assert!(shortest < Duration::from_micros(8_500), "{shortest:?}");
    }
}

#[tokio::test]
async fn pipelined_statements_share_a_round_trip_and_keep_their_order() {
    let null = null();
    let port = start(behind(&null), round_trip(300.0), Vec::new()).await;
    let client = connect(port).await;
    let order = std::sync::Mutex::new(Vec::new());
    let statement = async |n: usize| {
        client.batch_execute("SELECT 1").await.unwrap();
        order.lock().unwrap().push(n);
    };
    let (_, took) = timed(futures_util::future::join_all((0..10).map(statement))).await;
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn connections_wait_side_by_side() {
    let null = null();
    let port = start(behind(&null), round_trip(300.0), Vec::new()).await;
    let clients = futures_util::future::join_all((0..8).map(|_| connect(port))).await;
    let all = clients.iter().map(|client| client.batch_execute("SELECT 1"));
    let (results, took) = timed(futures_util::future::join_all(all)).await;
    assert!(results.into_iter().all(|result| result.is_ok()));
    assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(1_200), "{took:?}");
}

#[tokio::test]
async fn the_servers_added_work_adds_up_within_a_connection() {
    let null = null();
    let profile = GateProfile { statement_ms: 50.0, ..GateProfile::default() };
    let port = start(behind(&null), profile, Vec::new()).await;
    let client = connect(port).await;
    let all = (0..6).map(|_| client.batch_execute("SELECT 1"));
    let (_, took) = timed(futures_util::future::join_all(all)).await;
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

#[tokio::test]
async fn only_a_commit_that_has_written_has_its_cost() {
    const COST: Duration = Duration::from_millis(1_500);
    let null = null();
    let profile = GateProfile { commit_write_ms: 1_500.0, ..GateProfile::default() };
    let port = start(behind(&null), profile, Vec::new()).await;
    let mut client = connect(port).await;
    let (_, reading) = timed(async {
        let transaction = client.transaction().await.unwrap();
        transaction.execute_typed("SELECT $1", &[(&1_i32, Type::INT4)]).await.unwrap();
        transaction.commit().await.unwrap();
    })
    .await;
    assert!(reading < COST, "{reading:?}");
    let (_, writing) = timed(async {
        let transaction = client.transaction().await.unwrap();
        let inserted = "INSERT INTO t VALUES ($1)";
        assert_eq!(transaction.execute_typed(inserted, &[(&1_i32, Type::INT4)]).await.unwrap(), 1);
        transaction.commit().await.unwrap();
    })
    .await;
    assert!(writing >= COST, "{writing:?}");
    assert_eq!(null.commits(), 2);
}

#[tokio::test]
async fn a_freeze_holds_every_reply_until_it_is_over() {
    let null = null();
    let freeze = Fault { after_s: 0.0, for_s: Some(0.7), kind: FaultKind::Freeze };
    let port = start(behind(&null), GateProfile::default(), vec![freeze]).await;
    let (client, other) = (connect(port).await, connect(port).await);
    other.batch_execute("SELECT 1").await.unwrap();
    let (_, took) = timed(async {
        client.batch_execute("BEGIN").await.unwrap();
        other.batch_execute("SELECT 1").await.unwrap();
    })
    .await;
    assert!(took >= Duration::from_millis(700), "{took:?}");
}

#[tokio::test]
async fn a_cut_loses_the_reply_but_not_the_commit() {
    let null = null();
    let faults = at_once(FaultKind::CutAfterCommit { every: 2 });
    let port = start(behind(&null), GateProfile::default(), faults).await;
    let client = connect(port).await;
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1); COMMIT").await.unwrap();
    client.batch_execute("BEGIN; SELECT 1; COMMIT").await.unwrap();
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    let error = client.batch_execute("COMMIT").await.unwrap_err();
    assert!(error.code().is_none(), "{error}");
    assert!(client.is_closed());
    assert_eq!(null.commits(), 3);
}

#[tokio::test]
async fn a_failing_commit_is_rolled_back_in_either_protocol_and_the_connection_goes_on() {
    let null = null();
    let faults = at_once(FaultKind::FailCommit { sqlstate: "40001".into(), every: 1 });
    let port = start(behind(&null), GateProfile::default(), faults).await;
    let client = connect(port).await;
    let prepared = client.prepare("COMMIT").await.unwrap();
    for round in 0..3 {
        client.batch_execute("BEGIN").await.unwrap();
        client.execute_typed("UPDATE t SET a = 1", &[]).await.unwrap();
        let error = match round {
            0 => client.batch_execute("commit").await.unwrap_err(),
            1 => client.execute(&prepared, &[]).await.unwrap_err(),
            _ => client.execute_typed("COMMIT", &[]).await.unwrap_err(),
        };
        assert_eq!(error.code().unwrap().code(), "40001", "round {round}: {error}");
        client.execute_typed("SELECT 1", &[]).await.unwrap();
    }
    assert_eq!(null.commits(), 0);
    client.batch_execute("BEGIN").await.unwrap();
    client.execute(&prepared, &[]).await.unwrap();
    assert_eq!(null.commits(), 1, "a reading one goes through");
}

#[tokio::test]
async fn a_client_is_told_when_the_database_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = TargetAddress::Unix { directory: folder.path().to_owned(), port: 5432 };
    let port = start(upstream, GateProfile::default(), Vec::new()).await;
    let error = try_connect(port).await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "57P03", "{error}");
}

#[tokio::test]
async fn what_the_server_says_before_it_closes_arrives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = tcp(listener.local_addr().unwrap());
    let port = start(upstream, round_trip(1.0), Vec::new()).await;
    let server = tokio::spawn(async move {
        let (mut server, _) = listener.accept().await.unwrap();
        server.read_u8().await.unwrap();
        server.write_all(&message::error("FATAL", "57P01", "shutting down")).await.unwrap();
    });
    let error = try_connect(port).await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "57P01", "{error}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_cancel_request_goes_its_own_way() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = tcp(listener.local_addr().unwrap());
    let port = start(upstream, round_trip(1.0), Vec::new()).await;
    let request = [&16_u32.to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), b"pid.key."].concat();
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    client.write_all(&request).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let mut got = vec![0; request.len()];
    server.read_exact(&mut got).await.unwrap();
    assert_eq!(got, request);
    drop(server);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "closed once the server has taken it");
}

#[tokio::test]
async fn a_large_reply_passes_a_slow_reader_and_a_half_close_is_handed_on() {
    const SIZE: usize = 8 * 1024 * 1024;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = tcp(listener.local_addr().unwrap());
    let port = start(upstream, round_trip(1.0), Vec::new()).await;
    let server = tokio::spawn(async move {
        let (mut server, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        server.read_to_end(&mut request).await.unwrap();
        let mut reply = BytesMut::new();
        message::put(&mut reply, b'D', |out| out.resize(out.len() + SIZE, 7));
        server.write_all(&reply).await.unwrap();
        request.len()
    });
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let packet = [&8_u32.to_be_bytes()[..], &196_608_u32.to_be_bytes()].concat();
    client.write_all(&packet).await.unwrap();
    client.shutdown().await.unwrap();
    let mut got = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match client.read(&mut buffer).await.unwrap() {
            0 => break,
            read => got += read,
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(got, SIZE + 5);
    assert_eq!(server.await.unwrap(), packet.len());
}
