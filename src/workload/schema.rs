//! The tables of the order business, described once, and their DDL.
//!
//! Every statement names the schema in full: a `search_path` would pin a connection behind a
//! pooler. Nothing relies on foreign keys: not every dialect has them, and the invariants check
//! what they would.
//!
//! The description is rendered for two dialects. No key rises with time in DSQL, which would make one
//! hot range of its key space: a cell's order ids, and the ledger's with them, are its range's through
//! a bijection that mixes them; receipts are keyed by the cell's prefix and a mixed number; and the
//! loader inserts the chunks of a table in a mixed order.

use tokio_postgres::{Client, types::Type};

use super::error::{Doing, WorkloadError};
use crate::{
    model::{Dialect, TargetSpec},
    target::session,
};

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
    /// The column's type. DSQL compares every text byte by byte: C is its only collation.
    const fn column(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Id | Self::Pieces | Self::Cents, _) => "bigint",
            (Self::Ordinal, _) => "integer",
            (Self::Bytewise, Dialect::Postgres) => "text COLLATE \"C\"",
            (Self::Text | Self::Bytewise, _) => "text",
            (Self::Time, _) => "timestamptz",
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

/// What a load has done, for one that resumes it and for what is said of it later: the chunks that
/// are in the database, and facts by names that no table has.
pub(super) const LOAD_CHUNKS: Table = Table {
    name: "load_chunks",
    columns: &[("part", Kind::Bytewise), ("chunk", Kind::Id)],
    key: "part, chunk",
    indexes: &[],
};

/// Every table of the business.
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

    /// Asks whether an index may be used: `t` once it is valid, no row while it is not there.
    pub(super) fn validity(&self, index: &str) -> String {
        format!(
            "SELECT indisvalid FROM pg_catalog.pg_index WHERE indexrelid = to_regclass('{}')",
            self.index(index).replace('\'', "''")
        )
    }

    /// Replaces each `{table}` of a statement by the table's full name.
    pub(super) fn fill(&self, statement: &str) -> String {
        TABLES.iter().fold(statement.to_owned(), |text, table| {
            text.replace(&format!("{{{}}}", table.name), &self.of(table))
        })
    }

    /// The schema and its tables, one statement a transaction. On PostgreSQL without keys: rows are
    /// loaded before the indexes are made, all but those of the loader's own table. DSQL stores a
    /// table by its primary key, which can therefore not be added later.
    pub(super) fn create_tables(&self, dialect: Dialect) -> Vec<String> {
        let mut statements = vec![format!("CREATE SCHEMA IF NOT EXISTS {}", self.schema)];
        // The loader's first: where it is there, a load has begun and may be resumed.
        statements.push(self.create_table(&LOAD_CHUNKS, dialect, true));
        let keyed = dialect == Dialect::Dsql;
        statements.extend(TABLES.iter().map(|table| self.create_table(table, dialect, keyed)));
        statements
    }

    fn create_table(&self, table: &Table, dialect: Dialect, keyed: bool) -> String {
        let columns = table.columns.iter();
        let mut parts: Vec<_> = columns
            .map(|(name, kind)| format!("{name} {} NOT NULL", kind.column(dialect)))
            .collect();
        if keyed {
            parts.push(format!("PRIMARY KEY ({})", table.key));
        }
        format!("CREATE TABLE IF NOT EXISTS {} ({})", self.of(table), parts.join(", "))
    }

    /// A table's key (where it is not made with the table) and indexes.
    pub(super) fn create_indexes(&self, table: &Table, dialect: Dialect) -> Vec<CreateIndex> {
        let name = self.of(table);
        let key = || CreateIndex {
            index: format!("{}_pkey", table.name),
            statement: format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", table.key),
        };
        let asynchronously = if dialect == Dialect::Dsql { "ASYNC " } else { "" };
        let secondary = table.indexes.iter().map(|index| {
            let carries =
                index.carries.map(|columns| format!(" INCLUDE ({columns})")).unwrap_or_default();
            let Index { name: index, columns, .. } = index;
            CreateIndex {
                index: (*index).to_owned(),
                statement: format!(
                    "CREATE INDEX {asynchronously}{index} ON {name} ({columns}){carries}"
                ),
            }
        });
        (dialect == Dialect::Postgres).then(key).into_iter().chain(secondary).collect()
    }

    /// An index by its full name.
    pub(super) fn index(&self, name: &str) -> String {
        format!("{}.{name}", self.schema)
    }
}

/// An index to be made.
#[derive(Debug)]
pub(super) struct CreateIndex {
    /// Its name, without the schema.
    pub(super) index: String,
    pub(super) statement: String,
}

/// What makes the tables of the order business in a schema, statement by statement, each to be run
/// in a transaction of its own; what else is to be done is between them as comments.
///
/// On DSQL an index is made by a job: it is in the catalog before it may be used, so that its job is
/// waited for and then its validity, too
/// (<https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-create-index-async.html>).
#[must_use]
pub fn statements(schema: &str, dialect: Dialect) -> Vec<String> {
    let names = Names::new(schema);
    let mut lines: Vec<_> =
        names.create_tables(dialect).into_iter().map(|text| format!("{text};")).collect();
    lines.push("-- now the rows are loaded".to_owned());
    for create in TABLES.iter().flat_map(|table| names.create_indexes(table, dialect)) {
        lines.push(format!("{};", create.statement));
        if dialect == Dialect::Dsql {
            lines.push("SELECT sys.wait_for_job('the job_id that it answered');".to_owned());
            lines.push(format!("{};", names.validity(&create.index)));
        }
    }
    lines
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
        let tables = names.create_tables(Dialect::Postgres);
        assert_eq!(tables[0], "CREATE SCHEMA IF NOT EXISTS \"run-1\"\"x\"");
        let begins = "CREATE TABLE IF NOT EXISTS \"run-1\"\"x\".";
        assert!(tables[1..].iter().all(|ddl| ddl.starts_with(begins)), "{tables:#?}");
        let ledger = names.create_indexes(&LEDGER, Dialect::Postgres);
        assert_eq!(
            ledger[1].statement,
            "CREATE INDEX ledger_order ON \"run-1\"\"x\".ledger (order_id)"
        );
        assert_eq!(
            names.fill("{orders} {order_items}"),
            "\"run-1\"\"x\".orders \"run-1\"\"x\".order_items"
        );
    }

    #[test]
    fn dsql_gets_keys_with_the_tables_and_waits_for_each_index_and_its_validity() {
        let lines = statements("shop", Dialect::Dsql);
        let tables: Vec<_> = lines.iter().filter(|line| line.starts_with("CREATE TABLE")).collect();
        assert_eq!(tables.len(), TABLES.len() + 1);
        assert!(tables.iter().all(|ddl| ddl.contains("PRIMARY KEY (")), "{tables:#?}");
        let indexes: Vec<_> = (0..lines.len()).filter(|at| lines[*at].contains("INDEX")).collect();
        assert_eq!(indexes.len(), 3);
        for at in indexes {
            assert!(lines[at].starts_with("CREATE INDEX ASYNC "), "{}", lines[at]);
            assert!(lines[at + 1].contains("sys.wait_for_job("), "{}", lines[at + 1]);
            assert!(lines[at + 2].contains("indisvalid"), "{}", lines[at + 2]);
        }
        // One DDL a transaction, and nothing that DSQL does not have.
        for line in &lines {
            assert!(line.matches(';').count() <= 1, "{line}");
            for absent in ["REFERENCES", "COLLATE", "TRUNCATE", "ALTER TABLE", "statement_timeout"]
            {
                assert!(!line.contains(absent), "{line}");
            }
        }
    }

    #[test]
    fn postgresql_gets_its_keys_and_indexes_after_the_rows() {
        let lines = statements("shop", Dialect::Postgres);
        let rows = lines.iter().position(|line| line.starts_with("--")).unwrap();
        let (before, after) = lines.split_at(rows);
        let keys = |lines: &[String]| lines.iter().filter(|l| l.contains("PRIMARY KEY")).count();
        assert_eq!((keys(before), keys(after)), (1, TABLES.len()), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains("ASYNC")), "{lines:#?}");
    }
}
