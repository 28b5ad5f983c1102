//! Why a database could not be reached, in words an operator can act on.

use std::{error::Error as _, io};

use tokio_postgres::{Error, error::SqlState};

use super::session::ServerError;
use crate::model::{PasswordSource, TargetAddress, TargetSpec, TlsMode};

/// The class of a failure to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// Nothing listens at the address, or no way leads to it.
    Refused,
    /// The host's name has no address here.
    Unresolved,
    /// The time limit of the target was over.
    Timeout,
    /// User, password or token were not accepted.
    Authentication,
    /// The operator's command gave no password.
    Credential,
    /// Encryption could not be agreed on, or the server's certificate is not to be trusted.
    Tls,
    /// The server answered with another error; its SQLSTATE.
    Server(String),
    Other,
}

/// A failure to connect. Its text names the address, database, user and what to do; never a
/// password.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to {place}: {what}; {advice}")]
pub struct ConnectError {
    kind: ConnectErrorKind,
    sqlstate: Option<String>,
    place: String,
    what: String,
    advice: String,
}

impl ConnectError {
    /// The class of the failure.
    #[must_use]
    pub const fn kind(&self) -> &ConnectErrorKind {
        &self.kind
    }

    /// The server's SQLSTATE, where the server answered.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }

    pub(super) fn timeout(target: &TargetSpec) -> Self {
        let what = format!("no answer within {} ms", target.connect_timeout_ms);
        Self::new(target, ConnectErrorKind::Timeout, None, what)
    }

    pub(super) fn tls(target: &TargetSpec, what: String) -> Self {
        Self::new(target, ConnectErrorKind::Tls, None, what)
    }

    pub(super) fn credential(target: &TargetSpec, what: String) -> Self {
        Self::new(target, ConnectErrorKind::Credential, None, what)
    }

    /// Whether the server did not accept the user with this password.
    pub(super) fn is_refused_log_in(&self) -> bool {
        matches!(self.sqlstate(), Some("28P01" | "28000"))
    }

    #[cfg(test)]
    pub(super) fn refused_for_test(target: &TargetSpec) -> Self {
        let (kind, what) = (ConnectErrorKind::Authentication, "refused".to_owned());
        Self::new(target, kind, Some("28P01".to_owned()), what)
    }

    pub(super) fn other(target: &TargetSpec, what: String) -> Self {
        Self::new(target, ConnectErrorKind::Other, None, what)
    }

    pub(super) fn authentication(target: &TargetSpec, what: String) -> Self {
        Self::new(target, ConnectErrorKind::Authentication, None, what)
    }

    pub(super) fn from_io(target: &TargetSpec, error: &io::Error) -> Self {
        let kind = kind_of_io(error).unwrap_or(ConnectErrorKind::Other);
        Self::new(target, kind, None, error.to_string())
    }

    pub(super) fn from_server(target: &TargetSpec, error: &ServerError) -> Self {
        let kind = kind_of_code(&error.code);
        Self::new(target, kind, Some(error.code.clone()), error.to_string())
    }

    pub(super) fn from_postgres(target: &TargetSpec, error: &Error) -> Self {
        let sqlstate = error.code().map(|code| code.code().to_owned());
        Self::new(target, kind_of(error), sqlstate, text_of(error))
    }

    fn new(
        target: &TargetSpec,
        kind: ConnectErrorKind,
        sqlstate: Option<String>,
        what: String,
    ) -> Self {
        let advice = advice(target, &kind, sqlstate.as_deref());
        Self { kind, sqlstate, place: place(target), what, advice }
    }
}

fn place(target: &TargetSpec) -> String {
    let address = match &target.address {
        TargetAddress::Tcp { host, port, hostaddr: None } => format!("{host} port {port}"),
        TargetAddress::Tcp { host, port, hostaddr: Some(address) } => {
            format!("{host} ({address}) port {port}")
        }
        TargetAddress::Unix { directory, port } => {
            format!("socket {}/.s.PGSQL.{port}", directory.display())
        }
    };
    format!("{address}, database {}, as {}", target.database, target.user)
}

/// The crate keeps its own classes private: beyond SQLSTATE and the system's error they can only
/// be told by its texts, which the tests of this room pin.
fn kind_of(error: &Error) -> ConnectErrorKind {
    if let Some(code) = error.code() {
        return kind_of_code(code.code());
    }
    match error.to_string().as_str() {
        "error performing TLS handshake" => return ConnectErrorKind::Tls,
        "authentication error" | "invalid configuration" => {
            return ConnectErrorKind::Authentication;
        }
        _ => {}
    }
    error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .and_then(kind_of_io)
        .unwrap_or(ConnectErrorKind::Other)
}

fn kind_of_code(code: &str) -> ConnectErrorKind {
    if code.starts_with("28") {
        ConnectErrorKind::Authentication
    } else {
        ConnectErrorKind::Server(code.to_owned())
    }
}

/// The beginning of the standard library's text where a name cannot be resolved, which has no kind
/// of its own.
const UNRESOLVED: &str = "failed to lookup address information";

fn kind_of_io(error: &io::Error) -> Option<ConnectErrorKind> {
    match error.kind() {
        io::ErrorKind::TimedOut => Some(ConnectErrorKind::Timeout),
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::NotFound
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => Some(ConnectErrorKind::Refused),
        _ if error.to_string().starts_with(UNRESOLVED) => Some(ConnectErrorKind::Unresolved),
        _ => None,
    }
}

/// What happened: the server's own message with its SQLSTATE, else the innermost cause.
fn text_of(error: &Error) -> String {
    if let Some(server) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", server.message(), server.code().code());
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn advice(target: &TargetSpec, kind: &ConnectErrorKind, sqlstate: Option<&str>) -> String {
    match kind {
        ConnectErrorKind::Refused => "check that the server runs and listens there".into(),
        ConnectErrorKind::Unresolved => {
            "check the host's name and this machine's resolver; a URL names one host".into()
        }
        ConnectErrorKind::Timeout => {
            "check the network, security groups and the server's health, or raise the connect \
             timeout"
                .into()
        }
        ConnectErrorKind::Authentication => match (&target.password_source, &target.password) {
            (Some(PasswordSource::Command(_)), _) => {
                "check the user, what password_command prints and the server's access rules".into()
            }
            (Some(PasswordSource::DsqlToken(token)), _) => format!(
                "check that the AWS identity found here may dsql:DbConnect{} on this cluster in {}, \
                 and this machine's clock",
                if token.admin { "Admin" } else { "" },
                token.region
            ),
            (None, None) => {
                "check the user and the server's access rules, or give a password".into()
            }
            (None, Some(_)) => "check the user, the password and the server's access rules".into(),
        },
        ConnectErrorKind::Credential => match &target.password_source {
            Some(PasswordSource::DsqlToken(_)) => {
                "check which identity AWS's own programs find here: aws sts get-caller-identity"
                    .into()
            }
            _ => "check the configuration's password_command by running it in a shell".into(),
        },
        ConnectErrorKind::Tls => match &target.tls {
            TlsMode::Verified { ca_file: Some(path) } => format!(
                "check that the server has TLS on, that its certificate names this host and was \
                 signed by an authority in {}",
                path.display()
            ),
            _ => "check that the server has TLS on, that its certificate names this host and was \
                  signed by an authority this system trusts"
                .into(),
        },
        ConnectErrorKind::Server(_) if sqlstate == Some(SqlState::INVALID_CATALOG_NAME.code()) => {
            "create the database or name another one".into()
        }
        ConnectErrorKind::Server(_) if sqlstate == Some(SqlState::TOO_MANY_CONNECTIONS.code()) => {
            "use fewer connections or raise the server's limit".into()
        }
        ConnectErrorKind::Server(_) | ConnectErrorKind::Other => {
            "see the server's log for more".into()
        }
    }
}
