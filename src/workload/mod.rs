//! The order business: its tables, data, transactions and invariants.
//!
//! The load core drives transactions through the one trait [`Workload`]; the engine creates the
//! schema, loads the data and has the invariants checked.

pub mod data;
mod error;
pub mod invariants;
mod null;
mod order;
mod random;
pub mod schema;
#[cfg(test)]
mod testing;

use std::future::Future;

use crate::{
    model::Class,
    target::{Session, SessionError, Statement},
};

pub use error::WorkloadError;
pub use null::null_answers;
pub use order::{OrderTransaction, OrderWorkload};

/// How an attempt ended that reached its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Committed,
    /// Ended by a business rule (no stock, nothing to cancel), rolled back.
    Rejected,
}

/// How far an attempt had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// COMMIT had not been sent: nothing can have been committed.
    BeforeCommit,
    /// COMMIT had been sent: unless the server answered with an error, the outcome is unknown.
    CommitSent,
}

/// An attempt that failed.
#[derive(Debug)]
pub struct AttemptError {
    pub reached: Reached,
    pub error: SessionError,
}

/// Transactions that the load core can run. One value serves a cell, on every thread and
/// connection.
pub trait Workload: Send + Sync + 'static {
    /// One transaction with all its inputs: a retry runs the very same one.
    type Transaction;

    /// The statements that its transactions use, numbered by their places: a fresh connection
    /// prepares them.
    fn statements(&self) -> &[Statement];

    /// The transaction of the arrival with this ordinal (from 0); the same seed and ordinal give
    /// the same class and inputs.
    fn draw(&self, arrival: u64) -> Self::Transaction;

    /// The class of a transaction.
    fn class(&self, transaction: &Self::Transaction) -> Class;

    /// Runs the transaction once, from BEGIN to COMMIT. After a business rejection or a server
    /// error the connection is left outside a transaction, or else the session is not usable any
    /// more; the caller retires a connection whose attempt was abandoned.
    fn attempt<S: Session>(
        &self,
        session: &mut S,
        transaction: &Self::Transaction,
    ) -> impl Future<Output = Result<Done, AttemptError>>;

    /// Whether the transaction's receipt is in the database: what tells the outcome of a COMMIT
    /// whose reply was lost. Transactions without a receipt (reads) answer `false`: they may
    /// simply be run again.
    fn look_up<S: Session>(
        &self,
        session: &mut S,
        transaction: &Self::Transaction,
    ) -> impl Future<Output = Result<bool, SessionError>>;

    /// Tells the workload that the transaction is known to be committed, once.
    fn committed(&self, transaction: &Self::Transaction);
}
