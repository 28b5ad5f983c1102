//! The statements of the four transactions.

use crate::{
    target::{
        ParameterType::{self, Int4s, Int8, Int8s, Text},
        Statement,
    },
    workload::schema::Names,
};

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

/// Each statement with its parameters; the position is its number.
const ALL: [(&str, &[ParameterType]); 13] = [
    (PRODUCT, &[Int8]),
    (HISTORY, &[Int8]),
    (ITEMS_OF_ORDERS, &[Int8s]),
    (PRICE_AND_STOCK, &[Int8s]),
    (INSERT_ORDER, &[Int8, Int8, Int8]),
    (INSERT_ITEMS, &[Int8, Int4s, Int8s, Int8s, Int8s]),
    (CHANGE_STOCK, &[Int8s, Int8s]),
    (INSERT_LEDGER, &[Int8, Text, Int8s, Int8s, Int8s, Int8s]),
    (INSERT_RECEIPT, &[Text, Text, Int8]),
    (ORDER, &[Int8]),
    (ITEMS_OF_ORDER, &[Int8]),
    (CANCEL_ORDER, &[Int8]),
    (RECEIPT, &[Text]),
];

/// The statements, with the schema filled in.
#[derive(Debug)]
pub(super) struct Statements([Statement; ALL.len()]);

/// Names the statements by their places in [`ALL`].
macro_rules! named {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(pub(super) const fn $name(&self) -> &Statement {
            &self.0[$number]
        })*
    };
}

impl Statements {
    pub(super) fn new(names: &Names) -> Self {
        Self(std::array::from_fn(|number| {
            let (text, parameters) = ALL[number];
            Statement::new(number, names.fill(text), parameters)
        }))
    }

    /// All of them, for a connection to prepare.
    pub(super) const fn all(&self) -> &[Statement] {
        &self.0
    }

    named! {
        product = 0,
        history = 1,
        items_of_orders = 2,
        price_and_stock = 3,
        insert_order = 4,
        insert_items = 5,
        change_stock = 6,
        insert_ledger = 7,
        insert_receipt = 8,
        order = 9,
        items_of_order = 10,
        cancel_order = 11,
        receipt = 12,
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
            ("bigint", statements.product(), "products_pkey"),
            ("bigint", statements.history(), "orders_customer"),
            ("bigint[]", statements.items_of_orders(), "order_items_pkey"),
            ("bigint[]", statements.price_and_stock(), "products_pkey"),
            (arrays, statements.change_stock(), "products_pkey"),
            ("bigint", statements.order(), "orders_pkey"),
            ("bigint", statements.items_of_order(), "order_items_pkey"),
            ("bigint", statements.cancel_order(), "orders_pkey"),
        ];
        shop.client.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
        for (types, statement, index) in planned {
            let nulls = types.split(',').map(|_| "NULL").collect::<Vec<_>>().join(", ");
            let explain = format!(
                "PREPARE planned ({types}) AS {}; EXPLAIN EXECUTE planned ({nulls}); \
                 DEALLOCATE planned",
                statement.sql()
            );
            let messages = shop.client.simple_query(&explain).await.unwrap();
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            let plan = rows.collect::<Vec<_>>().join("\n");
            let scan = format!("Index Scan using {index}");
            let backward = format!("Index Scan Backward using {index}");
            assert!(plan.contains(&scan) || plan.contains(&backward), "{statement:?}\n{plan}");
            assert!(!plan.contains("Seq Scan"), "{statement:?}\n{plan}");
        }
    }
}
