//! The console's end of the engine's socket: frames in, commands out, tried again once lost.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::timeout,
};

use crate::link::{ClientFrame, FrameReader, FrameWriter, PROTOCOL, Role, ServerFrame};

use super::{ConsoleError, update::Msg};

const RETRY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
/// Messages on their way to the console; beyond it the engine sends only the newest snapshot.
const INBOX: usize = 64;

/// An open socket whose Welcome has come.
pub(super) struct Engine {
    reader: FrameReader<OwnedReadHalf>,
    writer: FrameWriter<OwnedWriteHalf>,
    /// Version and commit of the engine.
    pub build: String,
    /// The number that it has given this console.
    pub number: u32,
}

impl Engine {
    /// Opens the socket and says hello.
    ///
    /// # Errors
    /// When nothing answers within five seconds, or what answers speaks another protocol.
    pub(super) async fn connect(socket: &Path, build: &str) -> Result<Self, ConsoleError> {
        let no_engine = |source| ConsoleError::NoEngine { socket: socket.to_owned(), source };
        let stream = UnixStream::connect(socket).await.map_err(no_engine)?;
        let (reader, writer) = stream.into_split();
        let (mut reader, mut writer) = (FrameReader::new(reader), FrameWriter::new(writer));
        let bad = |what: String| ConsoleError::BadEngine { socket: socket.to_owned(), what };
        let hello = ClientFrame::Hello {
            protocol: PROTOCOL,
            build: build.to_owned(),
            role: Role::Console,
            name: name(),
        };
        writer.send(&hello).await.map_err(|error| bad(error.to_string()))?;
        let late = |_| no_engine(io::Error::from(io::ErrorKind::TimedOut));
        let first = timeout(PATIENCE, reader.next()).await.map_err(late)?;
        match first.map_err(|error| bad(error.to_string()))? {
            Some(ServerFrame::Welcome { protocol, build: engine_build, console }) => {
                if protocol != PROTOCOL {
                    return Err(ConsoleError::Protocol {
                        ours: PROTOCOL,
                        build: build.to_owned(),
                        theirs: protocol,
                        engine_build,
                    });
                }
                Ok(Self { reader, writer, build: engine_build, number: console })
            }
            Some(_) => Err(bad("its first frame is not a welcome".to_owned())),
            None => Err(bad("it closed the socket at once".to_owned())),
        }
    }

    /// Carries frames until the run ends or the console goes, opening the socket again each second
    /// once it is lost.
    pub(super) fn spawn(self, socket: PathBuf, build: String) -> Lines {
        let (inbox, messages) = mpsc::channel(INBOX);
        let (commands, outbox) = mpsc::channel(INBOX);
        let task = tokio::spawn(keep(self, socket, build, inbox, outbox));
        Lines { messages, commands, task }
    }
}

/// Who is at this console: the account and the terminal.
fn name() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let user = user.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()));
    match rustix::termios::ttyname(std::io::stdin(), Vec::new()) {
        Ok(terminal) => {
            let terminal = terminal.to_string_lossy();
            format!("{user} on {}", terminal.trim_start_matches("/dev/"))
        }
        Err(_) => user,
    }
}

/// The two directions of a link that is kept up. Dropping it ends the link.
pub(super) struct Lines {
    pub messages: mpsc::Receiver<Msg>,
    pub commands: mpsc::Sender<ClientFrame>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why carrying came to an end.
enum Stop {
    /// The run has ended, or nobody reads any more.
    Done,
    Lost(String),
}

async fn keep(
    mut engine: Engine,
    socket: PathBuf,
    build: String,
    inbox: mpsc::Sender<Msg>,
    mut outbox: mpsc::Receiver<ClientFrame>,
) {
    loop {
        let Stop::Lost(why) = carry(&mut engine, &inbox, &mut outbox).await else { return };
        if inbox.send(Msg::Disconnected { why }).await.is_err() {
            return;
        }
        engine = loop {
            tokio::time::sleep(RETRY).await;
            // What was asked before the loss must not reach an engine that came back.
            while outbox.try_recv().is_ok() {}
            match Engine::connect(&socket, &build).await {
                Ok(engine) => break engine,
                Err(error) => {
                    if inbox.send(Msg::Disconnected { why: error.to_string() }).await.is_err() {
                        return;
                    }
                }
            }
        };
        if inbox
            .send(Msg::Connected { build: engine.build.clone(), number: engine.number })
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn carry(
    engine: &mut Engine,
    inbox: &mpsc::Sender<Msg>,
    outbox: &mut mpsc::Receiver<ClientFrame>,
) -> Stop {
    loop {
        tokio::select! {
            frame = engine.reader.next::<ServerFrame>() => match frame {
                Ok(Some(frame)) => {
                    let ended = matches!(frame, ServerFrame::Ended { .. });
                    if inbox.send(Msg::Frame(frame)).await.is_err() || ended {
                        return Stop::Done;
                    }
                }
                Ok(None) => return Stop::Lost("the engine closed the socket".to_owned()),
                Err(error) => return Stop::Lost(error.to_string()),
            },
            command = outbox.recv() => match command {
                Some(command) => {
                    if let Err(error) = engine.writer.send(&command).await {
                        return Stop::Lost(error.to_string());
                    }
                }
                None => return Stop::Done,
            },
        }
    }
}
