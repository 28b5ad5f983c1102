//! Keys and indexes once the rows are there, and statistics.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, SimpleQueryMessage, error::SqlState};

use super::link::Link;
use crate::{
    model::{Dialect, TargetSpec},
    workload::{
        error::{Doing, WorkloadError},
        schema::{CreateIndex, Names, Table},
    },
};

/// How long an index may take to become valid once its job says it is done, or where the job cannot be
/// asked: DSQL builds it in the background.
const VALID_WITHIN: Duration = Duration::from_secs(60 * 60);
const LOOK: Duration = Duration::from_millis(200);

/// How an index stands in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Absent,
    /// There, but not to be used yet.
    Invalid,
    Valid,
}

/// Makes the keys and indexes of these tables that are not there yet, and returns once all are valid.
pub(super) async fn make_indexes(
    target: &TargetSpec,
    tables: &[&Table],
) -> Result<(), WorkloadError> {
    let names = Names::new(&target.schema);
    let mut link = Link::new(target);
    for create in tables.iter().flat_map(|table| names.create_indexes(table, target.dialect)) {
        let validity = names.validity(&create.index);
        let began = Instant::now();
        while let Err(error) = make(&mut link, target.dialect, &create, &validity, began).await {
            link.recover(error).await?;
        }
        link.worked();
    }
    Ok(())
}

async fn make(
    link: &mut Link<'_>,
    dialect: Dialect,
    create: &CreateIndex,
    validity: &str,
    began: Instant,
) -> Result<(), WorkloadError> {
    let client = link.client().await?;
    if standing(client, validity).await? == Standing::Absent {
        match client.simple_query(&create.statement).await {
            Ok(answer) if dialect == Dialect::Dsql => {
                wait_for_job(client, &create.index, &answer).await?;
            }
            Ok(_) => {}
            // Another loader, killed since, was making it: the catalog is asked again.
            Err(error) if is_made(error.code()) => {}
            Err(error) => return Err(error).doing(|| create.statement.clone()),
        }
    }
    // What the job says is not enough: an index is in the catalog before it may be used.
    while standing(client, validity).await? != Standing::Valid {
        if began.elapsed() > VALID_WITHIN {
            let minutes = VALID_WITHIN.as_secs() / 60;
            return Err(WorkloadError::Index { index: create.index.clone(), minutes });
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn is_made(code: Option<&SqlState>) -> bool {
    let there = [
        &SqlState::UNIQUE_VIOLATION,
        &SqlState::DUPLICATE_TABLE,
        // A second primary key.
        &SqlState::INVALID_TABLE_DEFINITION,
    ];
    code.is_some_and(|code| there.contains(&code))
}

async fn standing(client: &Client, validity: &str) -> Result<Standing, WorkloadError> {
    let row = client.query_typed_opt(validity, &[]).await.doing(|| validity.to_owned())?;
    Ok(match row.map(|row| row.get::<_, bool>(0)) {
        None => Standing::Absent,
        Some(false) => Standing::Invalid,
        Some(true) => Standing::Valid,
    })
}

/// Waits for the job whose id `CREATE INDEX ASYNC` answered. Descriptions of DSQL call
/// `sys.wait_for_job` as a procedure and as a function: what is refused as the one is called as the
/// other. Only a job that has come to nothing is an error here: all else is seen by the index's
/// validity.
async fn wait_for_job(
    client: &Client,
    index: &str,
    answer: &[SimpleQueryMessage],
) -> Result<(), WorkloadError> {
    let Some(id) = first_value(answer).map(|id| id.replace('\'', "''")) else { return Ok(()) };
    if client.simple_query(&format!("SELECT sys.wait_for_job('{id}')")).await.is_err() {
        let _ = client.simple_query(&format!("CALL sys.wait_for_job('{id}')")).await;
    }
    let status = format!("SELECT status FROM sys.jobs WHERE job_id = '{id}'");
    let Ok(answer) = client.simple_query(&status).await else { return Ok(()) };
    match first_value(&answer) {
        Some(status @ ("failed" | "cancelled")) => {
            Err(WorkloadError::IndexJob { index: index.to_owned(), status: status.to_owned() })
        }
        _ => Ok(()),
    }
}

fn first_value(answer: &[SimpleQueryMessage]) -> Option<&str> {
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    })
}

/// Gathers statistics. PostgreSQL vacuums as well: otherwise the first reads of a cell would pay for
/// marking every loaded row as committed, and reads of an index alone would still visit the table.
/// DSQL has no VACUUM, and keeps statistics by itself where it has no ANALYZE.
pub(super) async fn settle(target: &TargetSpec, tables: &[&Table]) -> Result<(), WorkloadError> {
    let names = Names::new(&target.schema);
    let mut link = Link::new(target);
    for table in tables {
        let act = match target.dialect {
            Dialect::Postgres => "VACUUM (ANALYZE)",
            Dialect::Dsql => "ANALYZE",
        };
        let statement = format!("{act} {}", names.of(table));
        loop {
            let done = match link.client().await {
                Ok(client) => client.batch_execute(&statement).await.doing(|| statement.clone()),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => break link.worked(),
                Err(error) if target.dialect == Dialect::Dsql && is_absent(&error) => break,
                Err(error) => link.recover(error).await.map(|_| ())?,
            }
        }
    }
    Ok(())
}

/// Whether the database does not have such a statement.
fn is_absent(error: &WorkloadError) -> bool {
    let WorkloadError::Database { source, .. } = error else { return false };
    let absent = [&SqlState::FEATURE_NOT_SUPPORTED, &SqlState::SYNTAX_ERROR];
    source.code().is_some_and(|code| absent.contains(&code))
}
