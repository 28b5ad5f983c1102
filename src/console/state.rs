//! What the console knows and shows: changed only by `update`, read only by `view`.

use std::collections::BTreeMap;

use tui_input::Input;

use crate::model::{
    Command, ConfigurationStatus, Decision, DecisionAction, DecisionOption, RunId, Snapshot, UnixMs,
};

use super::{
    action::Layer,
    form::{RateForm, StartForm},
    keymap::Keymap,
    record::Record,
};

/// How long a message stays, in seconds.
pub(super) const TOAST_S: f64 = 8.0;
/// A snapshot older than this looks stale, in seconds; four a second are due.
pub(super) const STALE_S: f64 = 2.0;

/// The state of the link to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Live,
    /// The socket closed; it is tried again each second. Why the last try failed.
    Lost {
        why: String,
    },
}

/// A message at the bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toast {
    pub text: String,
    /// Whether it says that something was not done.
    pub bad: bool,
    pub at: UnixMs,
}

/// What lies over the overview.
#[derive(Clone, Debug)]
pub(super) enum Dialog {
    Start(Box<StartForm>),
    Rate(RateForm),
    Decision(DecisionPanel),
    Teardown(TeardownPanel),
    Help { scroll: usize },
}

/// The pending decision, opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DecisionPanel {
    /// The option that is marked, from 0; it waits for a confirmation.
    pub marked: Option<usize>,
}

/// The teardown, asked for or under way.
#[derive(Clone, Debug, Default)]
pub(super) struct TeardownPanel {
    pub input: Input,
    pub error: Option<String>,
    pub scroll: usize,
    /// The decision and its option that the typed name answers; otherwise a command of its own.
    pub answers: Option<(String, String)>,
}

/// The run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunEnd {
    pub exit_code: u8,
    pub text: String,
    pub scroll: usize,
}

/// A command on its way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pending {
    pub command: Command,
}

/// Everything that is drawn.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub now: UnixMs,
    pub keymap: Keymap,
    pub link: LinkState,
    /// Build of this console and of the engine it speaks with.
    pub build: String,
    pub engine_build: String,
    /// When the last snapshot came.
    pub last_seen: Option<UnixMs>,
    pub snapshot: Option<Box<Snapshot>>,
    pub record: Record,
    /// Index of the selected configuration.
    pub selected: usize,
    pub dialog: Option<Dialog>,
    /// The decision that has been shown, so that it opens by itself only once.
    pub shown_decision: Option<String>,
    /// Whether the teardown under way has been shown.
    pub shown_teardown: bool,
    pub toast: Option<Toast>,
    pub pending: BTreeMap<u64, Pending>,
    pub next_command: u64,
    /// When the last step of a rate was sent: a key held down must not run away.
    pub last_step: Option<UnixMs>,
    pub ended: Option<RunEnd>,
}

impl State {
    pub(super) fn new(keymap: Keymap, build: String, engine_build: String, now: UnixMs) -> Self {
        Self {
            now,
            keymap,
            link: LinkState::Live,
            build,
            engine_build,
            last_seen: None,
            snapshot: None,
            record: Record::default(),
            selected: 0,
            dialog: None,
            shown_decision: None,
            shown_teardown: false,
            toast: None,
            pending: BTreeMap::new(),
            next_command: 1,
            last_step: None,
            ended: None,
        }
    }

    /// The layer of keys on top.
    pub(super) const fn layer(&self) -> Layer {
        match &self.dialog {
            Some(Dialog::Start(_) | Dialog::Rate(_)) => Layer::Form,
            Some(Dialog::Decision(_)) => Layer::Decision,
            Some(Dialog::Teardown(_)) => Layer::Teardown,
            Some(Dialog::Help { .. }) => Layer::Help,
            None if self.ended.is_some() => Layer::Ended,
            None => Layer::Overview,
        }
    }

    pub(super) fn run(&self) -> Option<&RunId> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.header.id)
    }

    pub(super) fn configuration(&self) -> Option<&ConfigurationStatus> {
        self.snapshot.as_ref()?.configurations.get(self.selected)
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.snapshot.as_ref()?.decision.as_ref()
    }

    /// Whether a teardown has begun, as far as is known.
    pub(super) fn tearing_down(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.teardown.is_some())
    }

    /// Seconds since the last snapshot came, once it is late.
    pub(super) fn stale_s(&self) -> Option<f64> {
        if self.ended.is_some() {
            return None;
        }
        let age = self.now.seconds_since(self.last_seen?);
        (age > STALE_S || self.link != LinkState::Live).then_some(age)
    }
}

/// Whether an option asks for more than its digit: it spends or burns more than the safe default,
/// or it takes something away.
pub(super) fn needs_confirmation(decision: &Decision, option: &DecisionOption) -> bool {
    let removes =
        matches!(option.action, DecisionAction::ContinueWithout { .. } | DecisionAction::Teardown);
    removes || spends_more(decision, option)
}

/// Whether an option spends more than the safe default does.
pub(super) fn spends_more(decision: &Decision, option: &DecisionOption) -> bool {
    if option.key == decision.safe {
        return false;
    }
    let Some(safe) = decision.options.iter().find(|o| o.key == decision.safe) else {
        return true;
    };
    option.spends > safe.spends || option.burn_per_hour > safe.burn_per_hour
}
