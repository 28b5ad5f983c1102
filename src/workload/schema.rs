//! The tables of the order business, described once, and their DDL.
//!
//! Every statement names the schema in full: a `search_path` would pin a connection behind a
//! pooler. Nothing relies on foreign keys: not every dialect has them, and the invariants check
//! what they would.

use tokio_postgres::{Client, types::Type};

use super::error::{Doing, WorkloadError};
use crate::{model::TargetSpec, target::session};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Id,
    /// A small number: a line's place in its order.
    Ordinal,
    /// Pieces of a product.
    Pieces,
    /// Money, in integer cents.
    Cents,
    Text,
    /// Text that is compared byte by byte, so that a prefix is a range of the index.
    Bytewise,
    Time,
}

impl Kind {
    const fn postgres(self) -> &'static str {
        match self {
            Self::Id | Self::Pieces | Self::Cents => "bigint",
            Self::Ordinal => "integer",
            Self::Text => "text",
            Self::Bytewise => "text COLLATE \"C\"",
            Self::Time => "timestamptz",
        }
    }

    /// The type that the binary protocol carries.
    pub(super) const fn wire(self) -> Type {
        match self {
            Self::Id | Self::Pieces | Self::Cents => Type::INT8,
            Self::Ordinal => Type::INT4,
            Self::Text | Self::Bytewise => Type::TEXT,
            Self::Time => Type::TIMESTAMPTZ,
        }
    }
}

/// One table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    key: &'static str,
    indexes: &'static [Index],
}

#[derive(Debug)]
struct Index {
    name: &'static str,
    columns: &'static str,
    /// Columns that the index carries so that the table need not be read.
    carries: Option<&'static str>,
}

pub(super) const CUSTOMERS: Table = Table {
    name: "customers",
    columns: &[("customer_id", Kind::Id), ("name", Kind::Text)],
    key: "customer_id",
    indexes: &[],
};

pub(super) const PRODUCTS: Table = Table {
    name: "products",
    columns: &[
        ("product_id", Kind::Id),
        ("name", Kind::Text),
        ("price_cents", Kind::Cents),
        ("initial_stock", Kind::Pieces),
        ("stock", Kind::Pieces),
    ],
    key: "product_id",
    indexes: &[],
};

pub(super) const ORDERS: Table = Table {
    name: "orders",
    columns: &[
        ("order_id", Kind::Id),
        ("customer_id", Kind::Id),
        ("status", Kind::Text),
        ("total_cents", Kind::Cents),
        ("created_at", Kind::Time),
    ],
    key: "order_id",
    // An order history reads a customer's newest orders.
    indexes: &[Index {
        name: "orders_customer",
        columns: "customer_id, created_at",
        carries: None,
    }],
};

pub(super) const ORDER_ITEMS: Table = Table {
    name: "order_items",
    columns: &[
        ("order_id", Kind::Id),
        ("line_no", Kind::Ordinal),
        ("product_id", Kind::Id),
        ("quantity", Kind::Pieces),
        ("price_cents", Kind::Cents),
    ],
    key: "order_id, line_no",
    indexes: &[],
};

pub(super) const LEDGER: Table = Table {
    name: "ledger",
    columns: &[
        ("entry_id", Kind::Id),
        ("order_id", Kind::Id),
        ("product_id", Kind::Id),
        // The signed change of the product's stock.
        ("quantity", Kind::Pieces),
        ("amount_cents", Kind::Cents),
        // sale, reversal or opening
        ("kind", Kind::Text),
    ],
    key: "entry_id",
    // Without the first, the checks of an attempt (and anything that deletes orders) would scan
    // the whole ledger; the second answers a product's sum without reading the table.
    indexes: &[
        Index { name: "ledger_order", columns: "order_id", carries: None },
        Index { name: "ledger_product", columns: "product_id", carries: Some("quantity") },
    ],
};

pub(super) const RECEIPTS: Table = Table {
    name: "receipts",
    columns: &[
        ("business_id", Kind::Bytewise),
        // create or cancel
        ("kind", Kind::Text),
        ("order_id", Kind::Id),
        ("at", Kind::Time),
    ],
    key: "business_id",
    indexes: &[],
};

/// Every table.
pub(super) const TABLES: [&Table; 6] =
    [&CUSTOMERS, &PRODUCTS, &ORDERS, &ORDER_ITEMS, &LEDGER, &RECEIPTS];

/// Names inside one schema, quoted.
#[derive(Clone, Debug)]
pub(super) struct Names {
    schema: String,
}

impl Names {
    pub(super) fn new(schema: &str) -> Self {
        Self { schema: format!("\"{}\"", schema.replace('"', "\"\"")) }
    }

    /// The table's full name, for example `"shop".orders`.
    pub(super) fn of(&self, table: &Table) -> String {
        format!("{}.{}", self.schema, table.name)
    }

    /// Replaces each `{table}` of a statement by the table's full name.
    pub(super) fn fill(&self, statement: &str) -> String {
        TABLES.iter().fold(statement.to_owned(), |text, table| {
            text.replace(&format!("{{{}}}", table.name), &self.of(table))
        })
    }

    /// The schema and its tables, without keys: rows are loaded before the indexes are made.
    pub(super) fn create_tables(&self) -> Vec<String> {
        let mut statements = vec![format!("CREATE SCHEMA IF NOT EXISTS {}", self.schema)];
        statements.extend(TABLES.iter().map(|table| {
            let columns = table
                .columns
                .iter()
                .map(|(name, kind)| format!("{name} {} NOT NULL", kind.postgres()))
                .collect::<Vec<_>>()
                .join(", ");
            format!("CREATE TABLE {} ({columns})", self.of(table))
        }));
        statements
    }

    /// A table's key and indexes.
    pub(super) fn create_indexes(&self, table: &Table) -> Vec<String> {
        let name = self.of(table);
        let mut statements = vec![format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", table.key)];
        statements.extend(table.indexes.iter().map(|index| {
            let carries =
                index.carries.map(|columns| format!(" INCLUDE ({columns})")).unwrap_or_default();
            format!("CREATE INDEX {} ON {name} ({}){carries}", index.name, index.columns)
        }));
        statements
    }
}

/// Removes the target's schema with everything in it; one that is not there is no error.
///
/// # Errors
/// When the database cannot be reached or refuses.
pub async fn remove(target: &TargetSpec) -> Result<(), WorkloadError> {
    let client = session(target).await?;
    let statement = format!("DROP SCHEMA IF EXISTS {} CASCADE", Names::new(&target.schema).schema);
    client.batch_execute(&statement).await.doing(|| format!("removing schema {}", target.schema))
}

/// Whether the target's schema is there, for example to verify that it is gone.
///
/// # Errors
/// When the database cannot be reached or refuses.
pub async fn exists(target: &TargetSpec) -> Result<bool, WorkloadError> {
    let client = session(target).await?;
    let query = "SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1";
    let found = client.query_typed_opt(query, &[(&target.schema, Type::TEXT)]).await;
    Ok(found.doing(|| format!("looking for schema {}", target.schema))?.is_some())
}

/// The first of our tables that the schema already holds.
pub(super) async fn first_table_there(
    client: &Client,
    schema: &str,
) -> Result<Option<&'static str>, tokio_postgres::Error> {
    let query = "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1";
    let rows = client.query_typed(query, &[(&schema, Type::TEXT)]).await?;
    let there: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(TABLES.iter().map(|table| table.name).find(|name| there.iter().any(|t| t == name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_names_the_schema_in_full_and_quoted() {
        let names = Names::new("run-1\"x");
        let tables = names.create_tables();
        assert_eq!(tables[0], "CREATE SCHEMA IF NOT EXISTS \"run-1\"\"x\"");
        assert!(tables[1..].iter().all(|ddl| ddl.starts_with("CREATE TABLE \"run-1\"\"x\".")));
        let ledger = names.create_indexes(&LEDGER);
        assert_eq!(ledger[1], "CREATE INDEX ledger_order ON \"run-1\"\"x\".ledger (order_id)");
        assert_eq!(
            names.fill("{orders} {order_items}"),
            "\"run-1\"\"x\".orders \"run-1\"\"x\".order_items"
        );
    }
}
