//! A private PostgreSQL server for tests: made in a temporary folder, reached by a Unix socket,
//! gone with its last user, even where the test's process is killed.

use std::{
    env, fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::session;
use crate::model::{TargetAddress, TargetSpec, TlsMode};

const PORT: u16 = 5432;
const START_LIMIT: Duration = Duration::from_secs(60);

/// Ends the server and removes the folder as soon as the pipe on its standard input closes, which
/// it also does when the test's process is killed.
const KEEPER: &str = r#"
"$1/postgres" -D "$2/data" -k "$2" >>"$2/log" 2>&1 &
server=$!
cat >/dev/null
kill -QUIT "$server" 2>/dev/null
wait "$server"
rm -rf "$2"
"#;

/// A running server.
pub(crate) struct TestServer {
    keeper: Child,
    folder: PathBuf,
    port: u16,
    databases: AtomicU32,
}

impl TestServer {
    /// The server that the tests of this process share; the last one to let go of it ends it.
    pub(crate) async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
        let server = {
            let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            shared.upgrade().unwrap_or_else(|| {
                let server = Arc::new(Self::start(PORT, "", |_| {}));
                *shared = Arc::downgrade(&server);
                server
            })
        };
        server.wait_until_ready().await;
        server
    }

    /// Starts a server. It listens on TCP at `port` of 127.0.0.1 where `settings` say so; `dress`
    /// may change the folder with its data before the start.
    pub(crate) fn start(port: u16, settings: &str, dress: impl FnOnce(&Path)) -> Self {
        let binaries = binaries();
        let owner = owner();
        let folder = TempDir::new().unwrap();
        if let Some((uid, gid)) = owner {
            chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let data = folder.path().join("data");
        let made = as_owner(&binaries.join("initdb"), owner)
            .args(["--auth=trust", "--username=postgres", "--no-sync", "--no-instructions"])
            .args(["--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let file = data.join("postgresql.auto.conf");
        let common = "listen_addresses = ''\nfsync = off\nfull_page_writes = off\n\
                      autovacuum = off\nshared_buffers = 64MB\nmax_wal_size = 1GB\n";
        fs::write(&file, format!("{common}port = {port}\n{settings}\n")).unwrap();
        dress(&data);
        let keeper = as_owner(Path::new("/bin/sh"), owner)
            .args(["-c", KEEPER, "keeper"])
            .arg(&binaries)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // From here on the keeper removes it.
        Self { keeper, folder: folder.keep(), port, databases: AtomicU32::new(0) }
    }

    /// Waits until the server lets somebody in.
    pub(crate) async fn wait_until_ready(&self) {
        let started = Instant::now();
        let target = self.target("postgres");
        while let Err(error) = session(&target).await {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(started.elapsed() < START_LIMIT, "{error}\n{}", log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A fresh database of the caller's own.
    pub(crate) async fn database(&self) -> TargetSpec {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let client = session(&self.target("postgres")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        self.target(&name)
    }

    /// How to reach a database of the server by its Unix socket.
    pub(crate) fn target(&self, database: &str) -> TargetSpec {
        TargetSpec {
            address: TargetAddress::Unix { directory: self.folder.clone(), port: self.port },
            user: "postgres".into(),
            password: None,
            database: database.into(),
            schema: "shop".into(),
            tls: TlsMode::Off,
            application_name: "rampdeck-test".into(),
            connect_timeout_ms: 10_000,
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().ok();
    }
}

/// Where PostgreSQL's programs are: `RAMPDECK_TEST_PG_BIN`, the search path, or the newest of
/// Debian's folders.
fn binaries() -> PathBuf {
    let named = env::var_os("RAMPDECK_TEST_PG_BIN").map(PathBuf::from).into_iter();
    let path = env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<_> = debian.map(|entry| entry.path().join("bin")).collect();
    debian.sort();
    named
        .chain(env::split_paths(&path))
        .chain(debian.into_iter().rev())
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
        .expect("these tests need PostgreSQL's initdb and postgres: set RAMPDECK_TEST_PG_BIN")
}

/// The server refuses to run as root: then it runs as the user `postgres`.
fn owner() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = fields.into_iter().find(|fields| fields[0] == "postgres");
    let user = user.expect("run by root, these tests need a user postgres");
    Some((user[2].parse().unwrap(), user[3].parse().unwrap()))
}

fn as_owner(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    // The caller's working folder may be closed to the owner.
    command.current_dir("/").stdout(Stdio::null());
    if let Some((uid, gid)) = owner {
        command.uid(uid).gid(gid);
    }
    command
}
