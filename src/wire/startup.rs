//! How a connection begins, before its messages have tags.

use std::{
    io,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::timer::PreciseTimer;

/// PostgreSQL's own bound.
const LONGEST_PACKET: usize = 10_000;
/// As long as PostgreSQL itself waits for a log-in.
const PATIENCE: Duration = Duration::from_secs(60);

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// What a client's first packet asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A session; the packet as it came.
    Session(Bytes),
    /// The end of another session's statement; the packet as it came.
    Cancel(Bytes),
    /// Nothing: the client has gone.
    Gone,
}

/// Reads up to the packet that says what the client wants. Requests for encryption are answered
/// with no, each `round_trip` after it came where there is a timer. What follows the packet stays in `inbox`.
///
/// # Errors
/// When the client fails, sends what is no packet, or takes too long.
pub(super) async fn read_opening<S: AsyncRead + AsyncWrite + Unpin>(
    client: &mut S,
    inbox: &mut BytesMut,
    mut timer: Option<&mut PreciseTimer>,
    mut round_trip: impl FnMut() -> Duration,
) -> io::Result<Opening> {
    let reading = async {
        loop {
            let Some(packet) = read_packet(client, inbox).await? else { return Ok(Opening::Gone) };
            match u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]) {
                SSL | GSS => {
                    if let Some(timer) = &mut timer {
                        timer.until(Instant::now() + round_trip()).await?;
                    }
                    client.write_all(b"N").await?;
                }
                CANCEL => return Ok(Opening::Cancel(packet)),
                _ => return Ok(Opening::Session(packet)),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.map_err(|_| io::ErrorKind::TimedOut)?
}

/// The next packet, at least eight bytes long.
async fn read_packet<S: AsyncRead + Unpin>(
    client: &mut S,
    inbox: &mut BytesMut,
) -> io::Result<Option<Bytes>> {
    loop {
        if let [a, b, c, d, ..] = inbox[..] {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            if !(8..=LONGEST_PACKET).contains(&length) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if inbox.len() >= length {
                return Ok(Some(inbox.split_to(length).freeze()));
            }
        }
        if client.read_buf(inbox).await? == 0 {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u32, more: &[u8]) -> Vec<u8> {
        let length = u32::try_from(8 + more.len()).unwrap();
        [&length.to_be_bytes(), &code.to_be_bytes(), more].concat()
    }

    #[tokio::test]
    async fn encryption_is_declined_and_the_session_begins_wherever_the_bytes_are_cut() {
        let start = packet(196_608, b"user\0x\0\0");
        let stream = [packet(GSS, b""), packet(SSL, b""), start.clone(), b"more".to_vec()].concat();
        for cut in 0..=stream.len() {
            let (mut client, mut server) = tokio::io::duplex(1024);
            let (first, second) = stream.split_at(cut);
            client.write_all(first).await.unwrap();
            client.write_all(second).await.unwrap();
            let mut inbox = BytesMut::new();
            let mut timer = PreciseTimer::new().unwrap();
            let opening =
                read_opening(&mut server, &mut inbox, Some(&mut timer), || Duration::ZERO)
                    .await
                    .unwrap();
            assert_eq!(opening, Opening::Session(start.clone().into()));
            assert_eq!(&inbox[..], b"more");
            let mut answers = [0; 2];
            client.read_exact(&mut answers).await.unwrap();
            assert_eq!(&answers, b"NN");
        }
    }

    #[tokio::test]
    async fn a_cancel_request_is_told_apart_and_garbage_is_refused() {
        let read = async |bytes: Vec<u8>| {
            let (mut client, mut server) = tokio::io::duplex(1024);
            client.write_all(&bytes).await.unwrap();
            drop(client);
            read_opening(&mut server, &mut BytesMut::new(), None, || Duration::ZERO).await
        };
        let cancel = packet(CANCEL, b"pid.key.");
        assert_eq!(read(cancel.clone()).await.unwrap(), Opening::Cancel(cancel.into()));
        assert_eq!(read(Vec::new()).await.unwrap(), Opening::Gone);
        assert!(read(b"GET / HTTP/1.1\r\n\r\n".to_vec()).await.is_err());
    }
}
