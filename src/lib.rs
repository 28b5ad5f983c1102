//! rampdeck: a terminal operator console for OLTP capacity experiments.
//!
//! One binary, three kinds of process: an engine without a terminal owns a run, a load agent
//! generates the load, and a console watches and drives through a socket. `ARCHITECTURE.md` has the
//! picture; a test keeps the rooms' boundaries.

pub mod aws;
pub mod cli;
pub mod console;
pub mod cost;
pub mod engine;
pub mod link;
pub mod load;
pub mod model;
pub mod plan;
pub mod provider;
pub mod report;
pub mod target;
pub mod wire;
pub mod workload;
