//! What has been received and not yet been understood.

use std::ops::Range;

use crate::target::session::{ServerError, SessionError};

/// How much is asked of the kernel at least.
const ROOM: usize = 8 * 1024;
/// The longest message that is believed: ours are some kilobytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// A message: its tag and where its body lies in the inbox.
pub(super) struct Message {
    pub(super) tag: u8,
    pub(super) body: Range<usize>,
}

/// Bytes of the server in their order.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; ROOM], from: 0, to: 0 }
    }

    /// Where to receive to, never empty.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.bytes.len() - self.to < ROOM / 2 {
            // A message lies at the end that is not whole yet.
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            if self.bytes.len() - self.to < ROOM / 2 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        &mut self.bytes[self.to..]
    }

    /// So much has been received.
    pub(super) fn received(&mut self, length: usize) {
        self.to += length;
    }

    /// The next message, if it is whole.
    ///
    /// # Errors
    /// When it cannot be one.
    pub(super) fn next(&mut self) -> Result<Option<Message>, SessionError> {
        let waiting = &self.bytes[self.from..self.to];
        let Some((&tag, rest)) = waiting.split_first() else { return Ok(None) };
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if !(4..=LONGEST).contains(&length) {
            let what = format!("a message {:?} of {length} bytes", char::from(tag));
            return Err(SessionError::Protocol(what));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let body = self.from + 5..self.from + 1 + length;
        self.from = body.end;
        Ok(Some(Message { tag, body }))
    }

    /// The body of a message that was given last.
    pub(super) fn body(&self, message: &Message) -> &[u8] {
        &self.bytes[message.body.clone()]
    }
}

/// Reads an error's fields: a letter each, its text, a zero.
pub(super) fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError::default();
    for field in body.split(|byte| *byte == 0) {
        let Some((kind, value)) = field.split_first() else { continue };
        let value = || String::from_utf8_lossy(value).into_owned();
        match kind {
            b'C' => error.code = value(),
            b'M' => error.message = value(),
            _ => {}
        }
    }
    error
}

/// How many rows a command touched: the last number of its tag (`INSERT 0 3`).
pub(super) fn affected(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let from = tag.iter().rposition(|byte| *byte == b' ').map_or(tag.len(), |at| at + 1);
    tag[from..]
        .iter()
        .try_fold(0_u64, |sum, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            sum.checked_mul(10)?.checked_add(u64::from(digit))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(inbox: &mut Inbox, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = inbox.room();
            let length = room.len().min(bytes.len());
            room[..length].copy_from_slice(&bytes[..length]);
            inbox.received(length);
            bytes = &bytes[length..];
        }
    }

    #[test]
    fn messages_come_whole_however_they_were_cut() {
        let mut inbox = Inbox::new();
        let mut sent = Vec::new();
        for length in [0_usize, 3, 5_000, 70_000, 1] {
            sent.push(b'D');
            sent.extend(u32::try_from(length + 4).unwrap().to_be_bytes());
            sent.extend(vec![7; length]);
        }
        let mut lengths = Vec::new();
        for piece in sent.chunks(997) {
            put(&mut inbox, piece);
            while let Some(message) = inbox.next().unwrap() {
                assert!(inbox.body(&message).iter().all(|byte| *byte == 7));
                lengths.push(inbox.body(&message).len());
            }
        }
        assert_eq!(lengths, [0, 3, 5_000, 70_000, 1]);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let mut inbox = Inbox::new();
        put(&mut inbox, b"HTTP/1.1 400");
        assert!(matches!(inbox.next(), Err(SessionError::Protocol(_))));
    }

    #[test]
    fn tags_and_errors_are_read() {
        assert_eq!(affected(b"INSERT 0 12\0"), 12);
        assert_eq!((affected(b"COMMIT\0"), affected(b"SELECT 0\0")), (0, 0));
        let error = server_error(b"SERROR\0C40001\0Mtry again\0\0");
        assert_eq!((error.code.as_str(), error.message.as_str()), ("40001", "try again"));
    }
}
