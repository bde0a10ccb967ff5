//! Ending before the end of the packets.

use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::server::interrupted;

/// Whether somebody wants the end.
#[derive(Clone, Debug)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set by Ctrl-C and SIGTERM, from the return on.
    pub(super) fn on_interrupt() -> Self {
        let asked = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&asked);
        let (listens, listening) = mpsc::channel::<()>();
        // It ends with the process.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(async {
                    let mut ended = pin!(interrupted());
                    // It listens once it was polled.
                    let first = poll_fn(|context| Poll::Ready(ended.as_mut().poll(context)));
                    let first = first.await;
                    drop(listens);
                    if first.is_pending() {
                        ended.await;
                    }
                });
                set.store(true, Relaxed);
            }
        });
        // An error says that nothing more is sent: it listens, or cannot.
        let _ = listening.recv();
        Self(asked)
    }

    pub(super) fn is_asked_for(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// The same, also if the signal that says so is still on its way.
    pub(super) fn is_asked_for_soon(&self) -> bool {
        /// Much longer than the delivery of a signal takes, and than the end of another process by the same signal.
        const LOOKS: u32 = 50;
        const BETWEEN: Duration = Duration::from_millis(10);
        for _ in 0..LOOKS {
            if self.is_asked_for() {
                return true;
            }
            thread::sleep(BETWEEN);
        }
        self.is_asked_for()
    }
}

/// A source whose reads fail once somebody wants the end, also while they wait for a pipe.
#[derive(Debug)]
pub(super) struct Stoppable<R> {
    source: R,
    stop: Stop,
}

impl<R> Stoppable<R> {
    pub(super) fn new(source: R, stop: &Stop) -> Self {
        Self {
            source,
            stop: stop.clone(),
        }
    }
}

#[cfg(unix)]
impl<R: std::os::fd::AsFd> Stoppable<R> {
    /// Whether a read returns at once; after a moment the answer is no.
    fn is_ready(&self) -> io::Result<bool> {
        use nix::errno::Errno;
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

        /// Milliseconds between two looks at what somebody wants.
        const MOMENT: u8 = 100;
        let mut source = [PollFd::new(self.source.as_fd(), PollFlags::POLLIN)];
        match poll(&mut source, PollTimeout::from(MOMENT)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
impl<R: Read + std::os::fd::AsFd> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.stop.is_asked_for() {
            if self.is_ready()? {
                return self.source.read(buffer);
            }
        }
        Err(io::Error::other("interrupted"))
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
