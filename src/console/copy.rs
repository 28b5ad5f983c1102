//! The figures of a view as text for the clipboard: a table with tabs, which a spreadsheet takes.

use crate::model::{
    Class, ClassLatency, ConfigurationStatus, Level, Load, PerClass, Snapshot, Tps, Verdict,
};

use super::{
    record::EndedCell,
    state::{State, View},
    view::{log, resources},
};

/// What the view that is shown has to give, a head line first; `None` where it has nothing yet.
pub(super) fn text(state: &State) -> Option<String> {
    let snapshot = state.shown()?;
    let lines = match state.view {
        View::Overview => configurations(snapshot.configurations.iter()),
        View::Configuration => configurations(snapshot.configurations.get(state.selected)),
        View::Compare => cells(state),
        View::Cells => [queue(snapshot), cells(state)].concat(),
        View::Resources => things(snapshot),
        View::Log => events(state),
    };
    (lines.len() > 1).then(|| lines.join("\n"))
}

/// Cells of a line with tabs between them; what came from elsewhere keeps to its own cell.
fn row(cells: impl IntoIterator<Item = String>) -> String {
    let own = |cell: String| cell.replace(['\t', '\n', '\r'], " ");
    cells.into_iter().map(own).collect::<Vec<_>>().join("\t")
}

fn words(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn figure(value: f64) -> String {
    format!("{value:.1}")
}

fn figure_or_none(value: Option<f64>) -> String {
    value.map(figure).unwrap_or_default()
}

fn rates(tps: Tps) -> [String; 3] {
    [tps.offered, tps.achieved, tps.succeeded].map(figure)
}

const RATES: [&str; 3] = ["offered/s", "achieved/s", "succeeded/s"];

/// Heads of the columns of [`latencies`].
fn latency_heads() -> Vec<String> {
    let heads = |class: Class| ["p95", "p99"].map(|name| format!("{} {name} ms", class.words()));
    Class::ALL.into_iter().flat_map(heads).collect()
}

fn latencies(classes: &PerClass<ClassLatency>) -> Vec<String> {
    let both = |class: Class| [classes[class].p95_ms, classes[class].p99_ms].map(figure_or_none);
    Class::ALL.into_iter().flat_map(both).collect()
}

/// Every configuration's running cell, or else its last one; one without any has no line.
fn configurations<'a>(all: impl IntoIterator<Item = &'a ConfigurationStatus>) -> Vec<String> {
    let mut head = words(&["configuration", "cell", "load"]);
    head.extend(words(&RATES));
    head.extend(latency_heads());
    head.extend(words(&["connection wait p99 ms", "verdict"]));
    let mut lines = vec![row(head)];
    for status in all {
        let (cell, load, tps, classes, wait, verdict) = match (&status.cell, &status.last) {
            (Some(cell), _) => {
                let wait = cell.connection_wait_p99_ms;
                (&cell.id, cell.load, cell.tps, &cell.classes, wait, "running".to_owned())
            }
            (None, Some(last)) => {
                let (wait, verdict) = (last.connection_wait_p99_ms, last.verdict.to_string());
                (&last.id, last.load, last.tps, &last.classes, wait, verdict)
            }
            (None, None) => continue,
        };
        lines.push(cell_row(
            [status.id.to_string(), cell.to_string()],
            load,
            tps,
            classes,
            [figure_or_none(wait), verdict],
        ));
    }
    lines
}

fn cell_row<const N: usize>(
    names: [String; 2],
    load: Load,
    tps: Tps,
    classes: &PerClass<ClassLatency>,
    rest: [String; N],
) -> String {
    let cells = names.into_iter().chain([load.to_string()]).chain(rates(tps));
    row(cells.chain(latencies(classes)).chain(rest))
}

/// The cells that wait, under a head of their own; nothing where none does.
fn queue(snapshot: &Snapshot) -> Vec<String> {
    if snapshot.queue.is_empty() {
        return Vec::new();
    }
    let head =
        ["configuration", "waits at", "load", "stage", "warm-up s", "measure s", "takes s", "USD"];
    let mut lines = vec![row(words(&head))];
    for (at, cell) in snapshot.queue.iter().enumerate() {
        lines.push(row([
            cell.configuration.to_string(),
            (at + 1).to_string(),
            cell.load.to_string(),
            cell.stage.clone(),
            figure(cell.warmup_s),
            figure(cell.measure_s),
            figure(cell.takes_s),
            cell.spends.amount().to_string(),
        ]));
    }
    lines
}

/// The cells that have ended, the newest first as they are shown.
fn cells(state: &State) -> Vec<String> {
    let mut head = words(&["configuration", "cell", "load"]);
    head.extend(words(&RATES));
    head.extend(latency_heads());
    head.extend(words(&["connection wait p99 ms", "verdict", "why", "tail", "stage"]));
    let mut lines = vec![row(head)];
    lines.extend(state.shown_record().cells().iter().rev().map(ended));
    lines
}

fn ended(cell: &EndedCell) -> String {
    let verdict: Verdict = cell.verdict;
    cell_row(
        [cell.configuration.to_string(), cell.cell.to_string()],
        cell.load,
        cell.tps,
        &cell.classes,
        [
            figure_or_none(cell.connection_wait_p99_ms),
            verdict.to_string(),
            cell.why.clone(),
            cell.tail.clone(),
            cell.stage.clone(),
        ],
    )
}

fn things(snapshot: &Snapshot) -> Vec<String> {
    let head =
        ["for", "kind", "name", "state", "since", "USD/h", "process", "port", "path", "note"];
    let mut lines = vec![row(words(&head))];
    for item in resources::items(snapshot) {
        let thing = item.resource;
        lines.push(row([
            item.owner.to_owned(),
            thing.kind.words().to_owned(),
            thing.id.clone(),
            item.state.clone(),
            item.since.rfc3339(),
            item.per_hour.unwrap_or_default(),
            thing.process.map(|process| process.pid.to_string()).unwrap_or_default(),
            thing.port.map(|port| port.to_string()).unwrap_or_default(),
            thing.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            thing.note.clone(),
        ]));
    }
    lines
}

/// The lines of the log that its filter and its search leave.
fn events(state: &State) -> Vec<String> {
    let mut lines = vec![row(words(&["time", "level", "what"]))];
    for event in log::matching(state.shown_record(), &state.looks.log) {
        let level = match event.kind.level() {
            Level::Info => "",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        lines.push(row([event.at.rfc3339(), level.to_owned(), event.kind.text()]));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixture::{blank_state, snapshot, state_of};

    fn copied(view: View) -> Vec<Vec<String>> {
        let mut state = state_of(snapshot());
        state.view = view;
        let text = text(&state).unwrap();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_view_gives_a_table_whose_lines_have_the_columns_of_their_head() {
        for view in [View::Overview, View::Configuration, View::Compare, View::Resources, View::Log]
        {
            let lines = copied(view);
            assert!(lines.len() > 1, "{view:?}");
            assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{view:?} {lines:?}");
        }
        assert_eq!(text(&blank_state()), None);
    }

    #[test]
    fn figures_of_a_configuration_are_copied_by_their_classes() {
        let lines = copied(View::Configuration);
        assert_eq!(lines.len(), 2);
        let of = |name: &str| {
            let at = lines[0].iter().position(|head| head == name).unwrap();
            lines[1][at].as_str()
        };
        assert_eq!([of("configuration"), of("cell"), of("load")], ["D1", "D1-007", "open 6750/s"]);
        assert_eq!([of("offered/s"), of("succeeded/s")], ["6750.2", "6416.4"]);
        assert_eq!([of("order create p95 ms"), of("order create p99 ms")], ["27.8", "255.7"]);
        assert_eq!([of("connection wait p99 ms"), of("verdict")], ["26.5", "running"]);
    }

    #[test]
    fn cells_that_wait_come_before_those_that_have_ended() {
        let lines = copied(View::Cells);
        let first: Vec<&str> = lines.iter().map(|line| line[0].as_str()).collect();
        let wait = ["configuration", "D1", "R1", "A1"];
        assert_eq!(first, [&wait[..], &["configuration", "A1", "R1"]].concat());
        assert_eq!(lines[1][2], "open 8100/s");
        assert_eq!(lines[5][lines[4].iter().position(|head| head == "verdict").unwrap()], "FAIL");
    }

    #[test]
    fn of_the_log_only_what_is_shown_is_copied() {
        let mut state = state_of(snapshot());
        state.view = View::Log;
        state.looks.log.search = "d1".into();
        let text = text(&state).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        state.looks.log.least = Some(Level::Error);
        assert_eq!(super::text(&state), None);
    }

    #[test]
    fn a_tab_in_a_text_makes_no_column() {
        assert_eq!(row(["a\tb".to_owned(), "c\n".to_owned()]), "a b\tc ");
    }
}
