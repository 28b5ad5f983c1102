//! `rampdeck schema` and `rampdeck data`: the tables of a configuration, and loading and looking at
//! its data without a run.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use color_eyre::eyre::{Result, bail};
use serde_json::json;

use super::{
    Usage,
    args::{DataArgs, LoadArgs},
    exit,
};
use crate::{
    cost,
    model::{ConfigurationId, Money, TargetSpec, format_duration},
    plan::{self, ConfigurationPlan, Plan, PlanSource, Source},
    workload::{
        WorkloadError,
        data::{self, DataStatus, LoadOrder, LoadProgress, LoadStep},
        schema,
    },
};

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Prints what makes a configuration's tables.
pub fn print_schema(configuration: &str, plan: PlanSource, name: &str) -> Result<u8> {
    let plan = plan::load(plan, &[])?;
    let configuration = find(&plan, configuration)?;
    let dialect = configuration.source.dialect();
    say!("-- {}, {dialect}: each statement is a transaction of its own", configuration.id);
    for line in schema::statements(name, dialect) {
        say!("{line}");
    }
    Ok(exit::DONE)
}

fn find<'a>(plan: &'a Plan, id: &str) -> Result<&'a ConfigurationPlan> {
    let wanted = ConfigurationId::new(id);
    if let Some(found) = plan.configurations.iter().find(|one| one.id == wanted) {
        return Ok(found);
    }
    let ids: Vec<_> = plan.configurations.iter().map(|one| one.id.as_str()).collect();
    let ids = ids.join(", ");
    Err(Usage(format!("the plan has no configuration {id}, it has {ids}")).into())
}

/// A configuration with a database of its own.
struct Chosen {
    plan: Plan,
    configuration: ConfigurationPlan,
    target: TargetSpec,
}

impl Chosen {
    fn of(args: &DataArgs) -> Result<Self> {
        let plan = plan::load(PlanSource::File(args.plan.clone()), &args.overrides)?;
        let configuration = find(&plan, &args.configuration)?.clone();
        let Source::Postgres { target, .. } = &configuration.source else {
            bail!(Usage(format!(
                "{} is of the lab, whose databases come and go with a run: kind = \"postgres\" is needed",
                configuration.id
            )));
        };
        let target = TargetSpec { schema: args.schema.clone(), ..TargetSpec::clone(target) };
        Ok(Self { plan, configuration, target })
    }

    /// What the configuration's existence costs for so long; `None` where the plan has no such price.
    fn price(&self, seconds: f64) -> Option<Money> {
        let hourly = cost::hourly(&self.configuration);
        (hourly > Money::ZERO).then(|| hourly.times(seconds / 3_600.0))
    }
}

/// Loads a configuration's data, or goes on with a load that was cut off; verifies what is there.
pub async fn load(args: &LoadArgs) -> Result<u8> {
    let chosen = Chosen::of(&args.data)?;
    let Chosen { plan, target, .. } = &chosen;
    let order = LoadOrder { scale: plan.scale, seed: plan.seed, workers: args.workers };
    let teller = Teller::new(&chosen, args.data.json);
    match data::load_with(target, order, |progress| teller.hear(&progress)).await {
        Ok(report) => {
            let rows = report.rows.total();
            let rate = rate(report.loaded, report.loading_s);
            if args.data.json {
                say!(
                    "{}",
                    json!({
                        "event": "loaded", "rows": rows, "loaded": report.loaded,
                        "loading_s": report.loading_s, "seconds": report.seconds,
                        "rows_per_s": rate, "retries": report.retries,
                    })
                );
            } else {
                say!(
                    "{rows} rows in schema {}, counted and verified: {} loaded now at {rate:.0}/s, {} in all{}",
                    target.schema,
                    report.loaded,
                    format_duration(report.seconds),
                    chosen.price(report.seconds).map_or_else(String::new, |p| format!(", USD {p}")),
                );
            }
            Ok(exit::DONE)
        }
        Err(WorkloadError::AlreadyThere { .. }) if is_loaded(&chosen).await? => {
            let rows = data::verify_rows(target, plan.scale, plan.seed).await?.total();
            say_there(args.data.json, rows, &target.schema);
            Ok(exit::DONE)
        }
        Err(error) => Err(error.into()),
    }
}

fn say_there(as_json: bool, rows: u64, schema: &str) {
    if as_json {
        say!("{}", json!({ "event": "loaded", "rows": rows, "loaded": 0 }));
    } else {
        say!("{rows} rows were in schema {schema} already: counted and verified");
    }
}

async fn is_loaded(chosen: &Chosen) -> Result<bool> {
    Ok(data::status(&chosen.target, chosen.plan.scale).await?.is_loaded)
}

#[expect(clippy::cast_precision_loss, reason = "rows of ours fit 53 bits")]
fn rate(rows: u64, seconds: f64) -> f64 {
    rows as f64 / seconds.max(1e-9)
}

/// Tells how a load is getting on, about once a second and at each step.
struct Teller<'a> {
    chosen: &'a Chosen,
    as_json: bool,
    began: Instant,
    last: Mutex<Option<(LoadStep, Instant)>>,
}

impl<'a> Teller<'a> {
    fn new(chosen: &'a Chosen, as_json: bool) -> Self {
        Self { chosen, as_json, began: Instant::now(), last: Mutex::new(None) }
    }

    fn hear(&self, progress: &LoadProgress) {
        let now = Instant::now();
        {
            let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let is_due = last.is_none_or(|(step, at)| {
                step != progress.step || now.duration_since(at) >= TELL_EVERY
            });
            if !is_due {
                return;
            }
            *last = Some((progress.step, now));
        }
        let price = self.chosen.price(self.began.elapsed().as_secs_f64());
        if self.as_json {
            say!("{}", as_json(progress, price));
        } else {
            tell!("{}", in_words(progress, price));
        }
    }
}

const fn word(step: LoadStep) -> &'static str {
    match step {
        LoadStep::Rows => "loading",
        LoadStep::Indexes => "building indexes",
        LoadStep::Statistics => "gathering statistics",
        LoadStep::Verify => "verifying",
    }
}

fn as_json(progress: &LoadProgress, price: Option<Money>) -> serde_json::Value {
    json!({
        "event": "loading", "step": word(progress.step), "rows": progress.rows, "of": progress.of,
        "rows_per_s": progress.rows_per_s, "eta_s": progress.eta_s, "workers": progress.workers,
        "retries": progress.retries, "usd": price,
    })
}

fn in_words(progress: &LoadProgress, price: Option<Money>) -> String {
    let mut text = word(progress.step).to_owned();
    if matches!(progress.step, LoadStep::Rows | LoadStep::Verify) {
        let LoadProgress { rows, of, rows_per_s, .. } = progress;
        text.push_str(&format!(": {rows} of {of} rows, {rows_per_s:.0}/s"));
        if let Some(seconds) = progress.eta_s {
            text.push_str(&format!(", {} left", format_duration(seconds)));
        }
    }
    if progress.retries > 0 {
        text.push_str(&format!(", {} tried again", progress.retries));
    }
    if let Some(price) = price {
        text.push_str(&format!(", USD {price} so far"));
    }
    text
}

/// Says what a configuration's data is now, and what a fresh load would take.
pub async fn print_status(args: &DataArgs) -> Result<u8> {
    let chosen = Chosen::of(args)?;
    let status = data::status(&chosen.target, chosen.plan.scale).await?;
    let price = status.fresh_load_s.and_then(|seconds| chosen.price(seconds));
    if args.json {
        say!("{}", status_as_json(&chosen, &status, price));
    } else {
        say_status(&chosen, &status, price);
    }
    Ok(exit::DONE)
}

fn status_as_json(chosen: &Chosen, status: &DataStatus, price: Option<Money>) -> serde_json::Value {
    let tables = status.tables.iter().map(|table| {
        json!({
            "table": table.table, "due": table.due, "loaded": table.loaded, "grown": table.grown,
        })
    });
    json!({
        "configuration": chosen.configuration.id, "schema": chosen.target.schema,
        "scale": chosen.plan.scale, "is_loaded": status.is_loaded,
        "tables": tables.collect::<Vec<_>>(), "growth_percent": status.growth_percent(),
        "fresh_load": { "seconds": status.fresh_load_s, "usd": price },
    })
}

fn say_status(chosen: &Chosen, status: &DataStatus, price: Option<Money>) {
    let (id, schema) = (&chosen.configuration.id, &chosen.target.schema);
    if status.tables.is_empty() {
        say!("{id}: nothing is loaded in schema {schema}");
        return;
    }
    let standing = if status.is_loaded { "loaded" } else { "a load was begun and has not ended" };
    say!("{id}, schema {schema}, scale {}: {standing}", chosen.plan.scale);
    say!("  {:<12} {:>12} {:>12} {:>12}", "table", "due", "loaded", "by cells");
    for table in &status.tables {
        say!("  {:<12} {:>12} {:>12} {:>12}", table.table, table.due, table.loaded, table.grown);
    }
    say!("  grown by {:.2} % of the rows that a load has", status.growth_percent());
    match (status.fresh_load_s, price) {
        (None, _) => say!("  a fresh load: not known, none has ended here"),
        (Some(seconds), None) => {
            say!(
                "  a fresh load: about {} as the last one went; the plan has no price by the hour",
                format_duration(seconds)
            );
        }
        (Some(seconds), Some(price)) => say!(
            "  a fresh load: about {} as the last one went, USD {price} by the hour (what each row costs is in no price of the plan)",
            format_duration(seconds)
        ),
    }
}
