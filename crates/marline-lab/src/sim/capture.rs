//! Captures of virtual networks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::World;
use super::datagram::headers;
use crate::fabric::pcap::Capture;

/// A capture under way.
#[must_use = "errors of the file are told by `finish`"]
#[derive(Debug)]
pub struct CaptureHandle<W>(Arc<Mutex<Capturing<W>>>);

#[derive(Debug)]
struct Capturing<W> {
    capture: Capture<W>,
    /// The first error, after which nothing more is written.
    failed: io::Result<()>,
}

impl World {
    /// Writes all that passes from now on to `out`, in the format that
    /// [`fabric::pcap`](crate::fabric::pcap) says, with IPv4 and UDP headers.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn capture<W: Write + Send + 'static>(&self, out: W) -> io::Result<CaptureHandle<W>> {
        self.fabric(|fabric| {
            let capturing = Arc::new(Mutex::new(Capturing {
                capture: Capture::new(out, fabric)?,
                failed: Ok(()),
            }));
            let tapped = Arc::clone(&capturing);
            fabric.tap(Box::new(move |passage| {
                let capturing = &mut *tapped.lock().unwrap_or_else(PoisonError::into_inner);
                if capturing.failed.is_ok() {
                    let pieces = [&headers(passage.packet)[..], &passage.packet.body.payload];
                    capturing.failed = capturing.capture.passage(passage, &pieces);
                }
            }));
            Ok(CaptureHandle(capturing))
        })
    }
}

impl<W: Write> CaptureHandle<W> {
    /// Writes out what is buffered.
    ///
    /// # Errors
    /// Some of the capture could not be written.
    pub fn finish(self) -> io::Result<()> {
        let capturing = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut capturing.failed, Ok(()))?;
        capturing.capture.flush()
    }
}
