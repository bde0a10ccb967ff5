//! Settings (RFC 9114, section 7.2.4).

use marline_wire::{Reader, varint};

use crate::error::{Error, ErrorCode};

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;

/// The settings that one end of a connection announces. The defaults are those of an end whose SETTINGS have not
/// arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the largest field section that it accepts; without it, there is no limit.
    pub max_field_section_size: Option<u64>,
    /// Bytes of the dynamic table of its QPACK decoder (RFC 9204, section 5).
    pub qpack_max_table_capacity: u64,
    /// Streams that may be blocked at its QPACK decoder (RFC 9204, section 5).
    pub qpack_blocked_streams: u64,
    /// Whether it accepts extended CONNECT (RFC 9220, section 3).
    pub enable_connect_protocol: bool,
    /// Whether it accepts HTTP datagrams (RFC 9297, section 2.1.1).
    pub h3_datagram: bool,
}

impl Settings {
    /// Parses the payload of a SETTINGS frame. Unknown settings are ignored.
    ///
    /// # Errors
    /// H3_FRAME_ERROR: the payload ends within a setting. H3_SETTINGS_ERROR: a setting is repeated, is reserved
    /// because HTTP/2 had it, or has a value that is not defined.
    pub fn decode(payload: &[u8]) -> Result<Self, Error> {
        let failed = |reason| Error::new(ErrorCode::SETTINGS_ERROR, reason);
        let cut = |_| Error::new(ErrorCode::FRAME_ERROR, "SETTINGS end within a setting");
        let mut settings = Self::default();
        let mut seen = Vec::new();
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let id = reader.varint().map_err(cut)?;
            let value = reader.varint().map_err(cut)?;
            seen.push(id);
            match id {
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = Some(value),
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                ENABLE_CONNECT_PROTOCOL => settings.enable_connect_protocol = switch(value)?,
                H3_DATAGRAM => settings.h3_datagram = switch(value)?,
                // Settings of HTTP/2 without an equivalent (sections 7.2.4.1 and 11.2.2).
                0x00 | 0x02..=0x05 => return Err(failed("a setting of HTTP/2")),
                _ => {}
            }
        }
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(failed("a setting is repeated"));
        }
        Ok(settings)
    }

    /// Appends the payload of a SETTINGS frame, without settings that have their default value.
    pub fn encode(&self, payload: &mut Vec<u8>) {
        for (id, value) in [
            (QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity),
            (QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams),
            (
                ENABLE_CONNECT_PROTOCOL,
                u64::from(self.enable_connect_protocol),
            ),
            (H3_DATAGRAM, u64::from(self.h3_datagram)),
        ] {
            if value != 0 {
                encode_setting(id, value, payload);
            }
        }
        if let Some(size) = self.max_field_section_size {
            encode_setting(MAX_FIELD_SECTION_SIZE, size, payload);
        }
    }
}

/// Appends one setting.
pub(crate) fn encode_setting(id: u64, value: u64, payload: &mut Vec<u8>) {
    varint::encode(id, payload);
    varint::encode(value.min(varint::MAX), payload);
}

fn switch(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::new(
            ErrorCode::SETTINGS_ERROR,
            "a setting that is 0 or 1 has another value",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_encoded_decode_to_the_same() {
        let settings = Settings {
            max_field_section_size: Some(0),
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 16,
            enable_connect_protocol: true,
            h3_datagram: true,
        };
        for settings in [settings, Settings::default()] {
            let mut payload = Vec::new();
            settings.encode(&mut payload);
            assert_eq!(Settings::decode(&payload), Ok(settings));
        }
    }

    /// RFC 9114, section 7.2.4.
    #[test]
    fn unknown_settings_are_ignored() {
        assert_eq!(Settings::decode(&[0x21, 0x05]), Ok(Settings::default()));
    }

    /// RFC 9114, sections 7.2.4 and 7.2.4.1; RFC 8441, section 3; RFC 9297, section 2.1.1.
    #[test]
    fn repeated_reserved_and_undefined_settings_are_errors() {
        for payload in [
            &[0x21, 0x05, 0x06, 0x10, 0x21, 0x05][..],
            &[0x06, 0x10, 0x06, 0x11],
            &[0x02, 0x00],
            &[0x03, 0x00],
            &[0x04, 0x00],
            &[0x05, 0x00],
            &[0x08, 0x02],
            &[0x33, 0x02],
        ] {
            let error = Settings::decode(payload).unwrap_err();
            assert_eq!(error.code(), ErrorCode::SETTINGS_ERROR, "{payload:x?}");
        }
    }

    /// RFC 9114, section 7.1.
    #[test]
    fn settings_that_end_within_a_setting_are_a_frame_error() {
        for payload in [&[0x06][..], &[0x06, 0x40], &[0x40]] {
            let error = Settings::decode(payload).unwrap_err();
            assert_eq!(error.code(), ErrorCode::FRAME_ERROR, "{payload:x?}");
        }
    }
}
