//! A scripted server that speaks as much PostgreSQL as the load core's tests need: log-in and
//! simple queries. A script decides what becomes of each query.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::model::{Secret, TargetAddress, TargetSpec};

/// One query that a client sent.
pub(super) struct Query<'a> {
    pub(super) text: &'a str,
}

/// What becomes of a query.
pub(super) enum Reply {
    /// Carried out; so many rows.
    Rows(u64),
    /// The same, but later.
    Later(Duration),
    Error {
        sqlstate: &'static str,
        message: &'static str,
    },
    /// An error after which the server never says that it is ready again.
    ErrorOnly {
        sqlstate: &'static str,
    },
    /// Nothing, ever.
    Silence,
    /// The connection is cut.
    Cut,
}

type Script = dyn Fn(&Query<'_>) -> Reply + Send + Sync;

/// The server; it ends when it is dropped.
pub(super) struct FakeServer {
    port: u16,
    accepted: Arc<AtomicU64>,
    ending: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl FakeServer {
    pub(super) fn start(script: impl Fn(&Query<'_>) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_room_for(u64::MAX, script)
    }

    /// A server that refuses every connection after the first `room` with 53300.
    pub(super) fn with_room_for(
        room: u64,
        script: impl Fn(&Query<'_>) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (accepted, ending) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let script: Arc<Script> = Arc::new(script);
        let accepting = std::thread::spawn({
            let (accepted, ending) = (Arc::clone(&accepted), Arc::clone(&ending));
            move || accept(&listener, room, &script, &accepted, &ending)
        });
        Self { port, accepted, ending, accepting: Some(accepting) }
    }

    /// How many connections have come so far.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn target(&self) -> TargetSpec {
        TargetSpec {
            password: Some(Secret::new("unused")),
            ..TargetSpec::plain(TargetAddress::loopback(self.port), "tester", "shop", "shop")
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which ends the connections.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

fn accept(
    listener: &TcpListener,
    room: u64,
    script: &Arc<Script>,
    accepted: &AtomicU64,
    ending: &AtomicBool,
) {
    let mut all: Vec<(TcpStream, JoinHandle<()>)> = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if ending.load(Ordering::SeqCst) {
            break;
        }
        let is_full = accepted.fetch_add(1, Ordering::SeqCst) >= room;
        let (handle, script) = (stream.try_clone().unwrap(), Arc::clone(script));
        let serving = std::thread::spawn(move || {
            // The client may leave when it likes.
            let _ = serve(&stream, is_full, &*script);
            let _ = stream.shutdown(Shutdown::Both);
        });
        all.push((handle, serving));
    }
    for (stream, serving) in all {
        let _ = stream.shutdown(Shutdown::Both);
        serving.join().unwrap();
    }
}

fn serve(mut stream: &TcpStream, is_full: bool, script: &Script) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut start_up = vec![0; length_of(length) - 4];
    stream.read_exact(&mut start_up)?;
    if is_full {
        return stream.write_all(&error("53300", "sorry, too many clients already"));
    }
    // Authentication is fine, and the server is ready.
    let mut welcome = message(b'R', &0u32.to_be_bytes());
    welcome.extend(ready());
    stream.write_all(&welcome)?;
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        stream.read_exact(&mut length)?;
        let mut body = vec![0; length_of(length) - 4];
        stream.read_exact(&mut body)?;
        if kind[0] != b'Q' {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
        if text == ";" {
            let mut empty = message(b'I', b"");
            empty.extend(ready());
            stream.write_all(&empty)?;
            continue;
        }
        let answer = match script(&Query { text: &text }) {
            Reply::Rows(rows) => complete(rows),
            Reply::Later(delay) => {
                std::thread::sleep(delay);
                complete(1)
            }
            Reply::Error { sqlstate, message } => {
                let mut answer = error(sqlstate, message);
                answer.extend(ready());
                answer
            }
            Reply::ErrorOnly { sqlstate } => {
                stream.write_all(&error(sqlstate, "failed"))?;
                return wait_for_end(stream);
            }
            Reply::Silence => return wait_for_end(stream),
            Reply::Cut => return Ok(()),
        };
        stream.write_all(&answer)?;
    }
}

fn wait_for_end(mut stream: &TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(|_| ())
}

fn length_of(bytes: [u8; 4]) -> usize {
    usize::try_from(u32::from_be_bytes(bytes)).unwrap()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut all = vec![kind];
    all.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    all.extend(body);
    all
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn complete(rows: u64) -> Vec<u8> {
    let mut answer = message(b'C', format!("SELECT {rows}\0").as_bytes());
    answer.extend(ready());
    answer
}

fn error(sqlstate: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{sqlstate}\0M{text}\0\0").as_bytes())
}
