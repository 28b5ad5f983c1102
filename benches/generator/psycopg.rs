//! psycopg 3, with the same mix in Python; measured where python3 has it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use super::{
    Failure,
    pgbench::{CUSTOMERS, FIRST_ID, IDS, PRODUCTS, Server},
    postgres::{IDS_OF_A_CLIENT, MOST_LINES, PREMADE, Postgres},
    process::Owned,
    sample::{Load, Peer, Sample, Span, WARM_UP_S},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/scripts/order_mix.py");
/// Ranges of ids beyond any of pgbench's.
const FIRST_RANGE: u64 = 110_000;

pub struct Psycopg<'a> {
    server: Server,
    /// Where orders are to be made before each run.
    premade_in: Option<&'a Postgres>,
    runs: u64,
}

impl<'a> Psycopg<'a> {
    /// The orders that the first cancels take are made in `premade_in`; the null endpoint has any.
    ///
    /// # Errors
    /// When python3 or its psycopg 3 is not there.
    pub fn new(server: Server, premade_in: Option<&'a Postgres>) -> Result<Self, Failure> {
        let probe = Command::new("python3")
            .args(["-c", "import psycopg; print(psycopg.__version__, psycopg.pq.__impl__)"])
            .current_dir("/")
            .output();
        match probe {
            Ok(done) if done.status.success() => {
                println!("  psycopg {}", String::from_utf8_lossy(&done.stdout).trim());
                Ok(Self { server, premade_in, runs: 0 })
            }
            _ => Err("python3 has no psycopg 3 (pip install 'psycopg[binary]')".into()),
        }
    }
}

impl Peer for Psycopg<'_> {
    fn name(&self) -> &'static str {
        "psycopg"
    }

    fn run(&mut self, load: Load) -> Result<Sample, Failure> {
        self.runs += 1;
        let range = FIRST_RANGE + u64::from(std::process::id() % 1_000) * 100 + self.runs;
        let base = FIRST_ID + range * IDS;
        if let Some(postgres) = self.premade_in {
            postgres.premake(base, load.connections)?;
        }
        let Server { host, port, user, database } = &self.server;
        let given = serde_json::json!({
            "conninfo": format!("host={host} port={port} user={user} dbname={database}"),
            "rate": load.rate,
            "connections": load.connections,
            "seconds": WARM_UP_S + load.seconds + 2,
            "base": base,
            "ids_of_a_client": IDS_OF_A_CLIENT,
            "premade": PREMADE,
            "most_lines": MOST_LINES,
            "customers": CUSTOMERS,
            "products": PRODUCTS,
        });
        let mut child = Command::new("python3")
            .arg(SCRIPT)
            .arg(given.to_string())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("python3 has no output")?);
        let mut errors = child.stderr.take().ok_or("python3 has no messages")?;
        let process = Owned(child);
        let mut span = Span::new(process.pid());
        for (second, line) in (1..).zip(lines.lines()) {
            let line = line?;
            let numbers: Vec<u64> =
                line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            let [completed, failed] = numbers[..] else {
                return Err(format!("{line:?} is not two numbers").into());
            };
            if second > WARM_UP_S {
                span.report(completed, failed)?;
            }
            if second > WARM_UP_S + load.seconds {
                return span.sample();
            }
        }
        let mut said = String::new();
        errors.read_to_string(&mut said)?;
        Err(format!("python3 ended early: {said}").into())
    }
}
