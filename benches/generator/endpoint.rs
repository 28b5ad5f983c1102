//! The null endpoint, as a process of its own.

use std::{
    io::{BufRead, BufReader, Write},
    net::Ipv4Addr,
    process::{Command, Stdio},
};

use rampdeck::{
    model::{NullConfig, NullListening, TargetAddress, TargetSpec},
    workload::null_answers,
};

use super::{Failure, pgbench::Server, postgres::SCHEMA, process::Owned};

pub struct Endpoint {
    _process: Owned,
    port: u16,
}

/// How late the endpoint answers, in milliseconds.
#[derive(Clone, Copy, Default)]
pub struct Latency {
    pub round_trip_ms: f64,
    pub commit_write_ms: f64,
}

/// The published latencies of D1.
pub const PUBLISHED: Latency = Latency { round_trip_ms: 1.7, commit_write_ms: 19.0 };

impl Endpoint {
    pub fn start(latency: Latency) -> Result<Self, Failure> {
        let config = NullConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            unix_directory: None,
            round_trip_ms: latency.round_trip_ms,
            commit_write_ms: latency.commit_write_ms,
            threads: None,
            answers: null_answers(SCHEMA),
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_rampdeck"))
            .arg("null-endpoint")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the null endpoint has no output")?;
        let mut process = Owned(child);
        let stdin = process.0.stdin.as_mut().ok_or("the null endpoint has no input")?;
        writeln!(stdin, "{}", serde_json::to_string(&config)?)?;
        let mut reports = BufReader::new(stdout);
        let mut line = String::new();
        reports.read_line(&mut line)?;
        let said: NullListening = serde_json::from_str(&line)?;
        // Its reports are read and forgotten: a full pipe would hold its reporting up.
        std::thread::spawn(move || std::io::copy(&mut reports, &mut std::io::sink()));
        Ok(Self { _process: process, port: said.listening })
    }

    pub fn target(&self) -> TargetSpec {
        TargetSpec {
            // Thousands of connections at once.
            connect_timeout_ms: 30_000,
            ..TargetSpec::plain(TargetAddress::loopback(self.port), "bench", "bench", SCHEMA)
        }
    }

    pub fn server(&self) -> Server {
        Server {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: self.port,
            user: "bench".into(),
            database: "bench".into(),
        }
    }
}
