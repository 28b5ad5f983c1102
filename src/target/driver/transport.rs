//! The way to a server: a plain socket or an encrypted one.

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::stream::{ReadLag, Stream};
use crate::{
    model::{TargetAddress, TargetSpec},
    target::{connect::KEEPALIVE_IDLE, resolve},
};

pub(super) enum Transport {
    Plain(Stream),
    Tls(Box<TlsStream<Stream>>),
}

impl Transport {
    /// What was noted of late reads since the last time.
    pub(super) fn take_lag(&mut self) -> ReadLag {
        match self {
            Self::Plain(stream) => stream.take_lag(),
            Self::Tls(stream) => stream.get_mut().0.take_lag(),
        }
    }

    /// Reads what is there; 0 at the end.
    pub(super) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => stream.poll_receive(context, buffer),
            Self::Tls(stream) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(stream.as_mut()).poll_read(context, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }
    }

    /// Sends all of `bytes`.
    pub(super) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = poll_fn(|context| match self {
                Self::Plain(stream) => stream.poll_send(context, bytes),
                Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
            })
            .await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[sent..];
        }
        if let Self::Tls(stream) = self {
            poll_fn(|context| Pin::new(stream.as_mut()).poll_flush(context)).await?;
        }
        Ok(())
    }
}

/// Connects a socket, the addresses of a name one after the other.
pub(super) async fn dial(target: &TargetSpec) -> io::Result<Stream> {
    match &target.address {
        TargetAddress::Unix { directory, port } => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let socket = tokio::net::UnixStream::connect(path).await?.into_std()?;
            Stream::new(OwnedFd::from(socket), false)
        }
        TargetAddress::Tcp { port, hostaddr: Some(address), .. } => {
            dial_one(SocketAddr::new(*address, *port)).await
        }
        TargetAddress::Tcp { host, port, hostaddr: None } => {
            let addresses = resolve::addresses(host, *port).await?;
            let limit = Duration::from_millis(target.connect_timeout_ms);
            let (stream, address) = resolve::first_of(&addresses, limit, dial_one).await?;
            Ok(stream.counted(resolve::Live::new(host, address)))
        }
    }
}

async fn dial_one(address: SocketAddr) -> io::Result<Stream> {
    let socket = tokio::net::TcpStream::connect(address).await?.into_std()?;
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    set_keepalive_idle(&socket, KEEPALIVE_IDLE)?;
    Stream::new(OwnedFd::from(socket), true)
}

#[cfg(not(target_vendor = "apple"))]
fn set_keepalive_idle(socket: &std::net::TcpStream, idle: Duration) -> io::Result<()> {
    Ok(sockopt::set_tcp_keepidle(socket, idle)?)
}

/// The system's own two hours stay: there the socket option has another name.
#[cfg(target_vendor = "apple")]
fn set_keepalive_idle(_: &std::net::TcpStream, _: Duration) -> io::Result<()> {
    Ok(())
}
