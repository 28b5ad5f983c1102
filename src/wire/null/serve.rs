//! The event loops of a null endpoint, and the connections they are given.

use std::{
    io,
    net::SocketAddr,
    os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    runtime::Runtime,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
};

use super::{alarm::Alarm, connection, shared::Shared};

/// Connections that may wait to be accepted: thousands are opened together.
const BACKLOG: i32 = 4_096;

/// A connection on its way to its event loop.
enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(StdUnixStream),
}

/// Event loops that serve; dropping them ends all connections.
#[derive(Debug)]
pub(super) struct Serving {
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// Listens on a TCP address.
///
/// # Errors
/// When it cannot be had.
pub(super) fn tcp(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    // The standard library's backlog is 128.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Serving {
    /// Serves on so many threads (at least one), on each with an event loop of its own. The first
    /// one accepts as well, and gives the connections out in turn.
    ///
    /// # Errors
    /// When a thread or runtime is not to be had.
    pub(super) fn start(
        tcp: std::net::TcpListener,
        unix: Option<StdUnixListener>,
        threads: usize,
        shared: &Arc<Shared>,
    ) -> io::Result<Self> {
        let mut serving = Self { threads: Vec::new() };
        let (loops, inboxes): (Vec<_>, Vec<_>) =
            (0..threads.max(1)).map(|_| unbounded_channel()).unzip();
        let loops = Arc::new(Turns { loops, next: 0.into() });
        let mut listeners = Some((tcp, unix));
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            if let Some((tcp, unix)) = listeners.take() {
                let _entered = runtime.enter();
                runtime.spawn(accept_tcp(TcpListener::from_std(tcp)?, loops.clone()));
                if let Some(unix) = unix {
                    runtime.spawn(accept_unix(UnixListener::from_std(unix)?, loops.clone()));
                }
            }
            let (stop, stopped) = oneshot::channel();
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("null {number}"))
                .spawn(move || run(&runtime, inbox, stopped, &shared))?;
            serving.threads.push((stop, thread));
        }
        Ok(serving)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.drain(..).unzip();
        drop(stops);
        for thread in threads {
            // A panic on a thread has been printed; there is nothing to add.
            let _joined = thread.join();
        }
    }
}

/// Gives connections to the event loops in turn.
struct Turns {
    loops: Vec<UnboundedSender<Accepted>>,
    next: std::sync::atomic::AtomicUsize,
}

impl Turns {
    fn give(&self, connection: Accepted) {
        let turn = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // A loop that is gone is about to be followed by the others.
        let _sent = self.loops[turn % self.loops.len()].send(connection);
    }
}

async fn accept_tcp(listener: TcpListener, turns: Arc<Turns>) {
    loop {
        match listener.accept().await.and_then(|(client, _)| client.into_std()) {
            Ok(client) => turns.give(Accepted::Tcp(client)),
            Err(_) => pause().await,
        }
    }
}

async fn accept_unix(listener: UnixListener, turns: Arc<Turns>) {
    loop {
        match listener.accept().await.and_then(|(client, _)| client.into_std()) {
            Ok(client) => turns.give(Accepted::Unix(client)),
            Err(_) => pause().await,
        }
    }
}

/// Out of descriptors: some come back as connections end.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// Runs one event loop until it is stopped.
fn run(
    runtime: &Runtime,
    mut inbox: UnboundedReceiver<Accepted>,
    stopped: oneshot::Receiver<()>,
    shared: &Arc<Shared>,
) {
    let alarm = Arc::new(Alarm::default());
    runtime.block_on(async {
        let ringing = alarm.clone();
        let serving = async {
            while let Some(connection) = inbox.recv().await {
                begin(connection, shared.clone(), alarm.clone());
            }
        };
        tokio::select! {
            // In a task of its own: the future of this function is polled at every turn.
            _ = tokio::spawn(async move { ringing.drive().await }) => {}
            () = serving => {}
            _ = stopped => {}
        }
    });
}

fn begin(connection: Accepted, shared: Arc<Shared>, alarm: Arc<Alarm>) {
    // How a connection ends is its client's affair.
    match connection {
        Accepted::Tcp(client) => {
            if let Ok(client) = TcpStream::from_std(client) {
                tokio::spawn(async move {
                    client.set_nodelay(true)?;
                    connection::serve(client, shared, alarm).await
                });
            }
        }
        Accepted::Unix(client) => {
            if let Ok(client) = UnixStream::from_std(client) {
                tokio::spawn(connection::serve(client, shared, alarm));
            }
        }
    }
}
