//! The command palette: a line in which actions are typed by their names, with completion.

use tui_input::{Input, InputRequest};

use super::action::{Action, Layer};

/// The palette, opened.
#[derive(Clone, Debug)]
pub(super) struct PalettePanel {
    pub input: Input,
    /// Index of the marked candidate.
    pub marked: usize,
    pub error: Option<String>,
    /// The layer that it was opened from: its actions come first, and are what can be done.
    pub from: Layer,
}

impl PalettePanel {
    pub(super) fn new(from: Layer) -> Self {
        Self { input: Input::default(), marked: 0, error: None, from }
    }

    /// Types into the line. Returns whether it took the request.
    pub(super) fn type_in(&mut self, request: InputRequest) -> bool {
        self.input.handle(request);
        self.marked = 0;
        self.error = None;
        true
    }

    /// Marks the next candidate, or the one before.
    pub(super) fn mark(&mut self, forward: bool) {
        let count = self.candidates().len().max(1);
        self.marked = (self.marked + if forward { 1 } else { count - 1 }) % count;
    }

    /// Types the marked candidate out.
    pub(super) fn complete(&mut self) {
        if let Some(action) = self.candidates().get(self.marked) {
            self.input = Input::new(action.words().0.to_owned());
            self.marked = 0;
        }
    }

    /// What the line asks for: the marked candidate.
    pub(super) fn chosen(&self) -> Option<Action> {
        self.candidates().get(self.marked).copied()
    }

    /// The actions that what is typed may mean, the best first.
    pub(super) fn candidates(&self) -> Vec<Action> {
        let typed = self.input.value().trim().to_lowercase();
        let mut found: Vec<(u8, Action)> = Action::in_layer(self.from)
            .chain(Action::in_layer(Layer::Everywhere))
            .filter_map(|action| Some((rank(action, &typed)?, action)))
            .collect();
        found.sort_by_key(|(rank, _)| *rank);
        let mut actions: Vec<Action> = Vec::new();
        for (_, action) in found {
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        actions
    }
}

/// How well a name fits what is typed, 0 best; `None` where it does not.
fn rank(action: Action, typed: &str) -> Option<u8> {
    let (name, what) = action.words();
    match action {
        // They mean something only where one moves or answers.
        Action::Choose(_) | Action::Palette => None,
        _ if name == typed => Some(0),
        _ if name.starts_with(typed) => Some(1),
        _ if name.contains(typed) => Some(2),
        _ if what.contains(typed) => Some(3),
        _ => None,
    }
}
