//! Transport parameters (RFC 9000, section 18; RFC 9221; RFC 9287; RFC 9368;
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
//! The table in this file is the single definition of every parameter: a row has its field, type,
//! default, ID, sender and limits. To add a parameter, add a row.

mod value;

pub use value::{BundleMembership, PreferredAddress, VersionInformation};

use value::Value;

use crate::{ConnectionId, ErrorCode, Reader, Side, TransportError, frame::MAX_STREAMS, varint};

/// A reserved parameter, which exercises that peers ignore unknown ones (RFC 9000, section 18.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedParameter {
    /// ID of the form 31 * N + 27.
    pub id: u64,
    /// Arbitrary bytes.
    pub value: Vec<u8>,
}

/// Builds [`TransportParameters`] from rows of
/// `field: type = default, id, any | server | client [, limits]`.
macro_rules! transport_parameters {
    ($(
        $(#[$doc:meta])*
        $field:ident: $kind:ty = $default:expr, $id:literal, $sender:ident $(, $limits:expr)?;
    )*) => {
        /// The transport parameters of one endpoint.
        ///
        /// The default holds the values that apply if the peer sends no parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct TransportParameters {
            $($(#[$doc])* pub $field: $kind,)*
            /// A reserved parameter to send. Never set when received.
            pub grease: Option<ReservedParameter>,
        }

        impl Default for TransportParameters {
            fn default() -> Self {
                Self { $($field: $default,)* grease: None }
            }
        }

        /// The parameters received so far, to detect duplicates.
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
                if let Some(ReservedParameter { id, value }) = &self.grease {
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
                            return Err(concat!(stringify!($field), " is present twice"));
                        }
                        if !may_send::$sender(sender) {
                            return Err(concat!(
                                stringify!($field),
                                " is sent by an endpoint that is not a ",
                                stringify!($sender)
                            ));
                        }
                        let mut reader = Reader::new(value);
                        self.$field = Value::read(&mut reader)
                            .filter(|_| reader.is_empty())
                            .ok_or(concat!(stringify!($field), " is badly formed"))?;
                        $(if !$limits.contains(&self.$field) {
                            return Err(concat!(stringify!($field), " is out of range"));
                        })?
                    })*
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

/// Permitted senders of a parameter: the values of the sender column.
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
    /// Destination connection ID of the client's first Initial packet.
    original_destination_connection_id: Option<ConnectionId> = None, 0x00, server;
    /// Idle timeout in milliseconds; 0 disables it.
    max_idle_timeout: u64 = 0, 0x01, any;
    /// Stateless reset token of the connection ID used in the handshake.
    stateless_reset_token: Option<[u8; 16]> = None, 0x02, server;
    /// The largest UDP payload that the sender accepts, in bytes; at least 1200.
    max_udp_payload_size: u64 = 65527, 0x03, any, (1200..);
    /// Bytes that the peer may send on all streams together.
    initial_max_data: u64 = 0, 0x04, any;
    /// Bytes that the peer may send on a bidirectional stream that the sender of the parameters opens.
    initial_max_stream_data_bidi_local: u64 = 0, 0x05, any;
    /// Bytes that the peer may send on a bidirectional stream that the peer opens.
    initial_max_stream_data_bidi_remote: u64 = 0, 0x06, any;
    /// Bytes that the peer may send on a unidirectional stream.
    initial_max_stream_data_uni: u64 = 0, 0x07, any;
    /// Bidirectional streams that the peer may open.
    initial_max_streams_bidi: u64 = 0, 0x08, any, (..=MAX_STREAMS);
    /// Unidirectional streams that the peer may open.
    initial_max_streams_uni: u64 = 0, 0x09, any, (..=MAX_STREAMS);
    /// ACK Delay fields of the sender are in units of 2^this microseconds; at most 20.
    ack_delay_exponent: u64 = 3, 0x0a, any, (..=20);
    /// The longest time for which the sender delays an acknowledgment, in milliseconds; less than 2^14.
    max_ack_delay: u64 = 25, 0x0b, any, (..1 << 14);
    /// Whether the peer must not migrate while it uses the sender's handshake address.
    disable_active_migration: bool = false, 0x0c, any;
    /// The address to which the server asks the client to migrate after the handshake.
    preferred_address: Option<PreferredAddress> = None, 0x0d, server;
    /// Number of the peer's connection IDs that the sender stores; at least 2.
    active_connection_id_limit: u64 = 2, 0x0e, any, (2..);
    /// Source connection ID of the sender's first Initial packet.
    initial_source_connection_id: Option<ConnectionId> = None, 0x0f, any;
    /// Source connection ID of the Retry packet, if the server sent one.
    retry_source_connection_id: Option<ConnectionId> = None, 0x10, server;
    /// Chosen and available versions of the sender (RFC 9368, section 3).
    version_information: Option<VersionInformation> = None, 0x11, any;
    /// The largest DATAGRAM frame that the sender accepts, in bytes including type and length; if
    /// absent or 0, DATAGRAM frames are not accepted (RFC 9221).
    max_datagram_frame_size: Option<u64> = None, 0x20, any;
    /// The largest path ID that the peer may use initially. If absent, the sender does not support
    /// multipath; 0 permits a single path initially (draft-ietf-quic-multipath-21).
    initial_max_path_id: Option<u32> = None, 0x3e, any;
    /// Whether the sender accepts packets with the fixed bit cleared (RFC 9287).
    grease_quic_bit: bool = false, 0x2ab2, any;
    /// Minimum `max_ack_delay` that the peer may request, in microseconds. If absent, the sender does
    /// not support ACK_FREQUENCY frames.
    min_ack_delay: Option<u64> = None, 0xff04_de1b, any;
    /// The bundle of the connection (an extension of marline): requests the server to coordinate
    /// the bundle's connections.
    bundle: Option<BundleMembership> = None, 0x2d61_726c_696e_6500, client;
    /// Whether the server coordinates the connections of a bundle (an extension of marline).
    coordinates_bundles: bool = false, 0x2d61_726c_696e_6501, server;
}

impl TransportParameters {
    /// Decodes the parameters sent by `sender`.
    ///
    /// Unknown parameters are skipped. Allocates only the list of versions, which takes no more memory
    /// than its encoding.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR if `bytes` is malformed, or if a known parameter is duplicated, has
    /// a value that its RFC forbids, or was sent by the wrong endpoint.
    pub fn decode(sender: Side, bytes: &[u8]) -> Result<Self, TransportError> {
        Self::decode_all(sender, bytes)
            .map_err(|reason| TransportError::new(ErrorCode::TRANSPORT_PARAMETER_ERROR, reason))
    }

    fn decode_all(sender: Side, bytes: &[u8]) -> Result<Self, &'static str> {
        const TRUNCATED: &str = "the transport parameters are truncated";
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
        // A client must include the version of its first packet, to state its preference.
        if sender.is_client()
            && let Some(versions) = &params.version_information
            && !versions.available.contains(&versions.chosen)
        {
            return Err("version_information does not list the chosen version");
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests;
