//! The table, as it comes and as Markdown at the end.

use std::{fmt::Write as _, fs, io::Write as _};

use super::{Failure, options::Options, process};

pub struct Report {
    lines: Vec<(u8, String, String)>,
    machine: String,
}

impl Report {
    pub fn new(options: &Options) -> Self {
        let machine = machine();
        println!("{machine}\n{} pairs, {} s each", options.pairs, options.seconds);
        Self { lines: Vec::new(), machine }
    }

    /// A figure for the table.
    pub fn line(&mut self, row: u8, what: &str, figures: &str) {
        println!("  {what}: {figures}");
        self.lines.push((row, what.to_owned(), figures.to_owned()));
    }

    /// As a figure, where there is none.
    pub fn note(&mut self, row: u8, text: &str) {
        self.line(row, "–", text);
    }

    /// A step on the way to a figure: printed only.
    pub fn step(&self, text: &str) {
        println!("    {text}");
    }

    pub fn finish(&self, options: &Options) -> Result<(), Failure> {
        let mut table = format!(
            "{}\n\n{} pairs, {} s each\n\n| Row | What | Median (smallest..largest) |\n|---|---|---|\n",
            self.machine, options.pairs, options.seconds
        );
        for (row, what, figures) in &self.lines {
            writeln!(table, "| {row} | {what} | {figures} |")?;
        }
        println!("\n{table}");
        if let Some(path) = &options.markdown {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
            writeln!(file, "{table}")?;
        }
        Ok(())
    }
}

/// Processor, how many, kernel, and what else ran when the benchmark began.
fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("an unknown processor", |(_, model)| model.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{model}, {} processors, Linux {}, load average {} at the start",
        process::processors(),
        kernel.trim(),
        load.split_whitespace().next().unwrap_or("unknown"),
    )
}
