//! Whole behaviour, through the `rampdeck` binary, on a real PostgreSQL.

mod rooms;
mod support;
