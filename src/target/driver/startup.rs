//! From a socket to a session: encryption and log-in.

use std::{future::poll_fn, io};

use postgres_protocol::authentication::{
    md5_hash,
    sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::{
    encode::{message, text, untagged},
    inbox::{Inbox, server_error},
    stream::Stream,
    transport::{Transport, dial},
};
use crate::{
    model::{Secret, TargetAddress, TargetSpec, TlsMode},
    target::{ConnectError, tls},
};

/// The request for encryption, which looks like a version of the protocol.
const TLS_REQUEST: u32 = 80_877_103;
/// Version 3.0.
const PROTOCOL: u32 = 196_608;

/// Dials, encrypts and logs in; what is given back is ready for queries.
pub(super) async fn open(
    target: &TargetSpec,
    password: Option<&Secret>,
) -> Result<(Transport, Inbox), ConnectError> {
    let stream = dial(target).await.map_err(|error| ConnectError::from_io(target, &error))?;
    let transport = match &target.tls {
        TlsMode::Off => Transport::Plain(stream),
        TlsMode::Verified { ca_file } => {
            let config =
                tls::config(ca_file.as_deref()).map_err(|what| ConnectError::tls(target, what))?;
            encrypt(target, stream, TlsConnector::from(config)).await?
        }
    };
    let mut login = Login { target, password, transport, inbox: Inbox::new(), scram: None };
    login.run().await?;
    Ok((login.transport, login.inbox))
}

async fn encrypt(
    target: &TargetSpec,
    stream: Stream,
    connector: TlsConnector,
) -> Result<Transport, ConnectError> {
    let host = match &target.address {
        TargetAddress::Tcp { host, .. } => host.clone(),
        TargetAddress::Unix { .. } => {
            let what = "a Unix socket cannot be encrypted".to_owned();
            return Err(ConnectError::tls(target, what));
        }
    };
    let lost = |error: io::Error| ConnectError::from_io(target, &error);
    let mut plain = Transport::Plain(stream);
    let mut request = Vec::new();
    untagged(&mut request, |out| out.extend_from_slice(&TLS_REQUEST.to_be_bytes()));
    plain.send(&request).await.map_err(lost)?;
    // One byte and no more: what follows belongs to the encrypted stream.
    let mut answer = [0];
    let length = poll_fn(|context| plain.poll_receive(context, &mut answer)).await.map_err(lost)?;
    let Transport::Plain(stream) = plain else {
        return Err(ConnectError::tls(target, "it is encrypted already".into()));
    };
    if (length, answer) != (1, [b'S']) {
        return Err(ConnectError::tls(target, "the server does not offer TLS".into()));
    }
    let name = ServerName::try_from(host.clone())
        .map_err(|_| ConnectError::tls(target, format!("{host:?} is not a host's name")))?;
    let encrypted = connector
        .connect(name, stream)
        .await
        .map_err(|error| ConnectError::tls(target, format!("the handshake failed: {error}")))?;
    Ok(Transport::Tls(Box::new(encrypted)))
}

struct Login<'a> {
    target: &'a TargetSpec,
    password: Option<&'a Secret>,
    transport: Transport,
    inbox: Inbox,
    scram: Option<ScramSha256>,
}

impl Login<'_> {
    async fn run(&mut self) -> Result<(), ConnectError> {
        let target = self.target;
        let mut out = Vec::new();
        untagged(&mut out, |out| {
            out.extend_from_slice(&PROTOCOL.to_be_bytes());
            for (name, value) in [
                ("user", target.user.as_str()),
                ("database", &target.database),
                ("application_name", &target.application_name),
                ("client_encoding", "UTF8"),
            ] {
                text(out, name);
                text(out, value);
            }
            out.push(0);
        });
        self.send(&out).await?;
        loop {
            let (tag, body) = self.next().await?;
            match tag {
                b'R' => self.authenticate(&body).await?,
                b'E' => return Err(ConnectError::from_server(target, &server_error(&body))),
                b'S' if body == b"standard_conforming_strings\0off\0" => {
                    // Text would be read otherwise than it is written.
                    let what = "the server has standard_conforming_strings off".to_owned();
                    return Err(ConnectError::other(target, what));
                }
                b'Z' => return Ok(()),
                // Settings, the key for cancelling, notices, what it knows of newer protocols.
                b'S' | b'K' | b'N' | b'v' => {}
                _ => return Err(self.strange(&format!("a message {:?}", char::from(tag)))),
            }
        }
    }

    async fn authenticate(&mut self, body: &[u8]) -> Result<(), ConnectError> {
        let Some((kind, rest)) = body.split_first_chunk::<4>() else {
            return Err(self.strange("half a request to log in"));
        };
        match u32::from_be_bytes(*kind) {
            // It is content.
            0 => Ok(()),
            3 => {
                let password = self.password()?.to_owned();
                self.answer(|out| text(out, &password)).await
            }
            5 => {
                let salt = rest.try_into().map_err(|_| self.strange("a salt that is none"))?;
                let user = self.target.user.as_bytes();
                let hash = md5_hash(user, self.password()?.as_bytes(), salt);
                self.answer(|out| text(out, &hash)).await
            }
            10 => self.begin_scram(rest).await,
            11 => {
                let scram = self.scram.as_mut().ok_or(());
                let answer = scram.and_then(|scram| {
                    scram.update(rest).map_err(|_| ())?;
                    Ok(scram.message().to_vec())
                });
                let answer = answer.map_err(|()| self.strange("a challenge that is none"))?;
                self.answer(|out| out.extend_from_slice(&answer)).await
            }
            12 => {
                let proven = self.scram.as_mut().is_some_and(|scram| scram.finish(rest).is_ok());
                if proven {
                    return Ok(());
                }
                let what = "the server could not prove that it knows the password".to_owned();
                Err(ConnectError::authentication(self.target, what))
            }
            other => {
                let what = format!(
                    "the server wants an authentication of kind {other}; password, md5 and \
                     SCRAM-SHA-256 can be had"
                );
                Err(ConnectError::authentication(self.target, what))
            }
        }
    }

    async fn begin_scram(&mut self, offered: &[u8]) -> Result<(), ConnectError> {
        if !offered.split(|byte| *byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
            let what = "the server offers no SCRAM-SHA-256".to_owned();
            return Err(ConnectError::authentication(self.target, what));
        }
        // The chain and the host's name are verified, which is what a binding is for.
        let binding = ChannelBinding::unsupported();
        let scram = ScramSha256::new(self.password()?.as_bytes(), binding);
        let first = scram.message().to_vec();
        self.scram = Some(scram);
        self.answer(|out| {
            text(out, SCRAM_SHA_256);
            out.extend_from_slice(&u32::try_from(first.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(&first);
        })
        .await
    }

    fn password(&self) -> Result<&str, ConnectError> {
        self.password.map(Secret::reveal).ok_or_else(|| {
            let what = "the server asks for a password and there is none".to_owned();
            ConnectError::authentication(self.target, what)
        })
    }

    async fn answer(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectError> {
        let mut out = Vec::new();
        message(&mut out, b'p', body);
        self.send(&out).await
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectError> {
        let sent = self.transport.send(bytes).await;
        sent.map_err(|error| ConnectError::from_io(self.target, &error))
    }

    async fn next(&mut self) -> Result<(u8, Vec<u8>), ConnectError> {
        loop {
            match self.inbox.next() {
                Ok(Some(message)) => {
                    return Ok((message.tag, self.inbox.body(&message).to_vec()));
                }
                Ok(None) => {}
                Err(error) => return Err(self.strange(&error.to_string())),
            }
            let (transport, inbox) = (&mut self.transport, &mut self.inbox);
            let received = poll_fn(|context| transport.poll_receive(context, inbox.room())).await;
            match received {
                Ok(0) => {
                    let what = "the server closed the connection".to_owned();
                    return Err(ConnectError::other(self.target, what));
                }
                Ok(length) => self.inbox.received(length),
                Err(error) => return Err(ConnectError::from_io(self.target, &error)),
            }
        }
    }

    fn strange(&self, what: &str) -> ConnectError {
        ConnectError::other(self.target, format!("the server does not speak PostgreSQL: {what}"))
    }
}
