//! What is loaded is what the scale says, and it is sound.

use std::sync::Mutex;

use super::{rows::DataSet, *};
use crate::{
    model::TargetSpec,
    target::testing::TestServer,
    workload::{schema, testing::Shop},
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
    assert_eq!(count_rows(&shop.target).await.unwrap(), counts);

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
    assert!(steps.windows(2).all(|pair| pair[0].rows <= pair[1].rows));
    let last = steps.last().unwrap();
    assert_eq!((last.step, last.rows), (LoadStep::Count, last.of));
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
async fn rows_that_are_missing_are_not_overlooked() {
    let shop = Shop::load(0.0001).await;
    let due = expected(0.0001).unwrap();
    assert_eq!(shop.execute("DELETE FROM shop.ledger WHERE order_id = 7").await, 1);
    let found = count_rows(&shop.target).await.unwrap();
    let error = verify("shop", &found, &due).unwrap_err();
    assert!(error.to_string().contains("ledger"), "{error}");
    assert!(matches!(error, WorkloadError::Count { found: 1099, expected: 1100, .. }), "{error}");
}

#[test]
fn what_the_engine_awaits_can_move_between_threads() {
    fn assert_send<T: Send>(_: T) {}
    fn assert_all(target: &TargetSpec, range: &crate::model::AttemptRange) {
        assert_send(load(target, 0.01, 1, |_| {}));
        assert_send(count_rows(target));
        assert_send(schema::remove(target));
        assert_send(crate::workload::invariants::check(target, range, &Default::default()));
    }
    // That it compiles is the test; nothing needs to run.
    let _: fn(&TargetSpec, &crate::model::AttemptRange) = assert_all;
}
