//! The figures of a view as text for the clipboard: a table with tabs, which a spreadsheet takes.

use super::state::State;

/// What the view that is shown has to give; `None` where it has nothing yet.
pub(super) fn text(state: &State) -> Option<String> {
    let snapshot = state.shown()?;
    let mut lines = vec!["configuration\toffered/s\tachieved/s\tsucceeded/s".to_owned()];
    for status in &snapshot.configurations {
        let tps = match (&status.cell, &status.last) {
            (Some(cell), _) => cell.tps,
            (None, Some(last)) => last.tps,
            (None, None) => continue,
        };
        let figures = [tps.offered, tps.achieved, tps.succeeded].map(|rate| format!("{rate:.1}"));
        lines.push(format!("{}\t{}", status.id, figures.join("\t")));
    }
    (lines.len() > 1).then(|| lines.join("\n"))
}
