//! One connection of the null endpoint.

use std::{
    collections::HashMap,
    io,
    time::{Duration, Instant},
};

use bytes::{Buf, BufMut, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    message::{self, Framer, Front},
    null::{FailOn, Shared},
    startup::{Opening, read_opening},
    statement::{Statement, statements},
    timer::PreciseTimer,
};

/// The type of a parameter whose type the client did not say: text.
const TEXT_OID: u32 = 25;

/// Serves a connection to its end.
///
/// # Errors
/// When its socket fails or the client leaves the protocol.
pub(super) async fn serve(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut inbox = BytesMut::with_capacity(8 * 1024);
    let mut timer = PreciseTimer::new()?;
    match read_opening(&mut client, &mut inbox, &mut timer, || Duration::ZERO).await? {
        Opening::Session(_) => {}
        Opening::Cancel(_) | Opening::Gone => return Ok(()),
    }
    shared.session_begins();
    client.write_all(&welcome()).await?;
    let mut session = Session::default();
    let mut framer = Framer::default();
    loop {
        let (tag, look) = match framer.step(&inbox, |_| true) {
            Ok(Front::Message { tag, look }) => (tag, look),
            Ok(Front::Rest(length)) => {
                inbox.advance(length);
                continue;
            }
            Ok(Front::Incomplete) => {
                if client.read_buf(&mut inbox).await? == 0 {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        };
        let arrival = Instant::now();
        let bytes = inbox.split_to(look);
        if tag == b'X' {
            return Ok(());
        }
        let leaves = session.message(tag, message::body(&bytes), shared);
        if leaves == Leaves::AtOnce {
            client.write_all_buf(&mut session.out).await?;
        } else if leaves == Leaves::AsRoundTrip {
            timer.until(shared.reply_at(arrival, session.delay.take())).await?;
            if session.cut {
                return Ok(());
            }
            client.write_all_buf(&mut session.out).await?;
        }
    }
}

fn welcome() -> BytesMut {
    let mut out = BytesMut::new();
    message::put(&mut out, b'R', |out| out.put_u32(0));
    for (name, value) in [
        ("server_version", "17.0"),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("integer_datetimes", "on"),
    ] {
        message::put(&mut out, b'S', |out| {
            message::put_text(out, name);
            message::put_text(out, value);
        });
    }
    message::put(&mut out, b'K', |out| out.put_u64(0));
    message::put_ready(&mut out, b'I');
    out
}

/// When what has been answered leaves.
#[derive(PartialEq, Eq)]
enum Leaves {
    /// With what follows.
    Later,
    AtOnce,
    /// After the script's delay.
    AsRoundTrip,
}

#[derive(Clone, Default)]
struct Prepared {
    kind: Option<Statement>,
    parameters: Vec<u32>,
}

#[derive(Default)]
struct Session {
    out: BytesMut,
    statements: HashMap<Vec<u8>, Prepared>,
    portals: HashMap<Vec<u8>, Option<Statement>>,
    in_transaction: bool,
    failed: bool,
    /// After an error everything up to the Sync is passed over.
    skipping: bool,
    delay: Option<Duration>,
    cut: bool,
}

impl Session {
    fn message(&mut self, tag: u8, body: &[u8], shared: &Shared) -> Leaves {
        if self.skipping && tag != b'S' {
            return Leaves::Later;
        }
        match tag {
            b'Q' => {
                self.query(message::text(body).0, shared);
                return Leaves::AsRoundTrip;
            }
            b'S' => {
                self.skipping = false;
                self.ready();
                return Leaves::AsRoundTrip;
            }
            b'H' => return Leaves::AtOnce,
            b'P' => self.parse(body),
            b'B' => self.bind(body),
            b'D' => self.describe(body),
            b'E' => self.execute(body, shared),
            b'C' => message::put(&mut self.out, b'3', |_| {}),
            _ => {}
        }
        Leaves::Later
    }

    fn query(&mut self, sql: &[u8], shared: &Shared) {
        let mut empty = true;
        for statement in statements(sql) {
            empty = false;
            if !self.run(statement, shared) {
                break;
            }
        }
        if empty {
            message::put(&mut self.out, b'I', |_| {});
        }
        self.ready();
    }

    fn ready(&mut self) {
        let status = match (self.in_transaction, self.failed) {
            (false, _) => b'I',
            (true, false) => b'T',
            (true, true) => b'E',
        };
        message::put_ready(&mut self.out, status);
    }

    fn parse(&mut self, body: &[u8]) {
        let (name, rest) = message::text(body);
        let (sql, mut declared) = message::text(rest);
        let mut parameters = Vec::new();
        if declared.len() >= 2 {
            for _ in 0..declared.get_u16() {
                parameters.push(declared.try_get_u32().unwrap_or(TEXT_OID));
            }
        }
        parameters.resize(parameters.len().max(highest_parameter(sql)), TEXT_OID);
        let prepared = Prepared { kind: statements(sql).next(), parameters };
        self.statements.insert(name.to_vec(), prepared);
        message::put(&mut self.out, b'1', |_| {});
    }

    fn bind(&mut self, body: &[u8]) {
        let (portal, rest) = message::text(body);
        let name = message::text(rest).0;
        let Some(prepared) = self.statements.get(name) else {
            return self.error("26000", "there is no such prepared statement");
        };
        self.portals.insert(portal.to_vec(), prepared.kind);
        message::put(&mut self.out, b'2', |_| {});
    }

    fn describe(&mut self, body: &[u8]) {
        if let Some((b'S', name)) = body.split_first() {
            let prepared = self.statements.get(message::text(name).0).cloned().unwrap_or_default();
            message::put(&mut self.out, b't', |out| {
                out.put_u16(u16::try_from(prepared.parameters.len()).unwrap_or(u16::MAX));
                for oid in prepared.parameters {
                    out.put_u32(oid);
                }
            });
        }
        message::put(&mut self.out, b'n', |_| {});
    }

    fn execute(&mut self, body: &[u8], shared: &Shared) {
        match self.portals.get(message::text(body).0) {
            None => self.error("34000", "there is no such portal"),
            Some(None) => message::put(&mut self.out, b'I', |_| {}),
            Some(Some(statement)) => {
                self.skipping = !self.run(*statement, shared);
            }
        }
    }

    fn error(&mut self, sqlstate: &str, text: &str) {
        message::put_error(&mut self.out, "ERROR", sqlstate, text);
        self.failed = self.in_transaction;
        self.skipping = true;
    }

    /// Carries out a statement; whether it succeeded.
    fn run(&mut self, statement: Statement, shared: &Shared) -> bool {
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
        if let Some(failure) = on.and_then(|on| shared.failure(on)) {
            message::put_error(&mut self.out, "ERROR", &failure.sqlstate, "failed as scripted");
            self.delay = failure.reply_delay;
            if on == Some(FailOn::Commit) {
                self.in_transaction = false;
            }
            self.failed = self.in_transaction;
            return false;
        }
        let tag = self.complete(statement, shared);
        message::put_complete(&mut self.out, tag);
        true
    }

    fn complete(&mut self, statement: Statement, shared: &Shared) -> &'static str {
        match statement {
            Statement::Begin => {
                self.in_transaction = true;
                "BEGIN"
            }
            Statement::Commit | Statement::Rollback => {
                self.in_transaction = false;
                if std::mem::take(&mut self.failed) || statement == Statement::Rollback {
                    return "ROLLBACK";
                }
                self.cut = shared.commit();
                "COMMIT"
            }
            Statement::Insert => "INSERT 0 1",
            Statement::Update => "UPDATE 1",
            Statement::Delete => "DELETE 1",
            Statement::Merge => "MERGE 1",
            Statement::WritingWith | Statement::Other => "SELECT 0",
        }
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
    use super::highest_parameter;

    #[test]
    fn parameters_are_counted_by_the_highest() {
        assert_eq!(highest_parameter(b"select 1"), 0);
        assert_eq!(highest_parameter(b"select $2::int, $1, $12 from t"), 12);
        assert_eq!(highest_parameter(b"$x$ $ $99999999"), 0);
    }
}
