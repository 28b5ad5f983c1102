//! A run without a screen: events and a line a second for each configuration, as JSON lines.

use std::{collections::BTreeMap, time::Instant};

use color_eyre::eyre::{Result, bail};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    client::Client,
    output::{FINISH_LIMIT, Output, Worth},
    registry::Entry,
};
use crate::{
    link::{Role, ServerFrame},
    model::{
        Class, Command, ConfigurationState, ConfigurationStatus, Event, EventKind, Phase, Snapshot,
    },
};

/// Answers given beforehand on the command line, by decision.
pub type Answers = BTreeMap<String, String>;

/// `DECISION=OPTION`, as many as were given.
pub fn parse_answers(given: &[String]) -> Result<Answers> {
    given
        .iter()
        .map(|answer| match answer.split_once('=') {
            Some((decision, option)) if !decision.is_empty() && !option.is_empty() => {
                Ok((decision.to_owned(), option.to_owned()))
            }
            _ => bail!("--answer: found `{answer}`, allowed: DECISION=OPTION, for example main=go"),
        })
        .collect()
}

/// Prints the run until it ends and gives its exit code.
pub async fn follow(entry: &Entry, answers: &Answers) -> Result<u8> {
    let mut interrupts = Interrupts::listen()?;
    let mut client = Client::connect(&entry.socket, Role::Headless).await?;
    let mut printer = Printer::new();
    let ended = print(entry, answers, &mut interrupts, &mut client, &mut printer).await;
    printer.finish();
    ended
}

async fn print(
    entry: &Entry,
    answers: &Answers,
    interrupts: &mut Interrupts,
    client: &mut Client,
    printer: &mut Printer,
) -> Result<u8> {
    let mut asked_to_end = false;
    loop {
        tokio::select! {
            frame = client.reader.next::<ServerFrame>() => match frame? {
                Some(ServerFrame::Event(event)) => {
                    printer.event(&event);
                    if let EventKind::DecisionAsked { id, .. } = &event.kind
                        && let Some(option) = answers.get(id)
                    {
                        let answer = Command::Answer { decision: id.clone(), option: option.clone() };
                        client.send(answer).await?;
                    }
                }
                Some(ServerFrame::Snapshot(snapshot)) => printer.second(&snapshot),
                Some(ServerFrame::Reply { refused: Some(refused), .. }) => {
                    printer.say(format!("refused: {refused}"));
                }
                Some(ServerFrame::Ended { exit_code, text }) => {
                    printer.say(text);
                    printer.say(format!("summary at {}", entry.folder.join("summary.json").display()));
                    return Ok(exit_code);
                }
                Some(_) => {}
                None => {
                    bail!("the engine of {} has gone without ending the run; remove what it made with: rampdeck teardown {}", entry.run, entry.run)
                }
            },
            () = interrupts.next() => {
                if asked_to_end {
                    printer.say(format!("leaving; the run goes on with its teardown. Look with: rampdeck verify {0}, or: rampdeck teardown {0}", entry.run));
                    return Ok(1);
                }
                asked_to_end = true;
                printer.say("stopping, tearing down and reporting; once more to leave at once".to_owned());
                client.send(Command::Teardown { confirm: entry.run.to_string() }).await?;
            }
        }
    }
}

struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Both streams may be ones that nobody reads just now, a pager's for example: the run, and an
/// interrupt, must not wait for it.
struct Printer {
    out: Output,
    errors: Output,
    second: u64,
}

impl Printer {
    fn new() -> Self {
        let (out, errors) = (Output::new(std::io::stdout()), Output::new(std::io::stderr()));
        Self { out, errors, second: 0 }
    }

    /// Says something to people.
    fn say(&self, text: String) {
        self.errors.line(Worth::Event, format!("rampdeck: {text}"));
    }

    fn line(&self, worth: Worth, line: &serde_json::Value) {
        self.out.line(worth, line.to_string());
    }

    fn say_what_was_dropped(&self, at_once: bool) {
        let Some(dropped) = self.out.dropped(at_once) else { return };
        let events = match dropped.events {
            0 => String::new(),
            events => format!(" and {events} events"),
        };
        self.say(format!(
            "standard output was not read: {} per-second lines{events} were dropped",
            dropped.figures
        ));
    }

    fn finish(&self) {
        let deadline = Instant::now() + FINISH_LIMIT;
        let all = self.out.finish(deadline);
        self.say_what_was_dropped(true);
        if !all {
            self.say("standard output is not read: its last lines are not written".to_owned());
        }
        self.errors.finish(deadline.max(Instant::now() + FINISH_LIMIT / 10));
    }

    fn event(&mut self, event: &Event) {
        let Ok(mut line) = serde_json::to_value(event) else { return };
        line["at"] = event.at.rfc3339().into();
        line["text"] = event.kind.text().into();
        self.line(Worth::Event, &line);
    }

    /// One line for each configuration, once a second.
    fn second(&mut self, snapshot: &Snapshot) {
        let second = snapshot.at.0 / 1000;
        if second == self.second {
            return;
        }
        self.second = second;
        for configuration in &snapshot.configurations {
            self.line(Worth::Figure, &configuration_line(snapshot, configuration));
        }
        self.say_what_was_dropped(false);
    }
}

fn configuration_line(
    snapshot: &Snapshot,
    configuration: &ConfigurationStatus,
) -> serde_json::Value {
    let mut line = json!({
        "at": snapshot.at.rfc3339(),
        "configuration": configuration.id,
        "state": state_word(&configuration.state),
        "accrued": configuration.accrued,
        "basis": snapshot.cost.basis,
        "runner_cpu_percent": rounded(snapshot.agent.cpu_percent),
    });
    if snapshot.header.rehearsal {
        line["rehearsal"] = "latency added, prices simulated".into();
    }
    if let Some(cell) = &configuration.cell {
        line["cell"] = json!(cell.id);
        line["load"] = cell.load.to_string().into();
        line["offered"] = rounded(cell.tps.offered);
        line["achieved"] = rounded(cell.tps.achieved);
        line["succeeded"] = rounded(cell.tps.succeeded);
        line["connection_wait_p99_ms"] =
            cell.connection_wait_p99_ms.map_or(serde_json::Value::Null, rounded);
        line["failed_percent"] = rounded(cell.failed_percent);
        line["retry_percent"] = rounded(cell.retry_percent);
        for class in Class::ALL {
            let latency = cell.classes[class];
            line[class.name()] = json!({
                "p95_ms": latency.p95_ms.map(rounded),
                "p99_ms": latency.p99_ms.map(rounded),
            });
        }
    }
    line
}

fn state_word(state: &ConfigurationState) -> &'static str {
    match state {
        ConfigurationState::SettingUp { .. } => "setting_up",
        ConfigurationState::Idle => "idle",
        ConfigurationState::Cell { phase, .. } => match phase {
            Phase::Opening => "opening",
            Phase::WarmUp => "warm_up",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
        },
        ConfigurationState::Checking => "checking",
        ConfigurationState::Removed => "removed",
        ConfigurationState::Failed { .. } => "failed",
    }
}

/// Three decimals: what the recordings resolve.
fn rounded(value: f64) -> serde_json::Value {
    ((value * 1000.0).round() / 1000.0).into()
}
