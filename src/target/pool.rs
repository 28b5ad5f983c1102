//! A pool for what is not measured: set-up, look-ups and checks.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime};
use tokio_postgres::NoTls;

use super::{ConnectError, connect::config, credential::password, tls};
use crate::model::{TargetSpec, TlsMode};

/// A pool of at most `size` connections (1 or more), opened as they are asked for. Who waits
/// longer than `wait_timeout` for one gets an error; so does who waits longer than the target's
/// connect timeout for a new one. A password that a command prints is taken now: a pool is for work
/// that opens its connections at once.
///
/// # Errors
/// When the password cannot be had or the certificate authorities cannot be read; nothing is
/// connected yet.
pub async fn pool(
    target: &TargetSpec,
    size: usize,
    wait_timeout: Duration,
) -> Result<Pool, ConnectError> {
    let password = password(target).await?;
    let config = config(target, password.as_ref());
    // `Clean` would run RESET and DISCARD: it pins a session on a proxy and fails on DSQL.
    let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match &target.tls {
        TlsMode::Off => Manager::from_config(config, NoTls, settings),
        TlsMode::Verified { ca_file } => {
            let connector = tls::connector(ca_file.as_deref())
                .map_err(|what| ConnectError::tls(target, what))?;
            Manager::from_config(config, connector, settings)
        }
    };
    let built = Pool::builder(manager)
        .max_size(size.max(1))
        .wait_timeout(Some(wait_timeout))
        .create_timeout(Some(Duration::from_millis(target.connect_timeout_ms)))
        .queue_mode(QueueMode::Fifo)
        .runtime(Runtime::Tokio1)
        .build();
    // The one thing the builder refuses is time limits without a runtime.
    built.map_err(|error| ConnectError::other(target, error.to_string()))
}
