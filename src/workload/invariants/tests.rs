//! Every check finds what it is for, on a real database.

use super::*;
use crate::workload::testing::{Shop, range, run};

const SCALE: f64 = 0.001;

/// A shop whose attempt 1 has run `arrivals` transactions.
async fn traded(scale: f64, arrivals: u64) -> (Shop, AttemptRange, Acknowledged) {
    let shop = Shop::load(scale).await;
    let (workload, range) = shop.attempt(1);
    let mut driver = shop.driver(&workload).await;
    let acknowledged = run(&workload, &mut driver, 0..arrivals).await;
    assert!(acknowledged.creates > 10 && acknowledged.cancels > 5, "{acknowledged:?}");
    (shop, range, acknowledged)
}

#[tokio::test]
async fn each_corruption_is_found_and_a_sound_attempt_is_not_blamed() {
    let (shop, range, acknowledged) = traded(SCALE, 300).await;
    let sound = check(&shop.target, &range, &acknowledged).await.unwrap();
    assert_eq!((sound.violations, &sound.first), (0, &Vec::new()));
    let receipts = shop.number("SELECT count(*) FROM shop.receipts").await.unsigned_abs();
    assert_eq!(receipts, acknowledged.creates + acknowledged.cancels);
    let touched = sound.checked - receipts - acknowledged.creates;
    assert!((1..=200).contains(&touched), "{touched} products touched of 200");

    // What to break (a statement that changes one row or more) and what the check must say. `$PLACED`
    // and `$CANCELLED` are orders of the attempt.
    let breakages = [
        (
            "UPDATE shop.orders SET total_cents = total_cents + 1 WHERE order_id = $PLACED",
            "total of",
        ),
        ("DELETE FROM shop.order_items WHERE order_id = $PLACED", "add up to 0"),
        ("DELETE FROM shop.orders WHERE order_id = $PLACED", "does not exist"),
        ("DELETE FROM shop.ledger WHERE order_id = $PLACED", "0 sales of 0 pieces"),
        ("UPDATE shop.ledger SET amount_cents = 0 WHERE order_id = $PLACED", "for 0 cents"),
        ("UPDATE shop.ledger SET quantity = -9 WHERE order_id = $PLACED", "pieces"),
        (
            "DELETE FROM shop.ledger WHERE order_id = $CANCELLED AND kind = 'reversal'",
            "0 reversals of 0",
        ),
        (
            "INSERT INTO shop.ledger SELECT entry_id + 8, order_id, product_id, -quantity, \
             -amount_cents, 'reversal' FROM shop.ledger WHERE order_id = $PLACED",
            "1 reversals of",
        ),
        (
            "INSERT INTO shop.ledger SELECT entry_id + 7, order_id, product_id, 0, 0, 'sale' \
             FROM shop.ledger WHERE order_id = $PLACED LIMIT 1",
            "2 sales of",
        ),
        (
            "INSERT INTO shop.ledger SELECT entry_id + 8, order_id, product_id, 0, 0, 'reversal' \
             FROM shop.ledger WHERE order_id = $PLACED LIMIT 1",
            "1 reversals of 0",
        ),
        (
            "UPDATE shop.ledger SET quantity = 9 WHERE order_id = $CANCELLED AND kind = 'reversal'",
            "1 reversals of 9",
        ),
        (
            "UPDATE shop.ledger SET amount_cents = -9 WHERE order_id = $CANCELLED \
             AND kind = 'reversal'",
            "for -9 and 0 other entries",
        ),
        (
            "INSERT INTO shop.ledger VALUES (1, $UNUSED, 1, 0, 0, 'sale')",
            "(not there), product 1: 0 pieces",
        ),
        (
            "INSERT INTO shop.ledger SELECT order_id * 16, order_id, product_id, 0, 0, 'opening' \
             FROM shop.order_items WHERE order_id = $PLACED LIMIT 1",
            "1 other entries",
        ),
        (
            "UPDATE shop.products SET stock = stock + 1 WHERE product_id IN \
             (SELECT product_id FROM shop.order_items WHERE order_id = $PLACED)",
            "has a stock of",
        ),
        (
            "UPDATE shop.products SET stock = -5, initial_stock = -5 - (SELECT sum(quantity) FROM \
             shop.ledger AS l WHERE l.product_id = products.product_id) WHERE product_id = \
             (SELECT min(product_id) FROM shop.order_items WHERE order_id = $PLACED)",
            "has a stock of -5",
        ),
        (
            "DELETE FROM shop.products WHERE product_id IN \
             (SELECT product_id FROM shop.order_items WHERE order_id = $PLACED)",
            "does not exist",
        ),
        (
            "DELETE FROM shop.receipts WHERE order_id = $PLACED",
            "has 0 create and 0 cancel receipts",
        ),
        (
            "DELETE FROM shop.receipts WHERE order_id = $CANCELLED AND kind = 'cancel'",
            "cancel receipts were found",
        ),
        (
            "UPDATE shop.orders SET status = 'placed' WHERE order_id = $CANCELLED",
            "has 1 create and 1 cancel receipts",
        ),
        (
            "INSERT INTO shop.receipts VALUES ('test.1.99999999', 'create', $PLACED, now())",
            "has 2 create and 0 cancel",
        ),
        (
            "INSERT INTO shop.receipts VALUES ('test.1.99999999', 'create', $UNUSED, now())",
            "(not there) has 1 create",
        ),
    ];
    let pick = |status: &str| {
        format!(
            "SELECT min(order_id) FROM shop.orders WHERE status = '{status}' AND order_id >= {}",
            range.first_id
        )
    };
    let placed = shop.number(&pick("placed")).await;
    let cancelled = shop.number(&pick("cancelled")).await;
    let unused = range.first_id + range.ids.cast_signed() - 1;
    for (breakage, says) in breakages {
        let breakage = breakage
            .replace("$PLACED", &placed.to_string())
            .replace("$CANCELLED", &cancelled.to_string())
            .replace("$UNUSED", &unused.to_string());
        shop.client.batch_execute("BEGIN").await.unwrap();
        assert!(shop.execute(&breakage).await > 0, "{breakage}");
        let report = check_within(&shop.client, &shop.target.schema, &range, &acknowledged).await;
        let report = report.unwrap();
        assert!(report.violations > 0, "not found: {breakage}");
        assert!(
            report.first.iter().any(|text| text.contains(says)),
            "{breakage}\nis reported as {:#?}",
            report.first
        );
        assert!(report.first.len() <= 5);
        shop.client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn receipts_are_held_against_what_was_acknowledged() {
    let (shop, range, told) = traded(SCALE, 120).await;
    let verdict = async |acknowledged: Acknowledged| {
        check(&shop.target, &range, &acknowledged).await.unwrap().violations
    };
    assert_eq!(verdict(told).await, 0);
    // One more acknowledged than there is.
    assert_eq!(verdict(Acknowledged { creates: told.creates + 1, ..told }).await, 1);
    // Unresolved ones allow for more receipts, never for fewer.
    let lost = Acknowledged { creates: told.creates - 1, unresolved: 1, ..told };
    assert_eq!(verdict(lost).await, 0);
    assert_eq!(verdict(Acknowledged { unresolved: 0, ..lost }).await, 1);
    assert_eq!(verdict(Acknowledged { cancels: told.cancels + 1, unresolved: 5, ..told }).await, 1);
    // Each of two kinds uses up the same single unresolved transaction.
    let both = Acknowledged { creates: told.creates - 1, cancels: told.cancels - 1, unresolved: 1 };
    assert_eq!(verdict(both).await, 1);
}

#[tokio::test]
async fn attempts_share_the_stock_but_never_each_others_orders() {
    let (shop, first, told) = traded(SCALE, 120).await;
    let (second, second_range) = shop.attempt(11);
    let mut driver = shop.driver(&second).await;
    let told_second = run(&second, &mut driver, 0..120).await;
    assert_eq!(check(&shop.target, &first, &told).await.unwrap().violations, 0);
    assert_eq!(check(&shop.target, &second_range, &told_second).await.unwrap().violations, 0);
    // An attempt that has done nothing has nothing to answer for.
    let idle = check(&shop.target, &range(111), &Acknowledged::default()).await.unwrap();
    assert_eq!(idle, InvariantReport::default());
}

/// The plan of a query, a line each, with the attempt's ranges.
async fn plan(shop: &Shop, scope: &Scope, query: &str) -> Vec<String> {
    let explain = format!("EXPLAIN {}", Names::new(&shop.target.schema).fill(query));
    let rows = scope.query(&shop.client, &explain).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn no_check_reads_the_whole_ledger_or_all_orders() {
    // Large enough for the planner to choose: it takes the whole table where all of it is asked for.
    let (shop, range, _) = traded(0.01, 300).await;
    // Receipts of many attempts before it.
    let others = "INSERT INTO shop.receipts SELECT 'other.' || n, 'create', n, now() \
                  FROM generate_series(1, 50000) AS n";
    shop.execute(others).await;
    let scope = Scope::new(&range);
    let whole = "SELECT sum(quantity) FROM {ledger} WHERE order_id + 0 BETWEEN $1 AND $2 \
                 AND $3::text <> $4::text";
    let scanned = plan(&shop, &scope, whole).await;
    assert!(scanned.iter().any(|line| line.contains("Seq Scan on ledger")), "{scanned:#?}");

    // On the statistics from before the cell, as they are when it ends, and on those of afterwards.
    for analyzed in [false, true] {
        if analyzed {
            shop.client.batch_execute("ANALYZE").await.unwrap();
        }
        for (what, query) in CHECKS.into_iter().chain([("counts", COUNTS)]) {
            let plan = plan(&shop, &scope, query).await;
            for table in ["ledger", "orders", "order_items", "receipts"] {
                let scan = format!("Seq Scan on {table}");
                let is_scan = |line: &String| line.contains(&scan);
                assert!(!plan.iter().any(is_scan), "{what}, {analyzed}: {plan:#?}");
            }
            // An index read from end to end would be a scan by another name.
            let of = |word: &str| plan.iter().filter(|line| line.contains(word)).count();
            let scans =
                of("Index Scan using") + of("Index Only Scan using") + of("Bitmap Index Scan");
            assert!(scans > 0 && of("Index Cond:") == scans, "{what}, {analyzed}: {plan:#?}");
        }
    }
}

#[test]
fn a_prefix_is_a_range() {
    assert_eq!(beyond("run.4."), "run.4/");
    let below = beyond("run.4.");
    for id in ["run.4.", "run.4.0", "run.4.c99"] {
        assert!(id >= "run.4." && id < below.as_str());
    }
    assert!("run.41.0" >= below.as_str());
    assert!("run.5.0" >= below.as_str());
}

#[test]
fn a_flood_of_one_kind_does_not_hide_another() {
    let many = |name: &str, n: u64| Violations {
        count: n,
        texts: (0..n.min(5)).map(|i| format!("{name}{i}")).collect(),
    };
    let first = first_of(&[many("a", 900), many("b", 0), many("c", 1), many("d", 2)]);
    assert_eq!(first, ["a0", "c0", "d0", "a1", "d1"]);
}
