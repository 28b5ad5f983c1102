//! Reaching a database: address, encryption, credentials.
//!
//! The load core opens each of its connections with [`connect`] and polls it on its own threads;
//! set-up, look-ups and checks take a [`session`] or a [`pool`].

mod connect;
mod error;
mod pool;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tls;

pub use connect::{Connected, Connection, connect, session};
pub use error::{ConnectError, ConnectErrorKind};
pub use pool::pool;
