//! Frames on their way to the terminal: one at a time, from a thread of its own.
//!
//! While the terminal takes its time over a frame nothing is drawn; what is drawn next is the
//! newest state, so a stalled terminal costs neither memory nor anyone's time.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
};

use crossterm::{
    queue,
    terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate},
};
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, buffer::Buffer,
    layout::Rect,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{is_taken, terminal_output};

/// What the thread tells.
#[derive(Debug)]
pub(in crate::console) enum WriterEvent {
    /// The frame is out: the next one may come.
    Written,
    /// The terminal takes no more.
    Failed,
}

/// Bytes that ratatui draws into, shared with us.
#[derive(Clone, Debug, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Draws frames and hands them to the writing thread.
pub(in crate::console) struct ScreenWriter {
    bytes: Bytes,
    terminal: Terminal<CrosstermBackend<Bytes>>,
    shown: Option<Buffer>,
    /// What goes out before the next frame.
    ahead: Vec<u8>,
    frames: SyncSender<Vec<u8>>,
    busy: Arc<AtomicBool>,
}

impl ScreenWriter {
    /// Starts the thread. It tells of each frame through `events`.
    ///
    /// # Errors
    /// When the terminal's handle cannot be doubled or the thread cannot start.
    pub(in crate::console) fn start(
        area: Rect,
        events: UnboundedSender<WriterEvent>,
    ) -> io::Result<Self> {
        let mut output = terminal_output()?;
        let (frames, queue) = sync_channel::<Vec<u8>>(1);
        let busy = Arc::new(AtomicBool::new(false));
        let writing = Arc::clone(&busy);
        std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            for frame in queue {
                let written = if is_taken() { output.write_all(&frame) } else { Ok(()) };
                writing.store(false, Ordering::SeqCst);
                let event = written.map_or_else(|_| WriterEvent::Failed, |()| WriterEvent::Written);
                if events.send(event).is_err() {
                    break;
                }
            }
        })?;
        let bytes = Bytes::default();
        let terminal = fixed_terminal(&bytes, area)?;
        Ok(Self { bytes, terminal, shown: None, ahead: Vec::new(), frames, busy })
    }

    /// Whether a frame is still on its way.
    pub(in crate::console) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst)
    }

    /// Forgets what is on the screen, so that the next frame draws all of it at this size.
    ///
    /// # Errors
    /// When the screen cannot be set up.
    pub(in crate::console) fn reset(&mut self, area: Rect) -> io::Result<()> {
        self.terminal = fixed_terminal(&self.bytes, area)?;
        self.shown = None;
        Ok(())
    }

    /// Has these bytes go out before the next frame: what the terminal is told beside pictures.
    pub(in crate::console) fn tell(&mut self, bytes: &[u8]) {
        self.ahead.extend_from_slice(bytes);
    }

    /// Draws a frame and hands over what has changed since the last one. Not to be called while a
    /// frame is on its way.
    ///
    /// # Errors
    /// When drawing fails or the thread has gone.
    pub(in crate::console) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.bytes.take();
        let afresh = self.shown.is_none();
        let drawn = self.terminal.draw(view)?;
        if self.shown.as_ref() == Some(drawn.buffer) && self.ahead.is_empty() {
            return Ok(());
        }
        self.shown = Some(drawn.buffer.clone());
        let mut frame = std::mem::take(&mut self.ahead);
        queue!(frame, BeginSynchronizedUpdate)?;
        if afresh {
            queue!(frame, Clear(ClearType::All))?;
        }
        frame.extend_from_slice(&self.bytes.take());
        queue!(frame, EndSynchronizedUpdate)?;
        self.busy.store(true, Ordering::SeqCst);
        self.frames.try_send(frame).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

fn fixed_terminal(bytes: &Bytes, area: Rect) -> io::Result<Terminal<CrosstermBackend<Bytes>>> {
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    Terminal::with_options(CrosstermBackend::new(bytes.clone()), options)
}
