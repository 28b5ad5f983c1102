//! Notices that the terminal has gone without a signal.
//!
//! Its reader would otherwise spin on a dead descriptor and take a processor from the load.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

const EVERY: Duration = Duration::from_millis(200);

/// Watches one terminal.
#[derive(Debug)]
pub(in crate::console) struct Watchdog(OwnedFd);

impl Watchdog {
    /// Watches the terminal of standard input.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(in crate::console) fn new() -> io::Result<Self> {
        Ok(Self(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// Whether the terminal has gone.
    pub(in crate::console) fn is_gone(&self) -> bool {
        has_hung_up(&self.0)
    }

    /// Comes back when the terminal has gone.
    pub(in crate::console) async fn gone(&self) {
        while !self.is_gone() {
            tokio::time::sleep(EVERY).await;
        }
    }
}

fn has_hung_up(fd: &OwnedFd) -> bool {
    // A hang-up is told whether it is asked for or not.
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&at_once)) {
        Ok(_) => fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_descriptor_whose_other_side_closed_is_gone() {
        let (reader, writer) = io::pipe().unwrap();
        let watchdog = Watchdog(reader.into());
        assert!(!has_hung_up(&watchdog.0));
        drop(writer);
        tokio::time::timeout(Duration::from_secs(10), watchdog.gone()).await.unwrap();
    }
}
