//! Removing what a run made, and looking whether anything remains, with or without its engine.

use std::{
    collections::BTreeMap,
    io::{BufRead, IsTerminal, Write},
    time::Duration,
};

use color_eyre::eyre::{Result, bail};

use super::{
    Usage,
    client::Client,
    registry::{self, Entry},
};
use crate::{
    engine::{self, SchemaTargets},
    link::{Role, ServerFrame},
    model::{Command, EventKind, Resource, TeardownItem},
    provider::{self, process},
    report::{Journal as JournalFile, JournalReader, RunFolder},
};

/// What a run leaves where something remains.
const REMAINS: u8 = 4;
/// How long a hung engine may take to end when told to.
const ENGINE_GRACE: Duration = Duration::from_secs(5);

/// Removes everything a run made.
pub async fn run(name: &str, yes: bool, urls: &[String]) -> Result<u8> {
    let entry = registry::find(name)?;
    if !yes {
        confirm(&entry)?;
    }
    if entry.is_going_on() {
        match Client::connect(&entry.socket, Role::CommandLine).await {
            Ok(client) => return through_engine(client, &entry).await,
            Err(error) => {
                let Some(engine) = &entry.engine else { return Err(error) };
                eprintln!(
                    "rampdeck: the engine does not answer ({error}): ending process {}",
                    engine.pid
                );
                process::end(engine, ENGINE_GRACE).await?;
            }
        }
    }
    without_engine(&entry, urls).await
}

/// The run's name, typed.
fn confirm(entry: &Entry) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage(format!(
            "teardown of {0} asks for the run's name on a terminal; elsewhere say: rampdeck teardown {0} --yes",
            entry.run
        ))
        .into());
    }
    print!("type the run's name to remove everything it made ({}): ", entry.run);
    std::io::stdout().flush()?;
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    if typed.trim() == entry.run.as_str() {
        Ok(())
    } else {
        Err(Usage(format!("found `{}`, allowed: {}; nothing was removed", typed.trim(), entry.run))
            .into())
    }
}

async fn through_engine(mut client: Client, entry: &Entry) -> Result<u8> {
    client.command(Command::Teardown { confirm: entry.run.to_string() }).await?;
    let mut shown = BTreeMap::new();
    let mut remaining = None;
    loop {
        match client.reader.next::<ServerFrame>().await? {
            Some(ServerFrame::Snapshot(snapshot)) => {
                if let Some(teardown) = &snapshot.teardown {
                    for item in &teardown.items {
                        show(&mut shown, item);
                    }
                    if teardown.ended.is_some() {
                        remaining = Some(teardown.remaining_count);
                    }
                }
            }
            Some(ServerFrame::Ended { text, .. }) => {
                println!("{text}");
                let Some(remaining) = remaining else { return verify(entry.run.as_str()).await };
                return Ok(said(remaining));
            }
            Some(_) => {}
            None => bail!(
                "the engine has gone during the teardown: once more, rampdeck teardown {}",
                entry.run
            ),
        }
    }
}

async fn without_engine(entry: &Entry, urls: &[String]) -> Result<u8> {
    let folder = RunFolder::open(entry.folder.clone())?;
    // An engine that starts or still ends would remove and make at the same time.
    let lock = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.engine_lock());
    if let Ok(lock) = &lock
        && lock.try_lock().is_err()
    {
        bail!(
            "another process owns the run in {}: wait until it has ended",
            entry.folder.display()
        );
    }
    let journal = folder.read_journal()?;
    let schemas = schema_targets(entry, &folder, urls)?;
    let resources = journal.resources();
    let target_of = |resource: &Resource| engine::target_of(&schemas, resource);
    let mut events = Journal::open(&folder, &journal);
    events.write(EventKind::TeardownStarted {
        by: "command line".to_owned(),
        resources: resources.len().try_into().unwrap_or(u64::MAX),
    });
    let mut shown = BTreeMap::new();
    let status =
        provider::remove(&entry.run, &resources, target_of, |item| show(&mut shown, item)).await;
    for item in status.items.iter().filter(|item| item.gone) {
        events.write(EventKind::ResourceGone { id: item.id.clone() });
    }
    let remaining = status.items.iter().filter(|item| !item.gone).map(|i| i.id.clone()).collect();
    events.write(EventKind::TeardownEnded { remaining_count: status.remaining_count, remaining });
    summarise(&folder);
    let _ = std::fs::remove_file(&entry.socket);
    Ok(said(status.remaining_count))
}

/// The summary of a run whose engine is gone, from its journal and recordings.
fn summarise(folder: &RunFolder) {
    let rebuilt = crate::report::rebuild(folder).and_then(|summary| folder.write_summary(&summary));
    match rebuilt {
        Ok(()) => println!("summary at {}", folder.summary().display()),
        Err(error) => eprintln!("rampdeck: the summary cannot be rebuilt: {error}"),
    }
}

fn said(remaining: u64) -> u8 {
    println!("remaining {remaining}");
    if remaining == 0 { 0 } else { REMAINS }
}

/// Prints a line of progress when it has something new to say.
fn show(shown: &mut BTreeMap<String, String>, item: &TeardownItem) {
    if shown.get(&item.id) != Some(&item.state) {
        println!("  {:<24} {} {}", item.state, item.kind.words(), item.id);
        shown.insert(item.id.clone(), item.state.clone());
    }
}

/// The databases of the operator's that a run used, reached by what the plan and the command line
/// say: a stored plan has no password.
fn schema_targets(entry: &Entry, folder: &RunFolder, urls: &[String]) -> Result<SchemaTargets> {
    let mut overrides = Vec::new();
    for url in urls {
        let Some((configuration, url)) = url.split_once('=') else {
            return Err(Usage(format!("--url: found `{url}`, allowed: CONFIGURATION=URL")).into());
        };
        overrides.push(format!("configuration.{configuration}.url={url}"));
    }
    let source = crate::plan::PlanSource::File(folder.plan());
    match crate::plan::load(source, &overrides) {
        Ok(plan) => Ok(engine::schema_targets(&plan, &entry.run)),
        Err(errors) => {
            if !urls.is_empty() {
                return Err(errors.into());
            }
            eprintln!(
                "rampdeck: the stored plan cannot be read ({errors}): going on with the journal alone"
            );
            Ok(SchemaTargets::new())
        }
    }
}

/// The journal of a run whose engine is gone: an epoch of its own. A full disk is told and never
/// blocks a removal.
struct Journal {
    writer: Option<JournalFile>,
    seq: u64,
    epoch: u64,
}

impl Journal {
    fn open(folder: &RunFolder, read: &JournalReader) -> Self {
        let writer = folder
            .open_journal()
            .inspect_err(|error| eprintln!("rampdeck: the journal cannot be written: {error}"))
            .ok();
        Self { writer, seq: read.last_seq(), epoch: read.last_epoch() + 1 }
    }

    fn write(&mut self, kind: EventKind) {
        self.seq += 1;
        let event = crate::model::Event {
            seq: self.seq,
            epoch: self.epoch,
            at: crate::model::UnixMs::now(),
            kind,
        };
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.append(&event)
        {
            eprintln!("rampdeck: the journal cannot be written: {error}");
            self.writer = None;
        }
    }
}

/// Looks whether anything of a run remains.
pub async fn verify(name: &str) -> Result<u8> {
    let entry = registry::find(name)?;
    let folder = RunFolder::open(entry.folder.clone())?;
    let journal = folder.read_journal()?;
    let schemas = schema_targets(&entry, &folder, &[])?;
    let target_of = |resource: &Resource| engine::target_of(&schemas, resource);
    let remaining = provider::verify(&entry.run, &journal.resources(), target_of).await;
    for thing in &remaining {
        println!("  {} {}: {}, {}", thing.kind.words(), thing.id, thing.state, thing.why);
    }
    if entry.is_going_on() {
        println!("the run is going on");
    } else if !remaining.is_empty() {
        println!("remove it with: rampdeck teardown {}", entry.run);
    }
    Ok(said(remaining.len().try_into().unwrap_or(u64::MAX)))
}
