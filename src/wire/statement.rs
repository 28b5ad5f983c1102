//! What a statement is, told from its text.

/// What kind of statement a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Begin,
    Commit,
    /// The end of a whole transaction: not a return to a savepoint.
    Rollback,
    Insert,
    Update,
    Delete,
    Merge,
    /// A `WITH` that writes in one of its parts, whatever its last part is.
    WritingWith,
    Other,
}

impl Statement {
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Which kinds of statement there are in a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content(u16);

impl Content {
    /// The statements of a text, which may hold several.
    pub(super) fn of(sql: &[u8]) -> Self {
        let mut content = Self::default();
        for statement in statements(sql) {
            content.add(statement);
        }
        content
    }

    pub(super) fn add(&mut self, statement: Statement) {
        self.0 |= statement.bit();
    }

    pub(super) fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) const fn has(self, statement: Statement) -> bool {
        self.0 & statement.bit() != 0
    }

    /// Whether there is a COMMIT and nothing else.
    pub(super) fn is_only_commit(self) -> bool {
        self.0 == Statement::Commit.bit()
    }

    /// Whether there is a statement other than COMMIT.
    pub(super) const fn has_other_than_commit(self) -> bool {
        self.0 & !Statement::Commit.bit() != 0
    }

    /// Whether a statement, by its text, changes rows.
    pub(super) fn may_write(self) -> bool {
        use Statement::{Delete, Insert, Merge, Update, WritingWith};
        [Insert, Update, Delete, Merge, WritingWith].into_iter().any(|s| self.has(s))
    }
}

/// The statements of a text in their order; empty ones are left out.
pub(super) fn statements(sql: &[u8]) -> impl Iterator<Item = Statement> {
    statement_texts(sql).map(|(statement, _)| statement)
}

/// As [`statements`], each with its text from its first word on.
pub(super) fn statement_texts(sql: &[u8]) -> impl Iterator<Item = (Statement, &[u8])> {
    let mut lexer = Lexer { sql, at: 0 };
    std::iter::from_fn(move || {
        loop {
            lexer.skip_blanks();
            let start = lexer.at;
            match lexer.statement() {
                Found::Statement(statement) => return Some((statement, &sql[start..lexer.at])),
                Found::Empty => {}
                Found::End => return None,
            }
        }
    })
}

enum Found {
    Statement(Statement),
    /// Nothing between two semicolons.
    Empty,
    End,
}

enum Token<'a> {
    Word(&'a [u8]),
    Semicolon,
    Other,
}

struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
}

/// Words that begin a statement that changes rows.
const WRITES: [(&str, Statement); 4] = [
    ("insert", Statement::Insert),
    ("update", Statement::Update),
    ("delete", Statement::Delete),
    ("merge", Statement::Merge),
];

fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

fn first_word(word: &[u8]) -> Statement {
    const ENDS: [(&str, Statement); 6] = [
        ("begin", Statement::Begin),
        ("start", Statement::Begin),
        ("commit", Statement::Commit),
        ("end", Statement::Commit),
        ("rollback", Statement::Rollback),
        ("abort", Statement::Rollback),
    ];
    ENDS.into_iter()
        .chain(WRITES)
        .find(|(keyword, _)| is(word, keyword))
        .map_or(Statement::Other, |(_, statement)| statement)
}

impl Lexer<'_> {
    /// Reads one statement and its semicolon.
    fn statement(&mut self) -> Found {
        let mut found: Option<Statement> = None;
        let mut with = false;
        // `FOR UPDATE` and `FOR NO KEY UPDATE` lock, they do not write.
        let mut locks = false;
        loop {
            let word = match self.token() {
                None => return found.map_or(Found::End, Found::Statement),
                Some(Token::Semicolon) => return found.map_or(Found::Empty, Found::Statement),
                Some(Token::Other) => {
                    found.get_or_insert(Statement::Other);
                    continue;
                }
                Some(Token::Word(word)) => word,
            };
            match found {
                None => {
                    with = is(word, "with");
                    found = Some(first_word(word));
                }
                Some(Statement::Commit | Statement::Rollback) if is(word, "prepared") => {
                    found = Some(Statement::Other);
                }
                Some(Statement::Rollback) if is(word, "to") => found = Some(Statement::Other),
                Some(Statement::Other) if with && !locks && is_write_word(word) => {
                    found = Some(Statement::WritingWith);
                }
                Some(_) => {}
            }
            locks = is(word, "for") || is(word, "key");
        }
    }

    fn token(&mut self) -> Option<Token<'_>> {
        self.skip_blanks();
        let first = *self.sql.get(self.at)?;
        let start = self.at;
        self.at += 1;
        match first {
            b';' => Some(Token::Semicolon),
            b'\'' => {
                let escapes = start > 0 && matches!(self.sql[start - 1], b'e' | b'E');
                self.skip_quoted(b'\'', escapes);
                Some(Token::Other)
            }
            b'"' => {
                self.skip_quoted(b'"', false);
                Some(Token::Other)
            }
            b'$' => {
                self.skip_dollar_quoted(start);
                Some(Token::Other)
            }
            c if is_word_byte(c) => {
                while self.sql.get(self.at).is_some_and(|&c| is_word_byte(c)) {
                    self.at += 1;
                }
                Some(Token::Word(&self.sql[start..self.at]))
            }
            _ => Some(Token::Other),
        }
    }

    /// Steps over white space and comments; `/* */` nest.
    fn skip_blanks(&mut self) {
        loop {
            match self.sql[self.at..] {
                [c, ..] if c.is_ascii_whitespace() => self.at += 1,
                [b'-', b'-', ..] => self.skip_past(|rest| rest[0] == b'\n', 1),
                [b'/', b'*', ..] => self.skip_block_comment(),
                _ => return,
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0_u32;
        while self.at < self.sql.len() {
            match self.sql[self.at..] {
                [b'/', b'*', ..] => {
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Steps over a quoted text whose opening quote has been read; a doubled quote stays inside.
    fn skip_quoted(&mut self, quote: u8, escapes: bool) {
        while let Some(&c) = self.sql.get(self.at) {
            self.at += 1;
            if c == b'\\' && escapes {
                self.at = (self.at + 1).min(self.sql.len());
            } else if c == quote {
                if self.sql.get(self.at) != Some(&quote) {
                    return;
                }
                self.at += 1;
            }
        }
    }

    /// Steps over `$tag$ … $tag$`; a parameter such as `$1` is left as it is.
    fn skip_dollar_quoted(&mut self, start: usize) {
        let mut end = self.at;
        while self.sql.get(end).is_some_and(|&c| is_word_byte(c)) {
            end += 1;
        }
        let starts_with_digit = self.sql.get(self.at).is_some_and(u8::is_ascii_digit);
        if self.sql.get(end) != Some(&b'$') || starts_with_digit {
            self.at = end;
            return;
        }
        let tag = self.sql[start..=end].to_vec();
        self.at = end + 1;
        let length = tag.len();
        self.skip_past(|rest| rest.starts_with(&tag), length);
    }

    /// Steps to where `found` holds and `length` bytes further, or to the end.
    fn skip_past(&mut self, found: impl Fn(&[u8]) -> bool, length: usize) {
        while self.at < self.sql.len() {
            if found(&self.sql[self.at..]) {
                self.at += length;
                return;
            }
            self.at += 1;
        }
    }
}

fn is_write_word(word: &[u8]) -> bool {
    WRITES.into_iter().any(|(keyword, _)| is(word, keyword))
}

/// Bytes of names and keywords; everything above ASCII is part of a name.
const fn is_word_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

#[cfg(test)]
mod tests {
    use super::{Statement::*, *};

    fn kinds(sql: &str) -> Vec<Statement> {
        statements(sql.as_bytes()).collect()
    }

    #[test]
    fn the_ends_of_a_transaction_are_told_in_every_dress() {
        for sql in ["COMMIT", "commit;", " /* a /* b */ */ Commit -- x", "END", "commit and chain"]
        {
            assert_eq!(kinds(sql), [Commit], "{sql}");
        }
        for sql in ["ROLLBACK", "abort work", "--x\nrollback transaction"] {
            assert_eq!(kinds(sql), [Rollback], "{sql}");
        }
        for sql in ["begin", "START TRANSACTION ISOLATION LEVEL REPEATABLE READ"] {
            assert_eq!(kinds(sql), [Begin], "{sql}");
        }
        for sql in ["COMMIT PREPARED 'x'", "ROLLBACK TO SAVEPOINT a", "rollback work to a"] {
            assert_eq!(kinds(sql), [Other], "{sql}");
        }
    }

    #[test]
    fn semicolons_count_only_outside_of_quotes_and_comments() {
        assert_eq!(kinds(""), []);
        assert_eq!(kinds(" ; ;"), []);
        assert_eq!(
            kinds("insert into t values ('a;''b', $x$;commit;$x$); COMMIT"),
            [Insert, Commit]
        );
        assert_eq!(kinds("select E'\\';commit', \"a;b\", $1;end"), [Other, Commit]);
        assert_eq!(kinds("select $1::text; update t set a = $2"), [Other, Update]);
        assert_eq!(kinds("select 'never closed; commit"), [Other]);
        assert_eq!(kinds("/* never closed; commit"), []);
    }

    #[test]
    fn a_with_is_looked_into() {
        assert_eq!(
            kinds("with a as (insert into t values (1) returning 1) select * from a"),
            [WritingWith]
        );
        assert_eq!(kinds("with a as (select 1 for update) select * from a"), [Other]);
        assert_eq!(kinds("with a as (select 1 for no key update) select 1"), [Other]);
        assert_eq!(kinds("select 'insert' from update_log"), [Other]);
    }

    #[test]
    fn content_says_what_is_in_a_round_trip() {
        assert!(Content::of(b"commit").is_only_commit());
        let both = Content::of(b"update t set a = 1; commit");
        assert!(!both.is_only_commit() && both.may_write() && both.has_other_than_commit());
        assert!(!Content::of(b"select 1 for update").may_write());
    }
}
