//! How much is asked of the database at once: less when it pushes back, more while it does not.

/// Rows of a batch to begin with, at least and at most. DSQL takes 3,000 changed rows in a
/// transaction
/// (<https://docs.aws.amazon.com/aurora-dsql/latest/userguide/CHAP_quotas.html>).
const FIRST_ROWS: usize = 500;
const LEAST_ROWS: usize = 50;
const MOST_ROWS: usize = 1_000;
/// Rows that a batch grows by, after so many that went well.
const MORE_ROWS: usize = 50;
const CALM: u32 = 8;

/// The size of a batch and the number of workers, as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pressure {
    rows: usize,
    workers: usize,
    most_workers: usize,
    calm: u32,
}

impl Pressure {
    /// At most so many workers (1 or more).
    pub(super) const fn new(most_workers: usize) -> Self {
        Self { rows: FIRST_ROWS, workers: most_workers, most_workers, calm: 0 }
    }

    /// Rows of the next batch.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Workers that may take a further chunk.
    pub(super) const fn workers(&self) -> usize {
        self.workers
    }

    /// Whether the worker with this number (from 0) may take a further chunk; the first one always
    /// may, so that a load comes to its end.
    pub(super) const fn allows(&self, worker: usize) -> bool {
        worker < self.workers
    }

    /// The database has pushed back. Where one batch in twenty fails, this and [`Self::eased`] settle
    /// at some hundred rows and all workers.
    pub(super) fn strained(&mut self) {
        self.rows = (self.rows * 3 / 4).max(LEAST_ROWS);
        self.workers = (self.workers - 1).max(1);
        self.calm = 0;
    }

    /// Something has gone well.
    pub(super) fn eased(&mut self) {
        self.calm += 1;
        if self.calm >= CALM {
            self.calm = 0;
            self.rows = (self.rows + MORE_ROWS).min(MOST_ROWS);
            self.workers = (self.workers + 1).min(self.most_workers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_yields_at_once_and_grows_again_within_its_bounds() {
        let mut pressure = Pressure::new(4);
        assert!(pressure.allows(3) && pressure.rows() == FIRST_ROWS);
        pressure.strained();
        assert_eq!((pressure.rows(), pressure.workers()), (375, 3));
        for _ in 0..100 {
            pressure.strained();
        }
        assert_eq!((pressure.rows(), pressure.workers()), (LEAST_ROWS, 1));
        assert!(pressure.allows(0) && !pressure.allows(1));
        for _ in 0..CALM {
            pressure.eased();
        }
        assert_eq!((pressure.rows(), pressure.workers()), (LEAST_ROWS + MORE_ROWS, 2));
        for _ in 0..10_000 {
            pressure.eased();
        }
        assert_eq!((pressure.rows(), pressure.workers()), (MOST_ROWS, 4));
    }

    #[test]
    fn one_failure_in_twenty_does_not_bring_it_to_its_knees() {
        let mut pressure = Pressure::new(16);
        for number in 1..=10_000 {
            if number % 20 == 0 {
                pressure.strained();
            } else {
                pressure.eased();
            }
        }
        assert!(pressure.rows() >= 200 && pressure.workers() >= 15, "{pressure:?}");
    }
}
