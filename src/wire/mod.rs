//! The server side of the PostgreSQL protocol.
//!
//! The [`gate`] stands in front of a database, a process of its own, and adds the latency of
//! another place and the faults of a bad day. The [`null`] endpoint answers without a database, in
//! this process or as one of its own, for tests and for measuring the generator alone.

mod child;
mod delay;
mod fault;
pub mod gate;
mod message;
pub mod null;
mod outbox;
mod relay;
mod replies;
mod requests;
mod startup;
mod statement;
mod timer;
mod trip;

pub use gate::GateError;
pub use null::{AnswerError, FailOn, NullEndpoint, NullFailure, NullScript, Stall};
