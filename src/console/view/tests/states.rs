//! Screens of every kind, to be drawn.

use crate::{
    console::{
        fixture::{
            NOW, RUN, blank_state, decision, id, press, setting_up, show, snapshot, state_of,
            teardown, type_text,
        },
        state::{State, View},
        update::{Msg, update},
    },
    link::ServerFrame,
    model::{
        ConfigurationState, Event, EventKind, ProcessIdentity, RampStatus, ResourceKind,
        ResourceState, RunState, Snapshot, UnixMs,
    },
};

pub(super) fn deciding() -> State {
    let mut snapshot = snapshot();
    snapshot.decision = Some(decision());
    let mut state = state_of(snapshot);
    // It has been open long enough to take answers.
    update(&mut state, Msg::Tick(UnixMs(NOW.0 + 700)));
    state
}

pub(super) fn tearing_down(ended: bool) -> State {
    let mut snapshot = snapshot();
    snapshot.state = RunState::TearingDown;
    snapshot.teardown = Some(teardown(ended));
    state_of(snapshot)
}

pub(super) fn asked_for_teardown() -> State {
    let mut state = state_of(snapshot());
    press(&mut state, "T");
    type_text(&mut state, "e002-11");
    state
}

pub(super) fn ended() -> State {
    let mut state = tearing_down(true);
    let (text, folder) = ("2 cells, 1 PASS, 1 FAIL".to_owned(), format!("/var/runs/{RUN}").into());
    let kind = EventKind::RunEnded { exit_code: 1, text: text.clone(), folder };
    let event = Box::new(Event { seq: 50, epoch: 1, at: NOW, kind });
    update(&mut state, Msg::Frame(ServerFrame::Event(event)));
    update(&mut state, Msg::Frame(ServerFrame::Ended { exit_code: 1, text }));
    state
}

pub(super) fn lost() -> State {
    let mut state = state_of(snapshot());
    update(&mut state, Msg::Disconnected { why: "the engine closed the socket".into() });
    update(&mut state, Msg::Tick(UnixMs(NOW.0 + 12_000)));
    state
}

pub(super) fn form(keys: &str) -> State {
    let mut state = state_of(snapshot());
    press(&mut state, keys);
    state
}

pub(super) fn refused() -> State {
    let mut state = state_of(snapshot());
    press(&mut state, "S");
    let refused = Some("the cell is draining; it ends within 5 s".to_owned());
    update(&mut state, Msg::Frame(ServerFrame::Reply { id: 1, refused }));
    state
}

pub(super) fn of_count(count: usize) -> Snapshot {
    let mut snapshot = snapshot();
    let all = snapshot.configurations.clone();
    snapshot.configurations = all.into_iter().cycle().take(count).collect();
    snapshot
}

pub(super) fn removed_and_failed() -> State {
    let mut snapshot = of_count(3);
    snapshot.configurations[0].state = ConfigurationState::Removed;
    snapshot.configurations[1].state =
        ConfigurationState::Failed { why: "gate R1 exited with status 1 (port 5502 taken)".into() };
    snapshot.configurations[2].state = ConfigurationState::Checking;
    state_of(snapshot)
}

pub(super) const VIEWS: [(&str, View); 6] = [
    ("overview", View::Overview),
    ("configuration", View::Configuration),
    ("compare", View::Compare),
    ("cells", View::Cells),
    ("resources", View::Resources),
    ("log", View::Log),
];

pub(super) fn in_view(mut state: State, view: View) -> State {
    state.view = view;
    state
}

/// The picture held still while the run went on for half a minute.
pub(super) fn frozen(view: View) -> State {
    let mut state = in_view(state_of(snapshot()), view);
    press(&mut state, "f");
    let mut later = snapshot();
    later.at = UnixMs(NOW.0 + 30_000);
    update(&mut state, Msg::Tick(later.at));
    show(&mut state, later);
    state
}

/// Another console drives; this one has asked for control, or has been asked for it.
pub(super) fn control(number: u32, asked: u32) -> State {
    let mut snapshot = snapshot();
    snapshot.control.asked = Some((asked, UnixMs(NOW.0 + 25_000)));
    let mut state = state_of(snapshot);
    state.number = number;
    state
}

pub(super) fn watching(view: View) -> State {
    let mut state = in_view(state_of(snapshot()), view);
    state.number = 2;
    state
}

/// A run that has nothing yet but its name.
pub(super) fn empty() -> Snapshot {
    let mut snapshot = setting_up();
    snapshot.configurations.clear();
    snapshot.resources.clear();
    snapshot.queue.clear();
    snapshot.recent.clear();
    snapshot
}

/// Things of every state and owner, with all that can be known of them.
pub(super) fn with_things(mut snapshot: Snapshot) -> Snapshot {
    let folder = "/var/tmp/rampdeck/e002-1130-a7f3";
    for (at, thing) in snapshot.resources.iter_mut().enumerate() {
        thing.configuration = [None, Some("D1"), Some("R1"), None, None][at].map(id);
        thing.path = [None, None, None, Some(format!("{folder}/data").into()), None][at].clone();
        thing.port = [None, Some(5_501), Some(5_502), Some(5_433), None][at];
        thing.process = (at < 4).then_some(ProcessIdentity { pid: 4_240, start: 7 });
    }
    snapshot.resources[2].state = ResourceState::Gone;
    let mut database = snapshot.resources[1].clone();
    (database.kind, database.id) = (ResourceKind::Database, "shop_d1".to_owned());
    database.state = ResourceState::Intended;
    snapshot.resources.push(database);
    snapshot
}

/// More events and ended cells than any screen has rows.
pub(super) fn long() -> State {
    let mut snapshot = with_things(snapshot());
    let some = snapshot.recent.clone();
    for at in 0..60 {
        let mut event = some[usize::try_from(at % 6).unwrap()].clone();
        event.seq = 46 + at;
        if let EventKind::CellEnded { cell, .. } = &mut event.kind {
            *cell = crate::model::CellId::new(format!("R1-{at:03}"));
        }
        snapshot.recent.push(event);
    }
    let ramp = RampStatus { to: 2_000.0, step: 3, of: 8, next_at: NOW };
    snapshot.configurations[0].ramp = Some(ramp);
    state_of(snapshot)
}

/// Every view, of runs in every state.
pub(super) fn view_states() -> Vec<(String, State)> {
    let mut states = Vec::new();
    for (name, view) in VIEWS {
        let mut add = |what: &str, state: State| {
            states.push((format!("{name} {what}"), in_view(state, view)));
        };
        let mut marked = long();
        marked.looks.cell = 7;
        marked.looks.resource = 3;
        marked.looks.log.up = 9;
        marked.looks.log.search = "D1".into();
        add("running", state_of(snapshot()));
        add("frozen", frozen(view));
        add("empty", state_of(empty()));
        add("blank", blank_state());
        add("lost", lost());
        add("watching", watching(view));
        add("control wanted", control(1, 2));
        add("control asked", control(2, 2));
        add("deciding", deciding());
        add("tearing down", in_view(tearing_down(false), view));
        add("long", long());
        add("marked", marked);
    }
    states
}

/// Every kind of screen.
pub(super) fn states() -> Vec<(String, State)> {
    let mut states = dialogs();
    states.extend(view_states());
    states
}

pub(super) fn dialogs() -> Vec<(String, State)> {
    let mut help = deciding();
    press(&mut help, "esc ? down down");
    let mut marked = deciding();
    press(&mut marked, "2");
    let mut hidden = deciding();
    press(&mut hidden, "esc");
    let mut states = vec![
        ("blank", blank_state()),
        ("setting up", state_of(setting_up())),
        ("running", state_of(snapshot())),
        ("one", state_of(of_count(1))),
        ("three", removed_and_failed()),
        ("eight", state_of(of_count(8))),
        ("decision", deciding()),
        ("decision marked", marked),
        ("decision hidden", hidden),
        ("form", form("s")),
        ("form wrong", form("s tab 0 tab ctrl-u enter")),
        ("rate", form("r")),
        ("refused", refused()),
        ("teardown asked", asked_for_teardown()),
        ("teardown", tearing_down(false)),
        ("teardown ended", tearing_down(true)),
        ("help", help),
        ("lost", lost()),
        ("ended", ended()),
    ];
    states.extend(super::keys::states());
    states.into_iter().map(|(name, state)| (name.to_owned(), state)).collect()
}
