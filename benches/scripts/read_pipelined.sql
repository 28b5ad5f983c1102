\set product random(1, :products)
\startpipeline
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT product_id, name, price_cents, stock FROM "shop".products WHERE product_id = :product;
COMMIT;
\endpipeline
