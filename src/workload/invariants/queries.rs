//! What the database is asked. Parameters of every query: the attempt's first and last order id,
//! the first business id of its prefix and the first one beyond.
//!
//! Every query but [`COUNTS`] answers with its violations: how many there are in all, and the
//! first ones in words. The work is done in the database, so that a check takes the same memory
//! here however large the cell was.

/// How many violations a query puts in words.
pub(super) const FIRST: usize = 5;

/// Orders, products touched, create receipts and cancel receipts of the attempt.
pub(super) const COUNTS: &str = "
SELECT
  (SELECT count(*) FROM {orders} WHERE order_id BETWEEN $1 AND $2),
  (SELECT count(*) FROM (
      SELECT product_id FROM {order_items} WHERE order_id BETWEEN $1 AND $2
      UNION SELECT product_id FROM {ledger} WHERE order_id BETWEEN $1 AND $2) AS touched),
  count(*) FILTER (WHERE kind = 'create'),
  count(*) FILTER (WHERE kind = 'cancel')
FROM {receipts} WHERE business_id >= $3 AND business_id < $4";

/// An order's total is the sum of its items; no items without an order.
pub(super) const TOTALS: &str = "
SELECT count(*) OVER (), CASE
    WHEN o.order_id IS NULL THEN format('order %s has items but does not exist', i.order_id)
    ELSE format('order %s has a total of %s cents, its items add up to %s',
                o.order_id, o.total_cents, coalesce(i.cents, 0)) END
FROM (SELECT order_id, total_cents FROM {orders} WHERE order_id BETWEEN $1 AND $2) AS o
FULL JOIN (
    SELECT order_id, sum(quantity * price_cents) AS cents
    FROM {order_items} WHERE order_id BETWEEN $1 AND $2 GROUP BY order_id) AS i USING (order_id)
WHERE o.order_id IS NULL OR i.order_id IS NULL OR o.total_cents <> i.cents
ORDER BY order_id LIMIT 5";

/// Every item has one sale in the ledger, with the quantity taken and the amount charged; of a
/// cancelled order it has one reversal too, so that both net to nothing; nothing else is there.
/// Full joins leave the planner no nested loops, which it would choose on statistics from before
/// the cell, when the range was empty.
pub(super) const LEDGER: &str = "
SELECT count(*) OVER (), format(
    'order %s (%s), product %s: %s pieces for %s cents were ordered, the ledger has %s sales '
    'of %s pieces for %s cents, %s reversals of %s for %s and %s other entries',
    order_id, coalesce(o.status, 'not there'), coalesce(product_id::text, 'none'),
    coalesce(i.pieces, 0), coalesce(i.cents, 0),
    coalesce(l.sales, 0), coalesce(l.sold, 0), coalesce(l.charged, 0),
    coalesce(l.reversals, 0), coalesce(l.returned, 0), coalesce(l.refunded, 0),
    coalesce(l.others, 0))
FROM (
    SELECT order_id, product_id, count(*) AS lines, sum(quantity) AS pieces,
        sum(quantity * price_cents) AS cents
    FROM {order_items} WHERE order_id BETWEEN $1 AND $2 GROUP BY order_id, product_id) AS i
FULL JOIN (
    SELECT order_id, product_id,
        count(*) FILTER (WHERE kind = 'sale') AS sales,
        coalesce(sum(quantity) FILTER (WHERE kind = 'sale'), 0) AS sold,
        coalesce(sum(amount_cents) FILTER (WHERE kind = 'sale'), 0) AS charged,
        count(*) FILTER (WHERE kind = 'reversal') AS reversals,
        coalesce(sum(quantity) FILTER (WHERE kind = 'reversal'), 0) AS returned,
        coalesce(sum(amount_cents) FILTER (WHERE kind = 'reversal'), 0) AS refunded,
        count(*) FILTER (WHERE kind NOT IN ('sale', 'reversal')) AS others
    FROM {ledger} WHERE order_id BETWEEN $1 AND $2 GROUP BY order_id, product_id) AS l
    USING (order_id, product_id)
FULL JOIN (
    SELECT order_id, status FROM {orders} WHERE order_id BETWEEN $1 AND $2) AS o USING (order_id)
WHERE o.order_id IS NULL OR i.order_id IS NULL OR l.order_id IS NULL
    OR l.sales <> i.lines OR l.sold <> -i.pieces OR l.charged <> i.cents OR l.others <> 0
    OR l.reversals <> CASE o.status WHEN 'cancelled' THEN i.lines ELSE 0 END
    OR l.returned <> CASE o.status WHEN 'cancelled' THEN i.pieces ELSE 0 END
    OR l.refunded <> CASE o.status WHEN 'cancelled' THEN -i.cents ELSE 0 END
ORDER BY order_id, product_id LIMIT 5";

/// The stock of every product that the attempt touched is what it began with and all that the
/// ledger has, from every attempt, since stock is shared. Each sum is a look-up in the index: a
/// join would let the planner read the whole ledger.
pub(super) const STOCK: &str = "
SELECT count(*) OVER (), CASE
    WHEN p.product_id IS NULL THEN format('product %s does not exist', t.product_id)
    ELSE format('product %s has a stock of %s, it began with %s and its ledger adds up to %s',
                t.product_id, p.stock, p.initial_stock, c.change) END
FROM (
    SELECT product_id FROM {order_items} WHERE order_id BETWEEN $1 AND $2
    UNION SELECT product_id FROM {ledger} WHERE order_id BETWEEN $1 AND $2) AS t
LEFT JOIN {products} AS p USING (product_id)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(l.quantity), 0) AS change
    FROM {ledger} AS l WHERE l.product_id = t.product_id) AS c
WHERE p.product_id IS NULL OR p.stock < 0 OR p.stock <> p.initial_stock + c.change
ORDER BY t.product_id LIMIT 5";

/// Every order has its create receipt, every cancelled one its cancel receipt, and the other way
/// round.
pub(super) const RECEIPTS: &str = "
SELECT count(*) OVER (), format('order %s (%s) has %s create and %s cancel receipts',
    order_id, coalesce(o.status, 'not there'), coalesce(r.creates, 0), coalesce(r.cancels, 0))
FROM (
    SELECT order_id, count(*) FILTER (WHERE kind = 'create') AS creates,
        count(*) FILTER (WHERE kind = 'cancel') AS cancels
    FROM {receipts} WHERE business_id >= $3 AND business_id < $4 GROUP BY order_id) AS r
FULL JOIN (
    SELECT order_id, status FROM {orders} WHERE order_id BETWEEN $1 AND $2) AS o USING (order_id)
WHERE o.order_id IS NULL OR r.order_id IS NULL OR r.creates <> 1
    OR r.cancels <> CASE o.status WHEN 'cancelled' THEN 1 ELSE 0 END
ORDER BY order_id LIMIT 5";

/// The queries that answer with violations.
pub(super) const CHECKS: [(&str, &str); 4] =
    [("order totals", TOTALS), ("ledger", LEDGER), ("stock", STOCK), ("receipts", RECEIPTS)];
