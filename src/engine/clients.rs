//! The engine's end of the socket: consoles, headless readers and the command line.
//!
//! Each client has a task of its own. A slow or stalled one gets only the newest snapshot and can
//! lose events (it is told how many), so nothing of it is ever waited for.

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{broadcast, mpsc, oneshot, watch},
};

use super::{control::Speaker, input::Input};
use crate::{
    link::{ClientFrame, FrameReader, FrameWriter, PROTOCOL, Role, ServerFrame},
    model::{
        ConfigurationId, ConsoleStatus, Event, EventKind, Level, Snapshot, UnixMs, WindowPoint,
    },
};

/// Events a client may be behind before it loses some.
const EVENT_BACKLOG: usize = 4096;
/// Characters of a console's name that are kept.
const LONGEST_NAME: usize = 40;

/// What a client needs when it arrives.
pub struct Arrival {
    pub history: Vec<(ConfigurationId, Vec<WindowPoint>)>,
    pub journal: Vec<Event>,
}

/// What the supervisor sends to every client.
#[derive(Clone)]
pub struct Broadcaster {
    snapshots: watch::Sender<Option<Arc<Snapshot>>>,
    events: broadcast::Sender<Arc<Event>>,
    ended: watch::Sender<Option<(u8, String)>>,
    /// Consoles so far, for the next one's number.
    consoles: Arc<AtomicU32>,
}

impl Broadcaster {
    pub fn new() -> Self {
        Self {
            snapshots: watch::Sender::new(None),
            events: broadcast::Sender::new(EVENT_BACKLOG),
            ended: watch::Sender::new(None),
            consoles: Arc::default(),
        }
    }

    pub fn snapshot(&self, snapshot: Snapshot) {
        self.snapshots.send_replace(Some(Arc::new(snapshot)));
    }

    pub fn event(&self, event: Event) {
        // No receiver is no fault: nobody watches.
        let _ = self.events.send(Arc::new(event));
    }

    /// Says to every client, present and future, that the run has ended.
    pub fn ended(&self, exit_code: u8, text: String) {
        self.ended.send_replace(Some((exit_code, text)));
    }

    /// Waits until every client has been told of the end and has gone.
    pub async fn all_told(&self) {
        self.ended.closed().await;
    }
}

/// Listens at `path` (readable by its owner alone) and serves clients until the engine ends.
///
/// # Errors
/// When the socket cannot be made.
pub fn serve(
    path: &Path,
    broadcaster: Broadcaster,
    inputs: mpsc::Sender<Input>,
) -> std::io::Result<()> {
    // A socket that is left of a killed engine: the lock on the run folder says that it is dead.
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(client(stream, broadcaster.clone(), inputs.clone()));
                }
                Err(error) => {
                    tracing::warn!("cannot accept a client: {error}");
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                }
            }
        }
    });
    Ok(())
}

async fn client(stream: UnixStream, broadcaster: Broadcaster, inputs: mpsc::Sender<Input>) {
    let (read, write) = stream.into_split();
    let (mut reader, mut writer) = (FrameReader::new(read), FrameWriter::new(write));
    let Some(client) = greet(&mut reader, &mut writer, &broadcaster).await else { return };
    let Client { role, console } = client;
    let number = console.as_ref().map(|console| console.number);
    // An engine that is ending takes no inputs any more; its clients are still told of the end.
    let _ = inputs.send(Input::Attached { console }).await;
    let (replies, reply_queue) = mpsc::channel(16);
    let reading = read_commands(&mut reader, speaker(role, number), &inputs, replies);
    tokio::select! {
        () = reading => {}
        result = write_frames(&mut writer, &broadcaster, &inputs, reply_queue) => {
            if let Err(error) = result {
                tracing::info!("a client has gone: {error}");
            }
        }
    }
    let _ = inputs.send(Input::Left { number }).await;
}

/// Who has come.
struct Client {
    role: Role,
    console: Option<ConsoleStatus>,
}

/// The first frame of each side; `None` where the two cannot talk. The other side is told which of
/// them is older by the protocol that our welcome names.
async fn greet(
    reader: &mut FrameReader<OwnedReadHalf>,
    writer: &mut FrameWriter<OwnedWriteHalf>,
    broadcaster: &Broadcaster,
) -> Option<Client> {
    let (role, protocol, name, build) = match reader.next::<ClientFrame>().await {
        Ok(Some(ClientFrame::Hello { role, protocol, name, build })) => {
            (role, protocol, name, build)
        }
        Ok(other) => {
            tracing::warn!("a client did not say hello: {other:?}");
            return None;
        }
        Err(error) => {
            tracing::warn!("a client could not be understood: {error}");
            return None;
        }
    };
    let talks = protocol == PROTOCOL;
    let console = (talks && role == Role::Console).then(|| ConsoleStatus {
        number: broadcaster.consoles.fetch_add(1, Ordering::Relaxed) + 1,
        name: name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect(),
        since: UnixMs::now(),
    });
    let welcome = ServerFrame::Welcome {
        protocol: PROTOCOL,
        build: super::build().to_owned(),
        console: console.as_ref().map_or(0, |console| console.number),
    };
    writer.send(&welcome).await.ok()?;
    if !talks {
        let older = if protocol < PROTOCOL { "the client" } else { "this engine" };
        tracing::warn!(
            "a client ({build}, protocol {protocol}) cannot talk to this engine (protocol \
             {PROTOCOL}): {older} is older"
        );
        return None;
    }
    Some(Client { role, console })
}

async fn read_commands(
    reader: &mut FrameReader<OwnedReadHalf>,
    speaker: Speaker,
    inputs: &mpsc::Sender<Input>,
    replies: mpsc::Sender<ServerFrame>,
) {
    loop {
        match reader.next::<ClientFrame>().await {
            Ok(Some(ClientFrame::Command { id, command })) => {
                let (answer, answered) = oneshot::channel();
                let input = Input::Command { command, speaker: speaker.clone(), answer };
                let _ = inputs.send(input).await;
                let refused = answered.await.unwrap_or(Some("the engine is ending".to_owned()));
                if replies.send(ServerFrame::Reply { id, refused }).await.is_err() {
                    return;
                }
            }
            Ok(Some(ClientFrame::Hello { .. })) => {}
            Ok(None) => return,
            Err(error) => {
                tracing::warn!("a client sent what is no frame: {error}");
                return;
            }
        }
    }
}

const fn speaker(role: Role, number: Option<u32>) -> Speaker {
    match (role, number) {
        (Role::Console, Some(number)) => Speaker::Console { number },
        (Role::Console | Role::CommandLine, _) => Speaker::Other("command line"),
        (Role::Headless, _) => Speaker::Other("headless"),
    }
}

async fn write_frames(
    writer: &mut FrameWriter<OwnedWriteHalf>,
    broadcaster: &Broadcaster,
    inputs: &mpsc::Sender<Input>,
    mut replies: mpsc::Receiver<ServerFrame>,
) -> Result<(), crate::link::FrameError> {
    // Subscribed before the arrival is asked for, so that no event falls between the two; those
    // that are in both are told apart by their number.
    let mut events = broadcaster.events.subscribe();
    let mut snapshots = broadcaster.snapshots.subscribe();
    let mut ended = broadcaster.ended.subscribe();
    let (send, receive) = oneshot::channel();
    let _ = inputs.send(Input::History { send }).await;
    let mut last_seq = 0;
    if let Ok(arrival) = receive.await {
        for (configuration, points) in arrival.history {
            writer.send(&ServerFrame::History { configuration, points }).await?;
        }
        for event in arrival.journal {
            last_seq = event.seq;
            writer.send(&ServerFrame::Event(Box::new(event))).await?;
        }
    }
    loop {
        tokio::select! {
            biased;
            Some(reply) = replies.recv() => writer.send(&reply).await?,
            event = events.recv() => match event {
                Ok(event) if event.seq > last_seq => {
                    last_seq = event.seq;
                    writer.send(&ServerFrame::Event(Box::new((*event).clone()))).await?;
                }
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    writer.send(&ServerFrame::Event(Box::new(lost_events(last_seq, lost)))).await?;
                }
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            },
            changed = snapshots.changed() => {
                if changed.is_err() { return Ok(()); }
                let newest = snapshots.borrow_and_update().clone();
                if let Some(newest) = newest {
                    writer.send(&ServerFrame::Snapshot(Box::new((*newest).clone()))).await?;
                }
            }
            over = ending(&mut ended) => {
                if let Some((exit_code, text)) = over {
                    writer.send(&ServerFrame::Ended { exit_code, text }).await?;
                }
                return Ok(());
            }
        }
    }
}

/// Waits for the end of the run.
async fn ending(ended: &mut watch::Receiver<Option<(u8, String)>>) -> Option<(u8, String)> {
    ended.wait_for(Option::is_some).await.ok().and_then(|over| over.clone())
}

fn lost_events(seq: u64, lost: u64) -> Event {
    Event {
        seq,
        epoch: 0,
        at: UnixMs::now(),
        kind: EventKind::Note {
            level: Level::Warning,
            text: format!(
                "this reader was too slow: {lost} events not shown, all are in the journal"
            ),
        },
    }
}
