//! What a key can do, by the names that keymap files use.

use std::fmt;

/// Something the operator asks of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    StartCell,
    StopCell,
    RateUp,
    RateDown,
    RateDouble,
    RateHalve,
    RateType,
    PauseResume,
    Decision,
    Teardown,
    Help,
    Detach,
    Leave,
    Suspend,
    Redraw,
    Next,
    Previous,
    PageDown,
    PageUp,
    Change,
    Submit,
    Cancel,
    Extend,
    /// An option of a decision, from 1.
    Choose(u8),
}

/// Where a key is looked up: what is on top decides, then `Everywhere`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Layer {
    Overview,
    Form,
    Decision,
    Teardown,
    Help,
    Ended,
    Everywhere,
}

use Layer::{Decision, Ended, Everywhere, Form, Help, Overview, Teardown};

impl Layer {
    /// Every layer, in the order of the help.
    pub(super) const ALL: [Self; 7] = [Overview, Form, Decision, Teardown, Help, Ended, Everywhere];

    /// The name of the layer's table in a keymap file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Overview => "overview",
            Form => "form",
            Decision => "decision",
            Teardown => "teardown",
            Help => "help",
            Ended => "ended",
            Everywhere => "everywhere",
        }
    }

    /// The heading of the layer in the help.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Overview => "Overview",
            Form => "Starting a cell, typing a rate",
            Decision => "A decision",
            Teardown => "Teardown",
            Help => "Help",
            Ended => "After the run",
            Everywhere => "Everywhere",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

const ANYWHERE: &[Layer] = &Layer::ALL;
const LISTS: &[Layer] = &[Overview, Form, Decision, Teardown, Help, Ended];
const PAGES: &[Layer] = &[Help, Teardown, Ended];
const DRIVING: &[Layer] = &[Overview];

/// Every action, its name, and the layers where it means something.
const ACTIONS: &[(Action, &str, &[Layer])] = &[
    (Action::StartCell, "start-cell", DRIVING),
    (Action::StopCell, "stop-cell", DRIVING),
    (Action::RateUp, "rate-up", DRIVING),
    (Action::RateDown, "rate-down", DRIVING),
    (Action::RateDouble, "rate-double", DRIVING),
    (Action::RateHalve, "rate-halve", DRIVING),
    (Action::RateType, "rate-type", DRIVING),
    (Action::PauseResume, "pause-resume", DRIVING),
    (Action::Decision, "decision", &[Overview, Everywhere]),
    (Action::Teardown, "teardown", ANYWHERE),
    (Action::Help, "help", ANYWHERE),
    (Action::Detach, "detach", ANYWHERE),
    (Action::Leave, "leave", &[Ended]),
    (Action::Suspend, "suspend", ANYWHERE),
    (Action::Redraw, "redraw", ANYWHERE),
    (Action::Next, "next", LISTS),
    (Action::Previous, "previous", LISTS),
    (Action::PageDown, "page-down", PAGES),
    (Action::PageUp, "page-up", PAGES),
    (Action::Change, "change", &[Form]),
    (Action::Submit, "submit", &[Form, Decision, Teardown]),
    (Action::Cancel, "cancel", &[Form, Decision, Teardown, Help]),
    (Action::Extend, "extend", &[Decision]),
    (Action::Choose(1), "choose-1", &[Decision]),
    (Action::Choose(2), "choose-2", &[Decision]),
    (Action::Choose(3), "choose-3", &[Decision]),
    (Action::Choose(4), "choose-4", &[Decision]),
    (Action::Choose(5), "choose-5", &[Decision]),
    (Action::Choose(6), "choose-6", &[Decision]),
    (Action::Choose(7), "choose-7", &[Decision]),
    (Action::Choose(8), "choose-8", &[Decision]),
    (Action::Choose(9), "choose-9", &[Decision]),
];

impl Action {
    /// The action of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        ACTIONS.iter().find(|(_, n, _)| *n == name).map(|(action, _, _)| *action)
    }

    /// Whether the action means something in a layer.
    pub(super) fn belongs_in(self, layer: Layer) -> bool {
        ACTIONS.iter().any(|(action, _, layers)| *action == self && layers.contains(&layer))
    }

    /// The names of the actions that a layer knows.
    pub(super) fn names_in(layer: Layer) -> Vec<&'static str> {
        let known = ACTIONS.iter().filter(|(_, _, layers)| layers.contains(&layer));
        known.map(|(_, name, _)| *name).collect()
    }
}
