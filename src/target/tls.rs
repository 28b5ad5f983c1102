//! Verified TLS: the whole chain and the host's name, always.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connector that trusts the authorities in `ca_file`, or the system's where there is none.
///
/// # Errors
/// In words, when the authorities cannot be read or there are none.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    Ok(MakeRustlsConnect::new(settings(ca_file)?))
}

/// The same for a stream of our own.
///
/// # Errors
/// As [`connector`].
pub(super) fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    settings(ca_file).map(Arc::new)
}

fn settings(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    match ca_file {
        Some(path) => client_config(roots_of_file(path)?),
        None => system_config(),
    }
}

/// Reading the system's roots takes milliseconds: it is done once, not for each of a cell's
/// hundreds of connections. A failure is not kept, so that it can be cured while we run.
fn system_config() -> Result<ClientConfig, String> {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = client_config(system_roots()?)?;
    Ok(CONFIG.get_or_init(|| config).clone())
}

fn client_config(roots: RootCertStore) -> Result<ClientConfig, String> {
    Ok(ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!(
            "the system has no usable certificate authorities{why}: install them or name a CA file"
        ));
    }
    Ok(roots)
}

fn roots_of_file(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path)
        .map_err(|error| format!("the CA file {shown} cannot be read: {error}"))?;
    for certificate in certificates {
        let certificate =
            certificate.map_err(|error| format!("the CA file {shown} is not PEM: {error}"))?;
        roots.add(certificate).map_err(|error| {
            format!("the CA file {shown} holds an unusable certificate: {error}")
        })?;
    }
    if roots.is_empty() {
        return Err(format!("the CA file {shown} holds no certificate (PEM is allowed)"));
    }
    Ok(roots)
}
