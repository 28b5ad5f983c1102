//! What the connections of a null endpoint share.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{
    FailOn, NullFailure, NullScript,
    answers::{Answer, AnswerError},
    arguments::Arguments,
    session::{Work, first_word},
};
use crate::wire::statement::{Statement, statement_texts};

/// How many statements' texts are remembered. Clients that write values in their texts send
/// others every time.
const MOST_KNOWN: usize = 1_024;

/// What is told from a statement's text.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// `None`: the text is empty.
    pub(super) statement: Option<Statement>,
    pub(super) first_word: Vec<u8>,
    /// The number of its answer, where it has one.
    pub(super) answer: Option<usize>,
    pub(super) arguments: Arguments,
    /// The highest parameter.
    pub(super) parameters: usize,
}

/// Script, answers and counts.
#[derive(Debug)]
pub(super) struct Shared {
    script: NullScript,
    pub(super) answers: Vec<Answer>,
    known: Mutex<HashMap<Vec<u8>, Arc<Known>>>,
    first_query: Mutex<Option<Instant>>,
    failable: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) round_trips: AtomicU64,
}

impl Shared {
    pub(super) fn new(mut script: NullScript) -> Result<Self, AnswerError> {
        let answers = std::mem::take(&mut script.answers);
        Ok(Self {
            script,
            answers: answers.into_iter().map(Answer::new).collect::<Result<_, _>>()?,
            known: Mutex::default(),
            first_query: Mutex::default(),
            failable: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            round_trips: AtomicU64::new(0),
        })
    }

    /// Counts a session; its number, from 1.
    pub(super) fn session_begins(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What is told from the text of a statement to be prepared.
    pub(super) fn known(&self, sql: &[u8]) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(sql) {
            return known.clone();
        }
        let (statement, text) = statement_texts(sql).next().unzip();
        let text = text.unwrap_or_default();
        let mut arguments = Arguments::default();
        let answer = self.answer(text, &mut arguments);
        let parameters = highest_parameter(sql);
        let first_word = first_word(text).to_vec();
        let found = Arc::new(Known { statement, first_word, answer, arguments, parameters });
        if known.len() < MOST_KNOWN {
            known.insert(sql.to_vec(), found.clone());
        }
        found
    }

    /// The number of a statement's answer, and the arguments that follow what it was found by.
    pub(super) fn answer(&self, text: &[u8], arguments: &mut Arguments) -> Option<usize> {
        let found = self
            .answers
            .iter()
            .enumerate()
            .find_map(|(number, answer)| answer.after_match(text).map(|after| (number, after)));
        let (number, after) = found?;
        arguments.read(after);
        Some(number)
    }

    /// The failure that falls on the next statement of this kind, if one does.
    pub(super) fn failure(&self, on: FailOn) -> Option<&NullFailure> {
        let failure = self.script.fail.as_ref().filter(|failure| failure.on == on)?;
        let count = self.failable.fetch_add(1, Ordering::Relaxed) + 1;
        count.is_multiple_of(failure.every.max(1)).then_some(failure)
    }

    /// Counts a COMMIT; whether its connection is cut.
    pub(super) fn commit(&self) -> bool {
        let count = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        self.script.cut_after_commit.is_some_and(|every| count.is_multiple_of(every.max(1)))
    }

    /// When the reply to a request leaves that arrived at `arrival`. The network's part runs side
    /// by side for all round trips under way; the work of commits adds up within the connection,
    /// which has work up to `busy_until`.
    pub(super) fn reply_at(
        &self,
        arrival: Instant,
        work: Work,
        busy_until: &mut Instant,
    ) -> Instant {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        if work.writing_commits > 0 && !self.script.commit_write_delay.is_zero() {
            let added = self.script.commit_write_delay * work.writing_commits;
            *busy_until = arrival.max(*busy_until) + added;
        }
        let done = arrival.max(*busy_until);
        self.after_stalls(arrival, done + work.delay.unwrap_or(self.script.reply_delay))
    }

    fn after_stalls(&self, arrival: Instant, mut at: Instant) -> Instant {
        if self.script.stalls.is_empty() {
            return at;
        }
        let mut first = self.first_query.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *first.get_or_insert(arrival);
        for stall in &self.script.stalls {
            let starts = first + stall.after_first_query;
            let ends = starts + stall.length;
            if at >= starts && at < ends {
                at = ends;
            }
        }
        at
    }
}

/// The highest `$n` in a text; one inside a quoted text counts as well, which does no harm here.
fn highest_parameter(sql: &[u8]) -> usize {
    let numbers = sql.split(|&b| b == b'$').skip(1).filter_map(|after| {
        let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
        std::str::from_utf8(&after[..digits]).ok()?.parse::<u16>().ok()
    });
    numbers.max().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parameters_are_counted_by_the_highest() {
        assert_eq!(highest_parameter(b"select 1"), 0);
        assert_eq!(highest_parameter(b"select $2::int, $1, $12 from t"), 12);
        assert_eq!(highest_parameter(b"$x$ $ $99999999"), 0);
    }

    #[test]
    fn commits_take_turns_within_a_connection_and_the_network_does_not() {
        let ms = Duration::from_millis;
        let script =
            NullScript { reply_delay: ms(2), commit_write_delay: ms(10), ..NullScript::default() };
        let shared = Shared::new(script).unwrap();
        let arrival = Instant::now();
        let mut busy_until = arrival;
        let mut at = |writing_commits| {
            let work = Work { writing_commits, ..Work::default() };
            shared.reply_at(arrival, work, &mut busy_until) - arrival
        };
        assert_eq!([at(0), at(1), at(1), at(0)], [ms(2), ms(12), ms(22), ms(22)]);
    }
}
