//! Events: what the journal keeps, a headless run prints and the console's log shows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    AttemptRange, CellId, ClassLatency, ConfigurationId, GuardState, Load, Money, PerClass, Phase,
    Reason, Resource, Tps, UnixMs, Verdict,
};

/// How much an event matters to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Info,
    Warning,
    Error,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Rising by one within the run, from 1.
    pub seq: u64,
    /// Which engine wrote it: 1 for the first, one more for each that takes the run over.
    pub epoch: u64,
    pub at: UnixMs,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    RunStarted {
        run: String,
        plan: String,
        rehearsal: bool,
        build: String,
        pid: u32,
        seed: u64,
    },
    /// One line of the preflight.
    Preflight {
        check: String,
        ok: bool,
        text: String,
    },
    /// About to be made: on disk before the act.
    ResourceIntent {
        resource: Resource,
    },
    ResourceMade {
        resource: Resource,
    },
    ResourceGone {
        id: String,
    },
    /// Data is in place, counted in the database.
    DataReady {
        configuration: ConfigurationId,
        rows: u64,
        seconds: f64,
    },
    StageStarted {
        stage: String,
        index: usize,
        of: usize,
    },
    StageEnded {
        stage: String,
    },
    /// The ids an attempt will use: on disk before the first is used.
    AttemptReserved {
        cell: CellId,
        range: AttemptRange,
    },
    CellStarted {
        cell: CellId,
        configuration: ConfigurationId,
        stage: String,
        load: Load,
        warmup_s: f64,
        measure_s: f64,
        by: String,
        beside: Vec<ConfigurationId>,
    },
    CellPhase {
        cell: CellId,
        phase: Phase,
    },
    CellEnded {
        cell: CellId,
        configuration: ConfigurationId,
        load: Load,
        verdict: Verdict,
        tps: Tps,
        reasons: Vec<Reason>,
        #[serde(default)]
        stage: String,
        #[serde(default)]
        classes: PerClass<ClassLatency>,
        #[serde(default)]
        connection_wait_p99_ms: Option<f64>,
        /// Who made the tail, in words.
        #[serde(default)]
        tail: String,
        /// Of the measured span, in seconds.
        #[serde(default)]
        measured_s: f64,
    },
    DecisionAsked {
        id: String,
        question: String,
        options: Vec<String>,
        safe: String,
        deadline: UnixMs,
    },
    /// `by` is `operator`, `command line` or `deadline`.
    DecisionAnswered {
        id: String,
        option: String,
        by: String,
    },
    Guard {
        state: GuardState,
        accrued: Money,
        text: String,
    },
    /// An operator's command and who sent it; `refused` says why it was not carried out.
    Command {
        text: String,
        by: String,
        refused: Option<String>,
    },
    AgentStarted {
        pid: u32,
        processors: u32,
    },
    AgentLost {
        text: String,
    },
    ConsoleAttached {
        consoles: u32,
        #[serde(default)]
        number: u32,
        #[serde(default)]
        name: String,
    },
    ConsoleLeft {
        consoles: u32,
        #[serde(default)]
        number: u32,
    },
    Note {
        level: Level,
        text: String,
    },
    TeardownStarted {
        by: String,
        resources: u64,
    },
    TeardownEnded {
        remaining_count: u64,
        remaining: Vec<String>,
    },
    RunEnded {
        exit_code: u8,
        text: String,
        folder: PathBuf,
    },
}

impl EventKind {
    /// How much the event matters.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Note { level, .. } => *level,
            Self::AgentLost { .. } => Level::Error,
            Self::Preflight { ok: false, .. } => Level::Error,
            Self::CellEnded { verdict: Verdict::Invalid | Verdict::Fail, .. } => Level::Warning,
            Self::Command { refused: Some(_), .. } => Level::Warning,
            Self::Guard { state, .. } if *state != GuardState::Ok => Level::Error,
            Self::TeardownEnded { remaining_count, .. } if *remaining_count > 0 => Level::Error,
            Self::DecisionAsked { .. } => Level::Warning,
            Self::RunEnded { exit_code, .. } if *exit_code != 0 => Level::Error,
            _ => Level::Info,
        }
    }

    /// Whether it is kept for the record and tells an operator nothing to act on.
    #[must_use]
    pub const fn is_bookkeeping(&self) -> bool {
        matches!(self, Self::AttemptReserved { .. } | Self::ResourceIntent { .. })
    }

    /// The event as one line for people.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::RunStarted { run, plan, rehearsal, .. } => {
                let what = if *rehearsal { "rehearsal" } else { "run" };
                format!("{what} {run} of plan {plan} started")
            }
            Self::Preflight { check, ok, text } => {
                format!("preflight {check}: {} {text}", if *ok { "ok" } else { "REFUSED" })
            }
            Self::ResourceIntent { resource } => {
                format!("making {}", named(resource))
            }
            Self::ResourceMade { resource } => {
                let note = if resource.note.is_empty() {
                    String::new()
                } else {
                    format!(": {}", resource.note)
                };
                format!("made {}{note}", named(resource))
            }
            Self::ResourceGone { id } => format!("gone: {id}"),
            Self::DataReady { configuration, rows, seconds } => {
                format!("{configuration} data ready: {rows} rows counted, {seconds:.1} s")
            }
            Self::StageStarted { stage, index, of } => {
                format!("stage {stage} ({index}/{of}) started")
            }
            Self::StageEnded { stage } => format!("stage {stage} ended"),
            Self::AttemptReserved { cell, range } => {
                format!("{cell} owns ids from {} ({})", range.first_id, range.prefix)
            }
            Self::CellStarted { cell, load, by, beside, .. } => {
                let beside = if beside.is_empty() {
                    String::new()
                } else {
                    let names: Vec<_> = beside.iter().map(ConfigurationId::as_str).collect();
                    format!(", beside {}", names.join(", "))
                };
                format!("{cell} {load} started by {by}{beside}")
            }
            Self::CellPhase { cell, phase } => {
                let phase = match phase {
                    Phase::Opening => "opening connections",
                    Phase::WarmUp => "warm-up",
                    Phase::Measure => "measuring",
                    Phase::Drain => "draining",
                };
                format!("{cell} {phase}")
            }
            Self::CellEnded { cell, load, verdict, tps, reasons, .. } => {
                let why = match Reason::first_text(reasons) {
                    "" => String::new(),
                    why => format!(": {why}"),
                };
                format!("{cell} {load} {verdict}, ok {:.1}/s{why}", tps.succeeded)
            }
            Self::DecisionAsked { question, safe, .. } => {
                format!("DECISION {question} (safe default: {safe})")
            }
            Self::DecisionAnswered { id, option, by } => {
                format!("decision {id} answered with {option} by {by}")
            }
            Self::Guard { text, .. } => format!("GUARD {text}"),
            Self::Command { text, by, refused: None } => format!("{text} by {by}"),
            Self::Command { text, by, refused: Some(why) } => {
                format!("refused: {text} by {by}: {why}")
            }
            Self::AgentStarted { pid, processors } => {
                format!("load agent started, process {pid}, {processors} processors")
            }
            Self::AgentLost { text } => format!("LOAD AGENT LOST {text}"),
            Self::ConsoleAttached { consoles, number, name } => {
                let who = if name.is_empty() { String::new() } else { format!(" ({name})") };
                format!("console {number}{who} attached, {consoles} in all")
            }
            Self::ConsoleLeft { consoles, number } => {
                format!("console {number} left, {consoles} in all")
            }
            Self::Note { text, .. } => text.clone(),
            Self::TeardownStarted { by, resources } => {
                format!("teardown of {resources} resources started by {by}")
            }
            Self::TeardownEnded { remaining_count, remaining } if remaining.is_empty() => {
                format!("teardown ended, remaining {remaining_count}")
            }
            Self::TeardownEnded { remaining_count, remaining } => {
                format!("teardown ended, remaining {remaining_count}: {}", remaining.join(", "))
            }
            Self::RunEnded { text, .. } => text.clone(),
        }
    }
}

/// A resource's kind and id, without saying the same word twice.
fn named(resource: &Resource) -> String {
    resource.kind.named(&resource.id)
}
