//! A database of the operator's: what it is, and the one schema in it that is a run's.
//!
//! The schema's comment says whose it is. Nothing else in the database is touched, and a schema
//! without the comment is never dropped.

use std::time::Instant;

use tokio_postgres::{Client, error::SqlState};

use crate::{
    model::{ConfigurationId, Resource, ResourceKind, ResourceState, RunId, TargetSpec, UnixMs},
    target::{self, ConnectError},
};

use super::{Recorder, quoted, recorder::RecordError, told};

/// How long a lock that another session holds is waited for, as the server reads it.
const LOCK_PATIENCE: &str = "5s";
/// How long a look at the catalog may take, as the server reads it.
const LOOK_PATIENCE: &str = "10s";

/// Why something could not be done in a database of the operator's.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{what} is locked by another session")]
    Locked { what: String },
    #[error("{what}: others' objects depend on schema {schema}; drop them, then tear down again")]
    DependedOn { schema: String, what: String },
    #[error("{act} failed: {}", told(source))]
    Statement { act: String, source: tokio_postgres::Error },
    #[error(
        "schema {schema} exists already and {whose}; rampdeck leaves it alone: drop it yourself \
         or give the run another name"
    )]
    NotOurs { schema: String, whose: String },
}

fn failed(act: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> DatabaseError {
    let act = act.into();
    move |source| DatabaseError::Statement { act, source }
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFacts {
    /// As the server writes it, for example `16.4`.
    pub version: String,
    pub max_connections: u32,
    /// Connections that this role, and this database, may have at once; `None` without a limit.
    pub connection_limit: Option<u32>,
    /// Connections of clients, ours included.
    pub connections_in_use: u32,
    /// How far the server's clock is ahead of ours, in ms; uncertain by half of `round_trip_ms`.
    pub clock_offset_ms: f64,
    /// The round trip of the statement that asked, in ms.
    pub round_trip_ms: f64,
}

/// Asks a server what it is and how full.
///
/// # Errors
/// When it cannot be reached or does not answer.
pub async fn preflight(target: &TargetSpec) -> Result<ServerFacts, DatabaseError> {
    const FACTS: &str = "SELECT current_setting('server_version'), \
                         current_setting('max_connections')::int8, \
                         (SELECT count(*) FROM pg_stat_activity \
                          WHERE backend_type = 'client backend')::int8, \
                         (SELECT min(l) FROM (SELECT rolconnlimit AS l FROM pg_roles \
                          WHERE rolname = current_user UNION ALL SELECT datconnlimit \
                          FROM pg_database WHERE datname = current_database()) AS limits \
                          WHERE l >= 0)::int8";
    const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8";
    let client = target::session(target).await?;
    let row = client.query_one(FACTS, &[]).await.map_err(failed("asking the server's state"))?;
    let statement = client.prepare(CLOCK).await.map_err(failed("asking the server's clock"))?;
    let (before, asked) = (UnixMs::now(), Instant::now());
    let clock = client.query_one(&statement, &[]).await.map_err(failed("asking its clock"))?;
    let round_trip_ms = asked.elapsed().as_secs_f64() * 1e3;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of our time fit 53 bits")]
    let ours = before.0 as f64 + round_trip_ms / 2.0;
    let number = |column| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
    Ok(ServerFacts {
        version: row.get(0),
        max_connections: number(1),
        connection_limit: row.get::<_, Option<i64>>(3).and_then(|n| u32::try_from(n).ok()),
        connections_in_use: number(2),
        clock_offset_ms: clock.get::<_, f64>(0) - ours,
        round_trip_ms,
    })
}

/// The comment by which a schema is known to be this run's.
fn mark(run: &RunId) -> String {
    format!("rampdeck run {run}")
}

/// Makes the schema that `target` names, marked as the run's. Its intent is recorded first. One
/// that carries the mark already is taken as it is.
///
/// # Errors
/// When a schema of this name exists that is not the run's, or it cannot be recorded or made.
pub async fn make_schema(
    target: &TargetSpec,
    run: &RunId,
    configuration: &ConfigurationId,
    recorder: &Recorder,
) -> Result<(), DatabaseError> {
    let mut client = target::session(target).await?;
    let schema = &target.schema;
    let resource = Resource {
        kind: ResourceKind::Schema,
        id: format!("schema {schema} of {configuration}"),
        configuration: Some(configuration.clone()),
        process: None,
        path: None,
        port: None,
        note: mark(run),
        state: ResourceState::Intended,
        since: UnixMs::now(),
    };
    match look(&mut client, schema, run).await? {
        Found::Ours => {}
        Found::NotOurs(comment) => return Err(not_ours(schema, comment)),
        Found::Nothing => {
            recorder.intend(&resource).await?;
            // Both or neither: a schema without its mark could not be removed again.
            let sql = format!(
                "BEGIN; CREATE SCHEMA {name}; COMMENT ON SCHEMA {name} IS '{comment}'; COMMIT",
                name = quoted(schema),
                comment = mark(run).replace('\'', "''"),
            );
            client.batch_execute(&sql).await.map_err(failed(format!("making {schema}")))?;
        }
    }
    recorder.made(resource);
    Ok(())
}

/// The tables in a schema, named in full.
async fn tables_of(client: &Client, schema: &str) -> Result<Vec<String>, DatabaseError> {
    const TABLES: &str = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables \
                          WHERE schemaname = $1 ORDER BY tablename";
    let rows = client.query(TABLES, &[&schema]).await;
    let rows = rows.map_err(failed(format!("listing the tables of schema {schema}")))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Drops the run's schema with its tables; one that is not there is gone. Where somebody else's
/// object depends on it, it stays and the error names that.
///
/// # Errors
/// When a schema of this name is not the run's, or cannot be dropped.
pub(super) async fn drop_schema(target: &TargetSpec, run: &RunId) -> Result<(), DatabaseError> {
    let mut client = target::session(target).await?;
    let schema = &target.schema;
    match look(&mut client, schema, run).await? {
        Found::Nothing => Ok(()),
        Found::Ours => {
            // Set for the transaction alone: a pooler would hand a session's setting to others.
            // Without CASCADE: what others have built on it is not ours to drop.
            let tables = tables_of(&client, schema).await?;
            let drop_tables = match tables.as_slice() {
                [] => String::new(),
                tables => format!("DROP TABLE {};", tables.join(", ")),
            };
            let sql = format!(
                "BEGIN; SET LOCAL lock_timeout = '{LOCK_PATIENCE}'; {drop_tables} \
                 DROP SCHEMA {}; COMMIT",
                quoted(schema)
            );
            let dropped = client.batch_execute(&sql).await;
            dropped.map_err(|source| match source.code() {
                Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => {
                    DatabaseError::Locked { what: format!("schema {schema}") }
                }
                Some(code) if *code == SqlState::DEPENDENT_OBJECTS_STILL_EXIST => {
                    let on_it = source.as_db_error().and_then(|e| e.detail()).unwrap_or_default();
                    DatabaseError::DependedOn {
                        schema: schema.clone(),
                        what: on_it.replace('\n', "; "),
                    }
                }
                _ => failed(format!("dropping schema {schema}"))(source),
            })
        }
        Found::NotOurs(comment) => Err(not_ours(schema, comment)),
    }
}

/// Drops a database of the lab, whoever is connected to it; one that is not there is gone.
/// `target` is another database of the same server.
///
/// # Errors
/// When the server cannot be reached or does not drop it.
pub(super) async fn drop_database(target: &TargetSpec, name: &str) -> Result<(), DatabaseError> {
    let client = target::session(target).await?;
    client
        .batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name)))
        .await
        .map_err(failed(format!("dropping database {name}")))
}

/// Whether the run's schema is there.
///
/// # Errors
/// When the database does not tell.
pub(super) async fn schema_of(target: &TargetSpec, run: &RunId) -> Result<bool, DatabaseError> {
    let mut client = target::session(target).await?;
    Ok(matches!(look(&mut client, &target.schema, run).await?, Found::Ours))
}

fn not_ours(schema: &str, comment: Option<String>) -> DatabaseError {
    let whose = comment.map_or_else(
        || "is not marked as a run's".to_owned(),
        |comment| format!("its comment is {comment:?}"),
    );
    DatabaseError::NotOurs { schema: schema.to_owned(), whose }
}

/// What there is under a schema's name.
enum Found {
    Nothing,
    /// A schema that carries the run's mark.
    Ours,
    /// Another schema, and its comment.
    NotOurs(Option<String>),
}

async fn look(client: &mut Client, schema: &str, run: &RunId) -> Result<Found, DatabaseError> {
    const SQL: &str = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace \
                       WHERE nspname = $1";
    let looked = async {
        // Limited for the transaction alone: a pooler would hand a session's setting to others.
        let transaction = client.transaction().await?;
        let limit = format!("SET LOCAL statement_timeout = '{LOOK_PATIENCE}'");
        transaction.batch_execute(&limit).await?;
        let row = transaction.query_opt(SQL, &[&schema]).await?;
        transaction.commit().await?;
        Ok(row)
    };
    let row = looked.await.map_err(failed(format!("looking for schema {schema}")))?;
    Ok(match row.map(|row| row.get::<_, Option<String>>(0)) {
        None => Found::Nothing,
        Some(Some(comment)) if comment == mark(run) => Found::Ours,
        Some(comment) => Found::NotOurs(comment),
    })
}
