//! A PostgreSQL URL, read into what it takes to reach the database. A complaint never quotes the
//! URL: wherever it is mistyped, a part of it may be a piece of the password.

use std::{
    net::{IpAddr, Ipv6Addr},
    path::{Path, PathBuf},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::problem::did_you_mean;
use crate::model::{Dialect, Secret, TargetAddress, TargetSpec, TlsMode};

const DEFAULT_PORT: u16 = 5432;
const PARAMETERS: [&str; 5] =
    ["sslmode", "sslrootcert", "connect_timeout", "application_name", "host"];
/// What stays as it is in a part of a URL.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// In a parameter's value a path may stay legible.
const KEPT_IN_VALUE: &AsciiSet = &KEPT.remove(b'/');

/// A URL that was read.
#[derive(Debug)]
pub(super) struct Address {
    /// In a normal form, without the password.
    pub(super) url: String,
    /// With the URL's password and an empty schema.
    pub(super) target: TargetSpec,
}

/// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?parameters`.
///
/// # Errors
/// What was found and what is allowed, in words without any part of the URL that may be secret.
pub(super) fn parse(url: &str) -> Result<Address, String> {
    let parts = split(url)?;
    let mut parameters = parameters(parts.query)?;
    let (user, password) = user_and_password(parts.user_info)?;
    if parts.path.contains('/') {
        return Err(
            "found a path of several parts, allowed: /DATABASE (a / in a name or password \
                    is written %2F)"
                .to_owned(),
        );
    }
    let database = match decoded(parts.path, "database")? {
        name if name.is_empty() => user.clone(),
        name => name,
    };
    let address = address(parts.host_and_port, parameters.take("host"))?;
    let root_certificate = parameters.take("sslrootcert");
    let tls = tls(&address, parameters.take("sslmode").as_deref(), root_certificate.as_deref())?;
    let connect_timeout_ms = match parameters.take("connect_timeout") {
        None => TargetSpec::CONNECT_TIMEOUT_MS,
        Some(text) => match text.parse::<u64>() {
            Ok(seconds @ 1..=3600) => seconds * 1000,
            _ => {
                return Err("found a connect_timeout that is not allowed, allowed: 1 to 3600 \
                             seconds"
                    .to_owned());
            }
        },
    };
    let application_name = parameters
        .take("application_name")
        .unwrap_or_else(|| TargetSpec::APPLICATION_NAME.to_owned());
    if application_name.len() > 63 || !application_name.chars().all(|c| (' '..='~').contains(&c)) {
        return Err(
            "found an application_name that is not allowed, allowed: at most 63 printable \
                    ASCII characters"
                .to_owned(),
        );
    }
    let target = TargetSpec {
        address,
        user,
        password: password.map(Secret::new),
        password_source: None,
        database,
        schema: String::new(),
        dialect: Dialect::default(),
        tls,
        application_name,
        connect_timeout_ms,
    };
    Ok(Address { url: normal_form(&target), target })
}

struct Parts<'a> {
    user_info: &'a str,
    host_and_port: &'a str,
    path: &'a str,
    query: &'a str,
}

fn split(url: &str) -> Result<Parts<'_>, String> {
    let rest = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"))
        .ok_or("found a text that does not begin so, allowed: postgres:// or postgresql://")?;
    if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("found a blank in the URL, allowed: none (write %20)".to_owned());
    }
    if rest.contains('#') {
        return Err("found a # in the URL, allowed: none (write %23)".to_owned());
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if tail.contains('@') {
        return Err("found an @ after the host, allowed: /, ? and @ in a name or password are \
                    written %2F, %3F and %40"
            .to_owned());
    }
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let (user_info, host_and_port) = authority
        .rsplit_once('@')
        .ok_or("found no user, allowed: postgres://USER@HOST:PORT/DATABASE")?;
    Ok(Parts { user_info, host_and_port, path: path.strip_prefix('/').unwrap_or(path), query })
}

fn decoded(text: &str, what: &str) -> Result<String, String> {
    let mut after_percent = text.split('%').skip(1);
    let hex =
        |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !after_percent.all(hex) {
        return Err(format!("found a lone % in the {what}, allowed: %25 for a %"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(text) if !text.contains('\0') => Ok(text.into_owned()),
        _ => Err(format!("found a {what} that is not text in UTF-8, allowed: UTF-8 without NUL")),
    }
}

fn user_and_password(user_info: &str) -> Result<(String, Option<String>), String> {
    let (user, password) = match user_info.split_once(':') {
        Some((user, password)) => (user, Some(decoded(password, "password")?)),
        None => (user_info, None),
    };
    let user = decoded(user, "user")?;
    if user.is_empty() {
        return Err("found no user, allowed: postgres://USER@HOST:PORT/DATABASE".to_owned());
    }
    Ok((user, password.filter(|p| !p.is_empty())))
}

struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn take(&mut self, name: &str) -> Option<String> {
        let index = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(index).1)
    }
}

fn parameters(query: &str) -> Result<Parameters, String> {
    let mut read = Parameters(Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let allowed = PARAMETERS.join(", ");
        if !PARAMETERS.contains(&name) {
            let plain =
                name.len() <= 30 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if !plain || !pair.contains('=') {
                return Err(format!("found a parameter that is not known, allowed: {allowed}"));
            }
            let hint = did_you_mean(name, PARAMETERS);
            return Err(format!("found the parameter \"{name}\", allowed: {allowed}{hint}"));
        }
        if read.0.iter().any(|(known, _)| known == name) {
            return Err(format!("found the parameter \"{name}\" twice, allowed: once"));
        }
        let value = decoded(value, name)?;
        if value.is_empty() {
            return Err(format!(
                "found the parameter \"{name}\" without a value, allowed: a value"
            ));
        }
        read.0.push((name.to_owned(), value));
    }
    Ok(read)
}

fn address(host_and_port: &str, parameter: Option<String>) -> Result<TargetAddress, String> {
    let (host, port) = host_and_port_of(host_and_port)?;
    let host = match (host.is_empty(), parameter) {
        (false, None) => host,
        (true, Some(host)) => host,
        (false, Some(_)) => {
            return Err("found a host and the parameter \"host\", allowed: one of them".to_owned());
        }
        (true, None) => {
            return Err("found no host, allowed: a host name, an address, or a Unix socket's \
                        folder as ?host=/folder"
                .to_owned());
        }
    };
    if host.starts_with('/') {
        return Ok(TargetAddress::Unix { directory: PathBuf::from(host), port });
    }
    if host.contains(',') {
        return Err("found several hosts, allowed: one".to_owned());
    }
    let named = host.chars().all(|c| c.is_alphanumeric() || "-._".contains(c));
    if !named && host.parse::<Ipv6Addr>().is_err() {
        return Err(
            "found a host that is neither a name nor an address, allowed: letters, digits, \
                    - and ., or an IPv6 address as [::1]"
                .to_owned(),
        );
    }
    Ok(TargetAddress::Tcp { host, port, hostaddr: None })
}

fn host_and_port_of(text: &str) -> Result<(String, u16), String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) =
            rest.split_once(']').ok_or("found a [ without its ], allowed: [IPv6 address]:PORT")?;
        if host.parse::<Ipv6Addr>().is_err() {
            return Err(
                "found no IPv6 address between [ and ], allowed: one such as [::1]".to_owned()
            );
        }
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err("found more after the ], allowed: [IPv6 address]:PORT".to_owned()),
        };
        (host.to_owned(), port)
    } else {
        let (host, port) =
            text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        (decoded(host, "host")?, port)
    };
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(text) => match text.parse() {
            Ok(port @ 1..) if text.bytes().all(|b| b.is_ascii_digit()) => port,
            _ => {
                return Err("found a port that is not allowed, allowed: 1 to 65535 (an IPv6 \
                             address goes in brackets, as [::1])"
                    .to_owned());
            }
        },
    };
    Ok((host, port))
}

/// Whether what is sent to the address stays on this machine.
fn stays_here(address: &TargetAddress) -> bool {
    match address {
        TargetAddress::Unix { .. } => true,
        TargetAddress::Tcp { host, .. } => {
            host.eq_ignore_ascii_case("localhost")
                || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}

fn tls(
    address: &TargetAddress,
    mode: Option<&str>,
    root_certificate: Option<&str>,
) -> Result<TlsMode, String> {
    const MODES: &str = "allowed: disable, require, verify-ca or verify-full";
    let verified = match mode {
        None => root_certificate.is_some() || !stays_here(address),
        Some("disable") => false,
        // rampdeck always verifies chain and name: what is laxer is made stricter.
        Some("require" | "verify-ca" | "verify-full") => true,
        Some("allow" | "prefer") => {
            return Err(format!(
                "found an sslmode that may send the password and data unencrypted without saying \
                 so, {MODES}"
            ));
        }
        Some(_) => return Err(format!("found an sslmode that is not known, {MODES}")),
    };
    if !verified {
        return match root_certificate {
            Some(_) => {
                Err("found sslrootcert with sslmode=disable, allowed: one of them".to_owned())
            }
            None => Ok(TlsMode::Off),
        };
    }
    if matches!(address, TargetAddress::Unix { .. }) {
        return Err(
            "found TLS asked for on a Unix socket, allowed: sslmode=disable, or a host".to_owned()
        );
    }
    match root_certificate {
        None | Some("system") => Ok(TlsMode::Verified { ca_file: None }),
        Some(file) => Ok(TlsMode::Verified { ca_file: Some(certificate_file(file)?) }),
    }
}

fn certificate_file(file: &str) -> Result<PathBuf, String> {
    let path = std::path::absolute(file)
        .map_err(|_| "found an sslrootcert that is no path, allowed: a file in PEM".to_owned())?;
    // Opened, not only looked at: a file that may not be read would fail much later.
    match std::fs::File::open(&path).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_file() => Ok(path),
        _ => {
            Err("found no readable file for sslrootcert, allowed: a file of certificates in PEM, \
                  or \"system\""
                .to_owned())
        }
    }
}

fn normal_form(target: &TargetSpec) -> String {
    let encode = |text: &str| utf8_percent_encode(text, KEPT).to_string();
    let (host, port) = match &target.address {
        TargetAddress::Tcp { host, port, .. } if host.contains(':') => (format!("[{host}]"), port),
        TargetAddress::Tcp { host, port, .. } => (encode(host), port),
        TargetAddress::Unix { directory, port } => (encode(&directory.to_string_lossy()), port),
    };
    let mut parameters = Vec::new();
    match &target.tls {
        TlsMode::Off => parameters.push("sslmode=disable".to_owned()),
        TlsMode::Verified { ca_file } => {
            parameters.push("sslmode=verify-full".to_owned());
            if let Some(file) = ca_file {
                parameters.push(format!("sslrootcert={}", encode_path(file)));
            }
        }
    }
    if target.connect_timeout_ms != TargetSpec::CONNECT_TIMEOUT_MS {
        parameters.push(format!("connect_timeout={}", target.connect_timeout_ms / 1000));
    }
    if target.application_name != TargetSpec::APPLICATION_NAME {
        parameters.push(format!("application_name={}", encode(&target.application_name)));
    }
    let (user, database) = (encode(&target.user), encode(&target.database));
    format!("postgres://{user}@{host}:{port}/{database}?{}", parameters.join("&"))
}

fn encode_path(path: &Path) -> String {
    utf8_percent_encode(&path.to_string_lossy(), KEPT_IN_VALUE).to_string()
}
