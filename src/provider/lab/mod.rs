//! The lab: a private PostgreSQL server on this machine, and a gate for each configuration.
//!
//! The server listens on a Unix socket in a folder that only its user may enter. All of it lies in
//! one folder whose place follows from the run's name.

mod account;
mod binaries;
#[cfg(feature = "embedded-postgres")]
mod embedded;
mod folder;
mod gate;
pub(super) mod server;
mod settings;

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::process::{Child, Command};

use crate::{
    model::{
        ConfigurationId, ProcessIdentity, Resource, ResourceKind, ResourceState, RunId,
        TargetAddress, TargetSpec, UnixMs,
    },
    plan::LabPlan,
    target,
};

use super::{Recorder, process::RUN_VARIABLE, quoted, recorder::RecordError};

use account::Account;
pub use account::NoAccount;
pub use binaries::{Binaries, BinariesError};
pub use folder::{FolderError, base, folder_for};
pub(super) use folder::{Layout, is_marked, marked_folders, remove_empty_base, remove_marked};
pub use gate::{Gate, GateOrder, GateStartError};

/// The lab's superuser.
const USER: &str = "rampdeck";
/// The schema of the order business in a database of the lab.
pub const SCHEMA: &str = "rampdeck";

/// How long `initdb` and the server's start may take: generous, for slow and busy machines.
const INITDB_PATIENCE: Duration = Duration::from_secs(300);
const START_PATIENCE: Duration = Duration::from_secs(120);
/// How long a database that is to be cloned may be in use by a connection that is closing.
const CLONE_PATIENCE: Duration = Duration::from_secs(30);
/// How much of a log an error quotes.
const TAIL_LINES: usize = 12;

/// Why the lab could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    #[cfg(feature = "embedded-postgres")]
    #[error(transparent)]
    Download(#[from] embedded::DownloadError),
    #[error(transparent)]
    Account(#[from] NoAccount),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{program} cannot be run: {source}")]
    Run { program: PathBuf, source: io::Error },
    #[error("initdb failed: {said}")]
    Initdb { said: String },
    #[error("the lab's server {what}; its log ends with:\n{log}")]
    Server { what: String, log: String },
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Connect(#[from] target::ConnectError),
    #[error("{act} failed: {}", super::told(source))]
    Database { act: String, source: tokio_postgres::Error },
}

/// A lab that runs. Dropping it ends nothing: removal goes by what is recorded.
#[derive(Debug)]
pub struct Lab {
    run: RunId,
    layout: Layout,
    binaries: Binaries,
    recorder: Recorder,
}

impl Lab {
    /// Finds the server programs: those that are installed, else (with the feature
    /// `embedded-postgres`) a download into the user's cache.
    ///
    /// # Errors
    /// When there are none and none can be had.
    pub async fn binaries(plan: &LabPlan, recorder: &Recorder) -> Result<Binaries, LabError> {
        let found = Binaries::find(plan.bin_dir.as_deref());
        #[cfg(feature = "embedded-postgres")]
        if let Err(BinariesError::NotFound { .. }) = &found {
            recorder.step(None, "no PostgreSQL on this machine: downloading its server programs");
            return Ok(embedded::download().await?);
        }
        let found = found?;
        recorder.step(None, found.how.clone());
        Ok(found)
    }

    /// Makes the folder, the server's data and the server, and waits until it takes connections.
    /// Each thing is recorded before it is made. `connections` is how many the load may open on
    /// all databases together.
    ///
    /// # Errors
    /// When any step fails; what was made by then is in the record, to be removed by it.
    pub async fn start(
        run: &RunId,
        plan: &LabPlan,
        connections: u32,
        recorder: &Recorder,
    ) -> Result<Self, LabError> {
        let binaries = Self::binaries(plan, recorder).await?;
        let account = Account::for_server()?;
        let layout = Layout::of(run);
        let lab = Self { run: run.clone(), layout, binaries, recorder: recorder.clone() };
        lab.make_folders(account.as_ref()).await?;
        recorder.step(None, "initialising the lab's data folder");
        lab.initdb(account.as_ref()).await?;
        lab.configure(connections, plan)?;
        recorder.step(None, "starting the lab's server");
        lab.start_server(account.as_ref(), connections).await?;
        Ok(lab)
    }

    /// The folder that holds all of it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// The programs it was made with.
    #[must_use]
    pub const fn programs(&self) -> &Binaries {
        &self.binaries
    }

    /// The server's process as it is now: an operator may have restarted it.
    #[must_use]
    pub fn server(&self) -> Option<ProcessIdentity> {
        server::postmaster(&self.layout.data())
    }

    /// Whether the server runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.server().is_some()
    }

    /// How to reach a database past the gates, as the lab's superuser.
    #[must_use]
    pub fn admin_target(&self, database: &str) -> TargetSpec {
        TargetSpec::plain(
            TargetAddress::Unix { directory: self.layout.sockets.clone(), port: folder::PORT },
            USER,
            database,
            SCHEMA,
        )
    }

    /// Makes an empty database.
    ///
    /// # Errors
    /// When it cannot be recorded or made.
    pub async fn create_database(
        &self,
        name: &str,
        configuration: Option<&ConfigurationId>,
    ) -> Result<(), LabError> {
        self.make_database(name, configuration, "empty", "").await
    }

    /// Makes a database that is a copy of another one, file by file.
    ///
    /// # Errors
    /// When it cannot be recorded or made, or the other one stays in use.
    pub async fn clone_database(
        &self,
        template: &str,
        name: &str,
        configuration: Option<&ConfigurationId>,
    ) -> Result<(), LabError> {
        // From PostgreSQL 15 on the default would write the whole copy to the log as well.
        let strategy = if self.binaries.major() >= 15 { " STRATEGY file_copy" } else { "" };
        let how = format!(" TEMPLATE {}{strategy}", quoted(template));
        self.make_database(name, configuration, &format!("copy of {template}"), &how).await
    }

    async fn make_database(
        &self,
        name: &str,
        configuration: Option<&ConfigurationId>,
        note: &str,
        how: &str,
    ) -> Result<(), LabError> {
        let resource = Resource {
            configuration: configuration.cloned(),
            note: note.into(),
            ..self.resource(ResourceKind::Database, format!("database {name}"))
        };
        self.recorder.intend(&resource).await?;
        let client = target::session(&self.admin_target("postgres")).await?;
        let sql = format!("CREATE DATABASE {}{how}", quoted(name));
        let started = Instant::now();
        loop {
            match client.batch_execute(&sql).await {
                Ok(()) => break,
                Err(error)
                    if error.code() == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE)
                        && started.elapsed() < CLONE_PATIENCE =>
                {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(source) => {
                    let act = format!("making database {name}");
                    return Err(LabError::Database { act, source });
                }
            }
        }
        self.recorder.made(resource);
        Ok(())
    }

    /// Starts a gate in front of a database of the lab, as a child process `exe gate`.
    ///
    /// # Errors
    /// When it cannot be recorded or started, or does not listen in time.
    pub async fn start_gate(&self, exe: &Path, order: GateOrder) -> Result<Gate, GateStartError> {
        let making = gate::Making {
            run: &self.run,
            exe,
            folder: &self.layout.folder,
            behind: self.admin_target(&order.database),
            recorder: &self.recorder,
        };
        gate::start(making, order).await
    }

    async fn make_folders(&self, account: Option<&Account>) -> Result<(), LabError> {
        let layout = &self.layout;
        let folder = self.folder_resource(&layout.folder);
        self.recorder.intend(&folder).await?;
        layout.make(&self.run, account)?;
        self.recorder.made(folder);
        if layout.sockets_apart() {
            let sockets = self.folder_resource(&layout.sockets);
            self.recorder.intend(&sockets).await?;
            layout.make_sockets(&self.run, account)?;
            self.recorder.made(sockets);
        } else {
            layout.make_sockets(&self.run, account)?;
        }
        Ok(())
    }

    async fn initdb(&self, account: Option<&Account>) -> Result<(), LabError> {
        let mut command = self.command("initdb", account);
        command
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .args(["--no-instructions", "--username", USER, "--pgdata"])
            .arg(self.layout.data())
            .env(RUN_VARIABLE, self.run.as_str())
            .kill_on_drop(true);
        let program = self.binaries.program("initdb");
        let output = match tokio::time::timeout(INITDB_PATIENCE, command.output()).await {
            Ok(output) => output.map_err(|source| LabError::Run { program, source })?,
            Err(_) => {
                let said = format!("no end within {} s", INITDB_PATIENCE.as_secs());
                return Err(LabError::Initdb { said });
            }
        };
        if output.status.success() {
            return Ok(());
        }
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        Err(LabError::Initdb { said: tail(&String::from_utf8_lossy(&said)) })
    }

    fn configure(&self, connections: u32, plan: &LabPlan) -> Result<(), LabError> {
        let path = self.layout.data().join("postgresql.conf");
        let lines = settings::lines(&self.layout.sockets, connections, &plan.settings);
        // Written over initdb's file: it keeps its owner.
        fs::write(&path, lines).map_err(|source| LabError::Write { path, source })
    }

    async fn start_server(
        &self,
        account: Option<&Account>,
        connections: u32,
    ) -> Result<(), LabError> {
        let mut resource = Resource {
            port: Some(folder::PORT),
            note: format!("{}; {}", self.binaries.how, settings::note(connections)),
            ..self.resource(ResourceKind::Server, "server".into())
        };
        self.recorder.intend(&resource).await?;
        let output = self.layout.server_output();
        let open = || fs::File::options().create(true).append(true).open(&output);
        let log = open().map_err(|source| LabError::Write { path: output.clone(), source })?;
        let errors = open().map_err(|source| LabError::Write { path: output.clone(), source })?;
        let mut command = self.command("postgres", account);
        command.arg("-D").arg(self.layout.data()).stdout(log).stderr(errors);
        let program = self.binaries.program("postgres");
        let mut child = command.spawn().map_err(|source| LabError::Run { program, source })?;
        let ready = self.wait_until_ready(&mut child).await;
        // Whoever outlives whom: the exit status must be collected for as long as we live.
        tokio::spawn(async move { child.wait().await });
        ready?;
        resource.process = self.server();
        self.recorder.made(resource);
        Ok(())
    }

    async fn wait_until_ready(&self, child: &mut Child) -> Result<(), LabError> {
        let started = Instant::now();
        loop {
            let said_so = server::is_ready(&self.layout.data());
            if said_so && target::session(&self.admin_target("postgres")).await.is_ok() {
                return Ok(());
            }
            let what = match child.try_wait() {
                Ok(Some(status)) => format!("ended at once ({status})"),
                _ if started.elapsed() > START_PATIENCE => {
                    format!("took no connection within {} s", START_PATIENCE.as_secs())
                }
                _ => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            return Err(LabError::Server { what, log: self.log_tail() });
        }
    }

    /// The last lines that the server has written.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let read = |path| fs::read(path).unwrap_or_default();
        let said = [read(self.layout.server_output()), read(self.layout.server_log())].concat();
        tail(&String::from_utf8_lossy(&said))
    }

    /// A program of the server's, run by its account in the lab's folder and with nothing of the
    /// operator's own PostgreSQL settings.
    fn command(&self, program: &str, account: Option<&Account>) -> Command {
        let mut command = std::process::Command::new(self.binaries.program(program));
        if let Some(account) = account {
            command.uid(account.uid).gid(account.gid);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_postgres_variable(name)) {
            command.env_remove(name);
        }
        command
            .current_dir(&self.layout.folder)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            // An interrupt typed at the engine's terminal is not the server's.
            .process_group(0);
        command.into()
    }

    fn resource(&self, kind: ResourceKind, id: String) -> Resource {
        Resource {
            kind,
            id,
            configuration: None,
            process: None,
            path: Some(self.layout.data()),
            port: None,
            note: String::new(),
            state: ResourceState::Intended,
            since: UnixMs::now(),
        }
    }

    fn folder_resource(&self, path: &Path) -> Resource {
        Resource {
            path: Some(path.to_owned()),
            ..self.resource(ResourceKind::Folder, path.display().to_string())
        }
    }
}

fn is_postgres_variable(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("PG"))
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
