//! Captures of simulated networks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::datagram::{Datagram, bytes};
use crate::fabric::Fabric;
use crate::fabric::pcap::Capture;

/// A capture in progress.
#[must_use = "`finish` returns the errors of the file"]
#[derive(Debug)]
pub struct CaptureHandle<W>(Arc<Mutex<Capturing<W>>>);

#[derive(Debug)]
struct Capturing<W> {
    capture: Capture<W>,
    /// The first error, after which nothing more is written.
    failed: io::Result<()>,
}

impl<W: Write + Send + 'static> CaptureHandle<W> {
    /// Starts a capture of all packets in `fabric`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn begin(fabric: &mut Fabric<Datagram>, out: W) -> io::Result<Self> {
        let capturing = Arc::new(Mutex::new(Capturing {
            capture: Capture::new(out, fabric)?,
            failed: Ok(()),
        }));
        let tapped = Arc::clone(&capturing);
        fabric.tap(Box::new(move |passage| {
            let capturing = &mut *tapped.lock().unwrap_or_else(PoisonError::into_inner);
            if capturing.failed.is_ok() {
                let packet = bytes(passage.packet);
                capturing.failed = capturing.capture.passage(passage, &[&packet]);
            }
        }));
        Ok(Self(capturing))
    }
}

impl<W: Write> CaptureHandle<W> {
    /// Flushes buffered packets to the file.
    ///
    /// # Errors
    /// If part of the capture could not be written.
    pub fn finish(self) -> io::Result<()> {
        let capturing = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut capturing.failed, Ok(()))?;
        capturing.capture.flush()
    }
}
