//! Messages of the PostgreSQL protocol, version 3: finding their borders and writing a few.

use bytes::{BufMut, Bytes, BytesMut};

/// How much of a message is looked at: names and the start of a statement. What is longer streams
/// through without being gathered first.
pub(super) const LOOK_LIMIT: usize = 64 * 1024;

/// Tag byte and length of a message.
const HEADER: usize = 5;

/// The largest message PostgreSQL itself accepts is 1 GiB.
const LARGEST: usize = 1 << 30;

/// Bytes that cannot be a message.
#[derive(Debug, thiserror::Error)]
#[error("a message with tag 0x{tag:02x} and length {length} is not of the PostgreSQL protocol")]
pub(super) struct Malformed {
    tag: u8,
    length: usize,
}

/// What stands at the front of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// Not enough to tell.
    Incomplete,
    /// This many bytes of a message whose front has been seen before.
    Rest(usize),
    /// A message; its first `look` bytes, header included, are here.
    Message { tag: u8, look: usize },
}

/// Finds the borders of messages in a stream that arrives in any pieces.
#[derive(Debug, Default)]
pub(super) struct Framer {
    /// Bytes of the current message that are still to pass.
    rest: usize,
}

impl Framer {
    /// What stands at the front of `bytes`, and steps over it: the caller takes that many bytes
    /// away before it asks again. Messages whose tag is `wanted` are complete up to
    /// [`LOOK_LIMIT`]; of the others only the header is sure to be there.
    ///
    /// # Errors
    /// When the bytes cannot be a message.
    pub(super) fn step(
        &mut self,
        bytes: &[u8],
        wanted: impl Fn(u8) -> bool,
    ) -> Result<Front, Malformed> {
        if self.rest > 0 {
            let here = self.rest.min(bytes.len());
            self.rest -= here;
            return Ok(if here == 0 { Front::Incomplete } else { Front::Rest(here) });
        }
        let [tag, a, b, c, d, ..] = *bytes else { return Ok(Front::Incomplete) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=LARGEST).contains(&length) {
            return Err(Malformed { tag, length });
        }
        let total = 1 + length;
        let look = if wanted(tag) { total.min(LOOK_LIMIT) } else { HEADER };
        if bytes.len() < look {
            return Ok(Front::Incomplete);
        }
        self.rest = total - look;
        Ok(Front::Message { tag, look })
    }
}

/// The body of a message without its header.
pub(super) fn body(message: &[u8]) -> &[u8] {
    message.get(HEADER..).unwrap_or_default()
}

/// Splits a text that ends with a zero byte off the front; the whole where there is none (a text
/// that was cut off at [`LOOK_LIMIT`]).
pub(super) fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|&b| b == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

/// Appends a message with this tag and body.
pub(super) fn put(out: &mut BytesMut, tag: u8, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_u8(tag);
    out.put_u32(0);
    write(out);
    let length = u32::try_from(out.len() - start - 1).unwrap_or(u32::MAX);
    out[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text and its zero byte.
pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

/// Appends an `ErrorResponse`.
pub(super) fn put_error(out: &mut BytesMut, severity: &str, sqlstate: &str, text: &str) {
    put(out, b'E', |out| {
        for (field, value) in [(b'S', severity), (b'V', severity), (b'C', sqlstate), (b'M', text)] {
            out.put_u8(field);
            put_text(out, value);
        }
        out.put_u8(0);
    });
}

/// Appends a `CommandComplete`.
pub(super) fn put_complete(out: &mut BytesMut, tag: &str) {
    put(out, b'C', |out| put_text(out, tag));
}

/// Appends a `ReadyForQuery` with this transaction status (`I`, `T` or `E`).
pub(super) fn put_ready(out: &mut BytesMut, status: u8) {
    put(out, b'Z', |out| out.put_u8(status));
}

/// An `ErrorResponse` of its own.
pub(super) fn error(severity: &str, sqlstate: &str, text: &str) -> Bytes {
    let mut out = BytesMut::new();
    put_error(&mut out, severity, sqlstate, text);
    out.freeze()
}

/// A simple query, as a client sends it.
pub(super) fn query(sql: &str) -> Bytes {
    let mut out = BytesMut::new();
    put(&mut out, b'Q', |out| put_text(out, sql));
    out.freeze()
}

/// A Sync, as a client sends it.
pub(super) fn sync() -> Bytes {
    Bytes::from_static(b"S\0\0\0\x04")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(stream: &[u8], cut: usize) -> Vec<u8> {
        let mut framer = Framer::default();
        let mut waiting = Vec::new();
        let mut tags = Vec::new();
        for piece in [&stream[..cut], &stream[cut..]] {
            waiting.extend_from_slice(piece);
            loop {
                match framer.step(&waiting, |tag| tag == b'Q').unwrap() {
                    Front::Incomplete => break,
                    Front::Rest(n) => drop(waiting.drain(..n)),
                    Front::Message { tag, look } => {
                        tags.push(tag);
                        waiting.drain(..look);
                    }
                }
            }
        }
        assert!(waiting.is_empty(), "cut at {cut} left {waiting:?}");
        tags
    }

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let mut stream = BytesMut::new();
        stream.extend_from_slice(&query("select 1"));
        put(&mut stream, b'd', |out| out.put_slice(b"copied data"));
        stream.extend_from_slice(&sync());
        stream.extend_from_slice(&query(""));
        for cut in 0..=stream.len() {
            assert_eq!(seen(&stream, cut), b"QdSQ", "cut at {cut}");
        }
    }

    #[test]
    fn a_long_statement_is_looked_at_up_to_the_limit_and_streams_on() {
        let long = query(&"x".repeat(3 * LOOK_LIMIT));
        let mut framer = Framer::default();
        let front = framer.step(&long[..LOOK_LIMIT - 1], |_| true).unwrap();
        assert_eq!(front, Front::Incomplete);
        let front = framer.step(&long, |_| true).unwrap();
        assert_eq!(front, Front::Message { tag: b'Q', look: LOOK_LIMIT });
        let rest = long.len() - LOOK_LIMIT;
        assert_eq!(framer.step(&long[LOOK_LIMIT..], |_| true).unwrap(), Front::Rest(rest));
    }

    #[test]
    fn what_cannot_be_a_message_is_refused() {
        assert!(Framer::default().step(b"GET / HTTP/1.1", |_| true).is_err());
        assert!(Framer::default().step(b"Q\0\0\0\x03", |_| true).is_err());
    }
}
