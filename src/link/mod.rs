//! Frames between our processes: engine ↔ console over a Unix socket, engine ↔ agent over pipes.
//!
//! A frame is a length (4 bytes, big-endian) and that many bytes of JSON.

mod codec;

use serde::{Deserialize, Serialize};

use crate::model::{Command, ConfigurationId, Event, Snapshot, WindowPoint};

pub use codec::{FrameError, FrameReader, FrameWriter, MAX_FRAME_BYTES};

/// The version of the frames: two sides that differ cannot talk, and each says which is older.
pub const PROTOCOL: u32 = 2;

/// Console, headless reader or command line to engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum ClientFrame {
    /// The first frame.
    Hello {
        protocol: u32,
        build: String,
        role: Role,
        /// Who speaks, for the journal and the other consoles, for example `anna on pts/3`.
        #[serde(default)]
        name: String,
    },
    Command {
        /// Chosen by the client; the reply carries it.
        id: u64,
        command: Command,
    },
}

/// Who is at the other end of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Console,
    Headless,
    CommandLine,
}

/// Engine to its clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The answer to Hello.
    Welcome {
        protocol: u32,
        build: String,
        /// The number of a console, from 1; 0 for others.
        #[serde(default)]
        console: u32,
    },
    /// What the charts draw: sent once after Welcome, one frame for each configuration, oldest
    /// point first, at most [`HISTORY_POINTS`].
    History { configuration: ConfigurationId, points: Vec<WindowPoint> },
    /// Four a second; a slow client gets only the newest.
    Snapshot(Box<Snapshot>),
    /// Every event once, in order, for headless readers and the log view. A console that arrives
    /// is sent the newest ones and every cell that has ended.
    Event(Box<Event>),
    /// The answer to a command; `refused` says why it was not carried out and what would be.
    Reply { id: u64, refused: Option<String> },
    /// The last frame of a run that has ended.
    Ended { exit_code: u8, text: String },
}

/// Points of history kept for each configuration: an hour of windows, so that a whole cell can be
/// drawn. Between 1 and 2 MiB in memory, and less than 3 MiB as a frame.
pub const HISTORY_POINTS: usize = 3_600;
