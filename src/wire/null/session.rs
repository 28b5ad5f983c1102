//! What one connection of the null endpoint says: the protocol without the socket.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::{Buf, BufMut, BytesMut};

use super::{
    FailOn,
    answers::Formats,
    arguments::{Arguments, Bound},
    shared::{Known, Shared},
};
use crate::wire::{
    message,
    statement::{Statement, statement_texts},
};

/// The type of a parameter whose type the client did not say: text.
const TEXT_OID: u32 = 25;
/// Protocol version 3.0.
const PROTOCOL: u32 = 3 << 16;
/// Options of the start-up packet that a server may ignore, if it says so.
const OPTIONAL: &[u8] = b"_pq_.";

/// A prepared statement.
#[derive(Debug, Default)]
struct Prepared {
    known: Arc<Known>,
    types: Vec<u32>,
}

/// A prepared statement with values for its parameters.
#[derive(Debug, Default)]
struct Portal {
    /// `None`: there is no such portal.
    known: Option<Arc<Known>>,
    bound: Bound,
    formats: Formats,
}

/// What a round trip's reply takes beyond the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Writing transactions were committed: how many.
    pub(super) writing_commits: u32,
    /// In place of the script's delay.
    pub(super) delay: Option<Duration>,
    /// The connection is cut rather than answered.
    pub(super) cut: bool,
}

/// The state of one connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// What has been answered and has not left.
    pub(super) out: BytesMut,
    prepared: HashMap<Vec<u8>, Prepared>,
    portals: HashMap<Vec<u8>, Portal>,
    /// Kept apart from the others, and its memory kept: most clients use no other.
    unnamed: Prepared,
    unnamed_portal: Portal,
    /// For a statement with its values in its text.
    arguments: Arguments,
    elements: Vec<i64>,
    in_transaction: bool,
    failed: bool,
    wrote: bool,
    /// After an error everything up to the Sync is passed over.
    skipping: bool,
    work: Work,
}

impl Session {
    /// Answers the start-up packet.
    pub(super) fn welcome(&mut self, packet: &[u8], ordinal: u64) {
        let out = &mut self.out;
        negotiate(packet, out);
        message::put(out, b'R', |out| out.put_u32(0));
        for (name, value) in [
            ("server_version", "17.0"),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("integer_datetimes", "on"),
            ("DateStyle", "ISO, MDY"),
            ("IntervalStyle", "postgres"),
            ("TimeZone", "UTC"),
            ("is_superuser", "off"),
            ("default_transaction_read_only", "off"),
            ("in_hot_standby", "off"),
        ] {
            message::put(out, b'S', |out| {
                message::put_text(out, name);
                message::put_text(out, value);
            });
        }
        message::put(out, b'K', |out| out.put_u64(ordinal));
        message::put_ready(out, b'I');
    }

    /// Takes a message; whether a reply leaves with it, and what that takes.
    pub(super) fn message(&mut self, tag: u8, body: &[u8], shared: &Shared) -> Option<Work> {
        if self.skipping && tag != b'S' {
            return None;
        }
        match tag {
            b'Q' => self.query(message::text(body).0, shared),
            b'S' => {
                self.skipping = false;
                self.ready();
            }
            b'H' => {}
            _ => {
                match tag {
                    b'P' => self.parse(body, shared),
                    b'B' => self.bind(body),
                    b'D' => self.describe(body, shared),
                    b'E' => self.execute(body, shared),
                    b'C' => self.close(body),
                    _ => {}
                }
                return None;
            }
        }
        Some(std::mem::take(&mut self.work))
    }

    fn query(&mut self, sql: &[u8], shared: &Shared) {
        let mut empty = true;
        for (statement, text) in statement_texts(sql) {
            empty = false;
            let mut arguments = std::mem::take(&mut self.arguments);
            let answer = shared.answer(text, &mut arguments);
            let succeeded = self.allow(statement, shared);
            if succeeded {
                let (bound, formats) = (Bound::default(), Formats::default());
                if let Some(answer) = answer {
                    shared.answers[answer].describe(&mut self.out, &formats);
                }
                self.complete(statement, text, shared, (answer, &arguments, &bound, &formats));
            }
            self.arguments = arguments;
            if !succeeded {
                break;
            }
        }
        if empty {
            message::put(&mut self.out, b'I', |_| {});
        }
        self.ready();
    }

    fn ready(&mut self) {
        if !self.in_transaction && std::mem::take(&mut self.wrote) {
            // Statements outside of a transaction commit here.
            self.work.writing_commits += 1;
        }
        let status = match (self.in_transaction, self.failed) {
            (false, _) => b'I',
            (true, false) => b'T',
            (true, true) => b'E',
        };
        message::put_ready(&mut self.out, status);
    }

    fn parse(&mut self, body: &[u8], shared: &Shared) {
        let (name, rest) = message::text(body);
        let (sql, mut declared) = message::text(rest);
        let known = shared.known(sql);
        let prepared = if name.is_empty() {
            &mut self.unnamed
        } else {
            self.prepared.entry(name.to_vec()).or_default()
        };
        prepared.types.clear();
        for _ in 0..declared.try_get_u16().unwrap_or_default() {
            let oid = declared.try_get_u32().unwrap_or_default();
            prepared.types.push(if oid == 0 { TEXT_OID } else { oid });
        }
        let parameters = prepared.types.len().max(known.parameters);
        prepared.types.resize(parameters, TEXT_OID);
        prepared.known = known;
        message::put(&mut self.out, b'1', |_| {});
    }

    fn prepared(&self, name: &[u8]) -> Option<&Prepared> {
        if name.is_empty() { Some(&self.unnamed) } else { self.prepared.get(name) }
    }

    fn bind(&mut self, body: &[u8]) {
        let (portal, rest) = message::text(body);
        let (name, rest) = message::text(rest);
        let Some(known) = self.prepared(name).map(|prepared| prepared.known.clone()) else {
            return self.error("26000", "there is no such prepared statement");
        };
        let portal = if portal.is_empty() {
            &mut self.unnamed_portal
        } else {
            self.portals.entry(portal.to_vec()).or_default()
        };
        portal.known = Some(known);
        if portal.read(rest).is_none() {
            return self.error("08P01", "the values of a Bind message are incomplete");
        }
        message::put(&mut self.out, b'2', |_| {});
    }

    fn describe(&mut self, body: &[u8], shared: &Shared) {
        let Some((kind, name)) = body.split_first() else { return };
        let name = message::text(name).0;
        let mut out = std::mem::take(&mut self.out);
        let missing = if *kind == b'S' {
            match self.prepared(name) {
                Some(prepared) => {
                    prepared.describe(&mut out, shared);
                    None
                }
                None => Some(("26000", "there is no such prepared statement")),
            }
        } else {
            let portal = self.portal(name);
            match &portal.known {
                Some(known) => {
                    describe_rows(&mut out, known, &portal.formats, shared);
                    None
                }
                None => Some(("34000", "there is no such portal")),
            }
        };
        self.out = out;
        if let Some((sqlstate, text)) = missing {
            self.error(sqlstate, text);
        }
    }

    fn portal(&mut self, name: &[u8]) -> &mut Portal {
        if name.is_empty() {
            return &mut self.unnamed_portal;
        }
        // One that is not there is left as an empty entry, which is no portal.
        if !self.portals.contains_key(name) {
            self.portals.insert(name.to_vec(), Portal::default());
        }
        self.portals.entry(name.to_vec()).or_default()
    }

    fn execute(&mut self, body: &[u8], shared: &Shared) {
        // Taken out while it is carried out, put back for its memory's sake.
        let mut portal = std::mem::take(self.portal(message::text(body).0));
        match portal.known.take() {
            None => self.error("34000", "there is no such portal"),
            Some(known) => {
                match known.statement {
                    None => message::put(&mut self.out, b'I', |_| {}),
                    Some(statement) if self.allow(statement, shared) => {
                        let given =
                            (known.answer, &known.arguments, &portal.bound, &portal.formats);
                        self.complete(statement, &known.first_word, shared, given);
                    }
                    Some(_) => self.skipping = true,
                }
                portal.known = Some(known);
            }
        }
        *self.portal(message::text(body).0) = portal;
    }

    fn close(&mut self, body: &[u8]) {
        if let Some((kind, name)) = body.split_first() {
            let name = message::text(name).0;
            match (kind, name) {
                (b'P', b"") => self.unnamed_portal.known = None,
                (b'P', _) => drop(self.portals.remove(name)),
                _ => drop(self.prepared.remove(name)),
            }
        }
        message::put(&mut self.out, b'3', |_| {});
    }

    fn error(&mut self, sqlstate: &str, text: &str) {
        message::put_error(&mut self.out, "ERROR", sqlstate, text);
        self.failed = self.in_transaction;
        self.skipping = true;
    }

    /// Whether a statement is carried out; what keeps it from that is answered.
    fn allow(&mut self, statement: Statement, shared: &Shared) -> bool {
        if self.failed && !matches!(statement, Statement::Commit | Statement::Rollback) {
            let text = "the transaction has failed: only ROLLBACK is taken";
            message::put_error(&mut self.out, "ERROR", "25P02", text);
            return false;
        }
        let on = match statement {
            Statement::Begin | Statement::Rollback => None,
            Statement::Commit if self.failed => None,
            Statement::Commit => Some(FailOn::Commit),
            _ => Some(FailOn::Statement),
        };
        let Some(failure) = on.and_then(|on| shared.failure(on)) else { return true };
        message::put_error(&mut self.out, "ERROR", &failure.sqlstate, "failed as scripted");
        self.work.delay = failure.reply_delay;
        if on == Some(FailOn::Commit) {
            self.in_transaction = false;
            self.wrote = false;
        }
        self.failed = self.in_transaction;
        false
    }

    fn complete(
        &mut self,
        statement: Statement,
        text: &[u8],
        shared: &Shared,
        (answer, arguments, bound, formats): (Option<usize>, &Arguments, &Bound, &Formats),
    ) {
        let rows = answer.map(|answer| {
            let given = (arguments, bound);
            shared.answers[answer].put_rows(&mut self.out, given, formats, &mut self.elements)
        });
        let counted = match statement {
            Statement::Begin => {
                self.in_transaction = true;
                return message::put_complete(&mut self.out, "BEGIN");
            }
            Statement::Commit | Statement::Rollback => {
                let tag = self.end(statement, shared);
                return message::put_complete(&mut self.out, tag);
            }
            Statement::Insert => "INSERT 0 ",
            Statement::Update => "UPDATE ",
            Statement::Delete => "DELETE ",
            Statement::Merge => "MERGE ",
            Statement::WritingWith => "SELECT ",
            Statement::Other if rows.is_none() && !reads(text) => {
                return message::put(&mut self.out, b'C', |out| put_first_word(out, text));
            }
            Statement::Other => "SELECT ",
        };
        let writes = !matches!(statement, Statement::Other);
        self.wrote |= writes;
        let rows = rows.unwrap_or_else(|| usize::from(writes && counted != "SELECT "));
        message::put(&mut self.out, b'C', |out| {
            use std::fmt::Write as _;
            // There is no limit to what it takes.
            let _written = write!(out, "{counted}{rows}\0");
        });
    }

    /// Ends the transaction; its tag.
    fn end(&mut self, statement: Statement, shared: &Shared) -> &'static str {
        self.in_transaction = false;
        let wrote = std::mem::take(&mut self.wrote);
        if std::mem::take(&mut self.failed) || statement == Statement::Rollback {
            return "ROLLBACK";
        }
        self.work.writing_commits += u32::from(wrote);
        self.work.cut |= shared.commit();
        "COMMIT"
    }
}

impl Prepared {
    fn describe(&self, out: &mut BytesMut, shared: &Shared) {
        message::put(out, b't', |out| {
            out.put_u16(u16::try_from(self.types.len()).unwrap_or(u16::MAX));
            self.types.iter().for_each(|oid| out.put_u32(*oid));
        });
        describe_rows(out, &self.known, &Formats::default(), shared);
    }
}

fn describe_rows(out: &mut BytesMut, known: &Known, formats: &Formats, shared: &Shared) {
    match known.answer {
        Some(answer) => shared.answers[answer].describe(out, formats),
        None => message::put(out, b'n', |_| {}),
    }
}

impl Portal {
    /// Reads what follows the names in a Bind message; `None` where it is cut short.
    fn read(&mut self, mut rest: &[u8]) -> Option<()> {
        self.bound.clear();
        self.formats.clear();
        let count = usize::from(rest.try_get_u16().ok()?);
        let (codes, mut rest) = rest.split_at_checked(2 * count)?;
        let is_binary = |index: usize| {
            let at = if count == 1 { 0 } else { index };
            codes.get(2 * at + 1) == Some(&1)
        };
        for index in 0..usize::from(rest.try_get_u16().ok()?) {
            // A null has the length -1.
            let length = usize::try_from(rest.try_get_i32().ok()?).unwrap_or_default();
            let (value, after) = rest.split_at_checked(length)?;
            self.bound.push(is_binary(index), value);
            rest = after;
        }
        for _ in 0..rest.try_get_u16().ok()? {
            self.formats.push(rest.try_get_u16().ok()? == 1);
        }
        Some(())
    }
}

/// Tells a client that asks for more than protocol 3.0 that this is all there is.
fn negotiate(packet: &[u8], out: &mut BytesMut) {
    let mut rest = packet.get(4..).unwrap_or_default();
    let version = rest.try_get_u32().unwrap_or(PROTOCOL);
    let mut unknown: Vec<&[u8]> = Vec::new();
    while !rest.is_empty() {
        let (name, after) = message::text(rest);
        if name.is_empty() {
            break;
        }
        if name.starts_with(OPTIONAL) {
            unknown.push(name);
        }
        rest = message::text(after).1;
    }
    if version <= PROTOCOL && unknown.is_empty() {
        return;
    }
    message::put(out, b'v', |out| {
        out.put_u32(PROTOCOL);
        out.put_u32(u32::try_from(unknown.len()).unwrap_or(u32::MAX));
        for name in unknown {
            out.put_slice(name);
            out.put_u8(0);
        }
    });
}

/// Whether a statement gives rows, be it none.
fn reads(text: &[u8]) -> bool {
    let word = first_word(text);
    ["select", "with", "values", "table", "show", "fetch"]
        .iter()
        .any(|reads| word.eq_ignore_ascii_case(reads.as_bytes()))
}

/// The word that a statement begins with.
pub(super) fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|c| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    &text[..end]
}

/// As the tags of statements that give no rows begin.
fn put_first_word(out: &mut BytesMut, text: &[u8]) {
    first_word(text).iter().for_each(|c| out.put_u8(c.to_ascii_uppercase()));
    out.put_u8(0);
}
