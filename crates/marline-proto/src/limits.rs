//! Limits of the core and their reasons: together they bound the memory and the work that a peer can cause.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Datagram size that every QUIC path must carry, in bytes of UDP payload (RFC 9000, section 14).
pub(crate) const MIN_DATAGRAM_SIZE: u16 = 1200;

/// Bytes sent for each byte received from an unvalidated address (RFC 9000, section 8).
pub(crate) const AMPLIFICATION_FACTOR: u64 = 3;

/// Our `active_connection_id_limit`: one ID in use, the others for probed paths and in reserve.
pub(crate) const REMOTE_CIDS: usize = 8;

/// Maximum number of RETIRE_CONNECTION_ID frames awaiting acknowledgment: at least twice the limit
/// above (RFC 9000, section 5.1.2), doubled again because a rotation on a lossy link retires in bursts.
pub(crate) const RETIRED_CIDS: usize = 4 * REMOTE_CIDS;

/// Maximum number of connection IDs issued to the peer, even if it allows more: one in use, one to migrate to, two for
/// probes. Each costs an entry in the endpoint's routing table.
pub(crate) const LOCAL_CIDS: usize = 4;

/// Maximum number of open paths of a connection, regardless of the configuration: each costs a
/// packet number space, a controller and the IDs above.
pub(crate) const PATHS: u32 = 16;

/// Connection IDs issued for a path that is not open: one to open it with, one to migrate to.
pub(crate) const RESERVED_CIDS: usize = 2;

/// Maximum number of former 4-tuples whose packets still count for recovery: more NAT rebindings within a round trip
/// are rare.
pub(crate) const FORMER_TUPLES: usize = 4;

/// Maximum number of PATH_CHALLENGEs of one validation whose answer counts, the latest ones.
pub(crate) const PATH_CHALLENGES: usize = 4;

/// Maximum number of queued PATH_RESPONSEs of a path: a peer needs one at a time; a flood gets the latest answered.
pub(crate) const PATH_RESPONSES: usize = 4;

/// Packets marked ECT(0) before the peer has confirmed any (RFC 9000, section 13.4.2).
pub(crate) const ECN_TESTING_PACKETS: u64 = 10;

/// Number of probes of a datagram size before it counts as too large (RFC 8899, section 5.1.2).
pub(crate) const MTU_PROBES: u8 = 3;

/// Number of rounds in which every large packet was lost before the path counts as a black hole.
pub(crate) const MTU_BLACK_HOLE_ROUNDS: u8 = 3;

/// Maximum CRYPTO data buffered out of order in each space, in bytes; RFC 9000, section 7.5
/// requires at least 4096. A flight with a long certificate chain fits.
pub(crate) const CRYPTO_BUFFER: u64 = 64 * 1024;

/// Maximum size of a ClientHello that a server buffers to decide on the version, in bytes: the maximum that
/// rustls reads.
pub(crate) const MAX_CLIENT_HELLO: usize = 0xffff;

/// Number of used tokens in one generation of a replay filter: 16 bytes each, so at most 4 MiB per
/// filter. A server has one filter for tokens, and one for the capacities in them.
pub(crate) const REPLAY_GENERATION: usize = 1 << 16;

/// Lifetime of a Retry token in seconds: a client responds within a few round trips.
pub(crate) const RETRY_TOKEN_LIFETIME: u64 = 15;

/// Maximum size of a session ticket that is decrypted, in bytes: a session without client certificates takes some
/// hundred bytes, and the length of a ticket has 16 bits.
pub(crate) const MAX_TICKET_LEN: usize = 64 * 1024;

/// Lifetime of a NEW_TOKEN token in seconds: two weeks, for clients that return infrequently.
pub(crate) const NEW_TOKEN_LIFETIME: u64 = 14 * 24 * 60 * 60;

/// Maximum number of ranges of received packet numbers in each space. Each gap between them was caused by
/// the peer or the network; 256 cover heavy reordering, cost 4 KiB and bound the size of ACK frames.
pub(crate) const MAX_RECEIVED_RANGES: usize = 256;

/// Packet numbers below the largest received one that do not count as missing yet. Reordering on links with their own
/// retransmissions spans some tens of packets.
pub(crate) const LATE_PACKETS: u64 = 32;

/// Maximum number of unacknowledged ACK-only packets of a space; every 64th carries a PING so that they are
/// acknowledged. At 1 Gbit/s and 100 ms, with an acknowledgment for every other packet, there are 4300.
pub(crate) const MAX_ACKS_UNANSWERED: u64 = 8192;

/// Capacity in entries that empty queues keep allocated, so that idle connections stay small.
pub(crate) const IDLE_QUEUE_CAPACITY: usize = 16;

/// Maximum number of buffered packets that arrived before their keys: enough for a flight that overtakes a
/// handshake message, too few for a peer to store data without completing the handshake.
pub(crate) const MAX_UNDECRYPTABLE_PACKETS: usize = 10;

/// Maximum number of handshake retransmissions of a connection before a probe timeout: one repairs the loss of one
/// datagram (RFC 9002, section 6.2.3), the second that of the retransmitted flight. Without a limit two peers could
/// make each other retransmit endlessly. Retransmissions of a client because of packets that need the ServerHello do
/// not count.
pub(crate) const MAX_RETRANSMISSIONS: u8 = 2;

/// Number of copies of a client's first flight before its probe timeout. With the default first interval, the
/// doubling intervals place them after 50, 150 and 350 ms; the first probe timeout would expire at 350 ms.
pub(crate) const FLIGHT_COPIES: u8 = 3;

/// Maximum number of packets of a client's first request, including other packets of that round trip, for which it
/// is retransmitted before its probe timeout; more are an upload, whose later packets reveal losses.
pub(crate) const REQUEST_PACKETS: u8 = 4;

/// Maximum size of a first request that is sent twice, in bytes: one with long cookies would take another packet.
pub(crate) const REQUEST_COPY: usize = 1000;

/// Maximum number of lost STREAM frames, the latest ones, whose retransmissions are sent twice if no other data waits.
/// More losses may be due to a full queue, which copies would fill again.
pub(crate) const MAX_DUPLICATES: usize = 4;

/// Maximum number of STREAM frames found lost late, the latest ones, whose retransmissions two paths carry. A queue that
/// overflows loses more at once, and copies of all would fill the other path.
pub(crate) const MAX_LATE_LOSSES: usize = 16;

/// Maximum size of a Handshake packet that a client repeats with its first application data, in bytes: a Finished
/// message fits, certificates do not.
pub(crate) const FINISHED_COPY: usize = 256;

/// Time for which a client assumes the round-trip time of an earlier connection to a server: paths change with
/// networks.
pub(crate) const REMEMBERED_RTT_LIFETIME: Duration = Duration::from_secs(600);

/// Range of that assumption: a smaller value would cause probes while a busy server computes, a larger one would
/// delay probes if the path has become shorter.
pub(crate) const REMEMBERED_RTT: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(1);

/// Bytes counted for a queued datagram in addition to its size, so that the number of empty ones is limited too.
pub(crate) const DATAGRAM_OVERHEAD: usize = 64;

/// Bytes of datagrams of paths that failed that wait for another path, at most: 200 ms at 10 Mb/s.
pub(crate) const MAX_REROUTED_DATAGRAM_BYTES: usize = 256 * 1024;

/// Number of servers whose address tokens a client stores, and number of tokens of each: a browser's
/// working set, in a few tens of KiB.
pub(crate) const ADDRESS_TOKEN_SERVERS: usize = 256;
pub(crate) const ADDRESS_TOKENS_PER_SERVER: usize = 2;

/// Maximum number of address tokens that a connection issues because the measured capacity of its path
/// changed, besides that of its handshake: each represents twice the capacity of the previous one, so they
/// cover the range from the initial window to any window in use.
pub(crate) const CAPACITY_TOKENS: u8 = 8;

/// Maximum size of an address token accepted from a server, in bytes; every Initial packet, of 1200 bytes, carries it.
pub(crate) const MAX_ADDRESS_TOKEN: usize = 512;

/// Maximum length of the reason phrase in a CONNECTION_CLOSE frame, in bytes.
pub(crate) const MAX_CLOSE_REASON: usize = 256;

/// Length in bytes of the random destination connection ID of a client's first packet: the minimum of RFC
/// 9000, section 7.2.
pub(crate) const INITIAL_DESTINATION_LEN: usize = 8;

/// Maximum number of Version Negotiation packets and stateless resets sent per second: enough after a
/// restart, too few for an attack that provokes them.
pub(crate) const STATELESS_ANSWERS_PER_SECOND: u32 = 1000;

/// Maximum number of evicted connections that are still closing: each remains for three probe timeouts beyond the
/// limit on connections.
pub(crate) const EVICTED_CONNECTIONS: usize = 1024;

/// Maximum number of idle connections that are considered for eviction, so that it takes a full server only some
/// microseconds.
pub(crate) const IDLE_CANDIDATES: usize = 256;

/// Maximum number of streams in a dependency tree that have nothing to send and no dependents: those of a
/// page, so that later streams find the stream on which they depend.
pub(crate) const IDLE_TREE_STREAMS: usize = 256;

/// Maximum depth of a dependency tree; a deeper stream becomes a sibling of its parent. Browsers that make
/// every resource depend on the previous one build chains of this length.
pub(crate) const TREE_DEPTH: u8 = 32;

/// Maximum number of paths whose windows are coupled, more than any device has networks. The work for
/// an acknowledgment is linear in it.
pub(crate) const COUPLED_PATHS: usize = 16;

/// Number of datagrams with a PATH_CHALLENGE for which part of the amplification limit is reserved: six span an
/// outage of some seconds.
pub(crate) const RESERVED_CHALLENGES: u64 = 6;

/// Minimum space in a datagram for a new packet of data, in bytes: header, tag and a few frames, whose sizes are known
/// only when they are written.
pub(crate) const MIN_PACKET_SPACE: usize = 112;
