//! Everything that reaches the supervisor's loop, the only place where a run's state changes.

use tokio::sync::oneshot;

use super::{clients::Arrival, control::Speaker, setup::Ready};
use crate::{
    model::{
        AgentReport, CellId, Command, ConfigurationId, ConsoleStatus, InvariantReport,
        TeardownItem, TeardownStatus,
    },
    provider::RecorderMessage,
};

/// One thing that happened.
pub enum Input {
    /// A client came or went.
    Attached {
        console: Option<ConsoleStatus>,
    },
    /// A console's number; `None` for others.
    Left {
        number: Option<u32>,
    },
    /// A client wants what it needs to begin.
    History {
        send: oneshot::Sender<Arrival>,
    },
    /// A client asks for something; the answer is `None` where it was done, or why not.
    Command {
        command: Command,
        speaker: Speaker,
        answer: oneshot::Sender<Option<String>>,
    },
    /// The setup or a removal says what it is about to do or has done.
    Provider(RecorderMessage),
    /// The setup has ended.
    SetUp(Box<Result<Ready, String>>),
    Agent {
        /// Which agent: a late word of a lost one must not be taken for its successor's.
        generation: u64,
        report: AgentReport,
    },
    AgentGone {
        generation: u64,
        why: String,
    },
    Checked {
        cell: CellId,
        report: Result<InvariantReport, String>,
    },
    /// A configuration that was taken out of the plan is gone.
    Removed {
        configuration: ConfigurationId,
        items: Vec<TeardownItem>,
    },
    TeardownProgress(TeardownItem),
    TornDown(TeardownStatus),
    /// SIGTERM or SIGINT to the engine.
    Signal(&'static str),
}
