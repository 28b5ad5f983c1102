//! What a database that is none answers, so that every transaction takes its full path and commits.

use super::schema::Names;
use crate::model::{NullAnswer, NullColumn, NullRows, NullStatement, NullType, NullValue};

/// More than any order takes.
const PLENTY: &str = "1000000000";
/// As many as an order history asks for.
const ORDERS: u32 = 10;
/// Lines of each order that is read.
const LINES: u32 = 2;

/// The rows that the null endpoint gives for the statements of the order business in this schema:
/// every product is there with plenty of stock, every customer has ten orders of two lines, and
/// every order may be cancelled.
#[must_use]
pub fn null_answers(schema: &str) -> Vec<NullAnswer> {
    let names = Names::new(schema);
    let answer = |text: &str, columns: Vec<NullColumn>, rows| NullAnswer {
        to: NullStatement::StartsWith(names.fill(text)),
        columns,
        rows,
    };
    let per_element = |rows| NullRows::PerElement { argument: 0, rows };
    vec![
        answer(
            "SELECT product_id, name, price_cents, stock FROM {products} WHERE product_id = ",
            vec![
                id("product_id", NullValue::Argument(0)),
                text("name", "a product"),
                id("price_cents", fixed("1999")),
                id("stock", fixed(PLENTY)),
            ],
            NullRows::Fixed(1),
        ),
        answer(
            "SELECT order_id, status, total_cents, created_at FROM {orders} WHERE customer_id = ",
            vec![
                id("order_id", NullValue::RowNumber),
                text("status", "placed"),
                id("total_cents", fixed("3998")),
                column("created_at", NullType::Timestamptz, fixed("2026-01-31 12:00:00+00")),
            ],
            NullRows::Fixed(ORDERS),
        ),
        answer(
            "SELECT order_id, line_no, product_id, quantity, price_cents FROM {order_items} \
             WHERE order_id = ANY(",
            line(vec![id("order_id", NullValue::Element)]),
            per_element(LINES),
        ),
        answer(
            "SELECT product_id, price_cents, stock FROM {products} WHERE product_id = ANY(",
            vec![
                id("product_id", NullValue::Element),
                id("price_cents", fixed("1999")),
                id("stock", fixed(PLENTY)),
            ],
            per_element(1),
        ),
        answer(
            "SELECT status FROM {orders} WHERE order_id = ",
            vec![text("status", "placed")],
            NullRows::Fixed(1),
        ),
        answer(
            "SELECT line_no, product_id, quantity, price_cents FROM {order_items} \
             WHERE order_id = ",
            line(Vec::new()),
            NullRows::Fixed(LINES),
        ),
    ]
}

/// The columns of an order's line, after these.
fn line(mut columns: Vec<NullColumn>) -> Vec<NullColumn> {
    columns.extend([
        column("line_no", NullType::Int4, NullValue::RowNumber),
        id("product_id", NullValue::RowNumber),
        id("quantity", fixed("1")),
        id("price_cents", fixed("1999")),
    ]);
    columns
}

fn column(name: &str, kind: NullType, value: NullValue) -> NullColumn {
    NullColumn { name: name.to_owned(), kind, value }
}

fn id(name: &str, value: NullValue) -> NullColumn {
    column(name, NullType::Int8, value)
}

fn text(name: &str, value: &str) -> NullColumn {
    column(name, NullType::Text, fixed(value))
}

fn fixed(value: &str) -> NullValue {
    NullValue::Fixed(value.to_owned())
}
