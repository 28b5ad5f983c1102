//! A private PostgreSQL server for tests: made in a temporary folder, reached by a Unix socket,
//! gone with its last user, even where the test's process is killed.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;

#[path = "../../tests/it/programs.rs"]
mod programs;

use super::session;
use crate::model::{TargetAddress, TargetSpec};

const PORT: u16 = 5432;
const START_LIMIT: Duration = Duration::from_secs(60);

/// Makes and runs a server; ends it and removes the folder as soon as the pipe on the standard
/// input closes, which it also does when the test's process is killed. Everything is its owner's
/// alone, or the server refuses its key. Two signals: a server that has just been started still
/// ignores the second, as the shell's children in the background do, but not the first; later the
/// second does not wait for clients.
const KEEPER: &str = r#"
umask 077
exec >>"$2/log" 2>&1
"$1/initdb" -D "$2/data" --auth=trust --username=postgres --no-sync --no-instructions \
    --encoding=UTF8 --locale=C && cp "$2/files/"* "$2/data"
"$1/postgres" -D "$2/data" -k "$2" &
server=$!
cat >/dev/null
kill -TERM "$server"
kill -QUIT "$server"
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
                let server = Arc::new(Self::start(PORT, "", &[]));
                *shared = Arc::downgrade(&server);
                server
            })
        };
        server.wait_until_ready().await;
        server
    }

    /// Starts a server with these settings and files in its data folder.
    pub(crate) fn start(port: u16, settings: &str, files: &[(&str, &str)]) -> Self {
        let initdb = programs::find("initdb");
        let initdb = initdb.expect("these tests need PostgreSQL: set RAMPDECK_TEST_PG_BIN");
        let folder = TempDir::new().unwrap();
        let given = folder.path().join("files");
        fs::create_dir(&given).unwrap();
        if let Some((uid, gid)) = programs::account() {
            chown(&folder, Some(uid), Some(gid)).unwrap();
            chown(&given, Some(uid), Some(gid)).unwrap();
        }
        let common = "listen_addresses = ''\nfsync = off\nfull_page_writes = off\n\
                      autovacuum = off\nshared_buffers = 64MB\nmax_wal_size = 1GB\n";
        let settings = format!("{common}port = {port}\n{settings}\n");
        fs::write(given.join("postgresql.auto.conf"), settings).unwrap();
        for (name, text) in files {
            fs::write(given.join(name), text).unwrap();
        }
        let keeper = programs::unprivileged(Path::new("/bin/sh"))
            .args(["-c", KEEPER, "keeper"])
            .arg(initdb.parent().unwrap())
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
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
            application_name: "rampdeck-test".into(),
            ..TargetSpec::plain(
                TargetAddress::Unix { directory: self.folder.clone(), port: self.port },
                "postgres",
                database,
                "shop",
            )
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().ok();
    }
}
