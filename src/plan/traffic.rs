//! The shape of a configuration's traffic and the life of its connections: `[load]` says what holds
//! for all, a configuration what is different for it.

use super::{
    basics::WEEK,
    section::{Item, Section, Span, Whole},
    tree::Value,
};
use crate::model::{ConnectionLife, PoolShape, RoundTrips, Shape, Statements};

const STATEMENTS: [&str; 3] = ["prepared", "unnamed", "simple"];
const ROUND_TRIPS: [&str; 2] = ["sequential", "pipelined"];
const DEFAULT_WAIT_TIMEOUT_MS: u64 = 30_000;
/// Openings a second: above it no pace is left to keep.
const MOST_OPENINGS: f64 = 100_000.0;
/// The shortest age at which connections may be replaced, in seconds: below it a cell would do
/// little else.
const LEAST_AGE_S: f64 = 1.0;

/// The shape that a section gives, what it leaves out from `default`; `None` with problems
/// reported. A pool has at most `most` connections in all.
pub(super) fn shape(section: &Section<'_>, default: Shape, most: u32) -> Option<Shape> {
    let statements = match section.item("statements") {
        None => Some(default.statements),
        Some(item) => item.choice(&STATEMENTS).map(|word| match word {
            "unnamed" => Statements::Unnamed,
            "simple" => Statements::Simple,
            _ => Statements::Prepared,
        }),
    };
    let round_trips = match section.item("round_trips") {
        None => Some(default.round_trips),
        Some(item) => item.choice(&ROUND_TRIPS).map(|word| match word {
            "pipelined" => RoundTrips::Pipelined,
            _ => RoundTrips::Sequential,
        }),
    };
    let pool = match section.item("pool") {
        None => Some(default.pool),
        Some(item) => pool(&item, most),
    };
    Some(Shape { statements: statements?, round_trips: round_trips?, pool: pool? })
}

fn pool(item: &Item<'_>, most: u32) -> Option<PoolShape> {
    const ALLOWED: &str = "\"claim\", or a pool such as { size = 16, partitions = 16 }";
    let Value::Table(_) = &item.node.value else {
        return match item.node.as_text() {
            Some("claim") => Some(PoolShape::Claim),
            Some(_) => item.choice(&["claim"]).map(|_| PoolShape::Claim),
            None => {
                item.report(format!("found {}, allowed: {ALLOWED}", item.node.value.found()));
                None
            }
        };
    };
    let section = item.section(&["size", "partitions", "wait_timeout_ms"])?;
    let range = Whole { from: 1, to: most.into(), unit: "connections of one partition" };
    let size = section.required("size", "the connections of one partition");
    let size = size.and_then(|item| item.whole(&range));
    let partitions = Whole { from: 1, to: most.into(), unit: "partitions" };
    let partitions = section.whole_or("partitions", &partitions, 1);
    let wait = Whole { from: 1, to: 3_600_000, unit: "ms" };
    let wait_timeout_ms = section.whole_or("wait_timeout_ms", &wait, DEFAULT_WAIT_TIMEOUT_MS);
    let (size, partitions) = (size?, partitions?);
    let connections = size * partitions;
    if connections > u64::from(most) {
        section.report(format!(
            "found {size} × {partitions} = {connections} connections, allowed: at most {most} in \
             all (load.max_connections)"
        ));
        return None;
    }
    Some(PoolShape::Pool {
        size: u32::try_from(size).ok()?,
        partitions: u32::try_from(partitions).ok()?,
        wait_timeout_ms: wait_timeout_ms?,
    })
}

/// How connections live by a section's table `connections`, what it leaves out from `default`;
/// `None` with problems reported.
pub(super) fn life(section: &Section<'_>, default: ConnectionLife) -> Option<ConnectionLife> {
    let Some(item) = section.item("connections") else { return Some(default) };
    let section = item.section(&["open_per_second", "open_burst", "max_age_s"])?;
    let pace = Span::above_to(0.0, MOST_OPENINGS, "connections a second");
    let open_per_second = section.number_or("open_per_second", &pace, default.open_per_second);
    let burst = Whole { from: 1, to: 100_000, unit: "connections at once" };
    let open_burst = section.whole_or("open_burst", &burst, default.open_burst.into());
    let age = Span::from_to(LEAST_AGE_S, WEEK, "seconds");
    let max_age_s = match section.item("max_age_s") {
        None => Some(default.max_age_s),
        Some(item) => item.number(&age).map(Some),
    };
    Some(ConnectionLife {
        open_per_second: open_per_second?,
        open_burst: u32::try_from(open_burst?).ok()?,
        max_age_s: max_age_s?,
    })
}
