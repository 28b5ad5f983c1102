//! The command palette: a line in which actions are typed by their names, with completion of names
//! and of the words after them.

use tui_input::{Input, InputRequest};

use crate::model::ConfigurationId;

use super::{
    action::{Action, Layer},
    keymap,
    looks::Figure,
};

/// The words that the log takes as a level.
pub(super) const LEVELS: [&str; 3] = ["all", "warning", "error"];

/// What the line may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What the line has once it is completed.
    pub text: String,
    pub action: Action,
}

/// The palette, opened.
#[derive(Clone, Debug)]
pub(super) struct PalettePanel {
    pub input: Input,
    /// Index of the marked candidate.
    pub marked: usize,
    pub error: Option<String>,
    /// The layer that it was opened from: its actions are what can be done.
    pub from: Layer,
    /// Whether the operator has marked a candidate: it is what is meant then, not what is typed.
    chose: bool,
    /// What was typed before tab put candidates in its place, one after the other.
    stem: Option<String>,
    recent: Vec<Action>,
    configurations: Vec<String>,
}

impl PalettePanel {
    /// A palette over a layer; `recent` has what was last asked for, the newest first.
    pub(super) fn new<'a>(
        from: Layer,
        recent: &[Action],
        configurations: impl Iterator<Item = &'a ConfigurationId>,
    ) -> Self {
        Self {
            input: Input::default(),
            marked: 0,
            error: None,
            from,
            chose: false,
            stem: None,
            recent: recent.to_vec(),
            configurations: configurations.map(ToString::to_string).collect(),
        }
    }

    /// Types into the line. Returns whether it took the request.
    pub(super) fn type_in(&mut self, request: InputRequest) -> bool {
        self.input.handle(request);
        self.marked = 0;
        self.error = None;
        self.chose = false;
        self.stem = None;
        true
    }

    /// Marks the next candidate, or the one before.
    pub(super) fn mark(&mut self, forward: bool) {
        let count = self.candidates().len().max(1);
        self.marked = (self.marked + if forward { 1 } else { count - 1 }) % count;
        self.chose = true;
    }

    /// Types as much out as all candidates have in common; where that is no more than what is
    /// typed, the marked candidate, then the next ones.
    pub(super) fn complete(&mut self) {
        self.error = None;
        let candidates = self.candidates();
        if candidates.is_empty() {
            self.error = Some("nothing to complete here".to_owned());
            return;
        }
        if self.stem.is_some() {
            return self.put(&candidates, (self.marked + 1) % candidates.len());
        }
        if let Some(text) = self.certain(&candidates) {
            self.input = Input::new(text);
            self.marked = 0;
            return;
        }
        let is_typed = candidates.get(self.marked).is_some_and(|c| c.text == self.input.value());
        self.stem = Some(self.input.value().to_owned());
        self.put(&candidates, (self.marked + usize::from(is_typed)) % candidates.len());
    }

    /// What can be typed out whatever is meant: what all candidates that begin so have in common,
    /// and a space where nothing but words can follow. `None` where that is typed already.
    fn certain(&self, candidates: &[Candidate]) -> Option<String> {
        let typed = self.input.value().trim_start().to_lowercase();
        let begun = candidates.iter().filter(|c| c.text.to_lowercase().starts_with(&typed));
        let begun: Vec<&Candidate> = begun.collect();
        if self.chose || typed.is_empty() {
            return None;
        }
        if let [only] = begun[..]
            && takes_words_after(only)
        {
            return Some(format!("{} ", only.text));
        }
        let common = common(begun.iter().map(|candidate| candidate.text.as_str()));
        (common.len() > typed.len()).then_some(common)
    }

    fn put(&mut self, candidates: &[Candidate], at: usize) {
        self.marked = at;
        if let Some(candidate) = candidates.get(at) {
            self.input = Input::new(candidate.text.clone());
        }
    }

    /// What the line asks for: an action, and the words after it.
    ///
    /// # Errors
    /// When it is no command here, in words.
    pub(super) fn chosen(&self) -> Result<(Action, String), String> {
        let typed = self.input.value().trim();
        let (name, rest) = split(typed);
        let candidates = self.candidates();
        if self.chose
            && let Some(candidate) = candidates.get(self.marked)
        {
            return Ok((candidate.action, split(&candidate.text).1.to_owned()));
        }
        if let Some(action) = self.command(name) {
            return Ok((action, rest.to_owned()));
        }
        if let Some(action) = Action::named(&name.to_lowercase()).filter(|a| a.is_command()) {
            return Err(format!("`{}` means nothing in the {} layer", action.name(), self.from));
        }
        match candidates.first() {
            Some(candidate) if rest.is_empty() => Ok((candidate.action, String::new())),
            _ => Err(format!("no command `{name}` here; tab and the arrows show what there is")),
        }
    }

    /// The action of a whole name, if it means something here.
    pub(super) fn command(&self, name: &str) -> Option<Action> {
        let action = Action::named(&name.to_lowercase())?;
        Action::commands(self.from).find(|known| *known == action)
    }

    /// The action whose words are being typed.
    pub(super) fn with_words(&self) -> Option<Action> {
        let (name, _) = self.line().trim_start().split_once(' ')?;
        self.command(name)
    }

    fn line(&self) -> &str {
        self.stem.as_deref().unwrap_or_else(|| self.input.value())
    }

    /// What the line may become, the best first: with nothing typed what was asked for last.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let typed = self.line().trim_start().to_lowercase();
        if let (Some(action), Some((_, word))) = (self.with_words(), typed.split_once(' ')) {
            let words = self.words(action).into_iter();
            let words = words.filter(|known| known.to_lowercase().starts_with(word.trim_start()));
            let name = action.name();
            let candidate = |word| Candidate { text: format!("{name} {word}"), action };
            return words.map(candidate).collect();
        }
        let mut found: Vec<(usize, Action)> = Action::commands(self.from)
            .filter_map(|action| {
                let used = self.recent.iter().position(|known| *known == action);
                let place = if typed.is_empty() { used.unwrap_or(usize::MAX) } else { 0 };
                Some((rank(action, typed.trim_end())?.saturating_add(place), action))
            })
            .collect();
        found.sort_by_key(|(rank, _)| *rank);
        let candidate = |(_, action): (_, Action)| Candidate { text: action.name().into(), action };
        found.into_iter().map(candidate).collect()
    }

    /// The words that can stand first after an action's name, as far as they can be listed.
    fn words(&self, action: Action) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match action {
            Action::Select => self.configurations.clone(),
            Action::Compare => owned(&Figure::ALL.map(Figure::word)),
            Action::Log => owned(&LEVELS),
            Action::StartCell | Action::AddCell => owned(&["open", "closed"]),
            Action::Keymap => owned(&keymap::names()),
            _ => Vec::new(),
        }
    }
}

/// The first word of a line, and the rest.
fn split(line: &str) -> (&str, &str) {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (name, rest.trim())
}

/// Whether a candidate is a whole name that words can follow.
fn takes_words_after(candidate: &Candidate) -> bool {
    candidate.text == candidate.action.name() && !candidate.action.arguments().is_empty()
}

/// The longest beginning that all texts have.
fn common<'a>(mut texts: impl Iterator<Item = &'a str>) -> String {
    let Some(first) = texts.next() else { return String::new() };
    let mut length = first.len();
    for text in texts {
        let alike = first.char_indices().zip(text.chars()).find(|((_, one), two)| one != two);
        let alike = alike.map_or_else(|| first.len().min(text.len()), |((at, _), _)| at);
        length = length.min(alike);
    }
    first[..length].to_owned()
}

/// How well a name fits what is typed, 0 best; `None` where it does not.
fn rank(action: Action, typed: &str) -> Option<usize> {
    let name = action.name();
    let has_word =
        |text: &str| text.split([' ', '-']).any(|word| word.to_lowercase().starts_with(typed));
    match typed {
        _ if name == typed => Some(0),
        _ if name.starts_with(typed) => Some(1),
        _ if has_word(name) => Some(2),
        _ if has_word(action.what()) => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(typed: &str) -> PalettePanel {
        let ids = ["D1", "R1", "R2"].map(ConfigurationId::new);
        let mut panel = PalettePanel::new(Layer::Overview, &[Action::Log], ids.iter());
        for c in typed.chars() {
            panel.type_in(InputRequest::InsertChar(c));
        }
        panel
    }

    fn texts(panel: &PalettePanel) -> Vec<String> {
        panel.candidates().into_iter().map(|candidate| candidate.text).collect()
    }

    fn completed(typed: &str, tabs: usize) -> String {
        let mut panel = palette(typed);
        (0..tabs).for_each(|_| panel.complete());
        panel.input.value().to_owned()
    }

    #[test]
    fn with_nothing_typed_what_was_used_last_comes_first() {
        assert_eq!(texts(&palette(""))[..2], ["log", "overview"]);
        assert_eq!(texts(&palette("rat"))[..3], ["rate-up", "rate-down", "rate-double"]);
        assert_eq!(texts(&palette("rate"))[0], "rate");
        assert_eq!(texts(&palette("clipboard")), ["copy"]);
        assert!(!texts(&palette("rat")).contains(&"configuration".to_owned()));
        assert!(!texts(&palette("")).contains(&"choose-1".to_owned()));
        assert!(!texts(&palette("")).contains(&"log-level".to_owned()), "it is the log's");
    }

    #[test]
    fn tab_types_what_all_have_in_common_then_goes_round() {
        assert_eq!(completed("rat", 1), "rate");
        assert_eq!(completed("rat", 2), "rate-up");
        assert_eq!(completed("ramp", 1), "ramp ");
        assert_eq!(completed("sel", 1), "select ");
        assert_eq!(completed("sel", 2), "select D1");
        assert_eq!(completed("sel", 3), "select R1");
        assert_eq!(completed("sel", 5), "select D1");
        assert_eq!(completed("select r", 1), "select R1");
        assert_eq!(completed("compare p", 1), "compare p99");
        assert_eq!(completed("pau", 1), "pause-resume");
        assert_eq!(completed("xyz", 1), "xyz");
        let mut panel = palette("rate-");
        panel.mark(true);
        panel.complete();
        assert_eq!(panel.input.value(), "rate-down");
    }

    #[test]
    fn the_line_says_an_action_and_the_words_after_it() {
        let chosen = |typed: &str| palette(typed).chosen();
        let is = |action, rest: &str| Ok((action, rest.to_owned()));
        assert_eq!(chosen("rate  500 "), is(Action::RateType, "500"));
        assert_eq!(chosen("log /two words"), is(Action::Log, "/two words"));
        assert_eq!(chosen("reso"), is(Action::Resources, ""));
        let none = "no command `explode` here; tab and the arrows show what there is";
        assert_eq!(chosen("explode"), Err(none.to_owned()));
        assert_eq!(chosen("explode 3"), Err(none.to_owned()));
        let elsewhere = "`log-level` means nothing in the overview layer";
        assert_eq!(chosen("log-level"), Err(elsewhere.to_owned()));
        let mut panel = palette("compare ");
        panel.mark(true);
        assert_eq!(panel.chosen(), is(Action::Compare, "p99"));
    }
}
