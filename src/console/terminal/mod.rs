//! Taking the terminal and giving it back, whatever happens.
//!
//! Nothing here waits for the terminal: a terminal that has stopped reading must not stop the
//! console, and one that has gone must not be written to.

mod watchdog;
mod writer;

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crossterm::{
    cursor::{Hide, Show},
    event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture},
    queue,
    style::ResetColor,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(super) use watchdog::Watchdog;
pub(super) use writer::{ScreenWriter, WriterEvent};

/// Whether the terminal is ours. Whoever turns it from true to false gives the terminal back.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// How long giving back waits for a terminal that does not take bytes, in milliseconds.
const PATIENCE_MS: i64 = 200;

/// The terminal, taken: raw mode, alternate screen, no cursor. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct TerminalGuard(());

impl TerminalGuard {
    /// Takes the terminal. A panic anywhere gives it back before its message is printed.
    ///
    /// # Errors
    /// When the terminal cannot be set.
    pub(super) fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                previous(panic);
            }));
        });
        let guard = Self(());
        guard.retake()?;
        Ok(guard)
    }

    /// Takes the terminal again after it was given back or another program has used it.
    ///
    /// # Errors
    /// When the terminal cannot be set.
    pub(super) fn retake(&self) -> io::Result<()> {
        // Someone else may have changed the modes meanwhile (a shell between stop and continue):
        // crossterm's own idea of them is not to be trusted.
        disable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        let mut bytes = Vec::new();
        queue!(bytes, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        write_if_it_takes(&bytes)
    }

    /// Gives the terminal back for a while.
    pub(super) fn release(&self) {
        give_back();
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the mouse, or leaves it to the terminal, for selecting text.
pub(super) fn mouse(taken: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ =
        if taken { queue!(bytes, EnableMouseCapture) } else { queue!(bytes, DisableMouseCapture) };
    bytes
}

/// Puts text on the clipboard of the terminal that shows us, however far away it is (OSC 52).
pub(super) fn clipboard(text: &str) -> Vec<u8> {
    format!("\x1b]52;c;{}\x07", STANDARD.encode(text)).into_bytes()
}

/// Whether standard input and output are both a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether the terminal is ours: a frame is written only then.
fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Gives the terminal back, once. What fails here has no one left to be told.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut bytes = Vec::new();
    // A frame may have been cut in the middle of a sequence, or inside a synchronized update.
    let queued = queue!(
        bytes,
        crossterm::terminal::EndSynchronizedUpdate,
        ResetColor,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    if queued.is_ok() {
        let _ = write_if_it_takes(&bytes);
    }
    let _ = disable_raw_mode();
}

/// Writes a few bytes unless the terminal has stopped taking any.
fn write_if_it_takes(bytes: &[u8]) -> io::Result<()> {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
    let patience = Timespec { tv_sec: 0, tv_nsec: PATIENCE_MS * 1_000_000 };
    poll(&mut fds, Some(&patience))?;
    let ready = fds[0].revents();
    if ready.intersects(PollFlags::HUP | PollFlags::ERR) {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    }
    if !ready.contains(PollFlags::OUT) {
        return Err(io::Error::from(io::ErrorKind::WouldBlock));
    }
    terminal_output()?.write_all(bytes)
}

/// The terminal's own handle, past the lock of standard output: a writer that is stuck must not
/// hold anyone else up.
fn terminal_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}
