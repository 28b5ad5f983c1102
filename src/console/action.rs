//! What a key or a command can do, by the names that keymap files and the palette use.

use std::fmt;

/// Something the operator asks of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    // Views.
    Overview,
    Configuration,
    Compare,
    Cells,
    Resources,
    Log,
    Back,
    // Driving.
    StartCell,
    AddCell,
    StopCell,
    RateUp,
    RateDown,
    RateDouble,
    RateHalve,
    RateType,
    Ramp,
    HoldRate,
    UndoStep,
    PauseResume,
    Decision,
    Teardown,
    // The queue.
    RepeatCell,
    DropCell,
    MoveEarlier,
    MoveLater,
    // Consoles.
    AskControl,
    GiveControl,
    KeepControl,
    /// Of the palette only: it takes a configuration's name.
    Select,
    /// Of the palette only: it takes a keymap's name.
    Keymap,
    // Looking.
    Freeze,
    Span,
    Older,
    Newer,
    Figure,
    LogLevel,
    Search,
    Copy,
    Mouse,
    // The screen.
    Palette,
    Help,
    Detach,
    Leave,
    Suspend,
    Redraw,
    // Moving and answering.
    Next,
    Previous,
    PageDown,
    PageUp,
    First,
    Last,
    Change,
    Complete,
    Submit,
    Cancel,
    Extend,
    DryRun,
    Retry,
    /// An option of a decision, from 1.
    Choose(u8),
}

/// Where a key is looked up: what is on top decides, then `Everywhere`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Layer {
    Overview,
    Configuration,
    Compare,
    Cells,
    Resources,
    Log,
    /// Looked up after each of the layers above.
    Views,
    Form,
    Decision,
    Teardown,
    Help,
    Palette,
    Search,
    Ended,
    Everywhere,
}

use Layer::{
    Cells, Compare, Configuration, Decision, Ended, Everywhere, Form, Help, Log, Overview, Palette,
    Resources, Search, Teardown, Views,
};

impl Layer {
    /// Every layer, in the order of the help.
    pub(super) const ALL: [Self; 15] = [
        Overview,
        Configuration,
        Compare,
        Cells,
        Resources,
        Log,
        Views,
        Form,
        Decision,
        Teardown,
        Help,
        Palette,
        Search,
        Ended,
        Everywhere,
    ];

    /// The name of the layer's table in a keymap file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Overview => "overview",
            Configuration => "configuration",
            Compare => "compare",
            Cells => "cells",
            Resources => "resources",
            Log => "log",
            Views => "views",
            Form => "form",
            Decision => "decision",
            Teardown => "teardown",
            Help => "help",
            Palette => "palette",
            Search => "search",
            Ended => "ended",
            Everywhere => "everywhere",
        }
    }

    /// The heading of the layer in the help.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Overview => "Overview",
            Configuration => "One configuration",
            Compare => "Compare",
            Cells => "Cells",
            Resources => "Resources",
            Log => "Log",
            Views => "In every view",
            Form => "Starting a cell, typing a rate",
            Decision => "A decision",
            Teardown => "Teardown",
            Help => "Help",
            Palette => "Command palette",
            Search => "Typing what to search for",
            Ended => "After the run",
            Everywhere => "Everywhere",
        }
    }
}

impl Layer {
    /// Whether it is a view's own: [`Layer::Views`] comes after it.
    pub(super) const fn is_view(self) -> bool {
        matches!(self, Overview | Configuration | Compare | Cells | Resources | Log)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What no key does, since it takes words after it.
const PALETTE_ONLY: &[Layer] = &[];
const ANYWHERE: &[Layer] = &Layer::ALL;
const VIEWS: &[Layer] = &[Overview, Configuration, Compare, Cells, Resources, Log, Views];
/// Where letters are keys, not text.
const UNTYPED: &[Layer] = &[
    Overview,
    Configuration,
    Compare,
    Cells,
    Resources,
    Log,
    Views,
    Decision,
    Help,
    Ended,
    Everywhere,
];
/// Where it is seen which configuration is selected.
const DRIVING: &[Layer] = &[Overview, Configuration, Compare, Cells, Views];
const CHARTS: &[Layer] = &[Configuration, Compare];
const LISTS: &[Layer] = &[
    Overview,
    Configuration,
    Compare,
    Cells,
    Resources,
    Log,
    Form,
    Decision,
    Teardown,
    Help,
    Palette,
    Ended,
];
const PAGES: &[Layer] = &[Cells, Resources, Log, Help, Teardown, Ended];

/// Every action, its name, what it does in words, and the layers where it means something.
const ACTIONS: &[(Action, &str, &str, &[Layer])] = &[
    (Action::Overview, "overview", "every configuration at a glance", UNTYPED),
    (Action::Configuration, "configuration", "charts of the selected configuration", UNTYPED),
    (Action::Compare, "compare", "one figure of every configuration", UNTYPED),
    (Action::Cells, "cells", "the queue of cells, and those that have ended", UNTYPED),
    (Action::Resources, "resources", "what exists and what it costs", UNTYPED),
    (Action::Log, "log", "everything that has happened", UNTYPED),
    (Action::Back, "back", "back to the overview", VIEWS),
    (Action::StartCell, "start", "start a cell on the selected configuration", DRIVING),
    (Action::AddCell, "add", "queue a cell behind the running one", DRIVING),
    (Action::StopCell, "stop-cell", "stop the selected configuration's cell", DRIVING),
    (Action::RateUp, "rate-up", "10 % more arrivals", DRIVING),
    (Action::RateDown, "rate-down", "10 % fewer arrivals", DRIVING),
    (Action::RateDouble, "rate-double", "double the arrival rate", DRIVING),
    (Action::RateHalve, "rate-halve", "halve the arrival rate", DRIVING),
    (Action::RateType, "rate", "type an arrival rate", DRIVING),
    (Action::Ramp, "ramp", "move the rate to a target over a time", DRIVING),
    (Action::HoldRate, "hold-rate", "end a ramp at the rate it has reached", DRIVING),
    (Action::UndoStep, "undo-step", "back to the rate before the last step", DRIVING),
    (Action::PauseResume, "pause-resume", "pause the plan, or resume it", VIEWS),
    (Action::Decision, "decision", "open the pending decision", UNTYPED),
    (Action::Teardown, "teardown", "remove everything the run made", ANYWHERE),
    (Action::RepeatCell, "repeat-cell", "run the marked cell once more", &[Cells]),
    (Action::DropCell, "drop-cell", "take the marked cell out of the queue", &[Cells]),
    (Action::MoveEarlier, "move-earlier", "move the marked cell up in the queue", &[Cells]),
    (Action::MoveLater, "move-later", "move the marked cell down in the queue", &[Cells]),
    (Action::AskControl, "ask-control", "ask the console that drives for control", UNTYPED),
    (Action::GiveControl, "give-control", "hand control to the console that asked", UNTYPED),
    (Action::KeepControl, "keep-control", "keep control, whoever asked", UNTYPED),
    (Action::Select, "select", "select a configuration", PALETTE_ONLY),
    (
        Action::Keymap,
        "keymap",
        "take another keymap, as long as this console is open",
        PALETTE_ONLY,
    ),
    (Action::Freeze, "freeze", "hold the picture still, or let it go on", VIEWS),
    (Action::Span, "span", "show 1 min, 10 min or the whole cell", CHARTS),
    (Action::Older, "older", "scroll back in time", CHARTS),
    (Action::Newer, "newer", "scroll forward in time", CHARTS),
    (Action::Figure, "figure", "compare by another figure", &[Compare]),
    (Action::LogLevel, "log-level", "show all, warnings and errors, or errors", &[Log]),
    (Action::Search, "search", "search the log, or the help", &[Log, Help]),
    (Action::Copy, "copy", "copy the figures of this view to the clipboard", UNTYPED),
    (Action::Mouse, "mouse", "let the mouse act, or leave it to the terminal", UNTYPED),
    (Action::Palette, "palette", "type a command", UNTYPED),
    (Action::Help, "help", "the keys, as they are bound now", ANYWHERE),
    (Action::Detach, "detach", "detach: the run goes on", ANYWHERE),
    (Action::Leave, "leave", "leave", &[Ended]),
    (Action::Suspend, "suspend", "suspend the console, back with fg", ANYWHERE),
    (Action::Redraw, "redraw", "draw the screen afresh", ANYWHERE),
    (Action::Next, "next", "next", LISTS),
    (Action::Previous, "previous", "the one before", LISTS),
    (Action::PageDown, "page-down", "a page down", PAGES),
    (Action::PageUp, "page-up", "a page up", PAGES),
    (Action::First, "first", "to the first line", PAGES),
    (Action::Last, "last", "to the last line", PAGES),
    (Action::Change, "change", "change a choice", &[Form]),
    (Action::Complete, "complete", "complete what is typed", &[Palette]),
    (Action::Submit, "submit", "do it", &[Form, Decision, Teardown, Palette, Search]),
    (
        Action::Cancel,
        "cancel",
        "close, nothing is sent",
        &[Form, Decision, Teardown, Help, Palette, Search],
    ),
    (Action::Extend, "extend", "put the deadline off by 5 minutes", &[Decision]),
    (Action::DryRun, "dry-run", "show what would be removed, remove nothing", &[Teardown]),
    (Action::Retry, "retry", "remove once more what is left", &[Teardown, Ended]),
    (Action::Choose(1), "choose-1", "choose option 1", &[Decision]),
    (Action::Choose(2), "choose-2", "choose option 2", &[Decision]),
    (Action::Choose(3), "choose-3", "choose option 3", &[Decision]),
    (Action::Choose(4), "choose-4", "choose option 4", &[Decision]),
    (Action::Choose(5), "choose-5", "choose option 5", &[Decision]),
    (Action::Choose(6), "choose-6", "choose option 6", &[Decision]),
    (Action::Choose(7), "choose-7", "choose option 7", &[Decision]),
    (Action::Choose(8), "choose-8", "choose option 8", &[Decision]),
    (Action::Choose(9), "choose-9", "choose option 9", &[Decision]),
];

impl Action {
    /// The action of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        ACTIONS.iter().find(|(_, n, ..)| *n == name).map(|(action, ..)| *action)
    }

    /// The name that keymap files and the palette have for it.
    pub(super) fn name(self) -> &'static str {
        let row = ACTIONS.iter().find(|(action, ..)| *action == self);
        row.map_or("", |(_, name, ..)| name)
    }

    /// What it does, in words.
    pub(super) fn what(self) -> &'static str {
        let row = ACTIONS.iter().find(|(action, ..)| *action == self);
        row.map_or("", |(_, _, what, _)| what)
    }

    /// The words that it takes after its name in the palette; empty where it takes none.
    pub(super) const fn arguments(self) -> &'static str {
        match self {
            Self::RateType => "[RATE]",
            Self::Ramp => "[RATE [over] SECONDS]",
            Self::StartCell | Self::AddCell => "[open RATE [CONNECTIONS] | closed CONNECTIONS]",
            Self::Select => "CONFIGURATION",
            Self::Compare => "[FIGURE]",
            Self::Log => "[all | warning | error | /TEXT]",
            Self::Keymap => "NAME",
            _ => "",
        }
    }

    /// Whether it means nothing without words after it.
    pub(super) const fn needs_arguments(self) -> bool {
        matches!(self, Self::Select | Self::Keymap)
    }

    /// Whether the palette has it: what moves within a dialog or answers it means nothing there.
    pub(super) const fn is_command(self) -> bool {
        !matches!(
            self,
            Self::Choose(_)
                | Self::Palette
                | Self::Submit
                | Self::Cancel
                | Self::Complete
                | Self::Change
                | Self::DryRun
                | Self::Retry
        )
    }

    /// Whether the action means something in a layer.
    pub(super) fn belongs_in(self, layer: Layer) -> bool {
        ACTIONS.iter().any(|(action, _, _, layers)| *action == self && layers.contains(&layer))
    }

    /// The actions that a layer knows.
    pub(super) fn in_layer(layer: Layer) -> impl Iterator<Item = Self> {
        let known = ACTIONS.iter().filter(move |(.., layers)| layers.contains(&layer));
        known.map(|(action, ..)| *action)
    }

    /// What the palette can do where it was opened from a layer, in the order of the table.
    pub(super) fn commands(from: Layer) -> impl Iterator<Item = Self> {
        let known = ACTIONS.iter().filter(move |(_, _, _, layers)| {
            layers.is_empty() || layers.contains(&from) || layers.contains(&Everywhere)
        });
        known.map(|(action, ..)| *action).filter(|action| action.is_command())
    }

    /// Every action that takes words in the palette.
    pub(super) fn with_arguments() -> impl Iterator<Item = Self> {
        ACTIONS.iter().map(|(action, ..)| *action).filter(|a| !a.arguments().is_empty())
    }
}
