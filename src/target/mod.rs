//! Reaching a database: address, encryption, credentials.
//!
//! The load core drives each of its connections through a [`Driver`] of its own, on its own
//! threads; set-up and checks take a [`session`] or a [`pool`]. Transactions see either as a
//! [`Session`].

mod command;
mod connect;
mod credential;
mod driver;
mod error;
mod pool;
mod pooled;
mod resolve;
mod session;
mod spelling;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tls;

pub use connect::session;
pub use credential::log_in;
pub use driver::{Driver, ReadLag};
pub use error::{ConnectError, ConnectErrorKind};
pub use pool::pool;
pub use pooled::{ConnectionPool, GetError, Pooled};
pub use resolve::watch_addresses;
pub use session::{
    ParameterType, Replies, Request, Row, ServerError, Session, SessionError, Statement, TripError,
    Value,
};
