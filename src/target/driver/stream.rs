//! A socket that knows how long what it reads has been lying in the kernel.
//!
//! The kernel stamps what a TCP socket receives. The time between the stamp and the reading is the
//! reader's own lateness: without it a generator that stalls would see its stall as the
//! database's.

use std::{
    io,
    os::fd::OwnedFd,
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::net::{SendFlags, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

use crate::target::resolve::Live;

/// How long replies lay unread in the kernel, since it was last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadLag {
    /// Sum over all reads, in nanoseconds.
    pub sum_ns: u64,
    /// The longest of them, in nanoseconds.
    pub worst_ns: u64,
    /// Reads for which the kernel told; 0 where it never does.
    pub reads: u32,
}

impl ReadLag {
    /// Adds what was noted at another time.
    pub fn add(&mut self, other: Self) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.worst_ns = self.worst_ns.max(other.worst_ns);
        self.reads += other.reads;
    }

    fn note(&mut self, ns: u64) {
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.worst_ns = self.worst_ns.max(ns);
        self.reads += 1;
    }
}

/// A connected socket of the current runtime.
pub(super) struct Stream {
    socket: AsyncFd<OwnedFd>,
    receiver: imp::Receiver,
    lag: ReadLag,
    /// For its drop alone.
    #[expect(dead_code, reason = "it counts by being there")]
    live: Option<Live>,
}

impl Stream {
    /// Takes over a connected socket that does not block. `tcp`: the kernel may stamp what it
    /// receives.
    ///
    /// # Errors
    /// When it cannot be watched.
    pub(super) fn new(socket: OwnedFd, tcp: bool) -> io::Result<Self> {
        let receiver = imp::Receiver::new(&socket, tcp);
        // The replacement is unsafe, for types that do not keep their descriptor; this does.
        #[allow(deprecated)]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { socket, receiver, lag: ReadLag::default(), live: None })
    }

    /// Has the stream counted among the live connections of a name.
    pub(super) fn counted(self, live: Option<Live>) -> Self {
        Self { live, ..self }
    }

    /// What was noted since the last time.
    pub(super) fn take_lag(&mut self) -> ReadLag {
        std::mem::take(&mut self.lag)
    }

    /// Reads what is there; 0 at the stream's end.
    pub(super) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(context))?;
            match self.receiver.receive(guard.get_inner(), buffer) {
                Ok((length, lag)) => {
                    // Less than asked for: nothing is left, which need not be asked again. What
                    // comes meanwhile is a new edge.
                    if length < buffer.len() {
                        guard.clear_ready();
                    }
                    if let Some(ns) = lag {
                        self.lag.note(ns);
                    }
                    return Poll::Ready(Ok(length));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Hands what it can of `bytes` to the kernel.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            // Tried first: there is nearly always room.
            match send(self.socket.get_ref(), bytes, SendFlags::NOSIGNAL) {
                Ok(length) => return Poll::Ready(Ok(length)),
                Err(rustix::io::Errno::AGAIN) => {
                    ready!(self.socket.poll_write_ready(context))?.clear_ready();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let unfilled = buffer.initialize_unfilled();
        let length = ready!(self.get_mut().poll_receive(context, unfilled))?;
        buffer.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Write);
        Poll::Ready(ended.map_err(io::Error::from))
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::{
        io::{self, IoSliceMut},
        os::fd::{AsRawFd, OwnedFd},
    };

    use nix::{
        cmsg_space,
        sys::{
            socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt},
            time::TimeSpec,
        },
    };
    use rustix::{
        net::{RecvFlags, recv},
        time::{ClockId, clock_gettime},
    };

    const SECOND_NS: i64 = 1_000_000_000;

    pub(super) struct Receiver {
        /// Room for the stamp; `None` where the kernel gives none.
        stamp: Option<Vec<u8>>,
    }

    impl Receiver {
        pub(super) fn new(socket: &OwnedFd, tcp: bool) -> Self {
            let stamped = tcp && setsockopt(socket, sockopt::ReceiveTimestampns, &true).is_ok();
            Self { stamp: stamped.then(|| cmsg_space!(TimeSpec)) }
        }

        /// Receives, with how long the last of it had lain there in nanoseconds.
        pub(super) fn receive(
            &mut self,
            socket: &OwnedFd,
            buffer: &mut [u8],
        ) -> io::Result<(usize, Option<u64>)> {
            let Some(stamp) = &mut self.stamp else {
                let (length, _) = recv(socket, buffer, RecvFlags::empty())?;
                return Ok((length, None));
            };
            let mut into = [IoSliceMut::new(buffer)];
            let received =
                recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(stamp), MsgFlags::empty())?;
            let lag = received.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(at) => Some(since(at)),
                    _ => None,
                })
            });
            Ok((received.bytes, lag))
        }
    }

    /// The stamps are of the wall clock. Should that be set back between stamp and reading, there
    /// was no lag.
    fn since(stamp: TimeSpec) -> u64 {
        let now = clock_gettime(ClockId::Realtime);
        let seconds = now.tv_sec - stamp.tv_sec();
        let ns = seconds.saturating_mul(SECOND_NS).saturating_add(now.tv_nsec - stamp.tv_nsec());
        u64::try_from(ns).unwrap_or(0)
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::{io, os::fd::OwnedFd};

    use rustix::net::{RecvFlags, recv};

    pub(super) struct Receiver;

    impl Receiver {
        pub(super) fn new(_: &OwnedFd, _: bool) -> Self {
            Self
        }

        pub(super) fn receive(
            &mut self,
            socket: &OwnedFd,
            buffer: &mut [u8],
        ) -> io::Result<(usize, Option<u64>)> {
            let (length, _) = recv(socket, buffer, RecvFlags::empty())?;
            Ok((length, None))
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{future::poll_fn, io::Write, time::Duration};

    use super::*;

    #[tokio::test]
    async fn what_lies_unread_is_told_by_how_long() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        here.set_nonblocking(true).unwrap();
        let mut stream = Stream::new(here.into(), true).unwrap();
        let mut buffer = [0; 64];
        // The first time the kernel may not stamp yet: it begins to when someone asks for it.
        for _ in 0..2 {
            there.write_all(b"late").unwrap();
            std::thread::sleep(Duration::from_millis(30));
            stream.take_lag();
            let length =
                poll_fn(|context| stream.poll_receive(context, &mut buffer)).await.unwrap();
            assert_eq!(&buffer[..length], b"late");
        }
        let lag = stream.take_lag();
        assert_eq!(lag.reads, 1);
        assert!((29_000_000..5_000_000_000).contains(&lag.worst_ns), "{lag:?}");
        assert_eq!(stream.take_lag(), ReadLag::default());

        drop(there);
        let end = poll_fn(|context| stream.poll_receive(context, &mut buffer)).await.unwrap();
        assert_eq!(end, 0);
    }
}
