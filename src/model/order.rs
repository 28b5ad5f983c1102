//! What the engine and the load agent say to each other.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::{
    CellId, CellResult, ConfigurationId, ConnectionLife, Dialect, Load, Phase, RunnerSample,
    Secret, Shape, Window,
};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum TargetAddress {
    Tcp {
        host: String,
        port: u16,
        hostaddr: Option<IpAddr>,
    },
    /// A Unix socket `directory/.s.PGSQL.port`.
    Unix {
        directory: PathBuf,
        port: u16,
    },
}

impl TargetAddress {
    /// A port of this machine's own IPv4 loopback address.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        let host = Ipv4Addr::LOCALHOST;
        Self::Tcp { host: host.to_string(), port, hostaddr: Some(host.into()) }
    }
}

/// Whether and how a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum TlsMode {
    /// Plain: only for a Unix socket, a loopback address, or where the URL says `sslmode=disable`.
    Off,
    /// Encrypted, chain and host name verified against the system's roots or the file given.
    Verified { ca_file: Option<PathBuf> },
}

/// A command of the operator's that prints a password, such as one that makes a token of an
/// identity. Its words are no secret: they are kept with the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PasswordCommand {
    /// The program and its arguments (1 or more words).
    pub words: Vec<String>,
    /// How long a password is good for, counted from the start of the command, in ms (1 or more).
    pub lifetime_ms: u64,
}

/// A token of AWS's for logging in to a DSQL cluster, made anew before the last one ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DsqlToken {
    /// The cluster's endpoint, which the token is good for.
    pub host: String,
    /// Such as `ap-northeast-2`.
    pub region: String,
    /// Whether it is for the user `admin`; otherwise for a role that an identity may take.
    pub admin: bool,
    /// How long a token is good for, in ms (1,000 to 604,800,000, whole seconds: AWS's bounds of a
    /// presigned request).
    pub lifetime_ms: u64,
    /// What it is signed with; `None`: what AWS's programs find here.
    pub credential: Option<AwsCredential>,
}

/// A credential that signs what goes to AWS, or to what stands in for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AwsCredential {
    pub access_key_id: String,
    pub secret: Secret,
}

/// Where passwords come from that are good for a while only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum PasswordSource {
    Command(PasswordCommand),
    DsqlToken(DsqlToken),
}

impl PasswordSource {
    /// How long a password is good for, in ms (1 or more).
    #[must_use]
    pub fn lifetime_ms(&self) -> u64 {
        match self {
            Self::Command(command) => command.lifetime_ms,
            Self::DsqlToken(token) => token.lifetime_ms,
        }
        .max(1)
    }
}

/// How to reach one database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    pub address: TargetAddress,
    pub user: String,
    pub password: Option<Secret>,
    /// Where passwords come from in place of `password`, which is `None` then.
    #[serde(default)]
    pub password_source: Option<PasswordSource>,
    pub database: String,
    /// The schema that holds the order business. Statements name it in full: a `search_path` set
    /// on the connection would pin it behind a pooler, and DSQL refuses start-up options.
    pub schema: String,
    /// Which SQL the database speaks.
    #[serde(default)]
    pub dialect: Dialect,
    pub tls: TlsMode,
    pub application_name: String,
    pub connect_timeout_ms: u64,
}

impl TargetSpec {
    /// How long a connection may take where nothing else is said, in ms.
    pub const CONNECT_TIMEOUT_MS: u64 = 10_000;
    /// How a connection calls itself where nothing else is said.
    pub const APPLICATION_NAME: &str = "rampdeck";

    /// A database without password or encryption, as one of this machine's own.
    #[must_use]
    pub fn plain(address: TargetAddress, user: &str, database: &str, schema: &str) -> Self {
        Self {
            address,
            user: user.to_owned(),
            password: None,
            password_source: None,
            database: database.to_owned(),
            schema: schema.to_owned(),
            dialect: Dialect::default(),
            tls: TlsMode::Off,
            application_name: Self::APPLICATION_NAME.to_owned(),
            connect_timeout_ms: Self::CONNECT_TIMEOUT_MS,
        }
    }
}

/// Shares of the transaction classes in percent; they add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    pub product_lookup: u32,
    pub order_history: u32,
    pub order_create: u32,
    pub order_cancel: u32,
}

impl Default for Mix {
    /// The mix of the published experiments: 40/30/20/10.
    fn default() -> Self {
        Self { product_lookup: 40, order_history: 30, order_create: 20, order_cancel: 10 }
    }
}

/// How a transaction is tried again after a conflict or a lost connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    /// Tries in all, the first included (1 or more).
    pub max_attempts: u32,
    /// The first back-off's upper bound in ms; it doubles with each retry (full jitter: drawn
    /// uniformly from 0 to the bound).
    pub base_ms: f64,
    /// The back-off's highest upper bound in ms.
    pub cap_ms: f64,
    /// A transaction that has not ended this long after its start fails as `timeout`, in ms.
    pub transaction_timeout_ms: u64,
    /// An arrival that waits longer than this for a connection fails as `pool_timeout`, in ms.
    pub connection_wait_timeout_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 8,
            base_ms: 5.0,
            cap_ms: 1_000.0,
            transaction_timeout_ms: 30_000,
            connection_wait_timeout_ms: 30_000,
        }
    }
}

/// The ids that one attempt owns; in the journal before the first is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRange {
    /// Rising within the run, from 1.
    pub ordinal: u64,
    /// First order id of the range.
    pub first_id: i64,
    /// How many ids the range holds (a power of two).
    pub ids: u64,
    /// What every business id of the attempt begins with, for example `rehearse-1130-a7f3.4.`.
    pub prefix: String,
}

/// What the transactions need to know of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    pub mix: Mix,
    /// Share of the full data set: 1.0 is 1,000,000 customers, 200,000 products, 11,000,000 orders.
    pub scale: f64,
}

/// One cell, complete: what the agent needs to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellOrder {
    pub cell: CellId,
    pub configuration: ConfigurationId,
    pub target: TargetSpec,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
    /// How long the drain may take, in seconds; what is in flight then is counted so.
    pub drain_s: f64,
    /// Same seed, same arrivals and same transactions.
    pub seed: u64,
    pub attempt: AttemptRange,
    pub workload: WorkloadSpec,
    pub retry: RetryPolicy,
    /// Most arrivals that may wait for a connection before further ones are shed; `None`: no bound
    /// but the connection wait timeout.
    pub backlog: Option<u64>,
    #[serde(default)]
    pub shape: Shape,
    #[serde(default)]
    pub life: ConnectionLife,
}

impl CellOrder {
    /// How many connections the cell has.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.shape.connections(self.load)
    }
}

/// Engine to agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum AgentCommand {
    /// Run a cell. At most one cell of a configuration runs at a time; a second one waits for the
    /// first to drain and takes over its connections.
    Run(Box<CellOrder>),
    /// No new arrivals; drain, report, keep the connections for a following cell.
    Stop { cell: CellId },
    /// Close the connections that are kept for a configuration.
    Release { configuration: ConfigurationId },
    /// Hold one load thread (from 0) up for so many ms, as an overloaded machine would: for tests
    /// of what is said of it. Not in a release.
    #[cfg(debug_assertions)]
    Stall { thread: usize, ms: u64 },
    /// Drain everything and exit.
    Shutdown,
}

/// Agent to engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum AgentReport {
    Ready {
        pid: u32,
        processors: u32,
    },
    Phase {
        cell: CellId,
        phase: Phase,
    },
    Window(Box<Window>),
    Ended(Box<CellResult>),
    /// Once a second, whether a cell runs or not.
    Runner(Box<RunnerSample>),
    /// A line for the engine's log.
    Log {
        warning: bool,
        text: String,
    },
}
