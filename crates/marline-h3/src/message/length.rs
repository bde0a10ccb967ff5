//! The length of content, as announced and as it arrives (RFC 9114, section 4.1.2).

use crate::error::StreamError;

/// Counts the content of one message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContentLength {
    announced: Option<u64>,
    received: u64,
}

impl ContentLength {
    /// Content of the `announced` length; without it, of any.
    pub(crate) fn new(announced: Option<u64>) -> Self {
        Self {
            announced,
            received: 0,
        }
    }

    /// Content arrives.
    ///
    /// # Errors
    /// There is more than announced.
    pub(crate) fn on_data(&mut self, bytes: usize) -> Result<(), StreamError> {
        self.received = self.received.saturating_add(bytes as u64);
        match self.announced {
            Some(announced) if self.received > announced => Err(StreamError::malformed(
                "more content than the content length",
            )),
            _ => Ok(()),
        }
    }

    /// The message ends.
    ///
    /// # Errors
    /// There is less than announced.
    pub(crate) fn on_end(&self) -> Result<(), StreamError> {
        match self.announced {
            Some(announced) if self.received < announced => Err(StreamError::malformed(
                "less content than the content length",
            )),
            _ => Ok(()),
        }
    }
}
