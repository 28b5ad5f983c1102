-- A template: {count} is the number of lines, {draw} draws as many products and computes as many
-- ledger entries, and the lists have one value for each line. A client counts its own orders.
\set n :made_{count} + 1
\set order :base + (:client_id * 4 + {count}) * 1000000 + :n
\set customer random(1, :customers)
\set total :amount * {count}
{draw}
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT product_id, price_cents, stock FROM "shop".products WHERE product_id = ANY({products});
INSERT INTO "shop".orders (order_id, customer_id, status, total_cents, created_at) VALUES (:order, :customer, 'placed', :total, now());
INSERT INTO "shop".order_items (order_id, line_no, product_id, quantity, price_cents) SELECT :order, line_no, product_id, quantity, price_cents FROM unnest({line_nos}, {products}, {quantities}, {prices}) AS line (line_no, product_id, quantity, price_cents);
UPDATE "shop".products SET stock = stock + ({sold})[array_position({products}, product_id)] WHERE product_id = ANY({products});
INSERT INTO "shop".ledger (entry_id, order_id, product_id, quantity, amount_cents, kind) SELECT entry_id, :order, product_id, quantity, amount_cents, :sale FROM unnest({entries}, {products}, {sold}, {amounts}) AS entry (entry_id, product_id, quantity, amount_cents);
INSERT INTO "shop".receipts (business_id, kind, order_id, at) VALUES (:order, :create, :order, now());
COMMIT;
\set made_{count} :n
