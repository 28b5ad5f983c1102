//! Which SQL a database speaks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a database's SQL is like, where that differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// PostgreSQL itself: one's own, RDS, Aurora.
    #[default]
    Postgres,
    /// Aurora DSQL.
    Dsql,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "postgres",
            Self::Dsql => "dsql",
        })
    }
}
