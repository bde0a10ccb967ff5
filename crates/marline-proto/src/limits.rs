//! Every limit of the core with its reason: together they bound the memory and the work that a peer can cause.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Smallest datagram every QUIC path must carry, in bytes of UDP payload (RFC 9000, section 14).
pub(crate) const MIN_DATAGRAM_SIZE: u16 = 1200;

/// Bytes sent for each byte received from an unvalidated address (RFC 9000, section 8).
pub(crate) const AMPLIFICATION_FACTOR: u64 = 3;

/// Our `active_connection_id_limit`: one ID in use, some for paths that are probed, some in reserve.
pub(crate) const REMOTE_CIDS: usize = 8;

/// RETIRE_CONNECTION_ID frames awaiting acknowledgment; at least twice the limit above
/// (RFC 9000, section 5.1.2), doubled again because a rotation on a lossy link retires in bursts.
pub(crate) const RETIRED_CIDS: usize = 4 * REMOTE_CIDS;

/// Connection IDs issued to the peer at most, however many it allows: one in use, one to migrate to, two for probes. Each
/// costs an entry in the endpoint's routing table.
pub(crate) const LOCAL_CIDS: usize = 4;

/// Paths that a connection may have at once, whatever is configured: each costs a number space, a
/// controller and the IDs above.
pub(crate) const PATHS: u32 = 16;

/// Connection IDs issued for a path that is not open: one to open it with, one to migrate to.
pub(crate) const RESERVED_CIDS: usize = 2;

/// 4-tuples before NAT rebindings whose packets still count for recovery: more rebindings within a round trip are rare.
pub(crate) const FORMER_TUPLES: usize = 4;

/// PATH_CHALLENGEs of one validation whose answer still counts, the latest ones.
pub(crate) const PATH_CHALLENGES: usize = 4;

/// PATH_RESPONSEs waiting on one path: a peer needs one at a time, a flood gets the latest answered.
pub(crate) const PATH_RESPONSES: usize = 4;

/// Packets marked ECT(0) before the peer has confirmed any (RFC 9000, section 13.4.2).
pub(crate) const ECN_TESTING_PACKETS: u64 = 10;

/// Times a datagram size is probed before it counts as too large (RFC 8899, section 5.1.2).
pub(crate) const MTU_PROBES: u8 = 3;

/// Rounds in which every large packet was lost before the path counts as a black hole.
pub(crate) const MTU_BLACK_HOLE_ROUNDS: u8 = 3;

/// Bytes of CRYPTO data buffered out of order in each space; RFC 9000, section 7.5 asks for at
/// least 4096. A flight with a long certificate chain fits.
pub(crate) const CRYPTO_BUFFER: u64 = 64 * 1024;

/// Bytes of a ClientHello that a server keeps until it is complete and decides about the version: the most that
/// rustls reads of one.
pub(crate) const MAX_CLIENT_HELLO: usize = 0xffff;

/// Used tokens in one generation of a replay filter: 16 bytes each, so at most 4 MiB a filter. A server
/// has one filter of tokens, and one of the records that clients carry in them.
pub(crate) const REPLAY_GENERATION: usize = 1 << 16;

/// Lifetime of a Retry token in seconds: a client responds within a few round trips.
pub(crate) const RETRY_TOKEN_LIFETIME: u64 = 15;

/// The longest session ticket that is decrypted, in bytes: a session without the client's certificates takes some
/// hundred, and a ticket has a length of 16 bits.
pub(crate) const MAX_TICKET_LEN: usize = 64 * 1024;

/// Lifetime of a NEW_TOKEN token in seconds: two weeks, so that clients that return seldom can use it.
pub(crate) const NEW_TOKEN_LIFETIME: u64 = 14 * 24 * 60 * 60;

/// Ranges of received packet numbers kept for each space. Each gap between them was caused by the peer or
/// the network; 256 cover heavy reordering, cost 4 KiB and bound the size of ACK frames.
pub(crate) const MAX_RECEIVED_RANGES: usize = 256;

/// Numbers below the largest received one that do not count as missing yet. Reordering on links with retransmissions of their own
/// spans some tens of packets.
pub(crate) const LATE_PACKETS: u64 = 32;

/// ACK-only packets of a space that are not acknowledged yet; every 64th carries a PING so that they are. At
/// 1 Gbit/s and 100 ms, with an acknowledgment for every other packet, there are 4300.
pub(crate) const MAX_ACKS_UNANSWERED: u64 = 8192;

/// Entries that queues keep allocated when they run empty, so that idle connections stay small.
pub(crate) const IDLE_QUEUE_CAPACITY: usize = 16;

/// Packets kept that arrived before their keys: enough for a flight that overtakes a handshake message, too
/// few for a peer to store data here without finishing the handshake.
pub(crate) const MAX_UNDECRYPTABLE_PACKETS: usize = 10;

/// Times that a connection repeats a flight of its handshake before a probe timeout: one repairs the loss of one
/// datagram (RFC 9002, section 6.2.3), the second that of the repeated flight. Without a limit two peers could make each
/// other repeat without end. What a client repeats because packets came that need the server's hello is beside these.
pub(crate) const EARLY_REPEATS: u8 = 2;

/// Copies of a client's first flight before its probe timeout. The pauses double: with that of the default they leave
/// after 50, 150 and 350 ms; the probe timeout of the first would end at 350 ms.
pub(crate) const FLIGHT_COPIES: u8 = 3;

/// Packets that a client's first request is in, with what else it sends in that round trip, for it to be sent again
/// before its probe timeout; more are an upload, of which later packets show losses.
pub(crate) const REQUEST_PACKETS: u8 = 4;

/// The largest first request, in bytes, that leaves twice: one with long cookies would cost a packet more.
pub(crate) const REQUEST_COPY: usize = 1000;

/// Lost STREAM frames, the latest ones, whose repeats leave twice when nothing else waits. More may be the losses of a
/// full queue, which copies of all would fill again.
pub(crate) const TAIL_COPIES: usize = 4;

/// The largest Handshake packet, in bytes, that a client sends a second time beside its first application data: one of
/// a Finished message, not of certificates.
pub(crate) const FINISHED_COPY: usize = 256;

/// How long a client assumes the round-trip time of an earlier connection to a server: paths change with networks.
pub(crate) const REMEMBERED_RTT_LIFETIME: Duration = Duration::from_secs(600);

/// The least and the most that is assumed so: less would probe while a busy server computes, more would wait too long
/// where the path has become shorter.
pub(crate) const REMEMBERED_RTT: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(1);

/// Bytes counted for a queued datagram beside its own, so that the number of empty ones is limited too.
pub(crate) const DATAGRAM_OVERHEAD: usize = 64;

/// Servers whose address tokens a client keeps, and tokens of each: a browser's working set, in a few
/// tens of KiB.
pub(crate) const ADDRESS_TOKEN_SERVERS: usize = 256;
pub(crate) const ADDRESS_TOKENS_PER_SERVER: usize = 2;

/// Address tokens that a connection issues because the measured capacity of its path changed, beside the one
/// of its handshake: each stands for twice the capacity of the one before, so that they reach from the
/// initial window to every window in use.
pub(crate) const CAPACITY_TOKENS: u8 = 8;

/// The longest address token accepted from a server, in bytes; every Initial packet, of 1200 bytes, carries
/// it.
pub(crate) const MAX_ADDRESS_TOKEN: usize = 512;

/// Bytes of the reason phrase that a CONNECTION_CLOSE frame carries at most.
pub(crate) const MAX_CLOSE_REASON: usize = 256;

/// Length in bytes of the random destination ID of a client's first packet: the minimum of RFC 9000, section
/// 7.2.
pub(crate) const INITIAL_DESTINATION_LEN: usize = 8;

/// Version Negotiation packets and stateless resets sent per second: enough after a restart, too few for an
/// attack that provokes them.
pub(crate) const STATELESS_ANSWERS_PER_SECOND: u32 = 1000;

/// Evicted connections that are still closing: each stays for three probe timeouts beyond the limit on connections.
pub(crate) const EVICTED_CONNECTIONS: usize = 1024;

/// Idle connections that are considered when one of them is evicted, so that a full server takes some microseconds for it.
pub(crate) const IDLE_CANDIDATES: usize = 256;

/// Streams that a tree of streams remembers although they have nothing to send and nothing depends on them:
/// those of a page, so that streams that begin late find the stream that they depend on.
pub(crate) const IDLE_TREE_STREAMS: usize = 256;

/// Depth of a tree of streams; a stream that would be deeper becomes a sibling of the stream that it depends
/// on. Browsers that make every resource depend on the one before build chains of this length.
pub(crate) const TREE_DEPTH: u8 = 32;

/// Paths of a connection whose windows are coupled: more than any device has networks. The work for an
/// acknowledgment is linear in it.
pub(crate) const COUPLED_PATHS: usize = 16;

/// Datagrams with a PATH_CHALLENGE for which the amplification limit is kept before data: six reach over an outage of
/// some seconds.
pub(crate) const RESERVED_CHALLENGES: u64 = 6;

/// The least space in a datagram, in bytes, in which a packet of data is begun: header, tag and a few frames, of which
/// the sizes are known only when they are written.
pub(crate) const MIN_PACKET_SPACE: usize = 112;
