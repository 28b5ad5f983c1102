//! What rampdeck's generator costs beside pgbench and psycopg 3, and what it adds to latency.
//!
//! `cargo bench --bench generator -- --help` says what there is; docs/performance.md says what each
//! row means. Everything runs against servers that the benchmark starts and ends itself, peers
//! interleaved pair by pair, so that what else the machine does falls on both.

mod agent;
mod console;
mod endpoint;
mod lag;
mod options;
mod pairs;
mod pgbench;
mod postgres;
mod process;
#[path = "../../tests/it/programs.rs"]
mod programs;
mod psycopg;
mod published;
mod report;
mod sample;
mod scale;

use clap::Parser;

use options::Options;
use report::Report;

/// Why a row was not measured.
type Failure = Box<dyn std::error::Error>;

fn main() {
    // `cargo test` runs benchmarks too, without this argument: measuring takes minutes.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("nothing is measured: use cargo bench --bench generator");
        return;
    }
    let options = Options::parse();
    process::allow_many_connections();
    let mut report = Report::new(&options);
    for (row, measure) in ROWS {
        if options.wants(*row) {
            println!("\nrow {row}");
            if let Err(failure) = measure(&options, &mut report) {
                report.note(*row, &format!("not measured: {failure}"));
            }
        }
    }
    if let Err(failure) = report.finish(&options) {
        eprintln!("the table cannot be written: {failure}");
        std::process::exit(1);
    }
}

type Measure = fn(&Options, &mut Report) -> Result<(), Failure>;

/// The rows by their numbers.
const ROWS: &[(u8, Measure)] = &[
    (1, pairs::reads),
    (2, pairs::pipelined_reads),
    (3, pairs::mix),
    (4, pairs::mix_in_python),
    (5, published::carried),
    (6, lag::beside_a_bare_loop),
    (7, scale::connections),
    (8, scale::memory),
    (10, published::partitions),
    (12, console::attached),
];
