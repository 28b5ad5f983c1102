//! What is loaded is what the scale says, and it is sound.

use std::sync::Mutex;

use super::{encode::ChecksumRows, part::Part, rows::DataSet, *};
use crate::{
    model::{Dialect, TargetSpec},
    target::{session, testing::TestServer},
    workload::{
        schema::{self, TABLES},
        testing::Shop,
    },
};

#[test]
fn the_full_scale_has_the_published_counts() {
    let full = expected(1.0).unwrap();
    assert_eq!(full.customers, 1_000_000);
    assert_eq!(full.products, 200_000);
    assert_eq!(full.orders, 11_000_000);
    assert_eq!(full.order_items, 27_500_000);
    assert_eq!(full.ledger, 11_000_000);
    assert_eq!(expected(0.01).unwrap().total(), 507_000);
    for scale in [0.0, -1.0, 1.01, f64::NAN, f64::INFINITY] {
        assert!(matches!(expected(scale), Err(WorkloadError::Scale(_))), "{scale}");
    }
}

#[test]
fn an_order_has_different_products_and_items_are_exact_at_every_scale() {
    for scale in [1e-9, 0.000_02, 0.001, 0.003_7] {
        let data = DataSet { seed: 3, counts: expected(scale).unwrap() };
        let mut items = 0;
        for order_id in 1..=data.counts.orders.cast_signed() {
            let lines: Vec<_> = data.lines(order_id).collect();
            let mut products: Vec<_> = lines.iter().map(|line| line.product_id).collect();
            products.sort_unstable();
            products.dedup();
            assert_eq!(products.len(), lines.len(), "order {order_id} at {scale}");
            let last = data.counts.products.cast_signed();
            assert!(products[0] >= 1 && products[products.len() - 1] <= last);
            items += lines.len() as u64;
        }
        assert_eq!(items, data.counts.order_items);
    }
}

#[tokio::test]
async fn a_load_is_counted_sound_and_the_same_each_time() {
    let shop = Shop::load(0.001).await;
    let counts = expected(0.001).unwrap();
    let due = [counts.customers, counts.products, counts.orders, counts.order_items, counts.ledger];
    for (part, rows) in Part::ALL.into_iter().zip(due) {
        let count = format!("SELECT count(*) FROM shop.{}", part.table().name);
        assert_eq!(shop.number(&count).await.unsigned_abs(), rows, "{part:?}");
    }

    let unequal = "SELECT count(*) FROM shop.orders AS o WHERE total_cents <> (SELECT \
         sum(quantity * price_cents) FROM shop.order_items AS i WHERE i.order_id = o.order_id)";
    assert_eq!(shop.number(unequal).await, 0);
    let strange = "SELECT count(*) FROM shop.order_items AS i LEFT JOIN shop.products AS p \
         USING (product_id) WHERE p.price_cents IS DISTINCT FROM i.price_cents";
    assert_eq!(shop.number(strange).await, 0);
    let unbalanced = "SELECT count(*) FROM shop.products AS p WHERE stock <> initial_stock + \
         (SELECT coalesce(sum(quantity), 0) FROM shop.ledger AS l WHERE l.product_id = \
         p.product_id)";
    assert_eq!(shop.number(unbalanced).await, 0);
    let without = "SELECT count(*) FROM shop.orders AS o WHERE (SELECT count(*) FROM shop.ledger \
         AS l WHERE l.order_id = o.order_id AND l.kind = 'opening') <> 1";
    assert_eq!(shop.number(without).await, 0);
    let lost = "SELECT count(*) FROM shop.orders LEFT JOIN shop.customers USING (customer_id) \
         WHERE name IS NULL OR created_at > now()";
    assert_eq!(shop.number(lost).await, 0);
    let scarce = "SELECT count(*) FROM shop.products WHERE initial_stock <= 20";
    assert_eq!(shop.number(scarce).await, 1, "0.5 % of 200 products");

    let again = Shop::load(0.001).await;
    for table in TABLES.map(|table| table.name).into_iter().filter(|name| *name != "receipts") {
        let digest =
            format!("SELECT sum(hashtext(t::text)::bigint)::bigint FROM shop.{table} AS t");
        assert_eq!(shop.number(&digest).await, again.number(&digest).await, "{table}");
    }
    let seeds = [1, 2].map(|seed| DataSet { seed, counts });
    assert_ne!(seeds[0].price_cents(1), seeds[1].price_cents(1));
}

#[tokio::test]
async fn progress_rises_to_the_end_and_a_second_load_is_refused() {
    let server = TestServer::shared().await;
    let target = TargetSpec { schema: "Run-1 \"x\"".into(), ..server.database().await };
    let steps = Mutex::new(Vec::new());
    let tell = |progress| steps.lock().unwrap().push(progress);
    let report = load(&target, 0.002, 5, tell).await.unwrap();
    assert_eq!(report.rows, expected(0.002).unwrap());
    assert!(report.seconds > 0.0);

    let steps = steps.into_inner().unwrap();
    let same = steps.iter().filter(|one| one.step == LoadStep::Rows).collect::<Vec<_>>();
    assert!(same.windows(2).all(|pair| pair[0].rows <= pair[1].rows));
    assert!(same.iter().skip(1).all(|one| one.rows_per_s > 0.0 && one.eta_s.is_some()));
    let last = steps.last().unwrap();
    assert_eq!((last.step, last.rows), (LoadStep::Verify, last.of));
    assert_eq!(last.of, report.rows.total());
    assert!(steps.len() > 10, "{} reports", steps.len());

    let second = load(&target, 0.002, 5, |_| {}).await;
    assert!(matches!(second, Err(WorkloadError::AlreadyThere { .. })), "{second:?}");
    assert!(schema::exists(&target).await.unwrap());
    schema::remove(&target).await.unwrap();
    assert!(!schema::exists(&target).await.unwrap());
    schema::remove(&target).await.unwrap();
    load(&target, 0.0001, 5, |_| {}).await.unwrap();
}

#[tokio::test]
async fn rows_that_are_missing_or_changed_are_not_overlooked() {
    let shop = Shop::load(0.0001).await;
    let verdict = async || verify_rows(&shop.target, 0.0001, 1).await;
    assert_eq!(verdict().await.unwrap(), expected(0.0001).unwrap());
    let other_seed = verify_rows(&shop.target, 0.0001, 2).await.unwrap_err();
    assert!(matches!(other_seed, WorkloadError::Checksum { .. }), "{other_seed}");

    // One cent, a piece of stock, a letter, a microsecond, and two rows that swap a column.
    for (breaks, mends) in [
        ("order_items SET price_cents = price_cents + 1 WHERE order_id = 7 AND line_no = 1", "- 1"),
        ("products SET stock = stock + 1 WHERE product_id = 3", "- 1"),
    ] {
        assert_eq!(shop.execute(&format!("UPDATE shop.{breaks}")).await, 1);
        let error = verdict().await.unwrap_err();
        assert!(matches!(error, WorkloadError::Checksum { .. }), "{breaks}: {error}");
        shop.execute(&format!("UPDATE shop.{}", breaks.replace("+ 1", mends))).await;
        verdict().await.unwrap();
    }
    for breaks in [
        "UPDATE shop.orders SET created_at = created_at + interval '1 microsecond' WHERE order_id = 9",
        "UPDATE shop.customers SET name = 'Customer 5' WHERE customer_id = 5",
        "UPDATE shop.ledger AS l SET amount_cents = o.amount_cents FROM shop.ledger AS o \
         WHERE (l.order_id, o.order_id) IN ((1, 2), (2, 1))",
    ] {
        shop.client.batch_execute("CREATE TABLE shop.kept AS TABLE shop.ledger").await.unwrap();
        assert!(shop.execute(breaks).await > 0, "{breaks}");
        let error = verdict().await.unwrap_err();
        assert!(matches!(error, WorkloadError::Checksum { .. }), "{breaks}: {error}");
        for mends in [
            "UPDATE shop.orders SET created_at = created_at - interval '1 microsecond' \
             WHERE order_id = 9 AND extract(microseconds FROM created_at)::bigint % 1000 = 1",
            "UPDATE shop.customers SET name = 'customer 5' WHERE customer_id = 5",
            "UPDATE shop.ledger AS l SET amount_cents = k.amount_cents FROM shop.kept AS k \
             WHERE k.entry_id = l.entry_id",
            "DROP TABLE shop.kept",
        ] {
            shop.execute(mends).await;
        }
        verdict().await.unwrap();
    }

    assert_eq!(shop.execute("DELETE FROM shop.ledger WHERE order_id = 7").await, 1);
    let error = verdict().await.unwrap_err();
    assert!(error.to_string().contains("ledger"), "{error}");
    assert!(matches!(error, WorkloadError::Count { found: 1099, expected: 1100, .. }), "{error}");
}

#[test]
fn another_seed_has_another_checksum() {
    let sum = |seed, scale, part| {
        let data = DataSet { seed, counts: expected(scale).unwrap() };
        let mut rows = ChecksumRows::default();
        (1..=100).for_each(|id| {
            data.write(part, id, &mut rows);
        });
        rows.made.sum
    };
    for part in [Part::Products, Part::Orders, Part::OrderItems, Part::Ledger] {
        assert_eq!(sum(1, 0.001, part), sum(1, 0.001, part));
        assert_ne!(sum(1, 0.001, part), sum(2, 0.001, part), "{part:?}");
    }
}

/// What the loaded tables hold, row by row in the order of their keys.
pub(super) async fn digest(shop: &Shop) -> Vec<i64> {
    let mut digests = Vec::new();
    for part in Part::ALL {
        let table = part.table().name;
        let query = format!(
            "SELECT coalesce(sum(hashtextextended(t::text, 1) % 1000000007), 0)::bigint \
             FROM shop.{table} AS t"
        );
        digests.push(shop.number(&query).await);
    }
    digests
}

#[tokio::test]
async fn the_rows_do_not_depend_on_the_number_of_workers() {
    let alone = Shop::load_by(0.002, 1).await;
    let many = Shop::load_by(0.002, 7).await;
    assert_eq!(digest(&alone).await, digest(&many).await);
}

#[tokio::test]
async fn a_load_that_was_cut_off_is_gone_on_with_and_another_is_not_mixed_in() {
    let server = TestServer::shared().await;
    let target = server.database().await;
    let order = LoadOrder { scale: 0.002, seed: 5, workers: Some(3) };
    // Cut off when some chunks are there: the future is dropped in the middle of others.
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let loading = load_with(&target, order, move |progress| {
        let _ = tell.send(progress);
    });
    let enough = async {
        while let Some(progress) = told.recv().await {
            if progress.rows > 30_000 {
                return;
            }
        }
        panic!("it ended before");
    };
    tokio::select! {
        ended = loading => panic!("{ended:?}"),
        () = enough => {}
    }
    let other = load_with(&target, LoadOrder { seed: 6, ..order }, |_| {}).await.unwrap_err();
    assert!(matches!(other, WorkloadError::OtherDesign { .. }), "{other}");
    let standing = status(&target, 0.002).await.unwrap();
    assert!(!standing.is_loaded && standing.fresh_load_s.is_none());
    let there: u64 = standing.tables.iter().map(|table| table.loaded).sum();
    let of = expected(0.002).unwrap().total();
    assert!(there >= 30_000 && there < of, "{there} of {of}");

    let report = load_with(&target, order, |_| {}).await.unwrap();
    assert!(report.loaded <= of - 30_000, "{report:?}");
    verify_rows(&target, 0.002, 5).await.unwrap();
    let standing = status(&target, 0.002).await.unwrap();
    assert!(standing.is_loaded && standing.fresh_load_s.unwrap() > 0.0);
    assert!(standing.tables.iter().all(|table| (table.loaded, table.grown) == (table.due, 0)));
}

/// What a loader that was killed may leave: its transaction on a chunk is still under way.
async fn beside_a_transaction_under_way(end: &str) -> LoadReport {
    let server = TestServer::shared().await;
    let target = server.database().await;
    let data = DataSet { seed: 5, counts: expected(0.001).unwrap() };
    let names = schema::Names::new("shop");
    let chunk = part::all_chunks(&data.counts, false)
        .into_iter()
        .find(|chunk| chunk.part == Part::Orders && chunk.number == 2)
        .unwrap();
    let other = session(&target).await.unwrap();
    for statement in names.create_tables(Dialect::Postgres) {
        other.batch_execute(&statement).await.unwrap();
    }
    let mut rows = encode::InsertRows::new("INSERT INTO shop.orders VALUES".to_owned());
    for id in chunk.first..=chunk.last {
        data.write(chunk.part, id, &mut rows);
    }
    let enter = ledger::enter(&names, &chunk);
    let begun = format!("BEGIN; {enter}; {}", rows.into_statement(""));
    other.batch_execute(&begun).await.unwrap();

    let order = LoadOrder { scale: 0.001, seed: 5, workers: Some(2) };
    let ends = async {
        let waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND datname = current_database()";
        let looker = session(&target).await.unwrap();
        while looker.query(waits, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        other.batch_execute(end).await.unwrap();
    };
    let (report, ()) = futures_util::join!(load_with(&target, order, |_| {}), ends);
    verify_rows(&target, 0.001, 5).await.unwrap();
    report.unwrap()
}

#[tokio::test]
async fn a_chunk_whose_loader_was_killed_in_its_commit_is_neither_doubled_nor_lost() {
    let report = beside_a_transaction_under_way("COMMIT").await;
    assert_eq!((report.rows, report.retries), (expected(0.001).unwrap(), 0));
    let report = beside_a_transaction_under_way("ROLLBACK").await;
    assert_eq!((report.rows, report.retries), (expected(0.001).unwrap(), 0));
}

#[test]
fn what_the_engine_awaits_can_move_between_threads() {
    fn assert_send<T: Send>(_: T) {}
    fn assert_all(target: &TargetSpec, range: &crate::model::AttemptRange) {
        assert_send(load(target, 0.01, 1, |_| {}));
        assert_send(status(target, 0.01));
        assert_send(verify_rows(target, 0.01, 1));
        assert_send(schema::remove(target));
        assert_send(crate::workload::invariants::check(target, range, &Default::default()));
    }
    // That it compiles is the test; nothing needs to run.
    let _: fn(&TargetSpec, &crate::model::AttemptRange) = assert_all;
}
