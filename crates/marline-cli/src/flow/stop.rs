//! Signals that end the export before the packets do, or divide the output.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::server::{interrupted, once_caught};

/// The user's requests to end, and to divide the output.
#[derive(Clone, Debug)]
pub(super) struct Stop(Arc<Wanted>);

#[derive(Debug, Default)]
struct Wanted {
    end: AtomicBool,
    division: AtomicBool,
}

impl Stop {
    /// Set by Ctrl-C and SIGTERM, from the return on. SIGHUP divides the output, or also ends.
    pub(super) fn on_signals(divides: bool) -> Self {
        let wanted = Arc::new(Wanted::default());
        let set = Arc::clone(&wanted);
        let (listens, listening) = mpsc::channel::<()>();
        // The thread ends with the process.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(set.follow(divides, listens));
            }
        });
        // An error means that the sender was dropped: the signals are caught, or cannot be.
        let _ = listening.recv();
        Self(wanted)
    }

    /// Whether a division of the output was requested; true once for each request.
    #[inline]
    pub(super) fn take_division(&self) -> bool {
        let division = &self.0.division;
        division.load(Relaxed) && division.swap(false, Relaxed)
    }

    pub(super) fn is_asked_for(&self) -> bool {
        self.0.end.load(Relaxed)
    }

    /// [`is_asked_for`](Self::is_asked_for), after waiting for a signal that is still being
    /// delivered.
    pub(super) fn is_asked_for_soon(&self) -> bool {
        /// Checks, over a time much longer than the delivery of a signal takes, and than another process takes to end
        /// by the same signal.
        const POLLS: u32 = 50;
        const BETWEEN: Duration = Duration::from_millis(10);
        for _ in 0..POLLS {
            if self.is_asked_for() {
                return true;
            }
            thread::sleep(BETWEEN);
        }
        self.is_asked_for()
    }
}

impl Wanted {
    /// Follows the signals until one wants the end. `listens` is dropped once they are received.
    async fn follow(&self, divides: bool, listens: mpsc::Sender<()>) {
        let hang_ups = hang_ups(|| match divides {
            true => {
                self.division.store(true, Relaxed);
                Poll::Pending
            }
            false => Poll::Ready(()),
        });
        let either = async {
            tokio::select! {
                () = interrupted() => {}
                () = hang_ups => {}
            }
        };
        once_caught(either, listens).await;
        self.end.store(true, Relaxed);
    }
}

/// Calls `on` at each SIGHUP, until that is ready.
#[cfg(unix)]
async fn hang_ups(on: impl Fn() -> Poll<()>) {
    use tokio::signal::unix::{SignalKind, signal};

    if let Ok(mut signals) = signal(SignalKind::hangup()) {
        while signals.recv().await.is_some() {
            if on().is_ready() {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

#[cfg(not(unix))]
async fn hang_ups(_on: impl Fn() -> Poll<()>) {
    std::future::pending::<()>().await;
}

/// A source whose reads fail once the end was requested, also while they wait for a pipe. What is in a pipe by then is
/// read.
#[derive(Debug)]
pub(super) struct Stoppable<R> {
    source: R,
    stop: Stop,
    /// Bytes that may still be read after the request, as many as a pipe may hold: whoever writes to it may never end.
    left: usize,
}

/// The largest size of a pipe that processes without privileges may set, on Linux by default.
const MOST_IN_A_PIPE: usize = 1 << 20;

impl<R> Stoppable<R> {
    pub(super) fn new(source: R, stop: &Stop) -> Self {
        Self {
            source,
            stop: stop.clone(),
            left: MOST_IN_A_PIPE,
        }
    }
}

#[cfg(unix)]
impl<R: std::os::fd::AsFd> Stoppable<R> {
    /// Whether a read returns at once; waits for that for up to `milliseconds`.
    fn is_ready(&self, milliseconds: u8) -> io::Result<bool> {
        use nix::errno::Errno;
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

        let mut source = [PollFd::new(self.source.as_fd(), PollFlags::POLLIN)];
        match poll(&mut source, PollTimeout::from(milliseconds)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
impl<R: Read + std::os::fd::AsFd> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// Milliseconds between two checks of the flag.
        const MOMENT: u8 = 100;
        while !self.stop.is_asked_for() {
            if self.is_ready(MOMENT)? {
                return self.source.read(buffer);
            }
        }
        if self.left == 0 || !self.is_ready(0)? {
            return Err(io::Error::other("interrupted"));
        }
        let most = buffer.len().min(self.left);
        let read = self.source.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

#[cfg(not(unix))]
impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.is_asked_for() {
            true => Err(io::Error::other("interrupted")),
            false => self.source.read(buffer),
        }
    }
}
