//! The loader beside `psql \copy` of the same rows, prepared beforehand.
//!
//! `cargo bench --bench loader` prints each pair and the median ratio. Both fill the same tables,
//! without indexes, of the same private PostgreSQL, one after the other, pair by pair in turns, so that
//! what else the machine does falls on both; of the loader only its rows are counted, not its indexes
//! and its verification.

#[path = "../tests/it/programs.rs"]
mod programs;

use std::{
    error::Error,
    fs,
    os::unix::fs::chown,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use clap::Parser;
use rampdeck::{
    model::{TargetAddress, TargetSpec},
    target,
    workload::data::{LoadOrder, LoadReport, load_with},
};
use tempfile::TempDir;

type Failure = Box<dyn Error>;

const TABLES: [&str; 5] = ["customers", "products", "orders", "order_items", "ledger"];
const USER: &str = "bench";
/// On the folder's own socket: no other server is met.
const PORT: u16 = 5432;
const START_LIMIT: Duration = Duration::from_secs(60);

#[derive(Parser)]
struct Options {
    /// Share of the full data set
    #[arg(long, default_value_t = 0.05)]
    scale: f64,
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Connections of the loader
    #[arg(long, default_value_t = 4)]
    workers: usize,
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Failure> {
    // `cargo test` runs benchmarks too, without this argument: measuring takes minutes.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("nothing is measured: use cargo bench --bench loader");
        return Ok(());
    }
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server::start()?;
    runtime.block_on(server.wait())?;
    let order = LoadOrder { scale: options.scale, seed: 1, workers: Some(options.workers) };

    let rows = runtime.block_on(load(&server, order))?.loaded;
    for table in TABLES {
        server.psql(&format!("\\copy shop.{table} to '{}'", server.file(table).display()))?;
    }
    println!("scale {}, {rows} rows, {} workers", options.scale, options.workers);
    println!("{:>14} {:>14} {:>7}", "loader rows/s", "\\copy rows/s", "ratio");
    let mut ratios = Vec::new();
    for pair in 0..options.pairs {
        // In turns, so that neither always comes second.
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = runtime.block_on(load(&server, order))?;
            (ours, copy(&server, rows)?)
        } else {
            let theirs = copy(&server, rows)?;
            (runtime.block_on(load(&server, order))?, theirs)
        };
        let ours = rate(ours.loaded, ours.loading_s);
        println!("{ours:>14.0} {theirs:>14.0} {:>7.2}", ours / theirs);
        ratios.push(ours / theirs);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[ratios.len() / 2]);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "rows fit 53 bits")]
fn rate(rows: u64, seconds: f64) -> f64 {
    rows as f64 / seconds
}

async fn load(server: &Server, order: LoadOrder) -> Result<LoadReport, Failure> {
    server.psql("DROP SCHEMA IF EXISTS shop CASCADE")?;
    server.psql("CHECKPOINT")?;
    Ok(load_with(&server.target(), order, |_| {}).await?)
}

/// Rows a second of `psql \copy`, one connection, one table after the other.
fn copy(server: &Server, rows: u64) -> Result<f64, Failure> {
    // The loader's own tables, without rows, keys and indexes.
    for table in TABLES {
        server.psql(&format!(
            "CREATE TABLE shop.bare AS TABLE shop.{table} WITH NO DATA; DROP TABLE shop.{table}; \
             ALTER TABLE shop.bare RENAME TO {table}"
        ))?;
    }
    server.psql("CHECKPOINT")?;
    let script = server.folder.path().join("copy.sql");
    let lines = TABLES
        .map(|table| format!("\\copy shop.{table} from '{}'\n", server.file(table).display()));
    fs::write(&script, lines.concat())?;
    let began = Instant::now();
    server.run(&["-f", &script.display().to_string()])?;
    Ok(rate(rows, began.elapsed().as_secs_f64()))
}

/// A private PostgreSQL, gone with the benchmark. It writes as one in earnest does, but for fsync: the
/// disk of a development machine is not what is compared.
struct Server {
    process: Child,
    folder: TempDir,
}

impl Server {
    fn start() -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("rd-bench-").tempdir_in("/tmp")?;
        if let Some((uid, gid)) = programs::account() {
            chown(folder.path(), Some(uid), Some(gid))?;
        }
        let data = folder.path().join("data");
        let made = programs::unprivileged(&program("initdb")?)
            .args(["-A", "trust", "-U", USER, "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        let process = programs::unprivileged(&program("postgres")?)
            .arg("-D")
            .arg(&data)
            .args(["-p", &PORT.to_string(), "-c", "listen_addresses=", "-c", "fsync=off"])
            .args(["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"])
            .args(["-c", "autovacuum=off", "-c"])
            .arg(format!("unix_socket_directories={}", folder.path().display()))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log"))?)
            .spawn()?;
        Ok(Self { process, folder })
    }

    async fn wait(&self) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            match target::session(&self.target()).await {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > START_LIMIT => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn target(&self) -> TargetSpec {
        let address = TargetAddress::Unix { directory: self.folder.path().into(), port: PORT };
        TargetSpec::plain(address, USER, "postgres", "shop")
    }

    fn file(&self, table: &str) -> PathBuf {
        self.folder.path().join(format!("{table}.txt"))
    }

    fn psql(&self, command: &str) -> Result<(), Failure> {
        self.run(&["-c", command])
    }

    fn run(&self, arguments: &[&str]) -> Result<(), Failure> {
        let output = Command::new(program("psql")?)
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", "postgres"])
            .args(["-p", &PORT.to_string(), "-h"])
            .arg(self.folder.path())
            .args(arguments)
            .output()?;
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("psql: {}", String::from_utf8_lossy(&output.stderr)).into())
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT ends it at once and cleans its shared memory up.
        let _ = Command::new("kill").args(["-QUIT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Result<PathBuf, Failure> {
    programs::find(name).ok_or_else(|| format!("there is no {name} on this machine").into())
}
