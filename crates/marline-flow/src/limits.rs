//! Every limit of the exporter with its reason: together they bound the memory and the work that a capture can cause.

/// Bytes of a packet in a capture: tcpdump's maximum, and more than any packet of IP has.
pub(crate) const MAX_PACKET: usize = 256 << 10;

/// Bytes of a block of pcapng that is kept in memory: a packet with its options. Longer blocks without a packet are skipped;
/// secrets are read by line.
pub(crate) const MAX_BLOCK: usize = MAX_PACKET + (64 << 10);

/// Bytes read at once: large enough for the cost of a system call not to matter, small enough for the cache of a core.
pub(crate) const READ_SIZE: usize = 256 << 10;

/// Interfaces of one section of a pcapng file: a machine has fewer.
pub(crate) const MAX_INTERFACES: usize = 4096;

/// VLAN tags of one frame: QinQ has two, and some providers a third.
pub(crate) const MAX_VLAN_TAGS: usize = 4;

/// VLAN tags and tunnels around a packet: GTP-U in a tunnel of an operator has four, and a mirrored one of a data centre six.
pub(crate) const MAX_LAYERS: usize = 8;

/// Labels of an MPLS stack: of transport, protection, service and entropy, some of them twice.
pub(crate) const MAX_LABELS: usize = 8;

/// Extension headers of an IPv6 packet: RFC 8200, section 4.1, has six kinds.
pub(crate) const MAX_EXTENSION_HEADERS: usize = 8;

/// Bytes of the kernel's buffer for an interface: a tenth of a second at 10 Gbit/s, with what the kernel adds.
#[cfg(target_os = "linux")]
pub(crate) const RECEIVE_BUFFER: usize = 256 << 20;

/// Flows between the same inner ends, in tunnels between the same hosts, that wait for the first answer at once: private addresses
/// of a few customers coincide.
pub(crate) const MAX_UNANSWERED: usize = 8;

/// Addresses of the client of one flow that are known at once: those of a minute for a phone that changes them every second.
pub(crate) const MAX_ALIASES: usize = 64;

/// Flows at once by default: 170 MB of memory, if they are single SYNs.
pub const DEFAULT_MAX_FLOWS: usize = 1 << 20;

/// Flows at once at most: their numbers have 32 bits in the table.
pub(crate) const LARGEST_MAX_FLOWS: usize = 1 << 30;

/// Fragmented packets whose later fragments are still expected: they follow within milliseconds, so few are pending.
pub(crate) const MAX_FRAGMENTED: usize = 4096;

/// Time for which fragments of a packet are expected: that of Linux (`ipfrag_time`).
pub(crate) const FRAGMENT_TIMEOUT_NS: u64 = 30_000_000_000;

/// Bytes at the beginning of a TCP stream that are inspected: a server's hello, certificates and Finished before TLS 1.3.
pub(crate) const MAX_STREAM: usize = 24 << 10;

/// Bytes of the CRYPTO stream of one encryption level that are inspected: a ClientHello with post-quantum key shares and resumption
/// tickets has below 4 kB.
pub(crate) const MAX_CRYPTO: usize = 16 << 10;

/// Gaps in a stream that is reassembled: more than a sender with a small initial window can cause.
pub(crate) const MAX_GAPS: usize = 32;

/// Segments with payload after which the inspection of a TCP connection ends.
pub(crate) const MAX_SEGMENTS: u32 = 128;

/// Datagrams after which the inspection of a QUIC handshake ends: lossy handshakes repeat their first flight.
pub(crate) const MAX_DATAGRAMS: u32 = 64;

/// Packets of a UDP flow among which its first QUIC packet must be: a Version Negotiation may precede it.
pub(crate) const MAX_BEFORE_QUIC: u64 = 8;

/// Handshake packets of QUIC that are kept until their keys are known: those that overtook the ServerHello.
pub(crate) const MAX_PENDING: usize = 4;

/// Bytes of all handshakes in progress: 64 MiB are 20,000 of a usual size.
pub(crate) const MAX_INSPECTED: usize = 64 << 20;

/// Bytes of the protocols that a ClientHello offers and that are recorded, in order: real ones offer `h2` and `http/1.1`.
pub(crate) const MAX_PROTOCOLS: usize = 256;

/// Bytes of a name that is recorded: longer ones are not DNS names (RFC 1035, section 2.3.4).
pub(crate) const MAX_NAME: usize = 255;

/// Connections with secrets, of key logs and of captures together: up to 300 MB.
pub(crate) const MAX_SECRETS: usize = 1 << 20;

/// Bytes of a line of a key log or an access log.
pub(crate) const MAX_LINE: u64 = 64 << 10;

/// Lines of an access log that are kept: 50 bytes each and more.
pub(crate) const MAX_LOG_LINES: usize = 16 << 20;

/// Records of a row group of Parquet: enough for dictionaries to pay off, few enough for a writer's buffers of 30 MB.
#[cfg(feature = "parquet")]
pub(crate) const ROW_GROUP: usize = 64 << 10;

/// Bytes of a message of IPFIX in a file: large enough for headers not to matter.
pub(crate) const IPFIX_FILE_MESSAGE: usize = 32 << 10;

/// Bytes of a message of IPFIX over UDP, which fits with the headers of IP and UDP into the smallest MTU of IPv6, 1280 bytes (RFC
/// 7011, section 10.3.3, asks for messages within the path MTU).
pub const IPFIX_UDP_MESSAGE: usize = 1280 - 40 - 8;
