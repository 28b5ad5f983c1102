//! A private PostgreSQL with the data of the order business.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rampdeck::{
    model::{TargetAddress, TargetSpec, TlsMode},
    target, workload,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Failure, agent::SCALE, pgbench::Server, process::Owned};

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

pub struct Postgres {
    process: Owned,
    folder: TempDir,
    runtime: Runtime,
}

impl Postgres {
    /// Starts a server and loads the data. `extra` are settings beside the usual ones.
    pub fn start(extra: &[String]) -> Result<Self, Failure> {
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
        for setting in SETTINGS.iter().map(|s| (*s).to_owned()).chain(extra.iter().cloned()) {
            server.args(["-c", &setting]);
        }
        let log = fs::File::create(folder.path().join("log"))?;
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

    /// Orders, ledger entries and receipts that are in the database now.
    pub fn rows(&self) -> Result<[i64; 3], Failure> {
        self.runtime.block_on(async {
            let client = target::session(&self.target()).await?;
            let row = client
                .query_one(
                    "SELECT (SELECT count(*) FROM shop.orders), \
                     (SELECT count(*) FROM shop.ledger), (SELECT count(*) FROM shop.receipts)",
                    &[],
                )
                .await?;
            Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?])
        })
    }

    pub fn target(&self) -> TargetSpec {
        TargetSpec {
            address: TargetAddress::Unix { directory: self.folder.path().into(), port: PORT },
            user: USER.into(),
            password: None,
            database: DATABASE.into(),
            schema: SCHEMA.into(),
            tls: TlsMode::Off,
            application_name: "rampdeck".into(),
            connect_timeout_ms: 30_000,
        }
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
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(listing) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<_> = listing.flatten().map(|entry| entry.path()).collect();
        versions.sort();
        folders.extend(versions.into_iter().rev().map(|version| version.join("bin")));
    }
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("there is no {name} on this machine").into())
}

/// Run by an unprivileged user where the benchmark is root's: PostgreSQL refuses root.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = account() {
        command.uid(uid).gid(gid);
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn account() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let of = |name: &str| {
        let line = passwd.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}
