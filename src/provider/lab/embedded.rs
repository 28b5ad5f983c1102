//! Server programs from the network, for a machine that has none.

use std::{fs, io, path::PathBuf, time::Duration};

use postgresql_embedded::{PostgreSQL, Settings, VersionReq};

use super::{Binaries, BinariesError, FolderError, account::Account, folder};

/// The only place that the crate knows how to read.
const RELEASES: &str = "https://github.com/theseus-rs/postgresql-binaries";
/// The major version of the managed databases that a rehearsal stands in for.
const VERSION: &str = "^16";

/// Why no server programs could be had from the network.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error(
        "PostgreSQL's server programs could not be downloaded from {RELEASES}: {0}; install \
         PostgreSQL, or name the folder with initdb and postgres as lab.bin_dir in the plan"
    )]
    Download(String),
    #[error("{} cannot be made for the downloaded server programs: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Base(#[from] FolderError),
    #[error("what was downloaded cannot be used: {0}")]
    Unusable(#[from] BinariesError),
}

/// Downloads the programs, unless an earlier run has: they stay in the user's cache.
pub(super) async fn download() -> Result<Binaries, DownloadError> {
    let installation_dir = installation_dir()?;
    let unmade = |path: &PathBuf| {
        let path = path.clone();
        move |source| DownloadError::Folder { path, source }
    };
    fs::create_dir_all(&installation_dir).map_err(unmade(&installation_dir))?;
    // The crate would also make a data folder and a server of its own kind. One that looks as if
    // it had been made already keeps it to the programs; it is removed when `programs` is dropped.
    let pretended = installation_dir.join(format!("no-data-{}", std::process::id()));
    fs::create_dir_all(&pretended).map_err(unmade(&pretended))?;
    fs::write(pretended.join("postgresql.conf"), "").map_err(unmade(&pretended))?;
    let settings = Settings {
        releases_url: RELEASES.into(),
        version: VersionReq::parse(VERSION)
            .map_err(|error| DownloadError::Download(error.to_string()))?,
        installation_dir,
        password_file: pretended.join("none"),
        data_dir: pretended,
        host: "localhost".into(),
        port: 0,
        username: String::new(),
        password: String::new(),
        temporary: true,
        timeout: Some(Duration::from_secs(60)),
        configuration: std::collections::HashMap::default(),
        trust_installation_dir: false,
        socket_dir: None,
    };
    let mut programs = PostgreSQL::new(settings);
    programs.setup().await.map_err(|error| DownloadError::Download(error.to_string()))?;
    let dir = programs.settings().binary_dir();
    let mut found = Binaries::find(Some(&dir))?;
    found.how = format!("PostgreSQL {} downloaded to {}", found.version.1, dir.display());
    Ok(found)
}

/// The user's cache; for root a folder that the server's account can reach.
fn installation_dir() -> Result<PathBuf, FolderError> {
    if let Ok(None) = Account::for_server() {
        return Ok(folder::cache().join("postgresql"));
    }
    let base = folder::base();
    folder::make_base(&base)?;
    Ok(base.join("postgresql"))
}
