//! The gate: a process in front of one database that adds latency and faults.
//!
//! Requests pass at once; a reply is held until the moment at which it would have come from a
//! database further away or slower. A round trip is a Sync, Query or function call of the client
//! and its `ReadyForQuery`; the network's part runs side by side for any number of round trips
//! under way, the added work of the server adds up within a connection. Work is told by what the
//! server says it did: a COMMIT counts as writing when a statement of its transaction changed
//! rows. A statement outside of a transaction that changed rows commits, and costs so.
//!
//! The parent writes a [`GateConfig`] as one line to the gate's standard input and keeps the pipe
//! open: when it closes, by intent or by death, the gate exits.

use std::{
    io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
};

pub use crate::model::{GateConfig, GateListening, GateReport};
use crate::model::{GateProfile, TargetAddress};

use super::{
    child,
    delay::Delays,
    fault::Faults,
    message,
    relay::{Relay, Stream},
    startup::{Opening, read_opening},
    timer::PreciseTimer,
};

/// Why a gate ended.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("the gate got no configuration: one line of JSON on its standard input, {0}")]
    NoConfiguration(String),
    #[error("the gate cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the gate's runtime failed: {0}")]
    Runtime(io::Error),
    #[error("the gate's parent does not read its reports: {0}")]
    Report(io::Error),
}

/// Runs a gate as a whole process: reads its configuration from standard input, then [`run`]s it
/// on this thread.
///
/// # Errors
/// As [`run`], and when there is no configuration.
pub fn main() -> Result<(), GateError> {
    let config = child::configuration().map_err(GateError::NoConfiguration)?;
    child::allow_many_connections();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(GateError::Runtime)?;
    runtime.block_on(run(config))
}

/// Serves until standard input ends, and reports on standard output: [`GateListening`] once, then
/// a [`GateReport`] a second, each a line of JSON. For a single-threaded runtime of its own.
///
/// # Errors
/// When it cannot listen, or nobody reads its reports.
pub async fn run(config: GateConfig) -> Result<(), GateError> {
    let gate = Gate::bind(config).await?;
    child::say(&GateListening { listening: gate.port() }).map_err(GateError::Report)?;
    let counts = gate.counts.clone();
    tokio::select! {
        () = gate.serve() => Ok(()),
        reported = report(counts) => reported,
        () = child::end_of_stdin() => Ok(()),
    }
}

/// What a gate counts.
#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    round_trips: AtomicU64,
}

/// A gate that listens.
pub(super) struct Gate {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    counts: Arc<Counts>,
    seed: u64,
}

struct Shared {
    upstream: TargetAddress,
    profile: GateProfile,
    faults: Faults,
}

impl Gate {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub(super) async fn bind(config: GateConfig) -> Result<Self, GateError> {
        let GateConfig { listen, upstream, profile, faults, seed } = config;
        let failed = |source| GateError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared { upstream, profile, faults: Faults::new(faults) });
        Ok(Self { listener, address, shared, counts: Arc::default(), seed })
    }

    /// The port it listens on.
    pub(super) const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Serves for ever.
    pub(super) async fn serve(self) {
        let mut ordinal = 0_u64;
        loop {
            let Ok((client, _)) = self.listener.accept().await else {
                // Out of descriptors: some come back as connections end.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            ordinal += 1;
            let delays = Delays::new(self.shared.profile.clone(), self.seed.wrapping_add(ordinal));
            let (shared, counts) = (self.shared.clone(), self.counts.clone());
            tokio::spawn(async move {
                counts.connections.fetch_add(1, Ordering::Relaxed);
                // How a connection ends is between its two ends: both have been told.
                let _ended = serve_client(client, delays, &shared, &counts).await;
                counts.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

async fn serve_client(
    mut client: TcpStream,
    mut delays: Delays,
    shared: &Shared,
    counts: &Counts,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut timer = PreciseTimer::new()?;
    let mut inbox = BytesMut::new();
    let opening =
        read_opening(&mut client, &mut inbox, Some(&mut timer), || delays.round_trip()).await?;
    let packet = match opening {
        Opening::Session(packet) => packet,
        Opening::Cancel(packet) => return cancel(&packet, &shared.upstream).await,
        Opening::Gone => return Ok(()),
    };
    match connect(&shared.upstream).await {
        Ok(upstream) => {
            let shared_state = (&shared.faults, &counts.round_trips);
            Relay::new((client, upstream), (packet, inbox), shared_state, timer, delays).run().await
        }
        Err(error) => {
            timer.until(Instant::now() + delays.round_trip()).await?;
            client.write_all(&refusal(&error)).await?;
            client.shutdown().await
        }
    }
}

/// Hands a cancel request on and waits until the server has taken it.
async fn cancel(packet: &[u8], upstream: &TargetAddress) -> io::Result<()> {
    let mut upstream = connect(upstream).await?;
    upstream.write_all(packet).await?;
    upstream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

async fn connect(address: &TargetAddress) -> io::Result<Box<dyn Stream>> {
    match address {
        TargetAddress::Unix { directory, port } => {
            let stream = connect_unix(&directory.join(format!(".s.PGSQL.{port}"))).await?;
            Ok(Box::new(stream))
        }
        TargetAddress::Tcp { host, port, hostaddr } => {
            let stream = match hostaddr {
                Some(address) => TcpStream::connect((*address, *port)).await?,
                None => TcpStream::connect((host.as_str(), *port)).await?,
            };
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}

/// A Unix socket refuses at once, rather than waits, while the server's backlog is full: which
/// hundreds of connections opened together can make it.
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let started = Instant::now();
    loop {
        match UnixStream::connect(path).await {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && started.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            connected => return connected,
        }
    }
}

/// What a client is told when the database cannot be reached.
fn refusal(error: &io::Error) -> bytes::Bytes {
    let (sqlstate, text) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ("57P03", "the database behind the gate is not running".to_owned())
        }
        _ => ("08006", format!("the database behind the gate cannot be reached: {error}")),
    };
    message::error("FATAL", sqlstate, &text)
}

/// Reports from a thread of its own, so that a parent that does not read holds up no connection;
/// ends when the parent's end of the pipe is closed.
async fn report(counts: Arc<Counts>) -> Result<(), GateError> {
    let reported = child::report_every_second(move |cpu_percent| GateReport {
        cpu_percent,
        connections: counts.connections.load(Ordering::Relaxed),
        round_trips: counts.round_trips.load(Ordering::Relaxed),
    });
    reported.await.map_err(GateError::Report)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
