//! An application's pool of connections, as transactions see it.
//!
//! This is what the published experiments drove: a pool of its own in each process. It is modelled
//! with the pool and driver that an application in Rust would take, so that what it costs is a
//! pool's cost and not a model's.

use std::{error::Error as StdError, fmt::Write as _, pin::pin, sync::Arc, time::Duration};

use bytes::BytesMut;
use deadpool_postgres::{Object, Pool, PoolError, TimeoutType};
use futures_util::{TryStreamExt, future::join_all};
use tokio_postgres::{
    Error, RowStream, SimpleQueryMessage,
    error::DbError,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::{
    ConnectError,
    pool::ageing_pool,
    session::{
        BEGIN, COMMIT, Format, ParameterType, ROLLBACK, Replies, Request, ServerError, Session,
        SessionError, Statement, TripError, Value,
    },
    spelling::spelled,
};
use crate::model::{RoundTrips, Shape, Statements, TargetSpec};

/// Connections that transactions borrow and give back.
#[derive(Clone)]
pub struct ConnectionPool {
    pool: Pool,
    target: Arc<TargetSpec>,
    wait_timeout: Duration,
    shape: Shape,
}

/// Why a pool gave no connection.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// All were in use for too long.
    #[error("no connection became free within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// A new one could not be opened.
    #[error(transparent)]
    Connect(ConnectError),
}

impl ConnectionPool {
    /// A pool of at most `size` connections (1 or more), opened as they are asked for, none of
    /// which gets older than `max_age`. Who waits longer than `wait_timeout` for one gets an error.
    ///
    /// # Errors
    /// When the password cannot be had or the certificate authorities cannot be read; nothing is
    /// connected yet.
    pub async fn new(
        target: &TargetSpec,
        size: usize,
        wait_timeout: Duration,
        max_age: Option<Duration>,
        shape: Shape,
    ) -> Result<Self, ConnectError> {
        let pool = ageing_pool(target, size, wait_timeout, max_age).await?;
        Ok(Self { pool, target: Arc::new(target.clone()), wait_timeout, shape })
    }

    /// A connection, once one is free.
    ///
    /// # Errors
    /// When none becomes free in time, or a new one cannot be opened.
    pub async fn get(&self) -> Result<Pooled, GetError> {
        let target = &self.target;
        match self.pool.get().await {
            Ok(object) => Ok(Pooled::new(object, self.shape)),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(GetError::Timeout(self.wait_timeout)),
            Err(PoolError::Timeout(_)) => Err(GetError::Connect(ConnectError::timeout(target))),
            Err(PoolError::Backend(error)) => {
                Err(GetError::Connect(ConnectError::from_postgres(target, &error)))
            }
            Err(error) => Err(GetError::Connect(ConnectError::other(target, error.to_string()))),
        }
    }

    /// How many connections it has open.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pool.status().size
    }
}

/// A connection that is lent by a pool, and goes back to it when dropped, unless it is of no more
/// use.
pub struct Pooled {
    /// There until it is dropped.
    object: Option<Object>,
    shape: Shape,
    replies: Replies,
    in_transaction: bool,
    in_flight: bool,
    commit_sent: bool,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let sound = self.is_usable() && !self.in_transaction;
        if let Some(object) = self.object.take()
            && !sound
        {
            // Taken out of the pool, which opens another in its place.
            drop(Object::take(object));
        }
    }
}

impl Pooled {
    fn new(object: Object, shape: Shape) -> Self {
        Self {
            object: Some(object),
            shape,
            replies: Replies::default(),
            in_transaction: false,
            in_flight: false,
            commit_sent: false,
        }
    }

    /// Has the statements prepared, where they are to be: the connection keeps them.
    ///
    /// # Errors
    /// With what the server says against one of them, or how the connection ended.
    pub async fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        let Some(object) = &self.object else { return Ok(()) };
        if self.shape.statements != Statements::Prepared {
            return Ok(());
        }
        let all = statements.iter().map(|statement| async move {
            object.prepare_typed_cached(&statement.sql, &types(statement)).await
        });
        for prepared in join_all(all).await {
            prepared.map_err(|error| session_error(&error))?;
        }
        Ok(())
    }

    /// One empty round trip.
    ///
    /// # Errors
    /// How the connection ended.
    pub async fn ping(&mut self) -> Result<(), SessionError> {
        let Some(object) = &self.object else { return Ok(()) };
        object.batch_execute(";").await.map_err(|error| session_error(&error))
    }

    async fn exchange(&mut self, requests: &[Request<'_>]) -> Result<(), TripError> {
        let commit_sent = requests.iter().any(|request| matches!(request, Request::Commit));
        for request in requests {
            match request {
                Request::Begin => (self.in_transaction, self.commit_sent) = (true, false),
                Request::Commit | Request::Text(_) => self.commit_sent = true,
                Request::Rollback | Request::Run(..) => {}
            }
        }
        self.in_flight = true;
        let answers = self.answers(requests).await;
        self.in_flight = false;
        for answer in answers {
            match answer {
                Ok(answer) => self.take_in(answer),
                Err(error) => {
                    // A COMMIT ends the transaction even where it or what came before it failed,
                    // but for one in a text of several statements, which an error cuts short.
                    let cut = requests.len() > 1 && self.shape.statements == Statements::Simple;
                    self.in_transaction &= !commit_sent || cut;
                    return Err(TripError { commit_sent, error: session_error(&error) });
                }
            }
        }
        let ends = |request: &Request<'_>| matches!(request, Request::Commit | Request::Rollback);
        self.in_transaction &= !requests.iter().any(ends);
        Ok(())
    }

    async fn answers(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, Error>> {
        let Some(object) = &self.object else { return Vec::new() };
        if self.shape.statements == Statements::Simple {
            return vec![simple(object, requests).await];
        }
        let prepared = self.shape.statements == Statements::Prepared;
        // Each is sent as soon as it is first polled: together, in their order.
        join_all(requests.iter().map(|request| extended(object, request, prepared))).await
    }

    fn take_in(&mut self, answer: Answer) {
        for (rows, affected) in answer.0 {
            rows.iter().for_each(|row| self.replies.row(row));
            self.replies.complete(affected);
        }
    }
}

impl Session for Pooled {
    async fn trip(&mut self, requests: &[Request<'_>]) -> Result<&Replies, TripError> {
        let format = match self.shape.statements {
            Statements::Simple => Format::Text,
            Statements::Prepared | Statements::Unnamed => Format::Binary,
        };
        self.replies.clear(format);
        match self.shape.round_trips {
            RoundTrips::Pipelined => self.exchange(requests).await?,
            RoundTrips::Sequential => {
                for request in requests {
                    self.exchange(std::slice::from_ref(request)).await?;
                }
            }
        }
        Ok(&self.replies)
    }

    fn is_usable(&self) -> bool {
        !self.in_flight && self.object.as_ref().is_some_and(|object| !object.is_closed())
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn commit_sent(&self) -> bool {
        self.commit_sent
    }
}

/// Replies to one or more requests: rows in the protocol's spelling, and how many were touched.
struct Answer(Vec<(Vec<Vec<u8>>, u64)>);

async fn extended(object: &Object, request: &Request<'_>, prepared: bool) -> Result<Answer, Error> {
    let (statement, values) = match request {
        Request::Begin => return text(object, BEGIN).await,
        Request::Commit => return text(object, COMMIT).await,
        Request::Rollback => return text(object, ROLLBACK).await,
        Request::Text(sql) => return text(object, sql).await,
        Request::Run(statement, values) => (*statement, *values),
    };
    let types = types(statement);
    let rows = if prepared {
        let known = object.prepare_typed_cached(&statement.sql, &types).await?;
        object.query_raw(&known, values.iter().map(|value| value as &(dyn ToSql + Sync))).await?
    } else {
        let values = values.iter().map(|value| value as &(dyn ToSql + Sync)).zip(types);
        object.query_typed_raw(&statement.sql, values).await?
    };
    collect(rows).await
}

async fn text(object: &Object, sql: &str) -> Result<Answer, Error> {
    object.batch_execute(sql).await?;
    Ok(Answer(vec![(Vec::new(), 0)]))
}

async fn collect(rows: RowStream) -> Result<Answer, Error> {
    let mut rows = pin!(rows);
    let mut bodies = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let mut body = head(row.len());
        for column in 0..row.len() {
            field(&mut body, row.try_get::<_, Option<Raw<'_>>>(column)?.map(|raw| raw.0));
        }
        bodies.push(body);
    }
    let affected = rows.rows_affected().unwrap_or(0);
    Ok(Answer(vec![(bodies, affected)]))
}

async fn simple(object: &Object, requests: &[Request<'_>]) -> Result<Answer, Error> {
    let mut sql = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        if place > 0 {
            sql.push(b';');
        }
        spelled(&mut sql, request);
    }
    let mut answers = Vec::new();
    let mut bodies = Vec::new();
    // Made of texts, numbers and signs: it is UTF-8.
    for message in object.simple_query(&String::from_utf8_lossy(&sql)).await? {
        match message {
            SimpleQueryMessage::Row(row) => {
                let mut body = head(row.len());
                for column in 0..row.len() {
                    field(&mut body, row.get(column).map(str::as_bytes));
                }
                bodies.push(body);
            }
            SimpleQueryMessage::CommandComplete(affected) => {
                answers.push((std::mem::take(&mut bodies), affected));
            }
            _ => {}
        }
    }
    Ok(Answer(answers))
}

fn head(columns: usize) -> Vec<u8> {
    u16::try_from(columns).unwrap_or(u16::MAX).to_be_bytes().to_vec()
}

fn field(body: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            body.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            body.extend_from_slice(bytes);
        }
        None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
}

fn types(statement: &Statement) -> Vec<Type> {
    let type_of = |parameter: &ParameterType| match parameter {
        ParameterType::Int8 => Type::INT8,
        ParameterType::Int4s => Type::INT4_ARRAY,
        ParameterType::Int8s => Type::INT8_ARRAY,
        ParameterType::Text => Type::TEXT,
    };
    statement.parameters.iter().map(type_of).collect()
}

/// A column's bytes, whatever they mean.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Int8(number) => number.to_sql(kind, out),
            Self::Int4s(numbers) => numbers.to_sql(kind, out),
            Self::Int8s(numbers) => numbers.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // The statement says the types, and its author the values.
        true
    }

    to_sql_checked!();
}

/// The driver's error in the session's terms: the server's word, however deep it is nested.
fn session_error(error: &Error) -> SessionError {
    match server_error(error) {
        Some(db) => SessionError::Server(ServerError {
            code: db.code().code().to_owned(),
            message: db.message().to_owned(),
        }),
        None => SessionError::Lost(causes(error)),
    }
}

fn server_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a DbError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(db) = error.downcast_ref::<DbError>() {
            return Some(db);
        }
        next = error.source();
    }
    None
}

fn causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{model::PoolShape, target::testing::TestServer};

    fn shapes() -> impl Iterator<Item = Shape> {
        use RoundTrips::{Pipelined, Sequential};
        use Statements::{Prepared, Simple, Unnamed};
        [Prepared, Unnamed, Simple].into_iter().flat_map(|statements| {
            [Sequential, Pipelined].map(|round_trips| Shape {
                statements,
                round_trips,
                pool: PoolShape::Claim,
            })
        })
    }

    #[tokio::test]
    async fn a_pool_s_connections_answer_as_the_driver_does() {
        let server = TestServer::shared().await;
        let target = server.database().await;
        let admin = crate::target::session(&target).await.unwrap();
        admin.batch_execute("CREATE TABLE t (a bigint, name text)").await.unwrap();
        for shape in shapes() {
            let pool = ConnectionPool::new(&target, 1, Duration::from_millis(50), None, shape)
                .await
                .unwrap();
            let statements = [
                Statement::new(
                    0,
                    "INSERT INTO t SELECT a, $1 FROM unnest($2) AS line (a)".into(),
                    &[ParameterType::Text, ParameterType::Int8s],
                ),
                Statement::new(1, "SELECT a, name FROM t ORDER BY a".into(), &[]),
                Statement::new(2, "SELECT 1 / $1".into(), &[ParameterType::Int8]),
            ];
            let [insert, select, divide] = &statements;
            let mut session = pool.get().await.unwrap();
            session.prepare(&statements).await.unwrap();
            let values = [Value::Text("it's"), Value::Int8s(&[3, -4])];
            let replies = session
                .trip(&[Request::Begin, Request::Run(insert, &values), Request::Run(select, &[])])
                .await
                .unwrap();
            assert_eq!(replies.affected(1), 2, "{shape:?}");
            let rows: Vec<_> =
                replies.rows(2).map(|row| (row.int8(0).unwrap(), row.text(1).unwrap())).collect();
            assert_eq!(rows, [(-4, "it's"), (3, "it's")], "{shape:?}");
            assert!(session.in_transaction() && !session.commit_sent());

            let error = session
                .trip(&[Request::Run(divide, &[Value::Int8(0)]), Request::Commit])
                .await
                .unwrap_err();
            assert_eq!(error.error.code(), Some("22012"), "{shape:?}");
            if session.in_transaction() {
                session.trip(&[Request::Rollback]).await.unwrap();
            }
            assert!(session.is_usable());
            let replies = session.trip(&[Request::Run(select, &[])]).await.unwrap();
            assert_eq!(replies.rows(0).len(), 0, "{shape:?}: the insert was rolled back");

            let missing = pool.get().await;
            assert!(matches!(missing, Err(GetError::Timeout(_))), "{shape:?}");
            drop(session);
            // One that is given up in a transaction does not come back.
            let mut left = pool.get().await.unwrap();
            left.trip(&[Request::Begin]).await.unwrap();
            drop(left);
            let mut fresh = pool.get().await.unwrap();
            assert!(!fresh.in_transaction());
            fresh.ping().await.unwrap();
        }
    }

    #[derive(Debug)]
    struct Wrapped(Box<dyn StdError + Sync + Send>);

    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("wrapped")
        }
    }

    impl StdError for Wrapped {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(self.0.as_ref())
        }
    }

    #[tokio::test]
    async fn the_server_s_word_is_found_however_deep_it_is_nested() {
        let server = TestServer::shared().await;
        let client = crate::target::session(&server.target("postgres")).await.unwrap();
        let raise = "DO $$ BEGIN RAISE 'lost' USING ERRCODE = '40001'; END $$";
        let error = client.batch_execute(raise).await.unwrap_err();
        let deep = Wrapped(Box::new(Wrapped(Box::new(error))));
        assert_eq!(server_error(&deep).unwrap().code().code(), "40001");
        assert!(server_error(&std::fmt::Error).is_none());
    }
}
