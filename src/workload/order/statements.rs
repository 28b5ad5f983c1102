//! The statements of the four transactions.

use tokio_postgres::{Client, Error, Statement, types::Type};

use crate::workload::schema::Names;

pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

const PRODUCT: &str = "SELECT product_id, name, price_cents, stock FROM {products} \
     WHERE product_id = $1";

const HISTORY: &str = "SELECT order_id, status, total_cents, created_at FROM {orders} \
     WHERE customer_id = $1 ORDER BY created_at DESC LIMIT 10";

const ITEMS_OF_ORDERS: &str = "SELECT order_id, line_no, product_id, quantity, price_cents \
     FROM {order_items} WHERE order_id = ANY($1)";

const PRICE_AND_STOCK: &str = "SELECT product_id, price_cents, stock FROM {products} \
     WHERE product_id = ANY($1)";

const INSERT_ORDER: &str = "INSERT INTO {orders} \
     (order_id, customer_id, status, total_cents, created_at) \
     VALUES ($1, $2, 'placed', $3, now())";

const INSERT_ITEMS: &str = "INSERT INTO {order_items} \
     (order_id, line_no, product_id, quantity, price_cents) \
     SELECT $1, line_no, product_id, quantity, price_cents \
     FROM unnest($2, $3, $4, $5) AS line (line_no, product_id, quantity, price_cents)";

/// Adds `$2` to the stock of the products `$1`. No join with `unnest`: prepared, it may be planned
/// as a scan of all products, which locks them in the order they happen to lie in. The index gives
/// them in the order of their ids, so that two orders that share products queue up rather than
/// deadlock.
const CHANGE_STOCK: &str = "UPDATE {products} \
     SET stock = stock + ($2::bigint[])[array_position($1::bigint[], product_id)] \
     WHERE product_id = ANY($1)";

const INSERT_LEDGER: &str = "INSERT INTO {ledger} \
     (entry_id, order_id, product_id, quantity, amount_cents, kind) \
     SELECT entry_id, $1, product_id, quantity, amount_cents, $2 \
     FROM unnest($3, $4, $5, $6) AS entry (entry_id, product_id, quantity, amount_cents)";

const INSERT_RECEIPT: &str = "INSERT INTO {receipts} (business_id, kind, order_id, at) \
     VALUES ($1, $2, $3, now())";

const ORDER: &str = "SELECT status FROM {orders} WHERE order_id = $1";

const ITEMS_OF_ORDER: &str = "SELECT line_no, product_id, quantity, price_cents \
     FROM {order_items} WHERE order_id = $1 ORDER BY product_id";

const CANCEL_ORDER: &str = "UPDATE {orders} SET status = 'cancelled' \
     WHERE order_id = $1 AND status = 'placed'";

const RECEIPT: &str = "SELECT FROM {receipts} WHERE business_id = $1";

/// The texts, with the schema filled in.
#[derive(Debug)]
pub(super) struct Statements {
    product: String,
    history: String,
    items_of_orders: String,
    price_and_stock: String,
    insert_order: String,
    insert_items: String,
    change_stock: String,
    insert_ledger: String,
    insert_receipt: String,
    order: String,
    items_of_order: String,
    cancel_order: String,
    pub(super) receipt: String,
}

/// The statements that a connection has prepared.
pub struct OrderSession {
    pub(super) product: Statement,
    pub(super) history: Statement,
    pub(super) items_of_orders: Statement,
    pub(super) price_and_stock: Statement,
    pub(super) insert_order: Statement,
    pub(super) insert_items: Statement,
    pub(super) change_stock: Statement,
    pub(super) insert_ledger: Statement,
    pub(super) insert_receipt: Statement,
    pub(super) order: Statement,
    pub(super) items_of_order: Statement,
    pub(super) cancel_order: Statement,
}

impl Statements {
    pub(super) fn new(names: &Names) -> Self {
        Self {
            product: names.fill(PRODUCT),
            history: names.fill(HISTORY),
            items_of_orders: names.fill(ITEMS_OF_ORDERS),
            price_and_stock: names.fill(PRICE_AND_STOCK),
            insert_order: names.fill(INSERT_ORDER),
            insert_items: names.fill(INSERT_ITEMS),
            change_stock: names.fill(CHANGE_STOCK),
            insert_ledger: names.fill(INSERT_LEDGER),
            insert_receipt: names.fill(INSERT_RECEIPT),
            order: names.fill(ORDER),
            items_of_order: names.fill(ITEMS_OF_ORDER),
            cancel_order: names.fill(CANCEL_ORDER),
            receipt: names.fill(RECEIPT),
        }
    }

    /// Prepares every statement, all at once: one round trip, not twelve.
    pub(super) async fn prepare(&self, client: &Client) -> Result<OrderSession, Error> {
        const ID: Type = Type::INT8;
        const IDS: Type = Type::INT8_ARRAY;
        let (
            product,
            history,
            items_of_orders,
            price_and_stock,
            insert_order,
            insert_items,
            change_stock,
            insert_ledger,
            insert_receipt,
            order,
            items_of_order,
            cancel_order,
        ) = tokio::try_join!(
            client.prepare_typed(&self.product, &[ID]),
            client.prepare_typed(&self.history, &[ID]),
            client.prepare_typed(&self.items_of_orders, &[IDS]),
            client.prepare_typed(&self.price_and_stock, &[IDS]),
            client.prepare_typed(&self.insert_order, &[ID, ID, ID]),
            client.prepare_typed(&self.insert_items, &[ID, Type::INT4_ARRAY, IDS, IDS, IDS]),
            client.prepare_typed(&self.change_stock, &[IDS, IDS]),
            client.prepare_typed(&self.insert_ledger, &[ID, Type::TEXT, IDS, IDS, IDS, IDS]),
            client.prepare_typed(&self.insert_receipt, &[Type::TEXT, Type::TEXT, ID]),
            client.prepare_typed(&self.order, &[ID]),
            client.prepare_typed(&self.items_of_order, &[ID]),
            client.prepare_typed(&self.cancel_order, &[ID]),
        )?;
        Ok(OrderSession {
            product,
            history,
            items_of_orders,
            price_and_stock,
            insert_order,
            insert_items,
            change_stock,
            insert_ledger,
            insert_receipt,
            order,
            items_of_order,
            cancel_order,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::SimpleQueryMessage;

    use super::*;
    use crate::workload::testing::Shop;

    #[tokio::test]
    async fn the_plans_that_are_kept_for_prepared_statements_use_the_indexes() {
        let shop = Shop::load(0.01).await;
        let statements = Statements::new(&Names::new("shop"));
        let arrays = "bigint[], bigint[]";
        let planned = [
            ("bigint", &statements.product, "products_pkey"),
            ("bigint", &statements.history, "orders_customer"),
            ("bigint[]", &statements.items_of_orders, "order_items_pkey"),
            ("bigint[]", &statements.price_and_stock, "products_pkey"),
            (arrays, &statements.change_stock, "products_pkey"),
            ("bigint", &statements.order, "orders_pkey"),
            ("bigint", &statements.items_of_order, "order_items_pkey"),
            ("bigint", &statements.cancel_order, "orders_pkey"),
        ];
        shop.client.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
        for (types, statement, index) in planned {
            let nulls = types.split(',').map(|_| "NULL").collect::<Vec<_>>().join(", ");
            let explain = format!(
                "PREPARE planned ({types}) AS {statement}; EXPLAIN EXECUTE planned ({nulls}); \
                 DEALLOCATE planned"
            );
            let messages = shop.client.simple_query(&explain).await.unwrap();
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            let plan = rows.collect::<Vec<_>>().join("\n");
            let scan = format!("Index Scan using {index}");
            let backward = format!("Index Scan Backward using {index}");
            assert!(plan.contains(&scan) || plan.contains(&backward), "{statement}\n{plan}");
            assert!(!plan.contains("Seq Scan"), "{statement}\n{plan}");
        }
    }
}
