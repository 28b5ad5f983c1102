//! A PostgreSQL server that rampdeck did not start.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tokio_postgres::{Client, NoTls};

use crate::{
    programs::{self, account, unprivileged},
    support::wait_for,
};

/// One of PostgreSQL's programs: what `tests/run` has installed or the machine had.
pub fn program(name: &str) -> PathBuf {
    programs::find(name).unwrap_or_else(|| panic!("no {name} on this machine"))
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
