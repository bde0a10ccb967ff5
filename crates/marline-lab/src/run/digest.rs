//! Hashes by which equal settings and results are recognised.

use std::fmt::Write;

use marline::Sha256;

/// SHA-256 over texts and numbers; each text is preceded by its length.
pub(super) struct Digest(Sha256);

impl Default for Digest {
    fn default() -> Self {
        Self(Sha256::new())
    }
}

impl Digest {
    pub(super) fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn hex(self) -> String {
        let mut hex = String::new();
        for byte in self.0.finish() {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}
