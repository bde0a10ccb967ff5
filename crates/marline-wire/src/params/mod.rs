//! Transport parameters (RFC 9000, section 18; RFC 9221; RFC 9287;
//! draft-ietf-quic-ack-frequency-14; draft-ietf-quic-multipath-21, section 2.1).
//!
//! ```text
//! Transport Parameter {
//!   Transport Parameter ID (i),
//!   Transport Parameter Length (i),
//!   Transport Parameter Value (..),
//! }
//! ```
//!
//! The table in this file is the whole truth about a parameter: its row gives field, type, default,
//! ID, sender and limits. A row more is a parameter more.

mod value;

pub use value::{BundleMembership, PreferredAddress};

use value::Value;

use crate::{ConnectionId, ErrorCode, Reader, Side, TransportError, frame::MAX_STREAMS, varint};

/// Builds [`TransportParameters`] from rows of
/// `field: type = default, id, any | server | client [, limits]`.
macro_rules! transport_parameters {
    ($(
        $(#[$doc:meta])*
        $field:ident: $kind:ty = $default:expr, $id:literal, $sender:ident $(, $limits:expr)?;
    )*) => {
        /// What one end tells the other about itself in the handshake.
        ///
        /// The default is what a peer means that sends no parameters at all.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct TransportParameters {
            $($(#[$doc])* pub $field: $kind,)*
            /// A reserved parameter to send, ID (31 * N + 27) and value, so that peers keep
            /// ignoring what they do not know (RFC 9000, section 18.1). Never set when received.
            pub grease: Option<(u64, Vec<u8>)>,
        }

        impl Default for TransportParameters {
            fn default() -> Self {
                Self { $($field: $default,)* grease: None }
            }
        }

        /// Which known parameters came already: nothing is kept about unknown ones.
        #[derive(Default)]
        struct Seen { $($field: bool,)* }

        impl TransportParameters {
            /// Appends every parameter that differs from its default.
            pub fn encode(&self, buf: &mut Vec<u8>) {
                let default = Self::default();
                $(if self.$field != default.$field {
                    varint::encode($id, buf);
                    varint::encode(self.$field.size() as u64, buf);
                    self.$field.write(buf);
                })*
                if let Some((id, value)) = &self.grease {
                    varint::encode(*id, buf);
                    varint::encode(value.len() as u64, buf);
                    buf.extend_from_slice(value);
                }
            }

            /// Reads one parameter; ignores unknown IDs.
            fn read(
                &mut self,
                seen: &mut Seen,
                sender: Side,
                id: u64,
                value: &[u8],
            ) -> Result<(), &'static str> {
                match id {
                    $($id => {
                        if std::mem::replace(&mut seen.$field, true) {
                            return Err(concat!(stringify!($field), " stands twice"));
                        }
                        if !may_send::$sender(sender) {
                            return Err(concat!(
                                stringify!($field),
                                " from one that is no ",
                                stringify!($sender)
                            ));
                        }
                        let mut reader = Reader::new(value);
                        self.$field = Value::read(&mut reader)
                            .filter(|_| reader.is_empty())
                            .ok_or(concat!(stringify!($field), " is badly formed"))?;
                        $(if !$limits.contains(&self.$field) {
                            return Err(concat!(stringify!($field), " is out of its limits"));
                        })?
                    })*
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

/// Who may send a parameter: the words of the table.
mod may_send {
    use crate::Side;

    pub(super) const fn any(_: Side) -> bool {
        true
    }

    pub(super) const fn server(sender: Side) -> bool {
        sender.is_server()
    }

    pub(super) const fn client(sender: Side) -> bool {
        sender.is_client()
    }
}

transport_parameters! {
    /// The destination ID of the first Initial packet that the client sent.
    original_destination_connection_id: Option<ConnectionId> = None, 0x00, server;
    /// The connection ends after this many milliseconds without packets; 0 is never.
    max_idle_timeout: u64 = 0, 0x01, any;
    /// Resets the connection without state, for the ID of the handshake.
    stateless_reset_token: Option<[u8; 16]> = None, 0x02, server;
    /// The largest UDP payload that the sender takes, in bytes; at least 1200.
    max_udp_payload_size: u64 = 65527, 0x03, any, (1200..);
    /// Bytes that the peer may send on all streams.
    initial_max_data: u64 = 0, 0x04, any;
    /// Bytes that the peer may send on a bidirectional stream that the sender of this opens.
    initial_max_stream_data_bidi_local: u64 = 0, 0x05, any;
    /// Bytes that the peer may send on a bidirectional stream that the peer opens.
    initial_max_stream_data_bidi_remote: u64 = 0, 0x06, any;
    /// Bytes that the peer may send on a unidirectional stream.
    initial_max_stream_data_uni: u64 = 0, 0x07, any;
    /// Bidirectional streams that the peer may open.
    initial_max_streams_bidi: u64 = 0, 0x08, any, (..=MAX_STREAMS);
    /// Unidirectional streams that the peer may open.
    initial_max_streams_uni: u64 = 0, 0x09, any, (..=MAX_STREAMS);
    /// Delays in ACK frames count in 2^this microseconds; at most 20.
    ack_delay_exponent: u64 = 3, 0x0a, any, (..=20);
    /// The sender acknowledges within this many milliseconds; less than 2^14.
    max_ack_delay: u64 = 25, 0x0b, any, (..1 << 14);
    /// Whether the peer must keep its address while it talks to the sender's handshake address.
    disable_active_migration: bool = false, 0x0c, any;
    /// Where the server wants to be talked to after the handshake.
    preferred_address: Option<PreferredAddress> = None, 0x0d, server;
    /// Connection IDs of the peer's that the sender stores; at least 2.
    active_connection_id_limit: u64 = 2, 0x0e, any, (2..);
    /// The source ID of the first Initial packet that the sender of this sent.
    initial_source_connection_id: Option<ConnectionId> = None, 0x0f, any;
    /// The source ID of the Retry packet, if the server sent one.
    retry_source_connection_id: Option<ConnectionId> = None, 0x10, server;
    /// The longest DATAGRAM frame that the sender takes, in bytes with type and length; without it,
    /// or with 0, none at all (RFC 9221).
    max_datagram_frame_size: Option<u64> = None, 0x20, any;
    /// The last path that the peer may use from the start. Without it, the sender takes part in no
    /// multipath; with 0, in multipath that has one path for now (draft-ietf-quic-multipath-21).
    initial_max_path_id: Option<u32> = None, 0x3e, any;
    /// Whether the sender takes packets with the fixed bit cleared (RFC 9287).
    grease_quic_bit: bool = false, 0x2ab2, any;
    /// The shortest `max_ack_delay` that may be asked of the sender, in microseconds. Without it,
    /// it takes no ACK_FREQUENCY frames.
    min_ack_delay: Option<u64> = None, 0xff04_de1b, any;
    /// The bundle that the connection belongs to (marline's own): whoever sends coordinates its
    /// connections.
    bundle: Option<BundleMembership> = None, 0x2d61_726c_696e_6500, client;
    /// Whether the server coordinates the connections of a bundle (marline's own).
    coordinates_bundles: bool = false, 0x2d61_726c_696e_6501, server;
}

impl TransportParameters {
    /// Reads what `sender` sent.
    ///
    /// Unknown parameters are skipped. Allocates nothing.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR if `bytes` are not parameters, a known one stands twice, has a
    /// value that its RFC forbids, or came from the side that may not send it.
    pub fn decode(sender: Side, bytes: &[u8]) -> Result<Self, TransportError> {
        Self::decode_all(sender, bytes)
            .map_err(|reason| TransportError::new(ErrorCode::TRANSPORT_PARAMETER_ERROR, reason))
    }

    fn decode_all(sender: Side, bytes: &[u8]) -> Result<Self, &'static str> {
        const TRUNCATED: &str = "the transport parameters end inside one";
        let mut params = Self::default();
        let mut seen = Seen::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint().map_err(|_| TRUNCATED)?;
            let value = reader.prefixed().map_err(|_| TRUNCATED)?;
            params.read(&mut seen, sender, id, value)?;
        }
        if params
            .min_ack_delay
            .is_some_and(|min| min > params.max_ack_delay * 1000)
        {
            return Err("min_ack_delay exceeds max_ack_delay");
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests;
