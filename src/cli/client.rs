//! The command line's end of the socket.

use std::{path::Path, time::Duration};

use color_eyre::eyre::{Result, bail, eyre};
use tokio::net::{
    UnixStream,
    unix::{OwnedReadHalf, OwnedWriteHalf},
};

use crate::{
    link::{ClientFrame, FrameReader, FrameWriter, PROTOCOL, Role, ServerFrame},
    model::{Command, Snapshot},
};

/// How long an engine may take to answer before it counts as hung.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The engine is well and does not do it.
#[derive(Debug, thiserror::Error)]
#[error("refused: {0}")]
pub struct Refused(String);

/// A connection to an engine.
pub struct Client {
    pub reader: FrameReader<OwnedReadHalf>,
    writer: FrameWriter<OwnedWriteHalf>,
    commands: u64,
}

impl Client {
    /// Connects and greets.
    pub async fn connect(socket: &Path, role: Role) -> Result<Self> {
        let stream = UnixStream::connect(socket).await?;
        let (read, write) = stream.into_split();
        let mut client =
            Self { reader: FrameReader::new(read), writer: FrameWriter::new(write), commands: 0 };
        let build = crate::engine::build().to_owned();
        client
            .writer
            .send(&ClientFrame::Hello { protocol: PROTOCOL, build, role, name: String::new() })
            .await?;
        let welcome = tokio::time::timeout(ANSWER_LIMIT, client.reader.next::<ServerFrame>()).await;
        match welcome.map_err(|_| eyre!("the engine does not answer"))?? {
            Some(ServerFrame::Welcome { protocol, .. }) if protocol == PROTOCOL => Ok(client),
            Some(ServerFrame::Welcome { protocol, build, .. }) => {
                let older = if protocol < PROTOCOL { "the engine" } else { "this program" };
                bail!(
                    "the run's engine is rampdeck {build} (frames {protocol}), this is {} (frames {PROTOCOL}): {older} is older",
                    crate::engine::build()
                )
            }
            _ => bail!("the engine did not greet"),
        }
    }

    /// Sends a command; its reply comes among the frames, with the number given here.
    pub async fn send(&mut self, command: Command) -> Result<u64> {
        self.commands += 1;
        let id = self.commands;
        self.writer.send(&ClientFrame::Command { id, command }).await?;
        Ok(id)
    }

    /// Sends a command and waits until it is done or refused.
    pub async fn command(&mut self, command: Command) -> Result<()> {
        let sent = self.send(command).await?;
        let answer = async {
            loop {
                match self.reader.next::<ServerFrame>().await? {
                    Some(ServerFrame::Reply { id, refused }) if id == sent => return Ok(refused),
                    Some(_) => {}
                    None => bail!("the engine has gone without an answer"),
                }
            }
        };
        match tokio::time::timeout(ANSWER_LIMIT, answer).await {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(refused))) => Err(Refused(refused).into()),
            Ok(Err(error)) => Err(error),
            Err(_) => bail!("the engine does not answer"),
        }
    }

    /// The next snapshot.
    pub async fn snapshot(&mut self) -> Result<Snapshot> {
        let next = async {
            loop {
                match self.reader.next::<ServerFrame>().await? {
                    Some(ServerFrame::Snapshot(snapshot)) => return Ok(*snapshot),
                    Some(_) => {}
                    None => bail!("the engine has gone"),
                }
            }
        };
        tokio::time::timeout(ANSWER_LIMIT, next)
            .await
            .map_err(|_| eyre!("the engine does not answer"))?
    }
}
