//! What exists, since when, what it costs an hour, and what is left of a teardown.

use std::{cmp::Reverse, time::Duration};

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::model::{
    Basis, ConfigurationId, Resource, ResourceState, Snapshot, TeardownItem, UnixMs,
};

use super::{
    super::{state::State, theme::Theme},
    columns::{Column, Entry, Kind, around, lay},
    figures::{about, money},
    text::{Part, line, wrap_path},
};

const COLUMNS: [Column; 7] = [
    Column { head: "", rank: 0, kind: Kind::Left },
    Column { head: "of", rank: 2, kind: Kind::Left },
    Column { head: "kind", rank: 4, kind: Kind::Left },
    Column { head: "state", rank: 1, kind: Kind::Left },
    Column { head: "age", rank: 5, kind: Kind::Right },
    Column { head: "USD/h", rank: 3, kind: Kind::Right },
    Column { head: "name", rank: 0, kind: Kind::Free },
];

/// Rows that the details of the marked line leave to the list.
const LEAST_LIST: usize = 4;

/// A resource as a line.
pub(in crate::console) struct Item<'a> {
    pub resource: &'a Resource,
    /// Whom it is for: a configuration, or all.
    pub owner: &'a str,
    /// What its owner costs an hour, on the owner's first line.
    pub per_hour: Option<String>,
    /// Its state in words, in a teardown with the reason.
    pub state: String,
    /// When it came into that state.
    pub since: UnixMs,
}

/// What the run has made: by configuration, then what all share; what is gone comes last.
pub(in crate::console) fn items(snapshot: &Snapshot) -> Vec<Item<'_>> {
    let place = |id: &Option<ConfigurationId>| {
        let known = |id: &ConfigurationId| {
            snapshot.configurations.iter().position(|status| status.id == *id)
        };
        id.as_ref().and_then(known).unwrap_or(usize::MAX)
    };
    let mut resources: Vec<&Resource> = snapshot.resources.iter().collect();
    resources.sort_by_key(|resource| {
        (is_gone(resource, snapshot), place(&resource.configuration), Reverse(resource.kind))
    });
    let mut priced: Vec<&ConfigurationId> = Vec::new();
    let mut items = Vec::new();
    for resource in resources {
        let owner = resource.configuration.as_ref();
        let mut per_hour = None;
        if let Some(id) = owner.filter(|id| !priced.contains(id) && !is_gone(resource, snapshot)) {
            priced.push(id);
            let status = snapshot.configurations.iter().find(|status| status.id == *id);
            per_hour = status.map(|status| money(status.per_hour));
        }
        let owner = owner.map_or("all", |id| id.as_str());
        let since = in_teardown(resource, snapshot).map_or(resource.since, |item| item.since);
        items.push(Item { resource, owner, per_hour, state: state_of(resource, snapshot), since });
    }
    items
}

/// A resource's state in words.
fn state_of(resource: &Resource, snapshot: &Snapshot) -> String {
    if let Some(item) = in_teardown(resource, snapshot) {
        return item.state.clone();
    }
    match resource.state {
        ResourceState::Intended => "being made",
        ResourceState::Made => "exists",
        ResourceState::Gone => "gone",
    }
    .to_owned()
}

fn is_gone(resource: &Resource, snapshot: &Snapshot) -> bool {
    let gone = in_teardown(resource, snapshot).is_some_and(|item| item.gone);
    gone || resource.state == ResourceState::Gone
}

fn in_teardown<'a>(resource: &Resource, snapshot: &'a Snapshot) -> Option<&'a TeardownItem> {
    let items = &snapshot.teardown.as_ref()?.items;
    items.iter().find(|item| item.kind == resource.kind && item.id == resource.id)
}

/// Draws the view into the area.
pub(super) fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let Some(snapshot) = state.shown() else { return };
    let (width, rows) = (usize::from(area.width.saturating_sub(1)), usize::from(area.height));
    let items = items(snapshot);
    let marked = state.looks.resource.min(items.len().saturating_sub(1));
    let total = total(snapshot, theme, width);
    let mut below: Vec<Line<'static>> =
        items.get(marked).map(|item| details(item, theme, width)).unwrap_or_default();
    if below.len() + 1 + LEAST_LIST > rows {
        below.clear();
    }
    below.push(total);
    let room = rows.saturating_sub(below.len());
    let mut lines = list(&items, marked, snapshot.at, theme, width, room);
    lines.extend(below);
    lines.truncate(rows);
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    frame.render_widget(Paragraph::new(lines), area);
}

/// The lines that fit, the marked one among them.
fn list(
    items: &[Item<'_>],
    marked: usize,
    now: UnixMs,
    theme: &Theme,
    width: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    if items.is_empty() {
        let text = Line::styled("nothing has been made yet", theme.dim);
        return if rows > 0 { vec![text] } else { Vec::new() };
    }
    let entries: Vec<Vec<Entry>> = items
        .iter()
        .enumerate()
        .map(|(at, item)| entries(item, at == marked, now, theme))
        .collect();
    let laid = lay(&COLUMNS, &entries, theme, width);
    if rows < 3 {
        return around(laid.rows, marked, rows, theme);
    }
    let mut lines = vec![laid.head];
    lines.extend(around(laid.rows, marked, rows - 1, theme));
    lines
}

fn entries(item: &Item<'_>, mark: bool, now: UnixMs, theme: &Theme) -> Vec<Entry> {
    let resource = item.resource;
    let word = item.state.split(':').next().unwrap_or_default();
    let gone = word == "gone";
    let plain = if gone { theme.dim } else { theme.plain };
    let name = match (mark, gone) {
        (true, _) => theme.selected,
        (false, true) => theme.dim,
        (false, false) => theme.strong,
    };
    let symbol = if mark { theme.symbols.marker } else { " " };
    vec![
        Entry::new(symbol, name),
        Entry::new(item.owner, plain),
        Entry::new(resource.kind.words(), plain),
        Entry::new(word, state_style(word, theme)),
        Entry::new(age(item.since, now), plain),
        Entry::new(item.per_hour.clone().unwrap_or_default(), plain),
        Entry::new(resource.id.clone(), name),
    ]
}

/// How long it has been in its state.
fn age(since: UnixMs, now: UnixMs) -> String {
    about(Duration::from_millis(now.0.saturating_sub(since.0)).as_secs())
}

/// The words are those of a teardown's lines, and our own.
fn state_style(word: &str, theme: &Theme) -> Style {
    match word {
        "gone" => theme.good,
        "retrying" | "being made" => theme.warn,
        "remains" => theme.bad,
        _ => theme.plain,
    }
}

/// All that is known of the marked line.
fn details(item: &Item<'_>, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let resource = item.resource;
    let kind = resource.kind.words();
    let name = if resource.id.starts_with(kind) || kind.ends_with(&resource.id) {
        resource.id.clone()
    } else {
        format!("{kind} {}", resource.id)
    };
    let mut facts = vec![name];
    if let Some(process) = resource.process {
        facts.push(format!("process {}", process.pid));
    }
    if let Some(port) = resource.port {
        facts.push(format!("port {port}"));
    }
    // A teardown's state has its reason after a colon.
    let (word, why) = item.state.split_once(':').unwrap_or((item.state.as_str(), ""));
    facts.push(format!("{word} since {}", item.since.time_of_day()));
    facts.extend(Some(why.trim().to_owned()).filter(|why| !why.is_empty()));
    let path = resource.path.as_ref().map(|path| path.display().to_string());
    facts.extend(path.filter(|path| *path != resource.id).map(|path| format!("at {path}")));
    if !resource.note.is_empty() {
        // The note may say the same.
        facts.retain(|fact| !resource.note.contains(fact.as_str()));
        facts.push(resource.note.clone());
    }
    let text = facts.join(theme.symbols.dot);
    let lines = wrap_path(&text, width, &theme.symbols).into_iter();
    let mut details = vec![Line::default()];
    details.extend(lines.map(|text| Line::styled(text, theme.plain)));
    details
}

/// What all of it costs an hour, and what a teardown has left.
fn total(snapshot: &Snapshot, theme: &Theme, width: usize) -> Line<'static> {
    let exist = snapshot.resources.iter().filter(|resource| !is_gone(resource, snapshot)).count();
    let basis = match snapshot.cost.basis {
        Basis::Simulated => " simulated",
        Basis::Measured | Basis::Estimated => "",
    };
    let burn = money(snapshot.cost.per_hour);
    let mut parts = vec![
        Part::new(0, format!("{burn} USD/h in all{basis}"), theme.strong)
            .or(format!("{burn} USD/h")),
        Part::new(2, things(exist), theme.plain),
    ];
    if let Some(teardown) = &snapshot.teardown {
        let left = teardown.remaining_count;
        let (text, style) = match (teardown.ended.is_some(), left) {
            (true, 0) => ("teardown ended, nothing remains".to_owned(), theme.good),
            (true, _) => (format!("teardown ended, {left} REMAIN"), theme.bad),
            (false, _) => (format!("teardown under way, {left} left"), theme.warn),
        };
        parts.push(Part::new(1, text, style));
    }
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}

fn things(count: usize) -> String {
    match count {
        0 => "nothing exists".to_owned(),
        1 => "1 thing exists".to_owned(),
        count => format!("{count} things exist"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixture::{id, snapshot, teardown};

    #[test]
    fn what_a_configuration_costs_is_said_once_and_not_of_what_is_gone() {
        let mut snapshot = snapshot();
        for (at, owner) in [(0, "D1"), (1, "D1"), (2, "R1")] {
            snapshot.resources[at].configuration = Some(id(owner));
        }
        snapshot.resources[2].state = ResourceState::Gone;
        let items = items(&snapshot);
        let owners: Vec<&str> = items.iter().map(|item| item.owner).collect();
        assert_eq!(owners, ["D1", "D1", "all", "all", "R1"]);
        let prices: Vec<Option<&str>> = items.iter().map(|item| item.per_hour.as_deref()).collect();
        assert_eq!(prices, [Some("0.54"), None, None, None, None]);
    }

    #[test]
    fn in_a_teardown_each_thing_has_the_state_of_its_removal() {
        let mut snapshot = snapshot();
        snapshot.teardown = Some(teardown(false));
        let items = items(&snapshot);
        let states: Vec<&str> = items.iter().map(|item| item.state.as_str()).collect();
        assert_eq!(states.first(), Some(&"waiting: after its server"));
        assert_eq!(states.last(), Some(&"gone"));
        assert!(states.contains(&"retrying: still answers on port 5502 (3rd try)"));
    }
}
