//! Statistics of a connection, available at any time.

use std::time::Duration;

use marline_wire::{Frame, PathId};

use super::events::EcnState;
use crate::scheduling::path::PathStatus;

/// Datagrams in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpStats {
    /// Number of datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
}

impl UdpStats {
    /// Counts one datagram of `bytes`.
    #[inline]
    pub fn count(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

/// Counters of the streams of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// Number of existing streams.
    pub open: usize,
    /// Bytes sent for the first time.
    pub bytes_sent: u64,
    /// Retransmitted bytes.
    pub bytes_retransmitted: u64,
    /// Bytes of flow control credit that the peer has used, gaps included.
    pub bytes_received: u64,
    /// Bytes written and not acknowledged.
    pub bytes_held: u64,
    /// Bytes buffered because earlier ones of their stream are missing. Flow control limits them.
    pub out_of_order_bytes: u64,
    /// Maximum of `out_of_order_bytes` so far.
    pub out_of_order_bytes_max: u64,
}

/// Statistics of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionStats {
    /// The QUIC version: the negotiated one, once the handshake is complete.
    pub version: u32,
    /// Datagrams sent on all paths.
    pub udp_sent: UdpStats,
    /// Datagrams received on all paths.
    pub udp_received: UdpStats,
    /// Frames received.
    pub frames_received: FrameCounts,
    /// Counters of the streams.
    pub streams: StreamStats,
    /// Dropped packets.
    pub packets_dropped: u64,
    /// Duration from the first packet to the completion of the handshake; `None` before.
    pub handshake: Option<Duration>,
    /// Statistics of each path, by ascending path ID.
    pub paths: Vec<PathStats>,
}

impl ConnectionStats {
    /// Packets declared lost on all paths.
    pub fn packets_lost(&self) -> u64 {
        self.paths.iter().map(|path| path.packets_lost).sum()
    }

    /// The share of the peer's packets that were lost on all paths, as
    /// [`PathStats::peer_loss_estimate`].
    pub fn peer_loss_estimate(&self) -> Option<f64> {
        let sent = self.peer_packets_sent();
        (sent > 0).then(|| self.peer_packets_missing() as f64 / sent as f64)
    }

    /// Packets that the peer sent on all paths, according to packet numbers.
    pub fn peer_packets_sent(&self) -> u64 {
        self.paths.iter().map(|path| path.peer_packets_sent).sum()
    }

    /// Number of those that have not arrived, as [`PathStats::peer_packets_missing`].
    pub fn peer_packets_missing(&self) -> u64 {
        let missing = self.paths.iter().map(|path| path.peer_packets_missing);
        missing.sum()
    }

    /// Packets declared lost spuriously on all paths.
    pub fn packets_lost_spuriously(&self) -> u64 {
        self.paths
            .iter()
            .map(|path| path.packets_lost_spuriously)
            .sum()
    }
}

/// The stage of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathStage {
    /// The path is being validated for the first time, and carries no data yet.
    Validating,
    /// The path carries data.
    Open,
    /// The path is suspected to have failed: it carries only probes while another path works.
    Suspected,
    /// The path is abandoned, and carries nothing.
    Abandoned,
}

/// Statistics and present state of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// Path ID.
    pub id: PathId,
    /// Local address, if known.
    pub local: Option<std::net::SocketAddr>,
    /// Address of the peer.
    pub remote: std::net::SocketAddr,
    /// Stage of the path.
    pub stage: PathStage,
    /// Whether the path is available or a backup, as requested by either end.
    pub status: PathStatus,
    /// Datagrams sent.
    pub udp_sent: UdpStats,
    /// Datagrams received.
    pub udp_received: UdpStats,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes of packets declared lost.
    pub bytes_lost: u64,
    /// Packets declared lost spuriously.
    pub packets_lost_spuriously: u64,
    /// Packets that the peer sent, according to packet numbers: one more than the largest.
    pub peer_packets_sent: u64,
    /// Number of those that have not arrived, except the latest. Some were never sent: senders skip a packet number
    /// occasionally (RFC 9000, section 21.4).
    pub peer_packets_missing: u64,
    /// Number of probe timeouts that expired.
    pub ptos: u64,
    /// Number of window reductions by the controller.
    pub congestion_events: u64,
    /// Number of reductions that were reverted because all losses that caused them were spurious.
    pub undone_reductions: u64,
    /// Minimum RTT; `None` before the first sample, as `latest_rtt`.
    pub min_rtt: Option<Duration>,
    /// Latest RTT sample.
    pub latest_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub smoothed_rtt: Duration,
    /// RTT variation.
    pub rtt_variance: Duration,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Stream bytes queued on the path and not yet sent; 0 with one path.
    pub bytes_queued: u64,
    /// Stream bytes sent on the path, including retransmissions.
    pub stream_bytes_sent: u64,
    /// Number of those that another path carried as well.
    pub stream_bytes_copied: u64,
    /// Pacing rate, in bytes per second; `None` without pacing.
    pub pacing_rate: Option<u64>,
    /// The controller's name.
    pub controller: &'static str,
    /// The controller's phase, in snake case.
    pub phase: &'static str,
    /// The state of ECN validation.
    pub ecn: EcnState,
    /// Packets that the peer received with CE marks.
    pub ecn_ce: u64,
    /// Datagram size, in bytes of UDP payload.
    pub mtu: u16,
}

impl PathStats {
    /// The share of the peer's packets lost on the way to this end, estimated from gaps in their numbers. `None` before
    /// any packet has arrived.
    ///
    /// Numbers that the peer skips count as lost, so a share below a few per mille is not significant. Losses at the
    /// end are detected only when later packets arrive.
    pub fn peer_loss_estimate(&self) -> Option<f64> {
        let sent = self.peer_packets_sent;
        (sent > 0).then(|| self.peer_packets_missing as f64 / sent as f64)
    }
}

macro_rules! frame_counts {
    ($($(#[$doc:meta])* $field:ident: $pattern:pat,)*) => {
        /// Frames by type.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct FrameCounts {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl FrameCounts {
            /// Counts one frame, except PADDING.
            #[inline]
            pub fn count(&mut self, frame: &Frame<'_>) {
                match frame {
                    Frame::Padding { .. } => {}
                    $($pattern => self.$field += 1,)*
                }
            }

            /// Name and number of each type, in the order of the RFC.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

frame_counts! {
    /// PING.
    ping: Frame::Ping,
    /// ACK, with or without ECN counts.
    ack: Frame::Ack(_),
    /// RESET_STREAM.
    reset_stream: Frame::ResetStream(_),
    /// STOP_SENDING.
    stop_sending: Frame::StopSending(_),
    /// CRYPTO.
    crypto: Frame::Crypto(_),
    /// NEW_TOKEN.
    new_token: Frame::NewToken(_),
    /// STREAM.
    stream: Frame::Stream(_),
    /// MAX_DATA.
    max_data: Frame::MaxData(_),
    /// MAX_STREAM_DATA.
    max_stream_data: Frame::MaxStreamData(_),
    /// MAX_STREAMS, of both directions.
    max_streams: Frame::MaxStreams(_),
    /// DATA_BLOCKED.
    data_blocked: Frame::DataBlocked(_),
    /// STREAM_DATA_BLOCKED.
    stream_data_blocked: Frame::StreamDataBlocked(_),
    /// STREAMS_BLOCKED, of both directions.
    streams_blocked: Frame::StreamsBlocked(_),
    /// NEW_CONNECTION_ID.
    new_connection_id: Frame::NewConnectionId(_),
    /// RETIRE_CONNECTION_ID.
    retire_connection_id: Frame::RetireConnectionId(_),
    /// PATH_CHALLENGE.
    path_challenge: Frame::PathChallenge(_),
    /// PATH_RESPONSE.
    path_response: Frame::PathResponse(_),
    /// CONNECTION_CLOSE, of both kinds.
    connection_close: Frame::ConnectionClose(_) | Frame::ApplicationClose(_),
    /// HANDSHAKE_DONE.
    handshake_done: Frame::HandshakeDone,
    /// DATAGRAM.
    datagram: Frame::Datagram(_),
    /// ACK_FREQUENCY.
    ack_frequency: Frame::AckFrequency(_),
    /// IMMEDIATE_ACK.
    immediate_ack: Frame::ImmediateAck,
    /// PATH_ACK, with or without ECN counts.
    path_ack: Frame::PathAck(_),
    /// PATH_ABANDON.
    path_abandon: Frame::PathAbandon(_),
    /// PATH_STATUS_BACKUP.
    path_status_backup: Frame::PathStatusBackup(_),
    /// PATH_STATUS_AVAILABLE.
    path_status_available: Frame::PathStatusAvailable(_),
    /// PATH_NEW_CONNECTION_ID.
    path_new_connection_id: Frame::PathNewConnectionId(_),
    /// PATH_RETIRE_CONNECTION_ID.
    path_retire_connection_id: Frame::PathRetireConnectionId(_),
    /// MAX_PATH_ID.
    max_path_id: Frame::MaxPathId(_),
    /// PATHS_BLOCKED.
    paths_blocked: Frame::PathsBlocked(_),
    /// PATH_CIDS_BLOCKED.
    path_cids_blocked: Frame::PathCidsBlocked(_),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_count_under_their_names() {
        let mut counts = FrameCounts::default();
        counts.count(&Frame::Ping);
        counts.count(&Frame::Padding { len: 9 });
        counts.count(&Frame::ImmediateAck);
        counts.count(&Frame::ImmediateAck);
        let counted: Vec<_> = counts.iter().filter(|&(_, n)| n > 0).collect();
        assert_eq!(counted, [("ping", 1), ("immediate_ack", 2)]);
    }
}
