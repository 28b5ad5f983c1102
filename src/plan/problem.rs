//! What is wrong with a plan, collected so that an operator sees all of it at once.

use std::{cell::RefCell, fmt};

/// Where something of a plan was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The file as a whole.
    Whole,
    /// A line of the file, from 1.
    Line(usize),
    /// A `--set` of the command line.
    Set,
}

/// One thing that is wrong: where, which key, what was found and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanProblem {
    file: String,
    place: Place,
    key: String,
    text: String,
}

impl fmt::Display for PlanProblem {
    /// `plan.toml:12: stage.explore.closed[0]: found 0, allowed: 1 to 10000 connections`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Whole => f.write_str(&self.file)?,
            Place::Line(line) => write!(f, "{}:{line}", self.file)?,
            Place::Set => f.write_str("--set")?,
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Everything that is wrong with a plan, one problem a line, in the order of the file. Never holds
/// a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct PlanErrors(Vec<PlanProblem>);

impl PlanErrors {
    /// One or more problems.
    #[must_use]
    pub fn problems(&self) -> &[PlanProblem] {
        &self.0
    }
}

fn lines(problems: &[PlanProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Collects problems while a plan is read.
pub(super) struct Problems {
    file: String,
    found: RefCell<Vec<PlanProblem>>,
}

impl Problems {
    pub(super) fn new(file: impl Into<String>) -> Self {
        Self { file: file.into(), found: RefCell::new(Vec::new()) }
    }

    pub(super) fn add(&self, place: Place, key: impl Into<String>, text: impl Into<String>) {
        self.found.borrow_mut().push(PlanProblem {
            file: self.file.clone(),
            place,
            key: key.into(),
            text: text.into(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// All problems in the order of the file, those of `--set` last.
    pub(super) fn into_errors(self) -> PlanErrors {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.place);
        found.dedup();
        PlanErrors(found)
    }
}

/// The candidate that a misspelt word most likely means, as `; did you mean "x"?`, or nothing.
pub(super) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    let word = word.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = strsim::normalized_damerau_levenshtein(&word, &candidate.to_lowercase());
        if likeness >= 0.5 && best.is_none_or(|(highest, _)| likeness > highest) {
            best = Some((likeness, candidate));
        }
    }
    best.map_or_else(String::new, |(_, candidate)| format!("; did you mean \"{candidate}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_in_the_order_of_the_file_and_once() {
        let problems = Problems::new("p.toml");
        problems.add(Place::Set, "seed", "c");
        problems.add(Place::Line(9), "b", "b");
        problems.add(Place::Line(2), "a", "a");
        problems.add(Place::Line(2), "a", "a");
        problems.add(Place::Whole, "", "w");
        let text = problems.into_errors().to_string();
        assert_eq!(text, "p.toml: w\np.toml:2: a: a\np.toml:9: b: b\n--set: seed: c");
    }

    #[test]
    fn only_a_likely_word_is_suggested() {
        let keys = ["measure_s", "warmup_s", "open"];
        assert_eq!(did_you_mean("mesure_s", keys), "; did you mean \"measure_s\"?");
        assert_eq!(did_you_mean("xyz", keys), "");
    }
}
