//! The load core and the load agent.
//!
//! The engine starts the agent as a process of its own and sends it cells; the agent puts each
//! cell's load on its database and gives back a window a second and, at the end, the result.
//!
//! ```text
//!  commands ─► collector ─► load threads (one to a processor, an event loop each)
//!  reports  ◄─ (merges,  ◄─   └ workers: one to a connection
//!               writes)       schedule: one to an open-loop cell, shared by all threads
//! ```
//!
//! What is exact about time: an arrival's *intended* start comes from the schedule alone; *free*
//! is when the connection that takes it became free; *start* is when its transaction is begun,
//! *done* when its last answer has been read. Connection wait = max(0, free − intended), schedule
//! lag = start − max(intended, free), service = done − start, and response is their sum.

mod age;
pub mod agent;
mod alarm;
mod arrivals;
pub mod cell;
mod clock;
mod collector;
mod course;
mod failure;
mod holder;
mod link;
mod local;
mod merge;
mod message;
mod opening;
mod pooled;
mod recorder;
mod renewal;
mod run;
mod schedule;
mod slot;
mod stalls;
mod tally;
mod thread;
mod timeline;
mod transaction;
mod usage;
mod worker;

#[cfg(test)]
mod tests;

use std::io;

use crate::link::FrameError;

/// Why the load core cannot go on. Failures of a database or a cell are not errors: they are in
/// the cell's result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the load agent cannot start its {number} threads: {source}")]
    Thread { number: usize, source: io::Error },
    #[error("the load agent cannot go on: {why}")]
    Died { why: String },
    #[error("the load agent and its engine no longer understand each other: {0}")]
    Frames(#[from] FrameError),
}
