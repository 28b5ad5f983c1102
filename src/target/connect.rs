//! One connection to a database.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio_postgres::{
    Client, Config, Error, NoTls, Socket,
    config::{SslMode, TargetSessionAttrs},
    tls::{MakeTlsConnect, NoTlsStream},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{ConnectError, tls};
use crate::model::{TargetAddress, TargetSpec, TlsMode};

/// How long a connection may be silent before the system asks whether the other side still lives:
/// below the 350 s after which load balancers and address translators forget a flow.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

type PlainConnection = tokio_postgres::Connection<Socket, NoTlsStream>;
type TlsConnection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A connection that is open.
pub struct Connected {
    pub client: Client,
    /// Nothing is sent or received unless this is polled.
    pub connection: Connection,
}

/// The driving side of a connection: a future that ends when the client is dropped or the
/// connection fails.
#[must_use = "nothing is sent or received unless it is polled"]
pub struct Connection(Inner);

enum Inner {
    Plain(Box<PlainConnection>),
    Tls(Box<TlsConnection>),
}

impl Future for Connection {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Plain(connection) => Pin::new(connection.as_mut()).poll(context),
            Inner::Tls(connection) => Pin::new(connection.as_mut()).poll(context),
        }
    }
}

/// Opens a connection: address, encryption and log-in within the target's connect timeout.
///
/// # Errors
/// When the target cannot be reached in time, is not to be trusted, or refuses the log-in.
pub async fn connect(target: &TargetSpec) -> Result<Connected, ConnectError> {
    // The driver's own limit covers the TCP connect only: a server that accepts and is silent
    // would hold the caller for ever.
    let limit = Duration::from_millis(target.connect_timeout_ms);
    match tokio::time::timeout(limit, open(target)).await {
        Ok(opened) => opened,
        Err(_) => Err(ConnectError::timeout(target)),
    }
}

/// Opens a connection and has it driven by a task of the current tokio runtime, which ends when
/// the client is dropped.
///
/// # Errors
/// As [`connect`].
pub async fn session(target: &TargetSpec) -> Result<Client, ConnectError> {
    let Connected { client, connection } = connect(target).await?;
    // How the connection ends, its client is told by each call: nobody else needs to know.
    tokio::spawn(async move { connection.await.ok() });
    Ok(client)
}

async fn open(target: &TargetSpec) -> Result<Connected, ConnectError> {
    let config = config(target);
    let failed = |error| ConnectError::from_postgres(target, &error);
    match &target.tls {
        TlsMode::Off => {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            Ok(Connected { client, connection: Connection(Inner::Plain(Box::new(connection))) })
        }
        TlsMode::Verified { ca_file } => {
            let connector = tls::connector(ca_file.as_deref())
                .map_err(|what| ConnectError::tls(target, what))?;
            let (client, connection) = config.connect(connector).await.map_err(failed)?;
            Ok(Connected { client, connection: Connection(Inner::Tls(Box::new(connection))) })
        }
    }
}

/// The driver's settings for a target. No start-up options: DSQL and RDS Proxy refuse them.
pub(super) fn config(target: &TargetSpec) -> Config {
    let mut config = Config::new();
    match &target.address {
        TargetAddress::Tcp { host, port, hostaddr } => {
            config.host(host).port(*port);
            if let Some(address) = hostaddr {
                config.hostaddr(*address);
            }
        }
        TargetAddress::Unix { directory, port } => {
            config.host_path(directory).port(*port);
        }
    }
    if let Some(password) = &target.password {
        config.password(password.reveal());
    }
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name(&target.application_name)
        .connect_timeout(Duration::from_millis(target.connect_timeout_ms))
        .keepalives(true)
        .keepalives_idle(KEEPALIVE_IDLE)
        .target_session_attrs(TargetSessionAttrs::Any)
        .ssl_mode(match target.tls {
            TlsMode::Off => SslMode::Disable,
            TlsMode::Verified { .. } => SslMode::Require,
        });
    config
}
