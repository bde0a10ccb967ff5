//! PATH_CHALLENGE and PATH_RESPONSE (RFC 9000, sections 19.17 and 19.18).
//!
//! ```text
//! PATH_CHALLENGE Frame {         PATH_RESPONSE Frame {
//!   Type (i) = 0x1a,               Type (i) = 0x1b,
//!   Data (64),                     Data (64),
//! }                              }
//! ```

use crate::{Reader, Truncated, varint};

macro_rules! path_frame {
    ($(#[$doc:meta])* $name:ident = $type:literal, $(#[$data_doc:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $(#[$data_doc])*
            pub data: [u8; 8],
        }

        impl $name {
            /// The frame type.
            pub const TYPE: u64 = $type;

            pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
                Ok(Self { data: reader.array()? })
            }

            /// Appends the frame.
            pub fn encode(&self, buf: &mut Vec<u8>) {
                varint::encode(Self::TYPE, buf);
                buf.extend_from_slice(&self.data);
            }

            /// Length of the frame in bytes.
            pub const fn size(&self) -> usize {
                1 + self.data.len()
            }
        }
    };
}

path_frame! {
    /// Requests a [`PathResponse`] from the peer, to validate a path.
    PathChallenge = 0x1a,
    /// Unpredictable data.
}

path_frame! {
    /// The response to a [`PathChallenge`].
    PathResponse = 0x1b,
    /// The data of the challenge.
}
