//! Bytes that wait to be written.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

/// How many pieces one system call writes.
const PIECES: usize = 32;

/// Pieces in their order, written without being copied together.
#[derive(Default)]
pub(super) struct Outbox {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Bytes that wait.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
    }

    /// Writes once, as much as the stream takes.
    ///
    /// # Errors
    /// When the stream fails or takes nothing more.
    pub(super) fn poll_write<W: AsyncWrite + Unpin + ?Sized>(
        &mut self,
        stream: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let written = if let [only] = self.pieces.make_contiguous() {
            ready!(Pin::new(stream).poll_write(cx, only))?
        } else {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let count = self.pieces.len().min(PIECES);
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(piece);
            }
            ready!(Pin::new(stream).poll_write_vectored(cx, &slices[..count]))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.take(written);
        Poll::Ready(Ok(()))
    }

    /// All that waits, in one piece.
    #[cfg(test)]
    pub(super) fn into_bytes(self) -> Vec<u8> {
        Vec::from(self.pieces).concat()
    }

    fn take(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(piece) = self.pieces.front_mut() {
            if piece.len() > written {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn pieces_leave_in_order_through_a_narrow_pipe() {
        let (mut near, mut far) = tokio::io::duplex(3);
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for i in 0..100_u8 {
            let piece = vec![i; usize::from(i % 7)];
            expected.extend_from_slice(&piece);
            outbox.push(piece.into());
        }
        let reader = tokio::spawn(async move {
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            got
        });
        while !outbox.is_empty() {
            std::future::poll_fn(|cx| outbox.poll_write(&mut near, cx)).await.unwrap();
        }
        drop(near);
        assert_eq!(reader.await.unwrap(), expected);
    }
}
