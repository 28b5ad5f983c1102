//! One connection for what is not measured.

use std::time::Duration;

use tokio_postgres::{
    Client, Config, NoTls,
    config::{SslMode, TargetSessionAttrs},
};

use super::{ConnectError, log_in, tls};
use crate::model::{Secret, TargetAddress, TargetSpec, TlsMode};

/// How long a connection may be silent before the system asks whether the other side still lives:
/// below the 350 s after which load balancers and address translators forget a flow.
pub(super) const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// Opens a connection, within the target's connect timeout, and has it driven by a task of the
/// current tokio runtime, which ends when the client is dropped.
///
/// # Errors
/// When the target cannot be reached in time, is not to be trusted, or refuses the log-in.
pub async fn session(target: &TargetSpec) -> Result<Client, ConnectError> {
    // The driver's own limit covers the TCP connect only: a server that accepts and is silent
    // would hold the caller for ever.
    let limit = Duration::from_millis(target.connect_timeout_ms);
    log_in(target, |password| async move {
        match tokio::time::timeout(limit, open(target, password.as_ref())).await {
            Ok(opened) => opened,
            Err(_) => Err(ConnectError::timeout(target)),
        }
    })
    .await
}

async fn open(target: &TargetSpec, password: Option<&Secret>) -> Result<Client, ConnectError> {
    let config = config(target, password);
    let failed = |error| ConnectError::from_postgres(target, &error);
    // How a connection ends, its client is told by each call: nobody else needs to know.
    match &target.tls {
        TlsMode::Off => {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            tokio::spawn(async move { connection.await.ok() });
            Ok(client)
        }
        TlsMode::Verified { ca_file } => {
            let connector = tls::connector(ca_file.as_deref())
                .map_err(|what| ConnectError::tls(target, what))?;
            let (client, connection) = config.connect(connector).await.map_err(failed)?;
            tokio::spawn(async move { connection.await.ok() });
            Ok(client)
        }
    }
}

/// The driver's settings for a target. No start-up options: DSQL and RDS Proxy refuse them.
pub(super) fn config(target: &TargetSpec, password: Option<&Secret>) -> Config {
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
    if let Some(password) = password {
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
