//! The configurations of a plan: the lab's with their gates, the operator's with their URLs, and
//! each one's price book.

use rust_decimal::Decimal;

use super::{
    address,
    basics::{WEEK, short_name},
    overrides::label,
    password::{self, Environment, Found},
    section::{Item, Section, Span, Whole},
    traffic,
    tree::Value,
    types::{ConfigurationPlan, LoadPlan, PriceLine, PricePer, Source},
};
use crate::model::{ConfigurationId, Dialect, Fault, FaultKind, GateProfile};

const MOST_CONFIGURATIONS: usize = 8;
const KEYS: [&str; 17] = [
    "id",
    "title",
    "kind",
    "gate",
    "faults",
    "url",
    "dialect",
    "password_env",
    "password_file",
    "password_command",
    "password_token",
    "password_lifetime_s",
    "statements",
    "round_trips",
    "pool",
    "connections",
    "prices",
];

/// The configurations; `None` with problems reported.
pub(super) fn configurations(
    root: &Section<'_>,
    plan_argument: &str,
    environment: Environment<'_>,
    load: &LoadPlan,
) -> Option<Vec<ConfigurationPlan>> {
    const ALLOWED: &str = "1 to 8 tables [[configuration]]";
    let item = root.required("configuration", ALLOWED)?;
    let entries = item.entries(ALLOWED, label)?;
    if entries.is_empty() || entries.len() > MOST_CONFIGURATIONS {
        item.report(format!("found {} configurations, allowed: {ALLOWED}", entries.len()));
    }
    let only = entries.len() == 1;
    let mut seen: Vec<String> = Vec::new();
    let mut read = Vec::new();
    for entry in &entries {
        let section = entry.section(&KEYS);
        let id = section.as_ref().and_then(|section| id_of(section, &mut seen));
        let one = section.and_then(|section| {
            let typed_key = match &id {
                Some(id) if !only => format!("configuration.{id}.url"),
                _ => "configuration.url".to_owned(),
            };
            let command = format!(
                "rampdeck run {plan_argument} --set \
                 {typed_key}=postgres://USER@HOST:5432/DATABASE"
            );
            configuration(&section, id, &command, environment, load)
        });
        read.push(one);
    }
    read.into_iter().collect()
}

/// The ids that the plan gives its configurations, whatever else is wrong with them.
pub(super) fn ids(root: &Section<'_>) -> Vec<ConfigurationId> {
    let Some(item) = root.item("configuration") else { return Vec::new() };
    let Value::List(list) = &item.node.value else { return Vec::new() };
    list.iter()
        .filter_map(|node| match &node.value {
            Value::Table(table) => table.get("id")?.as_text().map(ConfigurationId::new),
            _ => None,
        })
        .collect()
}

fn id_of(section: &Section<'_>, seen: &mut Vec<String>) -> Option<ConfigurationId> {
    let item = section.required("id", "a short name such as \"D1\"")?;
    let id = short_name(&item, 12, true, "-_+")?;
    // Names of databases and folders are made from ids: two must differ in more than their case.
    let folded = id.to_lowercase();
    if seen.contains(&folded) {
        item.report(format!("found \"{id}\" a second time, allowed: an id of its own"));
        return None;
    }
    seen.push(folded);
    Some(ConfigurationId::new(id))
}

fn configuration(
    section: &Section<'_>,
    id: Option<ConfigurationId>,
    command: &str,
    environment: Environment<'_>,
    load: &LoadPlan,
) -> Option<ConfigurationPlan> {
    let title = match section.item("title") {
        Some(item) => item.text("a title in words"),
        None => id.as_ref().map(ToString::to_string),
    };
    let kind = section
        .required("kind", "\"lab\" or \"postgres\"")
        .and_then(|item| item.choice(&["lab", "postgres"]));
    let prices = prices(section);
    let shape = traffic::shape(section, load.shape, load.max_connections);
    let life = traffic::life(section, load.life);
    let source = match kind {
        Some("lab") => lab(section),
        Some(_) => postgres(section, command, environment),
        None => None,
    };
    Some(ConfigurationPlan {
        id: id?,
        title: title?,
        source: source?,
        shape: shape?,
        life: life?,
        prices: prices?,
    })
}

fn lab(section: &Section<'_>) -> Option<Source> {
    section.refuse(&["url", "dialect"], "with kind = \"postgres\"");
    section.refuse(&password::KEYS, "with kind = \"postgres\"");
    let gate = match section.item("gate") {
        Some(item) => gate(&item),
        None => Some(GateProfile::default()),
    };
    let faults = faults(section);
    Some(Source::Lab { gate: gate?, faults: faults? })
}

fn gate(item: &Item<'_>) -> Option<GateProfile> {
    let section = item.section(&[
        "round_trip_ms",
        "commit_write_ms",
        "commit_read_ms",
        "statement_ms",
        "jitter",
    ])?;
    let delay = Span::from_to(0.0, 10_000.0, "ms");
    let share = Span::from_to(0.0, 1.0, "(a share of the delay)");
    let round_trip_ms = section.number_or("round_trip_ms", &delay, 0.0);
    let commit_write_ms = section.number_or("commit_write_ms", &delay, 0.0);
    let commit_read_ms = section.number_or("commit_read_ms", &delay, 0.0);
    let statement_ms = section.number_or("statement_ms", &delay, 0.0);
    let jitter = section.number_or("jitter", &share, 0.0);
    Some(GateProfile {
        round_trip_ms: round_trip_ms?,
        commit_write_ms: commit_write_ms?,
        commit_read_ms: commit_read_ms?,
        statement_ms: statement_ms?,
        jitter: jitter?,
    })
}

fn faults(section: &Section<'_>) -> Option<Vec<Fault>> {
    let Some(item) = section.item("faults") else { return Some(Vec::new()) };
    let entries = item.entries("a list of tables [[configuration.faults]]", |_| None)?;
    let faults: Vec<_> = entries.iter().map(fault).collect();
    faults.into_iter().collect()
}

fn fault(item: &Item<'_>) -> Option<Fault> {
    let section = item.section(&["after_s", "for_s", "kind", "every", "sqlstate"])?;
    let after_s = section
        .required("after_s", "seconds after the first transaction of a cell")
        .and_then(|item| item.number(&Span::from_to(0.0, WEEK, "seconds")));
    let for_s =
        section.item("for_s").map(|item| item.number(&Span::above_to(0.0, WEEK, "seconds")));
    let every =
        section.whole_or("every", &Whole { from: 1, to: 1_000_000_000, unit: "commits" }, 1);
    let kinds = ["freeze", "cut_after_commit", "fail_commit"];
    let kind = section
        .required("kind", "\"freeze\" or \"cut_after_commit\" or \"fail_commit\"")
        .and_then(|item| item.choice(&kinds))?;
    let kind = match kind {
        "freeze" => {
            section.refuse(&["every"], "with kind \"cut_after_commit\" or \"fail_commit\"");
            section.refuse(&["sqlstate"], "with kind \"fail_commit\"");
            FaultKind::Freeze
        }
        "cut_after_commit" => {
            section.refuse(&["sqlstate"], "with kind \"fail_commit\"");
            FaultKind::CutAfterCommit { every: every? }
        }
        _ => FaultKind::FailCommit { sqlstate: sqlstate(&section)?, every: every? },
    };
    Some(Fault {
        after_s: after_s?,
        for_s: for_s.map_or(Some(None), |found| found.map(Some))?,
        kind,
    })
}

fn sqlstate(section: &Section<'_>) -> Option<String> {
    const ALLOWED: &str = "an SQLSTATE of an error, five digits and capital letters such as \
                           \"40001\"";
    let item = section.required("sqlstate", ALLOWED)?;
    let text = item.text(ALLOWED)?;
    let fits = text.len() == 5
        && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        // Classes of success, warning and no data: a COMMIT cannot fail with them.
        && !["00", "01", "02"].iter().any(|class| text.starts_with(class));
    if !fits {
        item.report(format!("found {}, allowed: {ALLOWED}", super::tree::quoted(&text)));
        return None;
    }
    Some(text)
}

fn postgres(section: &Section<'_>, command: &str, environment: Environment<'_>) -> Option<Source> {
    section.refuse(&["gate", "faults"], "with kind = \"lab\"");
    let item = section.required("url", &format!("the database's URL; type: {command}"))?;
    let Value::Text(url) = &item.node.value else {
        item.report(format!("found no text, allowed: a URL; type: {command}"));
        return None;
    };
    let mut address = address::parse(url).map_err(|complaint| item.report(complaint)).ok()?;
    if address.target.password.is_none() {
        match password::find(section, &address.target, environment)? {
            Found::Nothing => {}
            Found::Fixed(password) => address.target.password = Some(password),
            Found::Source(source) => address.target.password_source = Some(source),
        }
    }
    address.target.dialect = dialect(section)?;
    Some(Source::Postgres { url: address.url, target: Box::new(address.target) })
}

fn dialect(section: &Section<'_>) -> Option<Dialect> {
    let Some(item) = section.item("dialect") else { return Some(Dialect::default()) };
    item.choice(&["postgres", "dsql"]).map(|name| match name {
        "dsql" => Dialect::Dsql,
        _ => Dialect::Postgres,
    })
}

fn prices(section: &Section<'_>) -> Option<Vec<PriceLine>> {
    let Some(item) = section.item("prices") else { return Some(Vec::new()) };
    let entries = item.entries("a list of tables [[configuration.prices]]", |_| None)?;
    let prices: Vec<_> = entries.iter().map(price).collect();
    prices.into_iter().collect()
}

fn price(item: &Item<'_>) -> Option<PriceLine> {
    let section = item.section(&["item", "per", "price", "quantity", "source"])?;
    let name = section
        .required("item", "what is billed, such as \"ACU\"")
        .and_then(|item| item.text("what is billed, such as \"ACU\""));
    let per = section
        .required("per", "\"hour\" or \"million_attempts\"")
        .and_then(|item| item.choice(&["hour", "million_attempts"]));
    let price =
        section.required("price", "the price of one unit in USD").and_then(|item| item.money());
    let most = Decimal::from(1_000_000_000_u64);
    let quantity = match section.item("quantity") {
        Some(item) => item.decimal(most, "units"),
        None => Some(Decimal::ONE),
    };
    let source = section
        .required("source", "where the price comes from")
        .and_then(|item| item.text("where the price comes from"));
    Some(PriceLine {
        item: name?,
        per: match per? {
            "hour" => PricePer::Hour,
            _ => PricePer::MillionAttempts,
        },
        price: price?,
        quantity: quantity?.to_string(),
        source: source?,
    })
}
