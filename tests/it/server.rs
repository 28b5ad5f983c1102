//! A PostgreSQL server that rampdeck did not start.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio_postgres::{Client, NoTls};

use crate::support::wait_for;

/// Where the server's programs are: what `tests/run` has installed or the machine had.
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for base in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
        if let Ok(listing) = std::fs::read_dir(base) {
            folders.extend(listing.flatten().map(|entry| entry.path().join("bin")));
        }
    }
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("no {name} on this machine"))
}

/// The program, run by an unprivileged user where the test is root: PostgreSQL refuses root.
pub fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = account() {
        command.uid(uid).gid(gid);
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn account() -> Option<(u32, u32)> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() != b"0" {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let of = |name: &str| {
        let line = passwd.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}

/// A server on a free port of the loopback, with a password.
pub struct Server {
    folder: tempfile::TempDir,
    child: Child,
    port: u16,
}

pub const PASSWORD: &str = "rehearse me";

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("rd-pg-").tempdir_in("/tmp").unwrap();
        if let Some((uid, gid)) = account() {
            std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid)).unwrap();
        }
        let secret = folder.path().join("secret");
        std::fs::write(&secret, PASSWORD).unwrap();
        let data = folder.path().join("data");
        let made = unprivileged(&program("initdb"))
            .args(["-A", "scram-sha-256", "-U", "app", "--no-sync", "-E", "UTF8", "--locale=C"])
            .arg("--pwfile")
            .arg(&secret)
            .arg("-D")
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = unprivileged(&program("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .arg("-c")
            .arg(format!("unix_socket_directories={}", folder.path().display()))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self { folder, child, port };
        wait_for("the server to answer", || server.try_query("select 1").ok());
        server
    }

    pub fn url(&self) -> String {
        let password = PASSWORD.replace(' ', "%20");
        format!("postgres://app:{password}@127.0.0.1:{}/postgres", self.port)
    }

    pub fn url_without_password(&self) -> String {
        format!("postgres://app@127.0.0.1:{}/postgres", self.port)
    }

    /// The first column of the rows, as text.
    pub fn query(&self, sql: &str) -> Vec<String> {
        self.try_query(sql).unwrap()
    }

    fn try_query(&self, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection): (Client, _) =
                tokio_postgres::connect(&self.url(), NoTls).await?;
            let connection = tokio::spawn(connection);
            let rows = client.simple_query(sql).await?;
            connection.abort();
            Ok(rows
                .iter()
                .filter_map(|message| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                })
                .collect())
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT ends it at once and cleans its shared memory up.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
        let _ = &self.folder;
    }
}
