//! What the console knows and shows: changed only by `update`, read only by `view`.

use std::collections::BTreeMap;

use crokey::KeyCombination;
use tui_input::Input;

use crate::model::{
    Command, ConfigurationStatus, Decision, DecisionAction, DecisionOption, RunId, Snapshot, UnixMs,
};

use super::{
    action::{Action, Layer},
    form::{RampForm, RateForm, StartForm},
    keymap::Keymap,
    looks::Looks,
    palette::PalettePanel,
    record::Record,
};

/// How long a message stays, in seconds.
pub(super) const TOAST_S: f64 = 8.0;
/// How long a decision that opened by itself takes no answer, in seconds: a key meant for what was
/// on the screen before cannot answer it.
const FRESH_S: f64 = 0.7;
/// A snapshot older than this looks stale, in seconds; four a second are due.
pub(super) const STALE_S: f64 = 2.0;

/// An engine that has said nothing for so long is not asked to remove anything, in seconds.
const SILENT_S: f64 = 10.0;

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

/// What fills the screen between the header and the hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    #[default]
    Overview,
    Configuration,
    Compare,
    Cells,
    Resources,
    Log,
}

impl View {
    /// The layer of the view's own keys.
    pub(super) const fn layer(self) -> Layer {
        match self {
            Self::Overview => Layer::Overview,
            Self::Configuration => Layer::Configuration,
            Self::Compare => Layer::Compare,
            Self::Cells => Layer::Cells,
            Self::Resources => Layer::Resources,
            Self::Log => Layer::Log,
        }
    }
}

/// What lies over the view.
#[derive(Clone, Debug)]
pub(super) enum Dialog {
    Start(Box<StartForm>),
    Rate(RateForm),
    Ramp(RampForm),
    Decision(DecisionPanel),
    Teardown(TeardownPanel),
    Help(HelpPanel),
    Palette(PalettePanel),
    /// What is searched for in the log, being typed.
    Search(Input),
}

/// The help, opened.
#[derive(Clone, Debug)]
pub(super) struct HelpPanel {
    /// The layer that it was opened from: its keys come first.
    pub from: Layer,
    /// What it lies over, to be shown again.
    pub under: Option<Box<Dialog>>,
    pub scroll: usize,
    /// Only lines that contain this are shown.
    pub search: Input,
    /// Whether `search` is being typed into.
    pub typing: bool,
}

impl HelpPanel {
    /// The help over a layer, and over what it hides meanwhile.
    pub(super) fn new(from: Layer, under: Option<Box<Dialog>>) -> Self {
        Self { from, under, scroll: 0, search: Input::default(), typing: false }
    }
}

/// What the views show while the picture is held still.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    pub at: UnixMs,
    pub snapshot: Box<Snapshot>,
    pub record: Record,
}

/// The pending decision, opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DecisionPanel {
    /// The option that is marked, from 0; it waits for a confirmation.
    pub marked: Option<usize>,
    /// When it opened, if it did by itself.
    pub opened: Option<UnixMs>,
}

/// The teardown, asked for or under way.
#[derive(Clone, Debug, Default)]
pub(super) struct TeardownPanel {
    pub input: Input,
    pub error: Option<String>,
    pub scroll: usize,
    /// Only what would go is shown; nothing can be sent.
    pub dry_run: bool,
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
    /// What to say once it is done; otherwise the command's own words.
    pub done: Option<String>,
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
    /// The picture that is held still, if it is.
    pub frozen: Option<Box<Frozen>>,
    pub view: View,
    /// What each view is set to.
    pub looks: Looks,
    /// Number of this console, from 1; 0 until the engine has said it.
    pub number: u32,
    /// Keys of a chord that have been pressed so far.
    pub chord: Vec<KeyCombination>,
    /// Whether the mouse acts here; otherwise the terminal has it, for selecting text.
    pub mouse: bool,
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
    /// What was last asked for in the palette, the newest first.
    pub recent: Vec<Action>,
    pub ended: Option<RunEnd>,
    /// Whether a removal without the engine is under way.
    pub removing: bool,
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
            frozen: None,
            view: View::Overview,
            looks: Looks::default(),
            number: 0,
            chord: Vec::new(),
            mouse: false,
            selected: 0,
            dialog: None,
            shown_decision: None,
            shown_teardown: false,
            toast: None,
            pending: BTreeMap::new(),
            next_command: 1,
            last_step: None,
            recent: Vec::new(),
            ended: None,
            removing: false,
        }
    }

    /// The layer of keys on top.
    pub(super) const fn layer(&self) -> Layer {
        match &self.dialog {
            Some(Dialog::Start(_) | Dialog::Rate(_) | Dialog::Ramp(_)) => Layer::Form,
            Some(Dialog::Decision(_)) => Layer::Decision,
            Some(Dialog::Teardown(_)) => Layer::Teardown,
            Some(Dialog::Help(HelpPanel { typing: true, .. }) | Dialog::Search(_)) => Layer::Search,
            Some(Dialog::Help(_)) => Layer::Help,
            Some(Dialog::Palette(_)) => Layer::Palette,
            None => match self.view {
                View::Overview if self.ended.is_some() => Layer::Ended,
                view => view.layer(),
            },
        }
    }

    /// What the views show: the newest snapshot, or the one that is held still.
    pub(super) fn shown(&self) -> Option<&Snapshot> {
        let frozen = self.frozen.as_ref().map(|frozen| &*frozen.snapshot);
        frozen.or(self.snapshot.as_deref())
    }

    /// The memory that goes with [`State::shown`].
    pub(super) fn shown_record(&self) -> &Record {
        self.frozen.as_ref().map_or(&self.record, |frozen| &frozen.record)
    }

    /// Whether another console drives the run and this one watches.
    pub(super) fn watches(&self) -> bool {
        let holder = self.snapshot.as_ref().and_then(|snapshot| snapshot.control.holder);
        holder.is_some_and(|holder| self.number > 0 && holder != self.number)
    }

    /// Whether this console drives the run and another one has asked for control.
    pub(super) fn is_asked_for_control(&self) -> bool {
        let control = self.snapshot.as_ref().map(|snapshot| &snapshot.control);
        control.is_some_and(|c| c.asked.is_some() && c.holder == Some(self.number))
    }

    /// Whether the decision on top opened by itself so recently that it takes no answer yet.
    pub(super) fn is_decision_fresh(&self) -> bool {
        let Some(Dialog::Decision(panel)) = &self.dialog else { return false };
        panel.opened.is_some_and(|at| self.now.seconds_since(at) < FRESH_S)
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

    /// Whether the engine can be asked for something: it is there and not silent.
    pub(super) fn engine_answers(&self) -> bool {
        let silent = self.stale_s().is_some_and(|age| age > SILENT_S);
        self.link == LinkState::Live && !silent
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
