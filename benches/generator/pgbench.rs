//! pgbench, with scripts of the same statements.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    Failure,
    postgres::{MOST_LINES, PREMADE, Postgres, program},
    process::{Owned, processors},
    sample::{Load, Peer, Sample, Span, WARM_UP_S},
};

/// How to reach a server, as libpq has it.
#[derive(Clone)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
}

/// Rows of the data at the benchmark's scale, which the scripts draw from.
pub const PRODUCTS: u32 = 2_000;
pub const CUSTOMERS: u32 = 10_000;
/// Above the ids of the loaded orders; each run takes a range of its own.
pub const FIRST_ID: u64 = 1 << 40;
pub const IDS: u64 = 1 << 34;

/// Variables that stay as they are: what the agent computes from rows that it has read, pgbench
/// is given.
const CONSTANTS: &[&str] = &[
    "quantity=2",
    "minus=-2",
    "price=1999",
    "amount=3998",
    "refund=-3998",
    "l1=1",
    "l2=2",
    "l3=3",
    "l4=4",
    "o1=11",
    "o2=1012",
    "o3=2013",
    "o4=3014",
    "o5=4015",
    "o6=5016",
    "o7=6017",
    "o8=7018",
    "o9=8019",
    "o10=9020",
    "sale=sale",
    "reversal=reversal",
    "create=create",
    "cancel=cancel",
    "none=none",
];

/// How late a transaction may begin after a longer warm-up before pgbench skips it, in ms.
const LATE_MS: &str = "500";

/// pgbench with one set of scripts.
pub struct Pgbench<'a> {
    server: Server,
    /// Where orders are to be made before each run.
    premade_in: Option<&'a Postgres>,
    scripts: Vec<(PathBuf, u32)>,
    /// Before the measured span, in seconds.
    warm_up_s: u32,
    /// In which the scripts are.
    _folder: TempDir,
    runs: u64,
}

impl<'a> Pgbench<'a> {
    /// The read transaction, each statement a round trip.
    pub fn reads(server: Server) -> Result<Self, Failure> {
        Self::new(server, &[("read", include_str!("../scripts/read.sql").into(), 1)])
    }

    /// The read transaction in one round trip.
    pub fn pipelined_reads(server: Server) -> Result<Self, Failure> {
        let script = include_str!("../scripts/read_pipelined.sql").into();
        Self::new(server, &[("read_pipelined", script, 1)])
    }

    /// The order mix 40/30/20/10; creates and cancels are one script for each number of lines. The
    /// orders that the first cancels take are made in `premade_in`; the null endpoint has any.
    pub fn mix(server: Server, premade_in: Option<&'a Postgres>) -> Result<Self, Failure> {
        let mut scripts = vec![
            ("lookup".to_owned(), include_str!("../scripts/read.sql").to_owned(), 80),
            ("history".to_owned(), include_str!("../scripts/history.sql").to_owned(), 60),
        ];
        for lines in 1..=MOST_LINES {
            let create = fill(include_str!("../scripts/create.sql"), lines, 0);
            scripts.push((format!("create_{lines}"), create, 10));
            let cancel = fill(include_str!("../scripts/cancel.sql"), lines, 8);
            scripts.push((format!("cancel_{lines}"), cancel, 5));
        }
        let scripts: Vec<_> =
            scripts.iter().map(|(name, text, weight)| (&**name, text.clone(), *weight)).collect();
        Ok(Self { premade_in, ..Self::new(server, &scripts)? })
    }

    /// With a longer warm-up: pgbench prepares a client's statements one after the other, and all
    /// other clients of the thread wait meanwhile. What falls due until then is skipped.
    pub fn warmed_up(self, warm_up_s: u32) -> Self {
        Self { warm_up_s, ..self }
    }

    fn new(server: Server, scripts: &[(&str, String, u32)]) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("rd-bench-").tempdir()?;
        let scripts = scripts
            .iter()
            .map(|(name, text, weight)| {
                let path = folder.path().join(format!("{name}.sql"));
                fs::write(&path, text)?;
                Ok((path, *weight))
            })
            .collect::<Result<_, std::io::Error>>()?;
        let warm_up_s = WARM_UP_S;
        Ok(Self { server, premade_in: None, scripts, warm_up_s, _folder: folder, runs: 0 })
    }

    fn command(&mut self, load: Load) -> Result<Command, Failure> {
        self.runs += 1;
        // Unlike any earlier run's on the same database.
        let base = FIRST_ID + (u64::from(std::process::id() % 1_000) * 100 + self.runs) * IDS;
        if let Some(postgres) = self.premade_in {
            postgres.premake(base, load.connections)?;
        }
        let threads = processors().min(usize::try_from(load.connections)?);
        let mut command = Command::new(program("pgbench")?);
        command
            .args(["-n", "-M", "prepared", "-P", "1", "--max-tries", "8"])
            .args(["-c", &load.connections.to_string(), "-j", &threads.to_string()])
            .args(["-R", &load.rate.to_string()])
            .args(["-T", &(self.warm_up_s + load.seconds + 2).to_string()])
            .args(["-D", &format!("base={base}")])
            .args(["-D", &format!("products={PRODUCTS}"), "-D", &format!("customers={CUSTOMERS}")])
            .args((self.warm_up_s > WARM_UP_S).then_some(["-L", LATE_MS]).into_iter().flatten())
            .args(CONSTANTS.iter().flat_map(|constant| ["-D", constant]));
        for lines in 1..=MOST_LINES {
            let made = format!("made_{lines}={PREMADE}");
            command.args(["-D", &made, "-D", &format!("cancelled_{lines}=0")]);
        }
        for (path, weight) in &self.scripts {
            command.arg("-f").arg(format!("{}@{weight}", path.display()));
        }
        let Server { host, port, user, database } = &self.server;
        command.args(["-h", host, "-p", &port.to_string(), "-U", user, database]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// Fills a template in for orders of so many lines, whose ledger entries begin at `first_entry`.
fn fill(template: &str, lines: u32, first_entry: u32) -> String {
    let mut draw = String::new();
    for line in 1..=lines {
        // Each product from a part of its own: different ones, in the order of their ids.
        let (from, entry) = (line - 1, first_entry + line);
        let parts = format!(":products / {lines}");
        // There is no limit to what a text takes.
        let _ = writeln!(draw, "\\set p{line} {from} * ({parts}) + random(1, {parts})");
        let _ = writeln!(draw, "\\set e{line} :order * 16 + {entry}");
    }
    let each = |name: &str, kind: &str| {
        let values: Vec<_> = (1..=lines).map(|line| format!(":{name}{line}")).collect();
        format!("ARRAY[{}]::{kind}[]", values.join(", "))
    };
    let all = |name: &str| {
        let values = vec![format!(":{name}"); lines as usize];
        format!("ARRAY[{}]::bigint[]", values.join(", "))
    };
    [
        ("{draw}", draw.trim_end().to_owned()),
        ("{count}", lines.to_string()),
        ("{products}", each("p", "bigint")),
        ("{line_nos}", each("l", "integer")),
        ("{entries}", each("e", "bigint")),
        ("{reversals}", each("e", "bigint")),
        ("{quantities}", all("quantity")),
        ("{returned}", all("quantity")),
        ("{sold}", all("minus")),
        ("{prices}", all("price")),
        ("{amounts}", all("amount")),
        ("{refunds}", all("refund")),
    ]
    .iter()
    .fold(without_comments(template), |text, (name, value)| text.replace(name, value))
}

/// The comments of a template speak of what is filled in.
fn without_comments(template: &str) -> String {
    let lines = template.lines().filter(|line| !line.starts_with("--"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

impl Peer for Pgbench<'_> {
    fn name(&self) -> &'static str {
        "pgbench"
    }

    fn run(&mut self, load: Load) -> Result<Sample, Failure> {
        let mut child = self.command(load)?.spawn()?;
        let progress = BufReader::new(child.stderr.take().ok_or("pgbench has no messages")?);
        let mut stdout = child.stdout.take().ok_or("pgbench has no output")?;
        let mut process = Owned(child);
        let mut span = Span::new(process.pid());
        let (mut seconds, mut last, mut complaints) = (0, Instant::now(), String::new());
        for line in progress.lines() {
            let line = line?;
            let Some((tps, failed)) = seconds_of(&line) else {
                writeln!(complaints, "{line}")?;
                continue;
            };
            let length = last.elapsed().as_secs_f64();
            last = Instant::now();
            seconds += 1;
            if seconds > self.warm_up_s && seconds <= self.warm_up_s + 1 + load.seconds {
                span.report((tps * length).round() as u64, failed)?;
            }
        }
        let mut said = String::new();
        stdout.read_to_string(&mut said)?;
        let status = process.ended_within(Duration::from_secs(20))?;
        if !status.success() {
            return Err(format!("pgbench: {status}: {complaints}").into());
        }
        span.sample()
    }
}

/// Transactions per second and failures of a line of progress.
fn seconds_of(line: &str) -> Option<(f64, u64)> {
    let fields = line.strip_prefix("progress: ")?;
    let value = |name: &str| {
        fields.split(", ").find_map(|field| field.strip_suffix(name)?.trim().parse::<f64>().ok())
    };
    Some((value(" tps")?, value(" failed").unwrap_or_default() as u64))
}
