//! A private PostgreSQL with the data of the order business.

use std::{
    fs,
    os::unix::fs::chown,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rampdeck::{
    model::{TargetAddress, TargetSpec},
    target, workload,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{
    Failure,
    agent::SCALE,
    options::Options,
    pgbench::{CUSTOMERS, Server},
    process::Owned,
    programs::{self, account, unprivileged},
};

/// The schema that the scripts name.
pub const SCHEMA: &str = "shop";
const USER: &str = "bench";
const DATABASE: &str = "postgres";
/// Inside the folder's own socket: no other server is met.
const PORT: u16 = 5432;
const START_LIMIT: Duration = Duration::from_secs(60);

/// Everything that a benchmark of the generator does not measure is made cheap; no vacuum starts
/// in the middle of a span.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "autovacuum=off",
    "max_connections=600",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
];

/// For looking at what peers send; the figures are then of no use.
const LOGGING: &[&str] = &["log_statement=all", "log_line_prefix=%a %x "];

/// Orders made in advance for each client and each number of lines, so that its first cancels find
/// one: pgbench's and psycopg's clients cancel only their own.
pub const PREMADE: u32 = 10;
/// Lines that an order may have at most.
pub const MOST_LINES: u32 = 4;
/// How far the ids of the orders of one client and number of lines reach.
pub const IDS_OF_A_CLIENT: u64 = 1_000_000;

pub struct Postgres {
    process: Owned,
    folder: TempDir,
    runtime: Runtime,
}

impl Postgres {
    /// Starts a server and loads the data.
    pub fn start(options: &Options) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("rd-bench-").tempdir_in("/tmp")?;
        if let Some((uid, gid)) = account() {
            chown(folder.path(), Some(uid), Some(gid))?;
        }
        let data = folder.path().join("data");
        let made = unprivileged(&program("initdb")?)
            .args(["-A", "trust", "-U", USER, "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        let mut server = unprivileged(&program("postgres")?);
        server.arg("-D").arg(&data).args(["-p", &PORT.to_string()]);
        server.arg("-c").arg(format!("unix_socket_directories={}", folder.path().display()));
        let logging = if options.statements.is_some() { LOGGING } else { &[] };
        server.args(SETTINGS.iter().chain(logging).flat_map(|setting| ["-c", setting]));
        let log = match &options.statements {
            Some(path) => fs::OpenOptions::new().create(true).append(true).open(path)?,
            None => fs::File::create(folder.path().join("log"))?,
        };
        let process = Owned(server.stdout(Stdio::null()).stderr(log).spawn()?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let postgres = Self { process, folder, runtime };
        postgres.wait()?;
        let target = postgres.target();
        postgres.runtime.block_on(workload::data::load(&target, SCALE, 1, |_| {}))?;
        Ok(postgres)
    }

    fn wait(&self) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            match self.runtime.block_on(target::session(&self.target())) {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > START_LIMIT => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Plenty of stock for every product, no dead rows of earlier spans, nothing left to write.
    pub fn settle(&self) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let client = target::session(&self.target()).await?;
            for statement in [
                "UPDATE shop.products SET stock = 1000000000",
                "VACUUM (ANALYZE) shop.products",
                "CHECKPOINT",
            ] {
                client.batch_execute(statement).await?;
            }
            Ok(())
        })
    }

    /// Makes [`PREMADE`] orders for each client and number of lines: the orders of `client` with
    /// `lines` lines have ids from `base + (client * 4 + lines) * IDS_OF_A_CLIENT + 1` on.
    pub fn premake(&self, base: u64, clients: u32) -> Result<(), Failure> {
        let ids = format!(
            "SELECT {base} + (client * {MOST_LINES} + lines) * {IDS_OF_A_CLIENT} + n AS id, lines \
             FROM generate_series(0, {clients} - 1) client, generate_series(1, {MOST_LINES}) lines, \
             generate_series(1, {PREMADE}) n"
        );
        let orders = format!(
            "INSERT INTO shop.orders (order_id, customer_id, status, total_cents, created_at) \
             SELECT id, 1 + id % {CUSTOMERS}, 'placed', 3998 * lines, now() FROM ({ids}) made"
        );
        let items = format!(
            "INSERT INTO shop.order_items (order_id, line_no, product_id, quantity, price_cents) \
             SELECT id, line, line * 400 + id % 400, 2, 1999 FROM ({ids}) made, \
             generate_series(1, lines) line"
        );
        self.runtime.block_on(async {
            let client = target::session(&self.target()).await?;
            client.batch_execute(&orders).await?;
            Ok(client.batch_execute(&items).await?)
        })
    }

    /// Ledger entries and receipts of creates and of cancels that are in the database now.
    pub fn written(&self) -> Result<[i64; 3], Failure> {
        self.runtime.block_on(async {
            let client = target::session(&self.target()).await?;
            let row = client
                .query_one(
                    "SELECT (SELECT count(*) FROM shop.ledger), \
                     count(*) FILTER (WHERE kind = 'create'), \
                     count(*) FILTER (WHERE kind = 'cancel') FROM shop.receipts",
                    &[],
                )
                .await?;
            Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?])
        })
    }

    pub fn target(&self) -> TargetSpec {
        TargetSpec::plain(
            TargetAddress::Unix { directory: self.folder.path().into(), port: PORT },
            USER,
            DATABASE,
            SCHEMA,
        )
    }

    pub fn server(&self) -> Server {
        Server {
            host: self.folder.path().display().to_string(),
            port: PORT,
            user: USER.into(),
            database: DATABASE.into(),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT ends it at once and cleans its shared memory up.
        let _ = Command::new("kill").args(["-QUIT", &self.process.pid().to_string()]).status();
        // What does not end so is killed.
        let _ = self.process.ended_within(Duration::from_secs(10));
    }
}

/// One of PostgreSQL's programs.
pub fn program(name: &str) -> Result<PathBuf, Failure> {
    programs::find(name).ok_or_else(|| format!("there is no {name} on this machine").into())
}
