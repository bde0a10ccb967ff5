//! A JSON writer into a reusable buffer.

use std::time::Duration;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends JSON to a buffer. Whether a comma is needed follows from the last byte written, so nesting needs no state.
pub(super) struct Json<'b>(pub(super) &'b mut Vec<u8>);

impl Json<'_> {
    fn comma(&mut self) {
        if !matches!(self.0.last(), None | Some(b'{' | b'[' | b':' | 0x1e)) {
            self.0.push(b',');
        }
    }

    fn key(&mut self, key: &str) {
        self.string(key);
        self.0.push(b':');
    }

    /// Writes a string, as a value of an array or as a key.
    pub(super) fn string(&mut self, value: &str) {
        self.comma();
        self.0.push(b'"');
        self.escaped(value);
        self.0.push(b'"');
    }

    fn escaped(&mut self, value: &str) {
        let mut rest = value.as_bytes();
        while let Some(at) = rest
            .iter()
            .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
        {
            self.0.extend_from_slice(&rest[..at]);
            match rest[at] {
                b'\n' => self.0.extend_from_slice(b"\\n"),
                byte @ (b'"' | b'\\') => self.0.extend_from_slice(&[b'\\', byte]),
                byte => {
                    self.0.extend_from_slice(b"\\u00");
                    self.hex_digits(&[byte]);
                }
            }
            rest = &rest[at + 1..];
        }
        self.0.extend_from_slice(rest);
    }

    /// Writes an integer, as a value of an array.
    pub(super) fn number(&mut self, value: u64) {
        self.comma();
        self.digits(value);
    }

    fn digits(&mut self, mut value: u64) {
        let mut text = [0; 20];
        let mut at = text.len();
        loop {
            at -= 1;
            text[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&text[at..]);
    }

    fn hex_digits(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0.push(HEX[usize::from(byte >> 4)]);
            self.0.push(HEX[usize::from(byte & 15)]);
        }
    }

    pub(super) fn str(&mut self, key: &str, value: &str) {
        self.key(key);
        self.string(value);
    }

    pub(super) fn opt_str(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.str(key, value);
        }
    }

    pub(super) fn u64(&mut self, key: &str, value: u64) {
        self.key(key);
        self.digits(value);
    }

    /// Writes an integer as text.
    pub(super) fn quoted_u64(&mut self, key: &str, value: u64) {
        self.key(key);
        self.0.push(b'"');
        self.digits(value);
        self.0.push(b'"');
    }

    pub(super) fn opt_u64(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.u64(key, value);
        }
    }

    /// Writes a length in memory.
    pub(super) fn len(&mut self, key: &str, value: usize) {
        self.u64(key, value as u64);
    }

    /// Writes a number with a fraction, so that readers do not parse it as an integer; `null` if it is not finite.
    pub(super) fn f64(&mut self, key: &str, value: f64) {
        use std::io::Write;
        self.key(key);
        if value.is_finite() {
            // Writing to a vector cannot fail. The debug format always has a fraction or an exponent.
            let _ = write!(self.0, "{value:?}");
        } else {
            self.0.extend_from_slice(b"null");
        }
    }

    /// Writes an array of integers.
    pub(super) fn u64s(&mut self, key: &str, values: &[u64]) {
        self.array(key, |array| {
            for &value in values {
                array.number(value);
            }
        });
    }

    pub(super) fn bool(&mut self, key: &str, value: bool) {
        self.key(key);
        self.0
            .extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes milliseconds with a fraction, exact to the nanosecond.
    pub(super) fn ms(&mut self, key: &str, value: Duration) {
        self.key(key);
        self.nanos_as_ms(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn opt_ms(&mut self, key: &str, value: Option<Duration>) {
        if let Some(value) = value {
            self.ms(key, value);
        }
    }

    fn nanos_as_ms(&mut self, nanos: u64) {
        self.digits(nanos / 1_000_000);
        let mut fraction = nanos % 1_000_000;
        self.0.push(b'.');
        let mut unit = 100_000;
        loop {
            self.0.push(b'0' + (fraction / unit) as u8);
            fraction %= unit;
            unit /= 10;
            if fraction == 0 {
                break;
            }
        }
    }

    /// Writes bytes as a string of hexadecimal digits.
    pub(super) fn hex(&mut self, key: &str, bytes: &[u8]) {
        self.key(key);
        self.hex_string(bytes);
    }

    /// Writes bytes as a string of hexadecimal digits, as a value of an array.
    pub(super) fn hex_string(&mut self, bytes: &[u8]) {
        self.comma();
        self.0.push(b'"');
        self.hex_digits(bytes);
        self.0.push(b'"');
    }

    /// Writes an object under a key.
    pub(super) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Self)) {
        self.key(key);
        self.braces(fill);
    }

    /// Writes an object in an array, or a record.
    pub(super) fn item(&mut self, fill: impl FnOnce(&mut Self)) {
        self.comma();
        self.braces(fill);
    }

    fn braces(&mut self, fill: impl FnOnce(&mut Self)) {
        self.0.push(b'{');
        fill(self);
        self.0.push(b'}');
    }

    pub(super) fn array(&mut self, key: &str, fill: impl FnOnce(&mut Self)) {
        self.key(key);
        self.list(fill);
    }

    /// Writes an array in an array.
    pub(super) fn list(&mut self, fill: impl FnOnce(&mut Self)) {
        self.comma();
        self.0.push(b'[');
        fill(self);
        self.0.push(b']');
    }
}
