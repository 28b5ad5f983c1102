//! Reading and writing frames.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::{Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

/// The largest frame: a window of four classes is some 50 KiB, a history some 300 KiB.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("the other side's pipe or socket failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("the other side sent something that is not a frame of ours: {0}")]
    Format(#[from] serde_json::Error),
}

fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME_BYTES).new_codec()
}

/// Reads frames from a pipe or socket.
pub struct FrameReader<R>(FramedRead<R, LengthDelimitedCodec>);

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(reader: R) -> Self {
        Self(FramedRead::new(reader, codec()))
    }

    /// The next frame; `None` when the other side has closed. Cancel-safe: a frame half read is
    /// kept for the next call.
    ///
    /// # Errors
    /// When the pipe fails or what came is not a frame.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        match self.0.next().await {
            Some(Ok(bytes)) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Some(Err(error)) => Err(error.into()),
            None => Ok(None),
        }
    }
}

/// Writes frames to a pipe or socket.
pub struct FrameWriter<W>(FramedWrite<W, LengthDelimitedCodec>);

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub fn new(writer: W) -> Self {
        Self(FramedWrite::new(writer, codec()))
    }

    /// Writes one frame and flushes it.
    ///
    /// # Errors
    /// When the pipe fails.
    pub async fn send<T: Serialize>(&mut self, frame: &T) -> Result<(), FrameError> {
        let bytes = Bytes::from(serde_json::to_vec(frame)?);
        self.0.send(bytes).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{ClientFrame, PROTOCOL, Role};

    #[tokio::test]
    async fn a_frame_arrives_as_it_was_sent_and_the_end_is_told() {
        let (left, right) = tokio::io::duplex(64);
        let sent = ClientFrame::Hello {
            protocol: PROTOCOL,
            build: "t".into(),
            role: Role::Console,
            name: "anna on pts/3".into(),
        };
        let frame = sent.clone();
        let writer = tokio::spawn(async move { FrameWriter::new(left).send(&frame).await });
        let mut reader = FrameReader::new(right);
        assert_eq!(reader.next::<ClientFrame>().await.unwrap(), Some(sent));
        writer.await.unwrap().unwrap();
        assert!(reader.next::<ClientFrame>().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn garbage_is_an_error_not_a_panic() {
        let mut reader = FrameReader::new(&b"\xff\xff\xff\xffxxxx"[..]);
        assert!(reader.next::<ClientFrame>().await.is_err());
    }
}
