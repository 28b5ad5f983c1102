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

/// `$2` is added to the stock. The products come in the order of their ids, and so are locked in
/// it: two orders that share products queue up rather than deadlock.
const CHANGE_STOCK: &str = "UPDATE {products} AS product SET stock = product.stock + line.change \
     FROM unnest($1, $2) AS line (product_id, change) \
     WHERE product.product_id = line.product_id";

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
