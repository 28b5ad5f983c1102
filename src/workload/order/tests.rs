//! The transactions, drawn and run on a real database.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{draw::Kind, *};
use crate::{
    model::{Acknowledged, Mix, RoundTrips, Statements, TargetAddress, TargetSpec},
    target::{Driver, session},
    workload::{
        Reached,
        invariants::check,
        testing::{Shop, driver, range, tally},
    },
};

fn workload(seed: u64) -> OrderWorkload {
    let spec = WorkloadSpec { mix: Mix::default(), scale: 0.01 };
    OrderWorkload::from_parts("shop", &spec, &range(1), seed).unwrap()
}

/// The first transaction of a class.
fn first_of(workload: &OrderWorkload, class: Class) -> OrderTransaction {
    all_of(workload, class).next().unwrap()
}

fn all_of(workload: &OrderWorkload, class: Class) -> impl Iterator<Item = OrderTransaction> {
    (0..).map(|arrival| workload.draw(arrival)).filter(move |t| workload.class(t) == class)
}

#[test]
fn the_same_seed_and_arrival_draw_the_same_in_any_order() {
    let (one, other) = (workload(5), workload(5));
    let forwards: Vec<_> = (0..500).map(|arrival| one.draw(arrival)).collect();
    let mut backwards: Vec<_> = (0..500).rev().map(|arrival| other.draw(arrival)).collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    let different: Vec<_> = (0..500).map(|arrival| workload(6).draw(arrival)).collect();
    assert_ne!(forwards, different);
}

#[test]
fn the_mix_is_as_asked_and_ids_are_unique() {
    let workload = workload(9);
    let mut classes = BTreeMap::<Class, u32>::new();
    let (mut orders, mut businesses) = (HashSet::new(), HashSet::new());
    let mut lines_drawn = 0;
    for arrival in 0..40_000 {
        let transaction = workload.draw(arrival);
        *classes.entry(workload.class(&transaction)).or_default() += 1;
        if let Some(id) = workload.business_id(&transaction) {
            assert!(id.starts_with("test.1.") && businesses.insert(id));
        }
        if let Kind::Create { order_id, lines, .. } = &transaction.0 {
            assert!(orders.insert(*order_id), "order {order_id} twice");
            let range = range(1);
            assert!((range.first_id..range.first_id + range.ids.cast_signed()).contains(order_id));
            assert!(lines.product_ids().windows(2).all(|pair| pair[0] < pair[1]));
            lines_drawn += lines.product_ids().len();
        }
    }
    let share = |class| f64::from(classes[&class]) / 400.0;
    for (class, due) in Class::ALL.into_iter().zip([40.0, 30.0, 20.0, 10.0]) {
        assert!((share(class) - due).abs() < 1.5, "{class}: {} %", share(class));
    }
    let per_order = lines_drawn as f64 / orders.len() as f64;
    assert!((per_order - 2.5).abs() < 0.1, "{per_order} lines an order");
}

#[test]
fn what_cannot_work_is_refused_in_words() {
    let good = WorkloadSpec { mix: Mix::default(), scale: 0.01 };
    let refusal = |spec: &WorkloadSpec, range: &AttemptRange| {
        OrderWorkload::from_parts("shop", spec, range, 1).unwrap_err().to_string()
    };
    let mix = Mix { order_cancel: 11, ..Mix::default() };
    assert!(refusal(&WorkloadSpec { mix, ..good }, &range(1)).contains("101 %"));
    assert!(refusal(&WorkloadSpec { scale: 2.0, ..good }, &range(1)).contains("scale 2"));
    let ids = AttemptRange { ids: 1000, ..range(1) };
    assert!(refusal(&good, &ids).contains("power of two"));
    let low = AttemptRange { first_id: 110_000, ..range(1) };
    assert!(refusal(&good, &low).contains("above 110000"));
    let high = AttemptRange { first_id: 1 << 60, ..range(1) };
    assert!(refusal(&good, &high).contains("up to"));
    let nameless = AttemptRange { prefix: String::new(), ..range(1) };
    assert!(refusal(&good, &nameless).contains("prefix"));
}

#[tokio::test]
async fn every_class_runs_and_a_cancel_takes_what_a_create_made() {
    let shop = Shop::load(0.001).await;
    let (workload, range) = shop.attempt(1);
    let mut driver = shop.driver(&workload).await;
    for class in [Class::ProductLookup, Class::OrderHistory] {
        let read = first_of(&workload, class);
        let done = workload.attempt(&mut driver, &read).await.unwrap();
        assert_eq!(done, Done::Committed);
        assert!(!workload.look_up(&mut driver, &read).await.unwrap());
    }
    // Nothing has been created yet.
    let early = first_of(&workload, Class::OrderCancel);
    let done = workload.attempt(&mut driver, &early).await.unwrap();
    assert_eq!(done, Done::Rejected);
    assert!(!workload.look_up(&mut driver, &early).await.unwrap());

    let create = first_of(&workload, Class::OrderCreate);
    assert!(!workload.look_up(&mut driver, &create).await.unwrap());
    let done = workload.attempt(&mut driver, &create).await.unwrap();
    assert_eq!(done, Done::Committed);
    assert!(workload.look_up(&mut driver, &create).await.unwrap());
    workload.committed(&create);

    let cancel = first_of(&workload, Class::OrderCancel);
    let done = workload.attempt(&mut driver, &cancel).await.unwrap();
    assert_eq!(done, Done::Committed);
    let status = format!(
        "SELECT count(*) FROM shop.orders WHERE order_id >= {} AND status = 'cancelled'",
        range.first_id
    );
    assert_eq!(shop.number(&status).await, 1);
    let net = format!(
        "SELECT sum(quantity + amount_cents)::bigint FROM shop.ledger WHERE order_id >= {}",
        range.first_id
    );
    assert_eq!(shop.number(&net).await, 0);
    let Kind::Create { order_id: created, .. } = create.0 else { panic!("not a create") };
    let Kind::Cancel { order_id: cancelled, .. } = cancel.0 else { panic!("not a cancel") };
    assert_eq!(created, cancelled);
    // The order has left the ring: a later cancel finds none.
    let later = all_of(&workload, Class::OrderCancel).nth(1).unwrap();
    let done = workload.attempt(&mut driver, &later).await.unwrap();
    assert_eq!(done, Done::Rejected);
}

#[tokio::test]
async fn too_little_stock_rejects_the_order_and_writes_nothing() {
    let shop = Shop::load(0.001).await;
    let (workload, _) = shop.attempt(1);
    let mut driver = shop.driver(&workload).await;
    shop.execute("UPDATE shop.products SET stock = 0, initial_stock = 0").await;
    let create = first_of(&workload, Class::OrderCreate);
    let done = workload.attempt(&mut driver, &create).await.unwrap();
    assert_eq!(done, Done::Rejected);
    assert_eq!(shop.number("SELECT count(*) FROM shop.receipts").await, 0);
    assert!(driver.is_usable() && !driver.in_transaction());
}

#[tokio::test]
async fn a_conflict_is_40001_before_commit_and_the_connection_is_usable() {
    let shop = Shop::load(0.001).await;
    let (workload, _) = shop.attempt(1);
    let mut driver = shop.driver(&workload).await;
    let create = first_of(&workload, Class::OrderCreate);
    let Kind::Create { lines, .. } = &create.0 else { panic!("not a create") };
    let product = lines.product_ids()[0];

    // Another transaction holds the product's row; the create waits for it once it has read.
    let rival = session(&shop.target).await.unwrap();
    rival.batch_execute("BEGIN").await.unwrap();
    let update = "UPDATE shop.products SET stock = stock - 0 WHERE product_id = $1";
    rival.execute(update, &[&product]).await.unwrap();
    let lift = async {
        let blocked = "SELECT count(*) FROM pg_stat_activity \
                       WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))";
        while rival.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        rival.batch_execute("COMMIT").await.unwrap();
    };
    let (result, ()) = tokio::join!(workload.attempt(&mut driver, &create), lift);
    let failure = result.unwrap_err();
    assert_eq!(failure.reached, Reached::BeforeCommit);
    assert_eq!(failure.error.code().unwrap(), "40001");
    assert!(driver.is_usable() && !driver.in_transaction());

    let again = workload.attempt(&mut driver, &create).await.unwrap();
    assert_eq!(again, Done::Committed);
}

#[tokio::test]
async fn a_try_after_an_unseen_commit_is_committed_once() {
    let shop = Shop::load(0.001).await;
    let (workload, range) = shop.attempt(1);
    let mut driver = shop.driver(&workload).await;
    let create = first_of(&workload, Class::OrderCreate);
    let mut attempt = async |transaction: &OrderTransaction| {
        let done = workload.attempt(&mut driver, transaction).await.unwrap();
        assert!(driver.is_usable() && !driver.in_transaction());
        done
    };
    assert_eq!(attempt(&create).await, Done::Committed);
    assert_eq!(attempt(&create).await, Done::Committed, "its ids are taken");
    shop.execute("UPDATE shop.products SET stock = 0").await;
    assert_eq!(attempt(&create).await, Done::Committed, "the stock is gone since");

    workload.committed(&create);
    let cancel = first_of(&workload, Class::OrderCancel);
    assert_eq!(attempt(&cancel).await, Done::Committed);
    assert_eq!(attempt(&cancel).await, Done::Committed, "it is cancelled already, by itself");
    let entries = format!(
        "SELECT count(*) - 2 * count(DISTINCT product_id) FROM shop.ledger WHERE order_id >= {}",
        range.first_id
    );
    assert_eq!(shop.number(&entries).await, 0, "one sale and one reversal for each line");
}

#[tokio::test]
async fn a_connection_cut_tells_how_far_the_attempt_had_come() {
    let shop = Shop::load(0.001).await;
    let (workload, _) = shop.attempt(1);
    let mut driver = shop.driver(&workload).await;
    let others = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    shop.client.query(others, &[]).await.unwrap();
    let lookup = first_of(&workload, Class::ProductLookup);
    let failure = workload.attempt(&mut driver, &lookup).await.unwrap_err();
    assert_eq!(failure.reached, Reached::BeforeCommit);

    // A deferred trigger makes COMMIT itself fail.
    shop.client
        .batch_execute(
            "CREATE FUNCTION shop.refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE 'no' USING ERRCODE = '40001'; END $$; \
             CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON shop.receipts \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shop.refuse()",
        )
        .await
        .unwrap();
    let mut driver = shop.driver(&workload).await;
    let create = first_of(&workload, Class::OrderCreate);
    let failure = workload.attempt(&mut driver, &create).await.unwrap_err();
    assert_eq!(failure.reached, Reached::CommitSent);
    assert_eq!(failure.error.code().unwrap(), "40001");
    assert!(driver.is_usable() && !driver.in_transaction());
    assert!(!workload.look_up(&mut driver, &create).await.unwrap());
}

#[tokio::test]
async fn each_transaction_makes_the_round_trips_of_an_application() {
    use RoundTrips::{Pipelined, Sequential};
    use Statements::{Prepared, Simple, Unnamed};

    let shop = Shop::load(0.001).await;
    let (address, trips) = counting_proxy(&shop.target).await;
    let target = TargetSpec { address, ..shop.target.clone() };
    let shapes = [
        (Prepared, Sequential, [3, 4, 8, 8]),
        (Unnamed, Sequential, [3, 4, 8, 8]),
        (Simple, Sequential, [3, 4, 8, 8]),
        (Prepared, Pipelined, [1, 2, 2, 3]),
        (Unnamed, Pipelined, [1, 2, 2, 3]),
        (Simple, Pipelined, [1, 2, 2, 3]),
    ];
    for (attempt, (statements, round_trips, expected)) in (1..).zip(shapes) {
        let mut driver = Driver::open(&target, None, statements, round_trips).await.unwrap();
        let (workload, range) = shop.attempt(attempt);
        driver.prepare(workload.statements()).await.unwrap();
        let mut counted = Vec::new();
        let mut told = Acknowledged::default();
        for class in Class::ALL {
            let transaction = first_of(&workload, class);
            let before = trips.load(Ordering::SeqCst);
            let done = workload.attempt(&mut driver, &transaction).await.unwrap();
            let after = trips.load(Ordering::SeqCst);
            assert_eq!(done, Done::Committed, "{class}");
            tally(&workload, &transaction, &mut told);
            counted.push(after - before);
        }
        assert_eq!(counted, expected, "{statements:?}, {round_trips:?}");
        let report = check(&shop.target, &range, &told).await.unwrap();
        assert_eq!(report.violations, 0, "{statements:?}, {round_trips:?}: {:?}", report.first);
    }
}

/// A way to the target that counts the server's `ReadyForQuery` messages: one ends each round trip.
async fn counting_proxy(target: &TargetSpec) -> (TargetAddress, Arc<AtomicU64>) {
    let TargetAddress::Unix { directory, port } = target.address.clone() else {
        panic!("test servers are reached by a socket")
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let trips = Arc::new(AtomicU64::new(0));
    let counter = trips.clone();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let server = tokio::net::UnixStream::connect(path).await.unwrap();
            tokio::spawn(count_trips(client, server, counter.clone()));
        }
    });
    let host = address.ip().to_string();
    (TargetAddress::Tcp { host, port: address.port(), hostaddr: None }, trips)
}

async fn count_trips(
    client: tokio::net::TcpStream,
    server: tokio::net::UnixStream,
    counter: Arc<AtomicU64>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let forward = tokio::io::copy(&mut from_client, &mut to_server);
    let back = async {
        loop {
            let mut head = [0; 5];
            if from_server.read_exact(&mut head).await.is_err() {
                return;
            }
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) - 4;
            let mut body = vec![0; usize::try_from(length).unwrap()];
            from_server.read_exact(&mut body).await.unwrap();
            if head[0] == b'Z' {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            to_client.write_all(&[&head[..], &body].concat()).await.unwrap();
        }
    };
    tokio::select! { _ = forward => {}, () = back => {} }
}

#[tokio::test]
async fn four_connections_trade_at_once_and_every_invariant_holds() {
    let shop = Shop::load(0.001).await;
    let (workload, range) = shop.attempt(3);
    let traders = (0..4_u64).map(|trader| {
        let (workload, target) = (&workload, &shop.target);
        async move {
            let mut driver = driver(target, workload).await;
            trade(workload, &mut driver, trader * 150..(trader + 1) * 150).await
        }
    });
    let all = futures_util::future::join_all(traders).await;
    let mut told = Acknowledged::default();
    let mut conflicts = 0;
    for (one, met) in all {
        told.creates += one.creates;
        told.cancels += one.cancels;
        conflicts += met;
    }
    let report = check(&shop.target, &range, &told).await.unwrap();
    assert_eq!(report.violations, 0, "{conflicts} conflicts: {:?}", report.first);
    assert!(told.creates > 60 && told.cancels > 20, "{told:?}");
}

/// Runs arrivals with the retries of a load core; tells how many conflicts it met.
async fn trade(
    workload: &OrderWorkload,
    driver: &mut Driver,
    arrivals: std::ops::Range<u64>,
) -> (Acknowledged, u32) {
    let mut told = Acknowledged::default();
    let mut conflicts = 0;
    for arrival in arrivals {
        let transaction = workload.draw(arrival);
        let done = loop {
            match workload.attempt(driver, &transaction).await {
                Ok(done) => break done,
                Err(failure) => {
                    let code = failure.error.code().unwrap().to_owned();
                    assert!(["40001", "40P01"].contains(&code.as_str()), "{code}");
                    conflicts += 1;
                }
            }
        };
        if done == Done::Committed {
            tally(workload, &transaction, &mut told);
        }
    }
    (told, conflicts)
}
