//! The parts of a plan that stand for all configurations and stages: objectives, mix, retries,
//! lab, budget and load.

use std::path::PathBuf;

use rust_decimal::Decimal;

use super::{
    section::{Item, Section, Span, Whole, one_of},
    traffic,
    tree::Value,
    types::{Budget, LabPlan, LoadPlan},
};
use crate::model::{
    Arrivals, ConnectionLife, LatencyObjective, Mix, Money, PoolShape, RetryPolicy, RoundTrips,
    Shape, Slo, Statements,
};

/// The longest span of time that a plan may name, a week, in seconds.
pub(super) const WEEK_S: u64 = 7 * 24 * 3600;
/// The same, for spans with a fraction.
#[expect(clippy::cast_precision_loss, reason = "a week's seconds are exact in f64")]
pub(super) const WEEK: f64 = WEEK_S as f64;
pub(super) const WARMUP: Span = Span::from_to(0.0, 86_400.0, "seconds");
pub(super) const MEASURE: Span = Span::from_to(1.0, 86_400.0, "seconds");
pub(super) const ARRIVALS: [&str; 2] = ["poisson", "constant"];
const MOST_CONNECTIONS: u32 = 10_000;
const MOST_RATE: f64 = 1_000_000.0;

/// Settings of the server that the lab itself decides.
const LABS_OWN_SETTINGS: [&str; 9] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
];

pub(super) fn slo(root: &Section<'_>) -> Option<Slo> {
    let default = Slo::default();
    let Some(item) = root.item("slo") else { return Some(default) };
    let section = item.section(&["read", "write", "failed_percent"])?;
    let read = objective(&section, "read", default.read);
    let write = objective(&section, "write", default.write);
    let percent = Span::from_to(0.0, 100.0, "percent");
    let failed_percent = section.number_or("failed_percent", &percent, default.failed_percent);
    Some(Slo { read: read?, write: write?, failed_percent: failed_percent? })
}

fn objective(slo: &Section<'_>, key: &str, default: LatencyObjective) -> Option<LatencyObjective> {
    let Some(item) = slo.item(key) else { return Some(default) };
    let section = item.section(&["p95_ms", "p99_ms"])?;
    let limit = Span::above_to(0.0, 3_600_000.0, "ms");
    let p95_ms = section.number_or("p95_ms", &limit, default.p95_ms);
    let p99_ms = section.number_or("p99_ms", &limit, default.p99_ms);
    let (p95_ms, p99_ms) = (p95_ms?, p99_ms?);
    if p99_ms < p95_ms {
        let text = format!("found {p99_ms}, allowed: at least p95_ms, which is {p95_ms} ms");
        section.report_at("p99_ms", text);
        return None;
    }
    Some(LatencyObjective { p95_ms, p99_ms })
}

pub(super) fn mix(root: &Section<'_>) -> Option<Mix> {
    let Some(item) = root.item("mix") else { return Some(Mix::default()) };
    let section =
        item.section(&["product_lookup", "order_history", "order_create", "order_cancel"])?;
    let percent = Whole { from: 0, to: 100, unit: "percent" };
    let share = |key| section.whole_or(key, &percent, 0).and_then(|n| u32::try_from(n).ok());
    let product_lookup = share("product_lookup");
    let order_history = share("order_history");
    let order_create = share("order_create");
    let order_cancel = share("order_cancel");
    let mix = Mix {
        product_lookup: product_lookup?,
        order_history: order_history?,
        order_create: order_create?,
        order_cancel: order_cancel?,
    };
    let Mix { product_lookup: a, order_history: b, order_create: c, order_cancel: d } = mix;
    let sum = a + b + c + d;
    if sum != 100 {
        section.report(format!(
            "found {a} + {b} + {c} + {d} = {sum} percent, allowed: exactly 100 in all"
        ));
        return None;
    }
    Some(mix)
}

pub(super) fn retry(root: &Section<'_>) -> Option<RetryPolicy> {
    let default = RetryPolicy::default();
    let Some(item) = root.item("retry") else { return Some(default) };
    let section = item.section(&[
        "max_attempts",
        "base_ms",
        "cap_ms",
        "transaction_timeout_ms",
        "connection_wait_timeout_ms",
    ])?;
    let tries = Whole { from: 1, to: 100, unit: "tries" };
    let backoff = Span::from_to(0.0, 600_000.0, "ms");
    let timeout = Whole { from: 1, to: 3_600_000, unit: "ms" };
    let max_attempts = section.whole_or("max_attempts", &tries, default.max_attempts.into());
    let base_ms = section.number_or("base_ms", &backoff, default.base_ms);
    let cap_ms = section.number_or("cap_ms", &backoff, default.cap_ms);
    let timeout_ms = |key, default| section.whole_or(key, &timeout, default);
    let transaction = timeout_ms("transaction_timeout_ms", default.transaction_timeout_ms);
    let wait = timeout_ms("connection_wait_timeout_ms", default.connection_wait_timeout_ms);
    if let (Some(base), Some(cap)) = (base_ms, cap_ms)
        && cap < base
    {
        section.report_at(
            "cap_ms",
            format!("found {cap}, allowed: at least base_ms, which is {base}"),
        );
    }
    Some(RetryPolicy {
        max_attempts: u32::try_from(max_attempts?).ok()?,
        base_ms: base_ms?,
        cap_ms: cap_ms?,
        transaction_timeout_ms: transaction?,
        connection_wait_timeout_ms: wait?,
    })
}

pub(super) fn lab(root: &Section<'_>) -> Option<LabPlan> {
    let Some(item) = root.item("lab") else { return Some(LabPlan::default()) };
    let section = item.section(&["bin_dir", "settings"])?;
    let bin_dir = section.item("bin_dir").map(|item| folder(&item));
    let settings = section.item("settings").map(|item| settings(&item));
    Some(LabPlan {
        bin_dir: bin_dir.map_or(Some(None), |found| found.map(Some))?,
        settings: settings.unwrap_or_default(),
    })
}

fn folder(item: &Item<'_>) -> Option<PathBuf> {
    let text = item.text("a folder with the programs initdb and postgres")?;
    std::path::absolute(text).ok()
}

fn settings(item: &Item<'_>) -> std::collections::BTreeMap<String, String> {
    let mut settings = std::collections::BTreeMap::new();
    let Value::Table(table) = &item.node.value else {
        item.report(format!(
            "found {}, allowed: a table such as {{ shared_buffers = \"256MB\" }}",
            item.node.value.found()
        ));
        return settings;
    };
    for (name, node) in table {
        let item = item.child(name, node);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
            item.report("found a name that no setting has, allowed: lower-case letters, digits, _");
        } else if LABS_OWN_SETTINGS.contains(&name.as_str()) {
            item.report("found a setting that the lab makes itself, allowed: any other one");
        } else if let Some(value) = setting(&item) {
            settings.insert(name.clone(), value);
        }
    }
    settings
}

fn setting(item: &Item<'_>) -> Option<String> {
    match &item.node.value {
        Value::Integer(integer) => Some(integer.to_string()),
        Value::Float(text) => Some(text.clone()),
        Value::Boolean(flag) => Some(if *flag { "on" } else { "off" }.to_owned()),
        // An empty text is a value that settings take.
        Value::Text(text) if text.is_empty() => Some(String::new()),
        _ => item.text("a text, a number, true or false"),
    }
}

pub(super) fn budget(root: &Section<'_>) -> Option<Budget> {
    const ALLOWED: &str = "a table [budget] with cap, the most that the run may cost in USD";
    let section = root.required("budget", ALLOWED)?.section(&["cap", "guard"])?;
    let positive = |item: Item<'_>| {
        let money = item.money()?;
        if money == Money::ZERO {
            item.report("found 0, allowed: above 0 USD (at 0 a run ends before it begins)");
            return None;
        }
        Some(money)
    };
    let guard = section.item("guard").map(positive);
    let cap =
        section.required("cap", "the most that the run may cost in USD").and_then(positive)?;
    let guard = match guard {
        Some(guard) => guard?,
        // As the published experiments had it: 54 of 60.
        None => Money::new((cap.amount() * Decimal::new(9, 1)).normalize()),
    };
    if guard > cap {
        let text = format!("found {}, allowed: at most the cap, {}", guard.amount(), cap.amount());
        section.report_at("guard", text);
        return None;
    }
    Some(Budget { cap, guard })
}

/// What a plan without a `[load]` has.
pub(super) const DEFAULT_LOAD: LoadPlan = LoadPlan {
    arrivals: Arrivals::Poisson,
    open_connections: 16,
    warmup_s: 10.0,
    measure_s: 60.0,
    settle_s: 5.0,
    drain_s: 30.0,
    max_rate: 10_000.0,
    max_connections: MOST_CONNECTIONS,
    backlog: None,
    shape: Shape {
        statements: Statements::Prepared,
        round_trips: RoundTrips::Sequential,
        pool: PoolShape::Claim,
    },
    life: ConnectionLife::DOCUMENTED,
};

pub(super) fn load(root: &Section<'_>) -> Option<LoadPlan> {
    let default = DEFAULT_LOAD;
    let Some(item) = root.item("load") else { return Some(default) };
    let section = item.section(&[
        "arrivals",
        "open_connections",
        "warmup_s",
        "measure_s",
        "settle_s",
        "drain_s",
        "max_rate",
        "max_connections",
        "backlog",
        "statements",
        "round_trips",
        "pool",
        "connections",
    ])?;
    let arrivals = arrivals(&section, default.arrivals);
    let most = Whole { from: 1, to: MOST_CONNECTIONS.into(), unit: "connections" };
    let max_connections =
        section.whole_or("max_connections", &most, default.max_connections.into());
    let most = max_connections.and_then(|n| u32::try_from(n).ok()).unwrap_or(MOST_CONNECTIONS);
    let range = connections_range(most);
    let shape = traffic::shape(&section, default.shape, most);
    let life = traffic::life(&section, default.life);
    let open_connections = section.whole_or(
        "open_connections",
        &range,
        u64::from(default.open_connections).min(range.to),
    );
    let warmup_s = section.number_or("warmup_s", &WARMUP, default.warmup_s);
    let measure_s = section.number_or("measure_s", &MEASURE, default.measure_s);
    let settle_s = section.number_or("settle_s", &WARMUP, default.settle_s);
    let drain = Span::from_to(0.0, 3_600.0, "seconds");
    let drain_s = section.number_or("drain_s", &drain, default.drain_s);
    let max_rate = section.number_or("max_rate", &rate_span(MOST_RATE), default.max_rate);
    let waiting = Whole { from: 1, to: 100_000_000, unit: "arrivals" };
    let backlog = section.item("backlog").map(|item| item.whole(&waiting));
    warmup_fits(&section, warmup_s?, measure_s?)?;
    Some(LoadPlan {
        arrivals: arrivals?,
        open_connections: u32::try_from(open_connections?).ok()?,
        warmup_s: warmup_s?,
        measure_s: measure_s?,
        settle_s: settle_s?,
        drain_s: drain_s?,
        max_rate: max_rate?,
        max_connections: u32::try_from(max_connections?).ok()?,
        backlog: backlog.map_or(Some(None), |found| found.map(Some))?,
        shape: shape?,
        life: life?,
    })
}

/// A warm-up must not be longer than what it warms up for.
pub(super) fn warmup_fits(section: &Section<'_>, warmup_s: f64, measure_s: f64) -> Option<()> {
    if warmup_s <= measure_s {
        return Some(());
    }
    let key = if section.has("warmup_s") { "warmup_s" } else { "measure_s" };
    section.report_at(
        key,
        format!(
            "found a warm-up of {warmup_s} s for a measured span of {measure_s} s, allowed: a \
             warm-up that is not longer than the measured span"
        ),
    );
    None
}

pub(super) fn arrivals(section: &Section<'_>, default: Arrivals) -> Option<Arrivals> {
    let Some(item) = section.item("arrivals") else { return Some(default) };
    match item.choice(&ARRIVALS)? {
        "constant" => Some(Arrivals::Constant),
        _ => Some(Arrivals::Poisson),
    }
}

pub(super) const fn connections_range(most: u32) -> Whole {
    Whole { from: 1, to: most as u64, unit: "connections" }
}

pub(super) const fn rate_span(most: f64) -> Span {
    Span::above_to(0.0, most, "arrivals/s")
}

pub(super) fn notify(root: &Section<'_>) -> Option<Option<Vec<String>>> {
    const ALLOWED: &str = "a command and its arguments, such as [\"notify-send\", \"rampdeck\"]";
    let Some(item) = root.item("notify") else { return Some(None) };
    let entries = item.entries(ALLOWED, |_| None)?;
    if entries.is_empty() {
        item.report(format!("found an empty list, allowed: {ALLOWED}"));
        return None;
    }
    let words: Vec<_> = entries.iter().map(|entry| entry.text("a text")).collect();
    words.into_iter().collect::<Option<Vec<_>>>().map(Some)
}

/// A name made of letters, digits and some signs, beginning with a letter or digit.
pub(super) fn short_name(
    item: &Item<'_>,
    most: usize,
    upper_case: bool,
    signs: &str,
) -> Option<String> {
    let letters = if upper_case { "letters" } else { "lower-case letters" };
    let listed: Vec<String> = signs.chars().map(String::from).collect();
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let allowed = format!(
        "1 to {most} {letters}, digits and {}, the first a letter or digit",
        one_of(&listed)
    );
    let text = item.text(&allowed)?;
    let letter = |c: char| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || (upper_case && c.is_ascii_uppercase())
    };
    let fits = text.len() <= most
        && text.starts_with(letter)
        && text.chars().all(|c| letter(c) || signs.contains(c));
    if !fits {
        item.report(format!("found {}, allowed: {allowed}", super::tree::quoted(&text)));
        return None;
    }
    Some(text)
}
