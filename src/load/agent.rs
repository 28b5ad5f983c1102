//! The agent's loop: frames in, frames out.

use std::{
    cell::RefCell,
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::{LoadError, collector};
use crate::{
    link::{FrameError, FrameReader, FrameWriter},
    model::{AgentCommand, AgentReport, CellOrder},
    target,
    workload::{OrderWorkload, Workload},
};

/// Reports that may wait for an engine that does not read; beyond it windows and samples, which
/// come every second, are dropped. Ten minutes of one configuration.
const MOST_WAITING: usize = 600;
/// How long the last reports may take to be written.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Runs the agent with the order business, as the hidden subcommand does.
///
/// # Errors
/// As [`run_with`].
pub fn run(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin,
) -> Result<(), LoadError> {
    run_with(input, output, OrderWorkload::new)
}

/// Runs the agent with the transactions that `workload` makes for each order, until its input
/// ends (the engine is gone: everything stops at once) or a command says shutdown. An order for
/// which there is no workload ends as failed.
///
/// # Errors
/// When the pipes fail, what comes is not a frame, or the load threads cannot run.
pub fn run_with<W: Workload, E: Display>(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin,
    workload: impl FnMut(&CellOrder) -> Result<W, E>,
) -> Result<(), LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| LoadError::Thread { number: 1, source })?;
    let result = runtime.block_on(serve(input, output, workload));
    // A read of standard input that is under way cannot be called off: it is left behind.
    runtime.shutdown_background();
    result
}

async fn serve<W: Workload, E: Display>(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin,
    workload: impl FnMut(&CellOrder) -> Result<W, E>,
) -> Result<(), LoadError> {
    let (commands, inbox) = unbounded_channel();
    let reading = tokio::spawn(read(FrameReader::new(input), commands));
    let (outbox, reports) = unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let sender = RefCell::new(Sender { outbox, waiting: Arc::clone(&waiting), dropped: 0 });
    let collecting = async {
        let send = |report| sender.borrow_mut().send(report);
        let ended = tokio::select! {
            ended = collector::serve(inbox, workload, send) => ended,
            never = target::watch_addresses(|text| {
                send(AgentReport::Log { warning: true, text });
            }) => match never {},
        };
        // The writer ends when it has written what is left.
        drop(sender);
        ended
    };
    let writing = write(FrameWriter::new(output), reports, &waiting);
    tokio::pin!(collecting, writing);
    let ended = tokio::select! {
        ended = &mut collecting => {
            // An engine that is gone takes nothing any more: that is not an error of ours.
            let _ = tokio::time::timeout(WRITE_LIMIT, writing).await;
            ended
        }
        written = &mut writing => written.map_err(LoadError::from),
    };
    if reading.is_finished()
        && let Ok(Err(error)) = reading.await
    {
        return Err(error.into());
    }
    ended
}

async fn read(
    mut frames: FrameReader<impl AsyncRead + Unpin>,
    commands: UnboundedSender<AgentCommand>,
) -> Result<(), FrameError> {
    while let Some(command) = frames.next().await? {
        if commands.send(command).is_err() {
            break;
        }
    }
    Ok(())
}

async fn write(
    mut frames: FrameWriter<impl AsyncWrite + Unpin>,
    mut reports: UnboundedReceiver<AgentReport>,
    waiting: &AtomicUsize,
) -> Result<(), FrameError> {
    while let Some(report) = reports.recv().await {
        frames.send(&report).await?;
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Puts reports in line for the writer; bounded in what comes without end.
struct Sender {
    outbox: UnboundedSender<AgentReport>,
    waiting: Arc<AtomicUsize>,
    dropped: u64,
}

impl Sender {
    fn send(&mut self, report: AgentReport) {
        let endless = matches!(report, AgentReport::Window(_) | AgentReport::Runner(_));
        if endless && self.waiting.load(Ordering::Relaxed) >= MOST_WAITING {
            self.dropped += 1;
            return;
        }
        if self.dropped > 0 {
            let text = format!("{} reports were dropped: the engine did not read", self.dropped);
            self.dropped = 0;
            self.put(AgentReport::Log { warning: true, text });
        }
        self.put(report);
    }

    fn put(&self, report: AgentReport) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The writer is gone only when the process is about to end.
        let _ = self.outbox.send(report);
    }
}
