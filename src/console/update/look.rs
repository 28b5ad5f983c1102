//! What is looked at: views, the frozen picture, time, figures, marks and searches.

use tui_input::Input;

use crate::model::Level;

use super::{
    super::state::{Dialog, Frozen, State, View},
    toast,
};

/// How far one scroll of the charts goes, as a share of what they show.
const SCROLL_SHARE: u64 = 4;
/// What a chart of a whole cell scrolls by, in seconds.
const CELL_SCROLL_S: u64 = 60;

/// Shows a view. That it is shown already is said: a key that does nothing looks broken.
pub(super) fn show(state: &mut State, view: View) {
    let shown = state.view == view && state.dialog.is_none();
    state.dialog = None;
    state.view = view;
    if shown {
        toast(state, false, "this view is shown already".to_owned());
    }
}

/// Goes back: from a log that is searched to all of it, from a view to the overview; there it takes
/// the message away.
pub(super) fn back(state: &mut State) {
    if state.view == View::Log && !state.looks.log.search.value().is_empty() {
        state.looks.log.search = Input::default();
        state.looks.log.up = 0;
        return toast(state, false, "all lines again".to_owned());
    }
    state.dialog = None;
    if state.view == View::Overview {
        state.toast = None;
    }
    state.view = View::Overview;
}

/// Holds the picture still, or lets it go on.
pub(super) fn freeze(state: &mut State) {
    if state.frozen.take().is_some() {
        return toast(state, false, "live again".to_owned());
    }
    let Some(snapshot) = &state.snapshot else {
        return toast(state, true, "nothing to hold still yet".to_owned());
    };
    let frozen = Frozen { at: state.now, snapshot: snapshot.clone(), record: state.record.clone() };
    state.frozen = Some(Box::new(frozen));
    toast(state, false, "the picture is held still; the run goes on".to_owned());
}

/// The next length of the charts' time.
pub(super) fn span(state: &mut State) {
    state.looks.span = state.looks.span.next();
    state.looks.back_s = 0;
}

/// Scrolls the charts back in time, or forward to the newest.
pub(super) fn scroll_time(state: &mut State, back: bool) {
    let step = state.looks.span.seconds().map_or(CELL_SCROLL_S, |span| span / SCROLL_SHARE);
    let oldest = state.configuration().map_or(0, |status| {
        let first = state.shown_record().newest_points(&status.id, usize::MAX).next();
        first.map_or(0, |point| (state.now.0.saturating_sub(point.at.0)) / 1_000)
    });
    let before = state.looks.back_s;
    let after = if back { (before + step).min(oldest) } else { before.saturating_sub(step) };
    state.looks.back_s = after;
    if after == before {
        let end = if back { "nothing older is known" } else { "the newest is shown" };
        toast(state, false, end.to_owned());
    }
}

/// Compares by the next figure.
pub(super) fn figure(state: &mut State) {
    state.looks.figure = state.looks.figure.next();
}

/// Shows all of the log, or only what matters more.
pub(super) fn log_level(state: &mut State) {
    let log = &mut state.looks.log;
    log.least = match log.least {
        None => Some(Level::Warning),
        Some(Level::Warning) => Some(Level::Error),
        Some(_) => None,
    };
    log.up = 0;
}

/// Opens the line in which a search is typed.
pub(super) fn search(state: &mut State) {
    match &mut state.dialog {
        Some(Dialog::Help(panel)) => panel.typing = true,
        _ => state.dialog = Some(Dialog::Search(state.looks.log.search.clone())),
    }
}

/// Takes the search that was typed.
pub(super) fn submit_search(state: &mut State) {
    match state.dialog.take() {
        Some(Dialog::Search(input)) => {
            state.looks.log.search = input;
            state.looks.log.up = 0;
        }
        Some(Dialog::Help(mut panel)) => {
            panel.typing = false;
            panel.scroll = 0;
            state.dialog = Some(Dialog::Help(panel));
        }
        other => state.dialog = other,
    }
}

/// Gives a search up: what was searched for is forgotten.
pub(super) fn cancel_search(state: &mut State) {
    match state.dialog.take() {
        Some(Dialog::Search(_)) => state.looks.log.search = Input::default(),
        Some(Dialog::Help(mut panel)) => {
            panel.typing = false;
            panel.search = Input::default();
            state.dialog = Some(Dialog::Help(panel));
        }
        other => state.dialog = other,
    }
}

/// How many lines the log has, where it is scrolled back.
pub(super) fn lines_above(state: &State) -> Option<usize> {
    let log = &state.looks.log;
    let count = || state.record.events().iter().filter(|event| log.shows(event)).count();
    (log.up > 0 && state.frozen.is_none()).then(count)
}

/// A log that is scrolled back stays where it is when lines have come.
pub(super) fn stay(state: &mut State, lines: Option<usize>) {
    let (Some(before), Some(now)) = (lines, lines_above(state)) else { return };
    state.looks.log.up += now.saturating_sub(before);
}
