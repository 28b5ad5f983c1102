//! A plan back into TOML: as it was run, defaults filled in, without a secret.

use std::fmt::{Display, Write};

use super::types::{
    ConfigurationPlan, OptionAction, OptionPlan, Plan, PricePer, Source, Stage, StageKind,
};
use crate::model::{ConnectionLife, Fault, FaultKind, Load, PasswordSource, PoolShape, Shape};

/// The plan as TOML. Loading it gives an equal plan, but for passwords, which it does not hold.
#[must_use]
pub fn to_toml(plan: &Plan) -> String {
    let mut out = Writer::default();
    out.text("name", &plan.name);
    out.plain("seed", plan.seed);
    out.number("scale", plan.scale);
    out.plain("hold_s", plan.hold_s);
    if let Some(words) = &plan.notify {
        out.list("notify", words.iter().map(|w| quoted(w)));
    }
    if let Some(zone) = &plan.zone {
        out.text("zone", zone);
    }
    judgement(&mut out, plan);
    limits(&mut out, plan);
    plan.configurations.iter().for_each(|c| configuration(&mut out, c));
    plan.stages.iter().for_each(|s| stage(&mut out, s, plan.load.open_connections));
    out.0
}

fn judgement(out: &mut Writer, plan: &Plan) {
    out.header("[slo]");
    out.number("failed_percent", plan.slo.failed_percent);
    for (kind, objective) in [("read", plan.slo.read), ("write", plan.slo.write)] {
        out.header(&format!("[slo.{kind}]"));
        out.number("p95_ms", objective.p95_ms);
        out.number("p99_ms", objective.p99_ms);
    }
    out.header("[mix]");
    out.plain("product_lookup", plan.mix.product_lookup);
    out.plain("order_history", plan.mix.order_history);
    out.plain("order_create", plan.mix.order_create);
    out.plain("order_cancel", plan.mix.order_cancel);
    let retry = &plan.retry;
    out.header("[retry]");
    out.plain("max_attempts", retry.max_attempts);
    out.number("base_ms", retry.base_ms);
    out.number("cap_ms", retry.cap_ms);
    out.plain("transaction_timeout_ms", retry.transaction_timeout_ms);
    out.plain("connection_wait_timeout_ms", retry.connection_wait_timeout_ms);
}

fn limits(out: &mut Writer, plan: &Plan) {
    let lab = &plan.lab;
    if let Some(folder) = &lab.bin_dir {
        out.header("[lab]");
        out.text("bin_dir", &folder.to_string_lossy());
    }
    if !lab.settings.is_empty() {
        out.header("[lab.settings]");
        for (name, value) in &lab.settings {
            out.text(&quoted(name), value);
        }
    }
    out.header("[budget]");
    out.text("cap", &plan.budget.cap.amount().to_string());
    out.text("guard", &plan.budget.guard.amount().to_string());
    let load = &plan.load;
    out.header("[load]");
    out.text("arrivals", &load.arrivals.to_string());
    out.plain("open_connections", load.open_connections);
    out.number("warmup_s", load.warmup_s);
    out.number("measure_s", load.measure_s);
    out.number("settle_s", load.settle_s);
    out.number("drain_s", load.drain_s);
    out.number("max_rate", load.max_rate);
    out.plain("max_connections", load.max_connections);
    if let Some(backlog) = load.backlog {
        out.plain("backlog", backlog);
    }
    shape(out, load.shape);
    out.header("[load.connections]");
    life(out, load.life);
}

fn shape(out: &mut Writer, shape: Shape) {
    out.text("statements", &shape.statements.to_string());
    out.text("round_trips", &shape.round_trips.to_string());
    match shape.pool {
        PoolShape::Claim => out.text("pool", "claim"),
        PoolShape::Pool { size, partitions, wait_timeout_ms } => out.plain(
            "pool",
            format_args!(
                "{{ size = {size}, partitions = {partitions}, wait_timeout_ms = {wait_timeout_ms} }}"
            ),
        ),
    }
}

fn life(out: &mut Writer, life: ConnectionLife) {
    out.number("open_per_second", life.open_per_second);
    out.plain("open_burst", life.open_burst);
    if let Some(seconds) = life.max_age_s {
        out.number("max_age_s", seconds);
    }
}

fn configuration(out: &mut Writer, configuration: &ConfigurationPlan) {
    out.header("[[configuration]]");
    out.text("id", configuration.id.as_str());
    out.text("title", &configuration.title);
    out.text("kind", configuration.source.kind());
    shape(out, configuration.shape);
    match &configuration.source {
        Source::Postgres { url, target } => {
            out.text("url", url);
            out.text("dialect", &target.dialect.to_string());
            if let Some(source) = &target.password_source {
                match source {
                    PasswordSource::Command(command) => {
                        out.list("password_command", command.words.iter().map(|word| quoted(word)));
                    }
                    PasswordSource::DsqlToken(_) => out.text("password_token", "dsql"),
                }
                out.plain("password_lifetime_s", source.lifetime_ms() / 1_000);
            }
        }
        Source::Lab { gate, faults } => {
            out.header("[configuration.gate]");
            out.number("round_trip_ms", gate.round_trip_ms);
            out.number("commit_write_ms", gate.commit_write_ms);
            out.number("commit_read_ms", gate.commit_read_ms);
            out.number("statement_ms", gate.statement_ms);
            out.number("jitter", gate.jitter);
            faults.iter().for_each(|f| fault(out, f));
        }
    }
    out.header("[configuration.connections]");
    life(out, configuration.life);
    for price in &configuration.prices {
        out.header("[[configuration.prices]]");
        out.text("item", &price.item);
        out.text(
            "per",
            match price.per {
                PricePer::Hour => "hour",
                PricePer::MillionAttempts => "million_attempts",
            },
        );
        out.text("price", &price.price.amount().to_string());
        out.text("quantity", &price.quantity);
        out.text("source", &price.source);
    }
}

fn fault(out: &mut Writer, fault: &Fault) {
    out.header("[[configuration.faults]]");
    out.number("after_s", fault.after_s);
    if let Some(seconds) = fault.for_s {
        out.number("for_s", seconds);
    }
    match &fault.kind {
        FaultKind::Freeze => out.text("kind", "freeze"),
        FaultKind::CutAfterCommit { every } => {
            out.text("kind", "cut_after_commit");
            out.plain("every", every);
        }
        FaultKind::FailCommit { sqlstate, every } => {
            out.text("kind", "fail_commit");
            out.text("sqlstate", sqlstate);
            out.plain("every", every);
        }
    }
}

fn stage(out: &mut Writer, stage: &Stage, usual_connections: u32) {
    out.header("[[stage]]");
    out.text("name", &stage.name);
    match &stage.kind {
        StageKind::Cells { configurations, levels, warmup_s, measure_s, side_by_side } => {
            out.list("configurations", configurations.iter().map(|id| quoted(id.as_str())));
            self::levels(out, levels, usual_connections);
            out.number("warmup_s", *warmup_s);
            out.number("measure_s", *measure_s);
            out.plain("side_by_side", side_by_side);
        }
        StageKind::Decision { question, options, safe, deadline_s } => {
            out.header("[stage.decision]");
            out.text("question", question);
            out.text("safe", safe);
            out.plain("deadline_s", deadline_s);
            options.iter().for_each(|o| option(out, o));
        }
    }
}

/// `usual` connections of an open loop are left out: a configuration with a pool has its own.
fn levels(out: &mut Writer, levels: &[Load], usual: u32) {
    let rates: Vec<_> = levels.iter().filter_map(|level| level.rate()).collect();
    if !rates.is_empty() {
        out.list("open", rates.iter().map(|rate| format!("{rate:?}")));
    }
    // The open levels of a stage share their arrivals and connections.
    if let Some(Load::Open { arrivals, connections, .. }) =
        levels.iter().find(|level| level.rate().is_some())
    {
        out.text("arrivals", &arrivals.to_string());
        if *connections != usual {
            out.plain("connections", connections);
        }
    }
    let closed = |level: &Load| match level {
        Load::Closed { connections } => Some(connections.to_string()),
        Load::Open { .. } => None,
    };
    let counts: Vec<_> = levels.iter().filter_map(closed).collect();
    if !counts.is_empty() {
        out.list("closed", counts.into_iter());
    }
}

fn option(out: &mut Writer, option: &OptionPlan) {
    out.header("[[stage.decision.options]]");
    out.text("key", &option.key);
    out.text("label", &option.label);
    out.text(
        "action",
        match option.action {
            OptionAction::Continue => "continue",
            OptionAction::ContinueWithout { .. } => "continue_without",
            OptionAction::Hold => "hold",
            OptionAction::Teardown => "teardown",
        },
    );
    if let OptionAction::ContinueWithout { without } = &option.action {
        out.list("without", without.iter().map(|id| quoted(id.as_str())));
    }
}

/// A text as TOML has it, with its quotes.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[derive(Default)]
struct Writer(String);

impl Writer {
    fn header(&mut self, header: &str) {
        self.0.push('\n');
        self.0.push_str(header);
        self.0.push('\n');
    }

    fn plain(&mut self, key: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.plain(key, quoted(value));
    }

    /// The shortest text that reads back as the same number.
    fn number(&mut self, key: &str, value: f64) {
        self.plain(key, format_args!("{value:?}"));
    }

    fn list(&mut self, key: &str, values: impl Iterator<Item = String>) {
        self.plain(key, format_args!("[{}]", values.collect::<Vec<_>>().join(", ")));
    }
}
