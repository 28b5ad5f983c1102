-- pgbench cannot take ten rows of one result into another statement: which orders are read next is
-- said on its command line.
\set customer random(1, :customers)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT order_id, status, total_cents, created_at FROM "shop".orders WHERE customer_id = :customer ORDER BY created_at DESC LIMIT 10;
SELECT order_id, line_no, product_id, quantity, price_cents FROM "shop".order_items WHERE order_id = ANY(ARRAY[:o1, :o2, :o3, :o4, :o5, :o6, :o7, :o8, :o9, :o10]::bigint[]);
COMMIT;
