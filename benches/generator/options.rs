//! The command line of the benchmark.

use std::path::PathBuf;

use clap::Parser;

/// Takes ten minutes by itself.
const ONLY_WHEN_ASKED_FOR: u8 = 8;

/// Measures rampdeck's generator beside others, pair by pair, on servers of its own.
#[derive(Parser)]
#[command(name = "generator")]
pub struct Options {
    /// How many times each pair is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: u32,
    /// Only this row; may be given several times. Row 8 runs only so
    #[arg(long, value_name = "ROW")]
    pub only: Vec<u8>,
    /// Length of each measured span
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..))]
    pub seconds: u32,
    /// Append the table to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Have PostgreSQL log every statement to this file, to compare what the peers send; the
    /// figures are then of no use
    #[arg(long, value_name = "FILE")]
    pub statements: Option<PathBuf>,
    /// What cargo bench says to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    pub fn wants(&self, row: u8) -> bool {
        if self.only.is_empty() { row != ONLY_WHEN_ASKED_FOR } else { self.only.contains(&row) }
    }
}
