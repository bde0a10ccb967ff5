//! Parts of content that a stream has copied.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::limits;
use crate::runtime::RuntimeHandle;

/// Small parts, which a stream copies rather than keeps: they use the budget until the client has acknowledged them.
#[derive(Debug, Default)]
pub(super) struct Copied {
    parts: VecDeque<Part>,
    /// Bytes of content that were written.
    written: u64,
}

#[derive(Debug)]
struct Part {
    /// Bytes that were written with its last byte.
    end: u64,
    _bytes: Bytes,
}

impl Copied {
    /// Adds written `bytes`.
    pub(super) fn on_write(&mut self, bytes: &Bytes) {
        self.written += bytes.len() as u64;
        if bytes.len() < limits::MIN_CHUNK_BYTES {
            self.parts.push_back(Part {
                end: self.written,
                _bytes: bytes.clone(),
            });
        }
    }

    /// Drops the acknowledged parts: all but the last `unacknowledged` bytes of the stream.
    pub(super) fn release(&mut self, unacknowledged: impl FnOnce() -> u64) {
        if self.parts.is_empty() {
            return;
        }
        let unacknowledged = unacknowledged();
        // Frame headers count in one number only, so that it is late rather than early.
        let is_acknowledged = |part: &Part| self.written - part.end >= unacknowledged;
        let acknowledged = self.parts.partition_point(is_acknowledged);
        self.parts.drain(..acknowledged);
    }

    /// Waits for a moment, if there will be something to release.
    pub(super) async fn recheck(&self, runtime: &RuntimeHandle) {
        match self.parts.is_empty() {
            true => std::future::pending().await,
            false => runtime.sleep(limits::COPIED_RECHECK).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_kept_until_they_are_acknowledged_and_large_ones_are_the_streams() {
        let mut copied = Copied::default();
        let small = Bytes::from(vec![0; 100]);
        let large = Bytes::from(vec![0; limits::MIN_CHUNK_BYTES]);
        for part in [&small, &large, &small] {
            copied.on_write(part);
        }
        assert_eq!(copied.parts.len(), 2);
        let all = 200 + limits::MIN_CHUNK_BYTES as u64;
        for (unacknowledged, kept) in [(all, 2), (all - 99, 2), (all - 100, 1), (1, 1), (0, 0)] {
            copied.release(|| unacknowledged);
            assert_eq!(copied.parts.len(), kept, "{unacknowledged}");
        }
        assert!(small.is_unique());
    }
}
