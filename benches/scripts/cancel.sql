-- A template, as create.sql is. A client cancels its own orders, the oldest first; where there is
-- none it finds nothing to cancel.
\if :cancelled_{count} < :made_{count}
\set n :cancelled_{count} + 1
\set order :base + (:client_id * 4 + {count}) * 1000000 + :n
\set business -:order
{draw}
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT status FROM "shop".orders WHERE order_id = :order;
SELECT line_no, product_id, quantity, price_cents FROM "shop".order_items WHERE order_id = :order ORDER BY product_id;
UPDATE "shop".orders SET status = 'cancelled' WHERE order_id = :order AND status = 'placed';
UPDATE "shop".products SET stock = stock + ({returned})[array_position({products}, product_id)] WHERE product_id = ANY({products});
INSERT INTO "shop".ledger (entry_id, order_id, product_id, quantity, amount_cents, kind) SELECT entry_id, :order, product_id, quantity, amount_cents, :reversal FROM unnest({reversals}, {products}, {returned}, {refunds}) AS entry (entry_id, product_id, quantity, amount_cents);
INSERT INTO "shop".receipts (business_id, kind, order_id, at) VALUES (:business, :cancel, :order, now());
COMMIT;
\set cancelled_{count} :n
\else
\set order :base - 1
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT status FROM "shop".orders WHERE order_id = :order;
ROLLBACK;
SELECT FROM "shop".receipts WHERE business_id = :none;
\endif
