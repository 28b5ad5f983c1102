//! Pools of connections: for what is not measured, and to model an application's own.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    time::{Duration, Instant},
};

use deadpool_postgres::{
    BuildError, Connect, Hook, HookError, Manager, ManagerConfig, Pool, PoolBuilder, QueueMode,
    RecyclingMethod, Runtime, tokio_postgres,
};
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{ConnectError, connect::config, credential::password, tls};
use crate::model::{ConnectionLife, TargetSpec, TlsMode};

/// A pool of at most `size` connections (1 or more), opened as they are asked for. Who waits
/// longer than `wait_timeout` for one gets an error; so does who waits longer than the target's
/// connect timeout for a new one.
///
/// # Errors
/// When the password cannot be had or the certificate authorities cannot be read; nothing is
/// connected yet.
pub async fn pool(
    target: &TargetSpec,
    size: usize,
    wait_timeout: Duration,
) -> Result<Pool, ConnectError> {
    let built = builder(target, size, wait_timeout).await?.build();
    built.map_err(|error| unbuilt(target, &error))
}

/// The same, whose connections do not get older than `max_age`.
///
/// # Errors
/// As [`pool`].
pub(super) async fn ageing_pool(
    target: &TargetSpec,
    size: usize,
    wait_timeout: Duration,
    max_age: Option<Duration>,
) -> Result<Pool, ConnectError> {
    let builder = builder(target, size, wait_timeout).await?;
    let Some(max_age) = max_age else {
        return builder.build().map_err(|error| unbuilt(target, &error));
    };
    let leaves = Hook::sync_fn(move |_, metrics| {
        if metrics.age() < leaves_at(metrics.created, max_age) {
            Ok(())
        } else {
            Err(HookError::message("it is old"))
        }
    });
    builder.pre_recycle(leaves).build().map_err(|error| unbuilt(target, &error))
}

/// At which age a connection leaves: by when it was made, so that those made together go one
/// after the other.
fn leaves_at(created: Instant, max_age: Duration) -> Duration {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(created);
    #[expect(clippy::cast_precision_loss, reason = "it only spreads")]
    let spread = (hash >> 11) as f64 / (1_u64 << 53) as f64;
    max_age.mul_f64(ConnectionLife::replaced_at(spread))
}

async fn builder(
    target: &TargetSpec,
    size: usize,
    wait_timeout: Duration,
) -> Result<PoolBuilder, ConnectError> {
    // Had once before anything is opened, so that its failure is told in words.
    password(target).await?;
    let connector = match &target.tls {
        TlsMode::Off => None,
        TlsMode::Verified { ca_file } => {
            let connector = tls::connector(ca_file.as_deref());
            Some(connector.map_err(|what| ConnectError::tls(target, what))?)
        }
    };
    // `Clean` would run RESET and DISCARD: it pins a session on a proxy and fails on DSQL.
    let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let login = Login { target: target.clone(), connector };
    let manager = Manager::from_connect(config(target, None), login, settings);
    Ok(Pool::builder(manager)
        .max_size(size.max(1))
        .wait_timeout(Some(wait_timeout))
        .create_timeout(Some(Duration::from_millis(target.connect_timeout_ms)))
        .queue_mode(QueueMode::Fifo)
        .runtime(Runtime::Tokio1))
}

/// The one thing the builder refuses is time limits without a runtime.
fn unbuilt(target: &TargetSpec, error: &BuildError) -> ConnectError {
    ConnectError::other(target, error.to_string())
}

/// Logs each connection of a pool in with the password that is good then.
struct Login {
    target: TargetSpec,
    connector: Option<MakeRustlsConnect>,
}

impl Connect for Login {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async move {
            // Where none is to be had the server refuses the log-in; its source has said why.
            let password = password(&self.target).await.ok().flatten();
            let config = config(&self.target, password.as_ref());
            match self.connector.clone() {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    Ok((client, tokio::spawn(async move { connection.await.unwrap_or(()) })))
                }
                Some(connector) => {
                    let (client, connection) = config.connect(connector).await?;
                    Ok((client, tokio::spawn(async move { connection.await.unwrap_or(()) })))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_made_together_leave_one_after_the_other() {
        let max_age = Duration::from_secs(3_600);
        let first = Instant::now();
        let mut ages: Vec<u64> = (0..200)
            .map(|us| leaves_at(first + Duration::from_micros(us), max_age).as_secs())
            .collect();
        ages.sort_unstable();
        assert!(ages[0] >= 2_700 && ages[199] <= 3_420, "{ages:?}");
        assert!(ages[199] - ages[0] > 600, "{ages:?}");
    }
}
