//! Removing what a run made, and looking whether anything remains, with or without its engine.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, IsTerminal, Write},
    time::Duration,
};

use color_eyre::eyre::{Report, Result, bail};

use super::{
    Usage,
    client::{Client, Refused},
    registry::{self, Entry, UnknownRun},
};
use crate::{
    cost::Meter,
    engine::{self, SchemaTargets},
    link::{Role, ServerFrame},
    model::{
        Command, ConfigurationId, EventKind, ProcessIdentity, Resource, ResourceKind,
        ResourceState, RunId, TargetSpec, TeardownItem, UnixMs,
    },
    provider::{
        self,
        process::{self, Ended},
    },
    report::{Journal as JournalFile, JournalReader, ReportError, RunFolder, Summary},
};

/// How a run ends whose engine was lost.
const LOST: u8 = 1;
/// How a run ends where something remains.
const REMAINS: u8 = 4;
/// How long an engine that is told to end may take: it removes what the run made.
const ENGINE_GRACE: Duration = Duration::from_secs(60);
/// How long an engine may say nothing before it counts as hung; it sends four snapshots a second.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Removes everything a run made.
pub async fn run(name: &str, yes: bool, urls: &[String], form: Form) -> Result<u8> {
    let (entry, unknown) = match registry::find(name) {
        Ok(entry) => (entry, None),
        Err(error) if error.is::<UnknownRun>() && registry::is_run_id(name) => {
            if !yes && !std::io::stdin().is_terminal() {
                return Err(error);
            }
            tell!("rampdeck: {error}; what carries its mark is looked for");
            (Entry::unknown(RunId::new(name))?, Some(error))
        }
        Err(error) => return Err(error),
    };
    if !yes {
        confirm(&entry)?;
    }
    if let Some(engine) = entry.engine.filter(|_| entry.is_going_on()) {
        match through_engine(&entry, urls, form).await? {
            Through::Done(code) => return Ok(code),
            Through::Lost(why) => end_engine(&engine, &why).await?,
        }
    }
    without_engine(&entry, urls, unknown, form).await
}

/// Ends an engine that cannot be asked. Told to end, it tears its run down itself.
async fn end_engine(engine: &ProcessIdentity, why: &str) -> Result<()> {
    if process::is_alive(engine) {
        tell!(
            "rampdeck: the engine cannot be asked ({why}): process {} is told to end; as long as {} s are waited for it, since it may be removing what the run made",
            engine.pid,
            ENGINE_GRACE.as_secs()
        );
    }
    let how = match process::end(engine, ENGINE_GRACE).await? {
        Ended::Already => "has gone",
        Ended::Quietly => "has ended",
        Ended::Killed => "did not end and was killed",
    };
    tell!("rampdeck: the engine {how}: going on without it");
    Ok(())
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

/// What came of asking the engine.
enum Through {
    Done(u8),
    /// It does not answer, or not in our words; or it has gone. Why.
    Lost(String),
}

async fn through_engine(entry: &Entry, urls: &[String], form: Form) -> Result<Through> {
    let asked = async {
        let mut client = Client::connect(&entry.socket, Role::CommandLine).await?;
        client.command(Command::Teardown { confirm: entry.run.to_string() }).await?;
        Ok(client)
    };
    let mut client: Client = match asked.await {
        Ok(client) => client,
        Err(error) if Report::is::<Refused>(&error) => return Err(error),
        Err(error) => return Ok(Through::Lost(error.to_string())),
    };
    let mut shown = Shown::new(form);
    let mut remaining = None;
    loop {
        let frame = tokio::time::timeout(SILENCE_LIMIT, client.reader.next::<ServerFrame>()).await;
        match frame {
            Ok(Ok(Some(ServerFrame::Snapshot(snapshot)))) => {
                if let Some(teardown) = &snapshot.teardown {
                    for item in &teardown.items {
                        shown.show(item);
                    }
                    if teardown.ended.is_some() {
                        remaining = Some(teardown.remaining_count);
                    }
                }
            }
            Ok(Ok(Some(ServerFrame::Ended { text, .. }))) => {
                form.say(&text);
                return Ok(Through::Done(match remaining {
                    Some(remaining) => form.said(remaining),
                    None => verify(entry.run.as_str(), urls).await?,
                }));
            }
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return Ok(Through::Lost("it has closed the socket".to_owned())),
            Ok(Err(error)) => return Ok(Through::Lost(error.to_string())),
            Err(_) => {
                let silent = format!("it has said nothing for {} s", SILENCE_LIMIT.as_secs());
                return Ok(Through::Lost(silent));
            }
        }
    }
}

/// The run's folder and journal as far as they can be read: what is missing is told and never
/// blocks a removal, which has the sweep for the run's mark.
fn what_is_left_of(entry: &Entry) -> (Option<RunFolder>, JournalReader) {
    match RunFolder::open(entry.folder.clone()) {
        Ok(folder) => {
            let journal = folder.read_journal().unwrap_or_else(|error| {
                tell!(
                    "rampdeck: {error}: going on without the journal, by the plan and by what carries the run's mark"
                );
                JournalReader::default()
            });
            (Some(folder), journal)
        }
        Err(error) => {
            tell!(
                "rampdeck: {error}: going on without the run folder, by what carries the run's mark on this machine; a schema rampdeck_{} in a database of your own is not found so",
                entry.run.as_str().replace('-', "_")
            );
            (None, JournalReader::default())
        }
    }
}

/// The schemas that a run without a journal may have made: by the plan. One without the run's mark
/// is never dropped.
fn schemas_of(schemas: &SchemaTargets, journal: &JournalReader) -> Vec<Resource> {
    let assumed = |(configuration, target): (&ConfigurationId, &TargetSpec)| Resource {
        kind: ResourceKind::Schema,
        id: format!("schema {} of {configuration}", target.schema),
        configuration: Some(configuration.clone()),
        process: None,
        path: None,
        port: None,
        note: "by the plan, without a journal".to_owned(),
        state: ResourceState::Intended,
        since: UnixMs::now(),
    };
    let lost = journal.events().is_empty();
    schemas.iter().filter(|_| lost).map(assumed).collect()
}

/// An engine that starts or still ends would remove and make at the same time.
fn own(folder: &RunFolder) -> Result<Option<File>> {
    let lock = File::options().create(true).truncate(false).write(true).open(folder.engine_lock());
    let Ok(lock) = lock else { return Ok(None) };
    if lock.try_lock().is_err() {
        bail!(
            "another process owns the run in {}: wait until it has ended",
            folder.path().display()
        );
    }
    Ok(Some(lock))
}

/// `unknown` says that the registry does not have the run, where that is so.
async fn without_engine(
    entry: &Entry,
    urls: &[String],
    unknown: Option<Report>,
    form: Form,
) -> Result<u8> {
    let (folder, journal) = what_is_left_of(entry);
    let _lock = folder.as_ref().map(own).transpose()?;
    let schemas = schema_targets(entry, folder.as_ref(), urls)?;
    let mut resources = journal.resources();
    resources.extend(schemas_of(&schemas, &journal));
    let target_of = |resource: &Resource| engine::target_of(&schemas, resource);
    let mut events = Journal::open(folder.as_ref(), &journal);
    events.write(EventKind::TeardownStarted {
        by: "command line".to_owned(),
        resources: resources.len().try_into().unwrap_or(u64::MAX),
    });
    let mut shown = Shown::new(form);
    let status = provider::remove(&entry.run, &resources, target_of, |item| shown.show(item)).await;
    if let Some(unknown) = unknown
        && folder.is_none()
        && status.items.is_empty()
    {
        // Most likely a slip of the pen: `remaining 0` would be a lie about the run that was meant.
        return Err(unknown.wrap_err("nothing carries the mark of such a run"));
    }
    for item in status.items.iter().filter(|item| item.gone) {
        events.write(EventKind::ResourceGone { id: item.id.clone() });
    }
    let remaining = status.items.iter().filter(|item| !item.gone).map(|i| i.id.clone()).collect();
    events.write(EventKind::TeardownEnded { remaining_count: status.remaining_count, remaining });
    if journal.run_ended().is_none() {
        events.write(EventKind::RunEnded {
            exit_code: if status.remaining_count == 0 { LOST } else { REMAINS },
            text: "the engine was lost; torn down from the command line".to_owned(),
            folder: entry.folder.clone(),
        });
    }
    if let Some(folder) = &folder {
        summarise(folder, form);
    }
    let _ = std::fs::remove_file(&entry.socket);
    Ok(form.said(status.remaining_count))
}

/// The summary of a run whose engine is gone, from its journal and recordings.
fn summarise(folder: &RunFolder, form: Form) {
    let rebuilt = crate::report::rebuild(folder).and_then(|mut summary| {
        bill(folder, &mut summary)?;
        folder.write_summary(&summary)
    });
    match rebuilt {
        Ok(()) => form.say(&format!("summary at {}", folder.summary().display())),
        Err(error) => tell!("rampdeck: the summary cannot be rebuilt: {error}"),
    }
}

/// Brings the bill up to the teardown: the engine's last word is as old as its last cell. Each
/// configuration bills from its first resource until the teardown ended, and for the attempts in
/// its cells' logs.
fn bill(folder: &RunFolder, summary: &mut Summary) -> Result<(), ReportError> {
    let Ok(plan) = crate::plan::load(crate::plan::PlanSource::File(folder.plan()), &[]) else {
        tell!(
            "rampdeck: the stored plan cannot be read: the costs are those of the last cell's end"
        );
        return Ok(());
    };
    let journal = folder.read_journal()?;
    let mut meter = Meter::new(&plan);
    let mut now = UnixMs::now();
    for event in journal.events() {
        match &event.kind {
            EventKind::ResourceMade { resource } => {
                if let Some(configuration) = &resource.configuration {
                    meter.exists_from(configuration, event.at);
                }
            }
            EventKind::TeardownEnded { remaining_count: 0, .. } => now = event.at,
            _ => {}
        }
    }
    for start in journal.cells_started() {
        if let Some(log) = folder.read_hlog(&start.cell)? {
            meter.attempts(&start.configuration, log.attempts);
        }
    }
    summary.cost.accrued = meter.accrued(now);
    summary.cost.projected = summary.cost.accrued;
    summary.cost.lines = meter.lines(now);
    for configuration in &mut summary.configurations {
        configuration.cost.accrued = meter.accrued_of(&configuration.id, now);
    }
    Ok(())
}

/// How a removal tells what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    /// A line of JSON for each thing that has changed, and one at the end; words go to standard
    /// error.
    Json,
}

impl Form {
    fn say(self, text: &str) {
        match self {
            Self::Text => say!("{text}"),
            Self::Json => tell!("{text}"),
        }
    }

    /// Says how much remains, and gives the exit code that stands for it.
    fn said(self, remaining: u64) -> u8 {
        match self {
            Self::Text => say!("remaining {remaining}"),
            Self::Json => say!("{}", serde_json::json!({ "remaining_count": remaining })),
        }
        if remaining == 0 { 0 } else { REMAINS }
    }
}

/// What has been told of each thing.
struct Shown {
    form: Form,
    states: BTreeMap<String, String>,
}

impl Shown {
    const fn new(form: Form) -> Self {
        Self { form, states: BTreeMap::new() }
    }

    /// Prints a line of progress when it has something new to say.
    fn show(&mut self, item: &TeardownItem) {
        if self.states.get(&item.id) == Some(&item.state) {
            return;
        }
        match self.form {
            Form::Text => say!("  {:<24} {}", item.state, item.kind.named(&item.id)),
            Form::Json => say!("{}", serde_json::json!({ "item": item })),
        }
        self.states.insert(item.id.clone(), item.state.clone());
    }
}

/// The databases of the operator's that a run used, reached by what the plan and the command line
/// say: a stored plan has no password.
fn schema_targets(
    entry: &Entry,
    folder: Option<&RunFolder>,
    urls: &[String],
) -> Result<SchemaTargets> {
    let Some(folder) = folder else {
        if !urls.is_empty() {
            tell!("rampdeck: --url is of no use without the run's plan");
        }
        return Ok(SchemaTargets::new());
    };
    let mut overrides = Vec::new();
    for url in urls {
        let Some((configuration, url)) = url.split_once('=') else {
            return Err(Usage(format!("--url: found `{url}`, allowed: CONFIGURATION=URL")).into());
        };
        overrides.push(format!("configuration.{configuration}.url={url}"));
    }
    let source = crate::plan::PlanSource::File(folder.plan());
    match crate::plan::load(source.clone(), &overrides) {
        Ok(plan) => {
            let targets = engine::schema_targets(&plan, &entry.run);
            if !urls.is_empty() {
                let stored = crate::plan::load(source, &[])?;
                same_databases(&targets, &engine::schema_targets(&stored, &entry.run))?;
            }
            Ok(targets)
        }
        Err(errors) => {
            if !urls.is_empty() {
                return Err(errors.into());
            }
            tell!(
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
    fn open(folder: Option<&RunFolder>, read: &JournalReader) -> Self {
        let cannot = |error: &ReportError| {
            tell!("rampdeck: the journal cannot be written: {error}");
        };
        let writer = folder.and_then(|folder| folder.open_journal().inspect_err(cannot).ok());
        Self { writer, seq: read.last_seq(), epoch: read.last_epoch() + 1 }
    }

    fn write(&mut self, kind: EventKind) {
        self.seq += 1;
        let event =
            crate::model::Event { seq: self.seq, epoch: self.epoch, at: UnixMs::now(), kind };
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.append(&event)
        {
            tell!("rampdeck: the journal cannot be written: {error}");
            self.writer = None;
        }
    }
}

/// Looks whether anything of a run remains.
pub async fn verify(name: &str, urls: &[String]) -> Result<u8> {
    let entry = registry::find(name)?;
    let (folder, journal) = what_is_left_of(&entry);
    let schemas = schema_targets(&entry, folder.as_ref(), urls)?;
    let target_of = |resource: &Resource| engine::target_of(&schemas, resource);
    let mut recorded = journal.recorded();
    recorded.extend(schemas_of(&schemas, &journal));
    let remaining = provider::verify(&entry.run, &recorded, target_of).await;
    for thing in &remaining {
        say!("  {}: {}, {}", thing.kind.named(&thing.id), thing.state, thing.why);
    }
    if entry.is_going_on() {
        say!("the run is going on");
    } else if !remaining.is_empty() {
        say!("remove it with: rampdeck teardown {}", entry.run);
    }
    Ok(Form::Text.said(remaining.len().try_into().unwrap_or(u64::MAX)))
}

/// A URL may bring another user or password, never another database: there the schema would be
/// missed, and taken for gone.
fn same_databases(given: &SchemaTargets, stored: &SchemaTargets) -> Result<()> {
    for (id, target) in given {
        let made_in = stored.get(id);
        let same = made_in
            .is_some_and(|made| made.address == target.address && made.database == target.database);
        if !same {
            let was = made_in.map(|made| format!("{} at {:?}", made.database, made.address));
            return Err(Usage(format!(
                "--url {id}: found database {} at {:?}, allowed: {}, where the schema was made",
                target.database,
                target.address,
                was.unwrap_or_default()
            ))
            .into());
        }
    }
    Ok(())
}
