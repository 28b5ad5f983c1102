//! A removal without the engine, as it shows in the state: like one of the engine's.

use crate::model::{Resource, ResourceState, TeardownItem, TeardownStatus, UnixMs};

use super::{
    super::{
        removal::Removal,
        state::{Dialog, RunEnd, State, TeardownPanel},
    },
    Effect, toast,
};

/// Begins the removal, once.
pub(super) fn begin(state: &mut State) -> Vec<Effect> {
    if state.removing {
        toast(state, false, "the removal is under way".to_owned());
        return Vec::new();
    }
    let Some(run) = state.run().cloned() else {
        toast(state, true, "the run's name is not known".to_owned());
        return Vec::new();
    };
    state.removing = true;
    state.shown_teardown = true;
    state.ended = None;
    state.dialog = Some(Dialog::Teardown(TeardownPanel::default()));
    if let Some(status) = status(state) {
        status.ended = None;
    }
    toast(state, false, "removing without the engine".to_owned());
    vec![Effect::Remove { run }]
}

/// Takes news of the removal up.
pub(super) fn take(state: &mut State, news: Removal) {
    match news {
        Removal::Item(item) => {
            if let Some(status) = status(state) {
                match status.items.iter_mut().find(|known| known.id == item.id) {
                    Some(known) => *known = item,
                    None => status.items.push(item),
                }
                status.remaining_count =
                    status.items.iter().filter(|item| !item.gone).count() as u64;
            }
        }
        Removal::Said(text) => toast(state, false, text),
        Removal::Ended { remaining, exit_code } => ended(state, remaining, exit_code),
    }
}

fn ended(state: &mut State, remaining: Option<u64>, exit_code: u8) {
    state.removing = false;
    let now = state.now;
    let Some(remaining) = remaining else {
        return toast(state, true, format!("the removal failed, exit code {exit_code}: try again"));
    };
    if let Some(status) = status(state) {
        status.remaining_count = remaining;
        status.ended = Some(now);
    }
    if remaining == 0 {
        let text = "the engine was lost; all that the run made is removed".to_owned();
        state.ended = Some(RunEnd { exit_code, text, scroll: 0 });
        state.dialog = None;
    }
}

fn waiting(resources: &[Resource], now: UnixMs) -> Vec<TeardownItem> {
    let left = resources.iter().filter(|resource| resource.state != ResourceState::Gone);
    left.map(|resource| TeardownItem {
        kind: resource.kind,
        id: resource.id.clone(),
        state: "waiting".to_owned(),
        gone: false,
        since: now,
    })
    .collect()
}

/// The teardown's status, begun if there is none.
fn status(state: &mut State) -> Option<&mut TeardownStatus> {
    let now = state.now;
    let snapshot = state.snapshot.as_mut()?;
    snapshot.at = now;
    Some(snapshot.teardown.get_or_insert_with(|| TeardownStatus {
        started: now,
        ended: None,
        items: waiting(&snapshot.resources, now),
        remaining_count: snapshot.resources.len() as u64,
    }))
}
