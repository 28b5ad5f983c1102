//! A connection of the loader's that is made again when it is lost, and the classes of what goes
//! wrong on it.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, Error, error::SqlState};

use crate::{
    model::TargetSpec,
    target::{ConnectErrorKind, session},
    workload::error::WorkloadError,
};

/// Tries in a row that may fail: with the back-off below, about a minute of trouble.
const MOST_TRIES: u32 = 20;
/// The back-off's upper bound after the first failure; it doubles with each further one.
const FIRST_BACK_OFF: Duration = Duration::from_millis(25);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(5);
/// A connection is replaced before the 60 minutes at which DSQL cuts it
/// (<https://docs.aws.amazon.com/aurora-dsql/latest/userguide/CHAP_quotas.html>).
const MOST_AGE: Duration = Duration::from_secs(50 * 60);

/// What may pass when it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another transaction was first; the connection is sound.
    Conflict,
    /// The database has too much to do, or the batch was too large for it.
    Strain,
    /// The connection is gone or of no use any more.
    Lost,
}

impl Trouble {
    /// `None`: trying again would not help.
    pub(super) fn of(error: &WorkloadError) -> Option<Self> {
        match error {
            WorkloadError::Connect(connect) => match connect.kind() {
                ConnectErrorKind::Refused | ConnectErrorKind::Timeout => Some(Self::Lost),
                ConnectErrorKind::Server(code) => Self::of_state(code),
                ConnectErrorKind::Other => Some(Self::Lost),
                _ => None,
            },
            WorkloadError::Database { source, .. } => match source.code() {
                Some(state) => Self::of_state(state.code()),
                // The server did not answer: its socket is closed or broken.
                None => Some(Self::Lost),
            },
            _ => None,
        }
    }

    fn of_state(code: &str) -> Option<Self> {
        match code {
            "40001" | "40P01" => Some(Self::Conflict),
            // Too many connections, too fast (53300, 53400), out of memory; a batch over a limit
            // of DSQL's, which a smaller one is not; cancelled by the server's time limit; a lock that was not to be had in time (55P03).
            "53000" | "53100" | "53200" | "53300" | "53400" | "54000" | "55P03" | "57014" => {
                Some(Self::Strain)
            }
            // "Server unavailable" comes as XX000; shutdown, crash and start-up as 57P0x.
            "XX000" | "57P01" | "57P02" | "57P03" => Some(Self::Lost),
            _ if code.starts_with("08") => Some(Self::Lost),
            _ => None,
        }
    }
}

/// Whether the server said that a key is there already.
pub(super) fn is_there(error: &Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// A connection, made when it is needed.
pub(super) struct Link<'a> {
    target: &'a TargetSpec,
    client: Option<(Client, Instant)>,
    failures: u32,
}

impl<'a> Link<'a> {
    pub(super) const fn new(target: &'a TargetSpec) -> Self {
        Self { target, client: None, failures: 0 }
    }

    /// The connection; a new one where there is none, it has ended, or it is old.
    pub(super) async fn client(&mut self) -> Result<&Client, WorkloadError> {
        let usable =
            |(client, made): &(Client, Instant)| !client.is_closed() && made.elapsed() < MOST_AGE;
        if !self.client.as_ref().is_some_and(usable) {
            self.client = None;
        }
        let client = match self.client.take() {
            Some(there) => there,
            None => (session(self.target).await?, Instant::now()),
        };
        Ok(&self.client.insert(client).0)
    }

    /// The connection that a load begins with: where nothing answers there, that is said at once.
    pub(super) async fn first(&mut self) -> Result<&Client, WorkloadError> {
        while let Err(error) = self.client().await {
            if matches!(Trouble::of(&error), Some(Trouble::Lost)) {
                return Err(error);
            }
            self.recover(error).await?;
        }
        self.client().await
    }

    /// Something has worked.
    pub(super) const fn worked(&mut self) {
        self.failures = 0;
    }

    /// After a failure: waits and returns where it may be tried again.
    pub(super) async fn recover(&mut self, error: WorkloadError) -> Result<Trouble, WorkloadError> {
        let Some(trouble) = Trouble::of(&error) else { return Err(error) };
        self.failures += 1;
        if self.failures >= MOST_TRIES {
            return Err(WorkloadError::GivenUp { tries: self.failures, last: Box::new(error) });
        }
        if trouble == Trouble::Lost {
            self.client = None;
        }
        tokio::time::sleep(back_off(self.failures)).await;
        Ok(trouble)
    }
}

/// Drawn from 0 to the bound after so many failures (1 or more).
fn back_off(failures: u32) -> Duration {
    let bound = FIRST_BACK_OFF * 2_u32.pow((failures - 1).min(16));
    bound.min(LONGEST_BACK_OFF).mul_f64(rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        for (code, trouble) in [
            ("40001", Some(Trouble::Conflict)),
            ("53300", Some(Trouble::Strain)),
            ("53400", Some(Trouble::Strain)),
            ("54000", Some(Trouble::Strain)),
            ("XX000", Some(Trouble::Lost)),
            ("08006", Some(Trouble::Lost)),
            ("57P01", Some(Trouble::Lost)),
            ("42P01", None),
            ("42501", None),
            ("23505", None),
            ("0A000", None),
        ] {
            assert_eq!(Trouble::of_state(code), trouble, "{code}");
        }
    }

    #[test]
    fn the_back_off_is_bounded() {
        assert!((1..200).all(|failures| back_off(failures) <= LONGEST_BACK_OFF));
        assert!((0..100).all(|_| back_off(1) <= FIRST_BACK_OFF));
    }
}
