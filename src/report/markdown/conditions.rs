//! What differs between the conditions of cells that a reader will compare.

use std::fmt::Write as _;

use super::{cell_text, cells::Placed, line};
use crate::report::ConditionsSummary;

/// Round trips that differ by more than this share of the shorter one are flagged.
const ROUND_TRIP_TOLERANCE: f64 = 0.25;

/// What a condition of a cell is told as.
type Told = fn(&ConditionsSummary) -> String;

/// Adds a warning for each condition that is not the same for all the cells.
pub(super) fn flags(text: &mut String, cells: &[Placed<'_>]) {
    let mut found = Vec::new();
    let named: [(&str, Told); 5] = [
        ("runner", |c| c.runner.clone()),
        ("zone", |c| c.zone.clone().unwrap_or_default()),
        ("build", |c| c.build.clone()),
        ("shape of the traffic", |c| c.shape.to_string()),
        ("configurations beside", |c| {
            c.beside.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
        }),
    ];
    for (name, value) in named {
        found.extend(differing(name, cells, value));
    }
    found.extend(round_trips(cells));
    if found.is_empty() {
        return;
    }
    line!(text, "> **Conditions differ** between these cells; compare with care.");
    line!(text, ">");
    for flag in found {
        line!(text, "> - {flag}");
    }
    line!(text);
}

fn differing(name: &str, cells: &[Placed<'_>], value: Told) -> Option<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (_, cell) in cells {
        let value = value(&cell.conditions);
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, ids)) => ids.push(cell.id.as_str()),
            None => groups.push((value, vec![cell.id.as_str()])),
        }
    }
    if groups.len() < 2 {
        return None;
    }
    let mut told = String::new();
    for (value, ids) in groups {
        let value = if value.is_empty() { "not recorded or none" } else { &value };
        let separator = if told.is_empty() { "" } else { "; " };
        let _ = write!(told, "{separator}{} ({})", cell_text(value), cell_text(&ids.join(", ")));
    }
    Some(format!("{name}: {told}"))
}

fn round_trips(cells: &[Placed<'_>]) -> Option<String> {
    let mut known: Vec<(f64, &str)> = cells
        .iter()
        .filter_map(|(_, cell)| Some((cell.conditions.round_trip_ms?, cell.id.as_str())))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((shortest, shortest_id), (longest, longest_id)) = (known.first()?, known.last()?);
    (longest - shortest > shortest * ROUND_TRIP_TOLERANCE).then(|| {
        format!(
            "round trip: {shortest:.3} ms ({}) to {longest:.3} ms ({}), more than {:.0} % apart",
            cell_text(shortest_id),
            cell_text(longest_id),
            ROUND_TRIP_TOLERANCE * 100.0
        )
    })
}
