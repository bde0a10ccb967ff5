//! Every limit on the resources that a peer can use, and the reason for its value.

use std::time::Duration;

/// Connections open at the same time, over all versions. An idle connection takes tens of KiB: 10,000 fit in
/// a small virtual machine.
pub const MAX_CONNECTIONS: usize = 10_000;

/// Connections over TCP from one address: an office behind one address, whose browsers have some connections each.
pub const MAX_TCP_CONNECTIONS_PER_ADDRESS: usize = 512;

/// Connections over TCP from one network, /24 of IPv4 or /48 of IPv6.
pub const MAX_TCP_CONNECTIONS_PER_PREFIX: usize = 2048;

/// Time after which a connection without requests may be closed to make room for another: a client that has just connected
/// sends its first request before.
pub const UNUSED_BEFORE_EVICTION: Duration = Duration::from_secs(3);

/// The same for a connection whose requests make no progress: longer than a network is unusable between two cells.
pub const STALLED_BEFORE_EVICTION: Duration = Duration::from_secs(20);

/// The windows of HTTP/2 for the content of one request, and of all requests of a connection: the content that may
/// arrive although the application reads nothing. 40 Mbit/s with a round-trip time of 100 ms.
pub const HTTP2_STREAM_WINDOW: u32 = 512 * 1024;

/// See [`HTTP2_STREAM_WINDOW`].
pub const HTTP2_CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes that may arrive on a connection of HTTP/2 without progress of a request: PING, SETTINGS, PRIORITY,
/// WINDOW_UPDATE. A client needs some KiB at most, and one window of unread content.
pub const MAX_BYTES_WITHOUT_PROGRESS: u64 = 256 * 1024 + HTTP2_CONNECTION_WINDOW as u64;

/// Time for which a connection is still read after it was closed for a flood or a failure, so that the client gets
/// GOAWAY or the alert; and after the last bytes of an HTTP/1.1 client that has received everything.
pub const LINGER: Duration = Duration::from_secs(1);

/// The same for a client of HTTP/2 that has received everything: while its application reads from the system's buffer,
/// it sends a WINDOW_UPDATE for each half of its window.
pub const QUIET_HTTP2: Duration = Duration::from_secs(5);

/// The most time for which a client that has received everything, and continues to send, is read.
pub const MAX_LINGER: Duration = Duration::from_secs(30);

/// The most bytes that are read from such a client: enough for a refused upload whose client reads the response only after it has
/// sent everything.
pub const MAX_LINGER_BYTES: usize = 64 << 20;

/// The most parts in which HTTP/2 writes the content that it takes from a response at once: a window or a frame may end within it.
pub const PARTS_OF_TURN: u64 = 4;

/// Bytes at the end of a response over HTTP/3 that a client may have received without acknowledging them when it closes the
/// connection without an error: ten packets, for which one acknowledgment is enough.
pub const UNACKNOWLEDGED_END: u64 = 16 * 1024;

/// The delay until the system is asked whether a client has acknowledged the data sent. The interval doubles until
/// [`MAX_POLL_INTERVAL`].
pub const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// See [`MIN_POLL_INTERVAL`].
pub const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Parts of responses that were sent, and that a connection remembers, before the system is asked which have been acknowledged.
pub const UNCONFIRMED_PARTS: usize = 64;

/// Time for which a stopped server waits for a TCP handshake in progress, restarted each time one has ended: a round trip within a
/// region. All together have [`DRAIN`].
pub const LAST_HANDSHAKES: Duration = Duration::from_millis(50);

/// Time for which a connection of HTTP/1.1 without requests, one of HTTP/2 before its first, and any of HTTP/3, accepts requests
/// after a server has stopped: a client that does not have the GOAWAY yet may be sending one. A round trip over a slow path.
pub const DRAIN: Duration = Duration::from_millis(500);

/// The same for a connection that makes room for another, which waits meanwhile.
pub const EVICTED_LINGER: Duration = Duration::from_millis(50);

/// Time after which a connection over TCP that makes room for another is closed although it could not send GOAWAY.
pub const EVICTION_TIME: Duration = Duration::from_millis(80);

/// Connections over TCP that may take this time at once, and that no longer count: as many as are accepted in it.
/// Further ones are closed without GOAWAY.
pub const LEAVING_CONNECTIONS: usize = 32;

/// Streams of HTTP/2 that were reset before they were accepted, or by errors of this end, until the connection is closed
/// (RFC 9113 section 10.5).
pub const MAX_RESET_STREAMS: usize = 64;

/// Connections of trusted proxies that have not sent the header of the PROXY protocol yet. Load balancers send it at once.
pub const MAX_ANNOUNCED: usize = 1024;

/// Files that responses hold open at the same time. More are not needed: responses for one file share it.
pub const MAX_OPEN_FILES: usize = 16 * 1024;

/// File descriptors that are neither connections nor files of responses nor qlog files: sockets, the access log, the
/// page of metrics with its connections, [`OPENING_FILES`], [`CLOSING_FILES`], [`LEAVING_CONNECTIONS`], and those of
/// the runtime.
pub const RESERVED_FILES: u64 = 160;

/// Files of each further worker: the sockets of some addresses, the timers of their endpoints, and the reactor.
pub const FILES_OF_WORKER: u64 = 16;

/// Files that are being opened on blocking threads at the same time: as many as a disk serves well at once.
pub const OPENING_FILES: usize = 32;

/// Files that are being closed for clients that are entitled to their places, and that no longer count: as many as are
/// accepted in the time that tasks take to end.
pub const CLOSING_FILES: usize = 32;

/// Sessions of TLS over TCP that are remembered so that clients can resume them, where they are not in tickets: some hundred bytes
/// each.
pub const TLS_SESSIONS: usize = 4096;

/// The time after which a client that was refused for lack of resources may try again
/// (`Retry-After`).
pub const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Concurrent requests on one connection. Browsers load pages with some 100 at the same time (RFC 9114
/// section 6.1 asks for at least 100).
pub const MAX_CONCURRENT_REQUESTS: u32 = 256;

/// Bytes of the header section of one request or response. The largest cookies in use are below 16 KiB; the
/// rest is for other fields.
pub const MAX_HEADER_BYTES: u32 = 32 * 1024;

/// Fields of one header section of a request or response, in every version. Browsers send some thirty, applications a hundred with
/// preloads and cookies; each takes about 100 bytes of memory besides its own.
pub const MAX_HEADER_FIELDS: usize = 512;

/// Fields of the header section of a response that a client takes: as many, and those that a proxy before the application adds.
pub const MAX_RESPONSE_FIELDS: usize = MAX_HEADER_FIELDS + 16;

/// The largest header section that a server can be configured to accept. Each request in progress may hold one.
pub const LARGEST_HEADER_BYTES: u64 = 64 * 1024;

/// Bytes of memory for data that waits to be sent on the control and QPACK streams of an HTTP/3 connection: as much as
/// thousands of requests cause while the peer accepts nothing on these streams.
pub const MAX_QUEUED_INSTRUCTIONS: usize = 256 * 1024;

/// Time limit of a TLS or QUIC handshake: five round trips over a satellite link with losses.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The head start of HTTP/3 before a client that may fall back also tries HTTP/2: the delay between connection attempts of
/// RFC 8305, section 5. A handshake of QUIC takes one round trip less than one of TCP and TLS.
pub const HTTP3_HEAD_START: Duration = Duration::from_millis(250);

/// Time limit for the header section of a request from its first byte. It stops slow-loris attacks, which
/// send one byte at a time.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

/// Time after which a connection without any bytes in either direction is closed. Longer than the outages of
/// a phone in a tunnel.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time after which a client's request ends if nothing of a response arrives on its connection: as long as a server keeps
/// an idle connection.
pub const STALL_TIMEOUT: Duration = IDLE_TIMEOUT;

/// Bytes of a file of trusted certificates: those of systems have a few hundred KB.
pub const MAX_TRUST_BYTES: u64 = 16 << 20;

/// Content of a redirect that a client reads so that it can use the connection of HTTP/1.1 again: less than a new connection costs.
pub const MAX_IGNORED: u64 = 64 << 10;

/// Hosts that a client knows to be reached over TLS only, or to be elsewhere over HTTP/3: more than people visit.
pub const MAX_KNOWN_HOSTS: usize = 4096;

/// Cookies of a client: more than 60 hosts with 50 each, which RFC 6265, section 6.1, asks for.
pub const MAX_COOKIES: usize = 4096;

/// Bytes of a file of cookies: [`MAX_COOKIES`] of the largest size that RFC 6265 asks for.
pub const MAX_COOKIE_FILE: u64 = 16 << 20;

/// Content after decoding that a client takes in any case: more than pages have, and less than memory and disks.
pub const FREE_EXPANSION: u64 = 64 << 20;

/// The largest ratio of decoded to received content, if the decoded is larger than [`FREE_EXPANSION`]: text has ten, and files of
/// zeros, which attackers send, a thousand.
pub const MAX_EXPANSION: u64 = 200;

/// Codings that a response may have one after the other: a file that is compressed already is compressed once more by mistake.
pub const MAX_CODINGS: usize = 2;

/// Servers of which a client remembers why it refused their certificates: more than it connects to at once, as a rule.
pub const MAX_REFUSALS: usize = 64;

/// Bytes that a client reads from a connection without progress of a request: 64 interim responses, as many as over HTTP/3,
/// with the largest header sections. Over HTTP/3, those of all streams, with [`READ_COST`].
pub const MAX_IDLE_BYTES: u64 = 64 * MAX_HEADER_BYTES as u64;

/// Bytes of [`MAX_IDLE_BYTES`] that each read from a stream of HTTP/3 counts for beside its own, about the header of its
/// packet: streams without content, and content in single bytes, cost more than their bytes.
pub const READ_COST: usize = 32;

/// The largest window of HTTP/2 that hyper grants: content that may arrive although the application reads nothing.
pub const HTTP2_MAX_WINDOW: u64 = 16 << 20;

/// Time for requests in progress to finish after a shutdown has begun.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// The same after another process has taken over: nothing waits for the end, and a download may be long.
pub const UPGRADE_GRACE: Duration = Duration::from_secs(3600);

/// Time in which a process that is to take over gets ready: it reads its configuration, and may resolve names.
pub const UPGRADE_START: Duration = Duration::from_secs(60);

/// Time in which one that is ready takes over. Datagrams wait meanwhile.
pub const UPGRADE_TAKE_OVER: Duration = Duration::from_secs(5);

/// Time in which one that has given up ends.
pub const UPGRADE_END: Duration = Duration::from_secs(1);

/// Time for connections to send CONNECTION_CLOSE if they did not finish within [`SHUTDOWN_GRACE`]. It is sent
/// without pacing.
pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Bytes of a request's content that are read although nothing needs them, so that the client reads the response
/// first: the size of a form. Larger content is refused after the response.
pub const MAX_DISCARDED_BYTES: usize = 1 << 20;

/// Time in which such content has to arrive.
pub const DISCARD_TIMEOUT: Duration = Duration::from_secs(15);

/// Time after which a server tries again to replace keys that it could not write.
pub const ROTATION_RETRY: Duration = Duration::from_secs(600);

/// TLS sessions of QUIC that a server with a state directory remembers: an hour of one new client a second. One takes
/// some hundred bytes in memory and in the file.
pub const MAX_SESSIONS: usize = 4096;

/// Time without a new session after which the file of another address is removed: clients use a session for a day at most.
pub const SESSION_FILE_LIFETIME: Duration = Duration::from_secs(2 * 24 * 3600);

/// Files of sessions in a state directory: more servers than one user runs.
pub const MAX_SESSION_FILES: usize = 64;

/// The largest session that is remembered. Without certificates of clients, sessions are far smaller.
pub const MAX_SESSION_BYTES: usize = 4096;

/// Ranges in one request. Document viewers request tens; more is taken for an attack (RFC 9110 section
/// 17.15).
pub const MAX_RANGES: usize = 64;

/// Bytes read from a file at once: large enough to amortize the system call, small enough for thousands of
/// concurrent responses.
pub const FILE_CHUNK_BYTES: usize = 64 * 1024;

/// Bytes read from a file at once at least, although the client's window is smaller: with less, frames and system calls
/// cost more than content. Each stream may hold as many.
pub const MIN_CHUNK_BYTES: usize = 1024;

/// Small files of a directory whose contents are kept in memory.
pub const KEPT_FILES: usize = 256;

/// The time for which they are kept, and for which they have to be unchanged before.
pub const KEPT_FILE_TIME: Duration = Duration::from_secs(1);

/// Bytes of a file that is read as a whole before its response begins, so that the response holds no open file.
pub const SMALL_FILE_BYTES: usize = 8 * 1024;

/// Bytes read from a file at once for a connection over TCP. Each request in progress may hold one chunk that the client
/// does not read: 4 MiB in a connection of HTTP/2.
pub const TCP_CHUNK_BYTES: usize = 16 * 1024;

/// Bytes of memory that each part of content takes besides its own while a proxy holds it: two allocations, and an entry of the
/// queue in which it waits.
pub const HELD_PART_BYTES: usize = 256;

/// The interval at which an HTTP/3 connection measures its unread content of requests, while there is some: at 1
/// Gbit/s, 12 MB arrive in between.
pub const RECEIVED_CHECK: Duration = Duration::from_millis(100);

/// The time for which a connection may hold content of requests for which there is no budget: as long as a network
/// waits before others release some. An HTTP/2 connection reads nothing in that time.
pub const UNREAD_TIMEOUT: Duration = BUFFER_RECLAIM_DELAY;

/// The interval at which a waiting response over HTTP/3 checks how much its client has acknowledged of its small parts:
/// a round-trip time.
pub const COPIED_RECHECK: Duration = Duration::from_millis(100);

/// Bytes of small writes of a connection over HTTP/2 that are passed to the system together.
pub const JOINED_WRITES: usize = 16 * 1024;

/// Bytes of a response that HTTP/2 buffers in addition, for each request: the system's buffer of the connection covers
/// its round-trip time.
pub const HTTP2_SEND_BUFFER: usize = 32 * 1024;

/// Bytes that are held between two sides: of files that were read and that clients have not received yet, and of
/// content on its way through a proxy, in both directions. As much as 30 QUIC connections with windows of 8 MiB keep
/// until it is acknowledged.
pub const MAX_BUFFERED_BYTES: u64 = 256 << 20;

/// The time that a response waits for a part of these before responses of clients that hold more have to end: clients
/// that receive the data sent to them release bytes within a round-trip time.
pub const BUFFER_RECLAIM_DELAY: Duration = Duration::from_secs(1);

/// The most time that a response waits for a part of these: with less than it is entitled to, a network gets it after
/// [`BUFFER_RECLAIM_DELAY`], and others wait for their own responses.
pub const BUFFER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for the first part of content whose length a client of HTTP/2 or 3 has not announced, before the request is passed on without
/// it: content that ends at once needs no chunks over HTTP/1.1, and a client that waits for the response sends nothing.
pub const FIRST_CONTENT: Duration = Duration::from_millis(50);

/// Bytes that a response, or the content of a request, has to move within [`IDLE_TIMEOUT`]: 70 bytes/s, which every network has; GPRS has ten
/// times as much.
pub const MIN_PROGRESS_BYTES: u64 = 4096;

/// Bytes of lines that wait to be written to a log: a second of 20,000 requests.
pub const LOG_QUEUE_BYTES: usize = 4 << 20;

/// Lines for which an empty queue of a log keeps space.
pub const IDLE_LOG_LINES: usize = 64;

/// Interval between messages that lines of a log are dropped, and between attempts to rotate it.
pub const LOG_COMPLAINTS: Duration = Duration::from_secs(60);

/// Time for the lines of a log to be written when a server ends, or when another log takes its place.
pub const LOG_FINISH: Duration = Duration::from_secs(1);

/// Interval at which a log that is rotated looks whether its file was renamed by another process.
pub const LOG_FILE_CHECK: Duration = Duration::from_secs(1);

/// Files of the directory of a log among which rotated ones are looked for.
pub const LOG_DIRECTORY_ENTRIES: usize = 100_000;

/// Connections on the page of a server's metrics address, the most active ones: as many as anybody reads.
pub const SHOWN_CONNECTIONS: usize = 100;

/// Interval at which the counters of all connections are read for that page, however many ask.
pub const CONNECTIONS_INTERVAL: Duration = Duration::from_millis(450);

/// Bytes of a message to syslog; the rest is cut. Daemons have to take 2 KiB (RFC 5426, section 3.2), and those in use take 8 KiB.
pub const SYSLOG_TEXT_BYTES: usize = 7 << 10;

/// Bytes of a message to journald; the rest is cut. Its field is below the size from which the journal compresses or cuts it.
pub const JOURNALD_TEXT_BYTES: usize = 48 << 10;

/// Messages of one kind that peers can cause, in each [`MESSAGE_INTERVAL`]: enough to see what happens.
pub const MESSAGES_OF_KIND: u32 = 5;

/// The interval for [`MESSAGES_OF_KIND`].
pub const MESSAGE_INTERVAL: Duration = Duration::from_secs(60);

/// Attempts to find a port that is free for both TCP and UDP, if any port may be used.
pub const PORT_ATTEMPTS: usize = 16;

/// Objects of a page that is loaded. The largest pages have some thousands.
pub const MAX_PAGE_OBJECTS: usize = 10_000;

/// Bytes of one object of a page; more than objects of real pages have.
pub const MAX_PAGE_OBJECT_BYTES: u64 = 1 << 30;

/// Interim responses to one request that a server sends: one or two are usual, and browsers use the first.
pub const MAX_INTERIM_RESPONSES: usize = 16;

/// Fields `Via` of a request that is passed on: more proxies than any request passes, so that loops end.
pub const MAX_VIA: usize = 16;

/// Time for a connection from a proxy to an application: both are in one data centre, and a lost SYN is sent again after 1 s
/// and 3 s.
pub const UPSTREAM_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time that an application may take for the header of a response. Less than [`IDLE_TIMEOUT`], after which the connection of
/// the client ends without an answer.
pub const UPSTREAM_RESPONSE_TIMEOUT: Duration = Duration::from_secs(50);

/// Time that an application may take for the next part of a response, for the same reason.
pub const UPSTREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Requests in progress at one application, each of which has a connection if it is HTTP/1.1: half of the descriptors
/// that many systems give a process.
pub const MAX_UPSTREAM_REQUESTS: usize = 512;

/// The most time that a request waits for a place at an application: as long as for memory.
pub const UPSTREAM_PLACE_TIMEOUT: Duration = BUFFER_TIMEOUT;

/// The window of HTTP/2 for the content of one response of an application: 128 MB/s with a round-trip time of 1 ms, which is more than
/// data centres have. All of [`MAX_UPSTREAM_REQUESTS`] together are 64 MiB.
pub const UPSTREAM_STREAM_WINDOW: u32 = 128 * 1024;

/// The most of the content of a request that a proxy can be set to receive before an application gets it: uploads of forms and
/// photographs. All together are in [`MAX_BUFFERED_BYTES`].
pub const MAX_BUFFERED_UPLOAD: u64 = 64 << 20;

/// The least time for an answer of an application over HTTP/3 that was not there a short time ago: it may be busy as it starts.
pub const LEAST_UPSTREAM_ANSWER: Duration = Duration::from_millis(500);

/// The least idle timeout of connections over HTTP/3 to applications: a lost packet is sent again several times within it.
pub const LEAST_UPSTREAM_SILENCE: Duration = Duration::from_secs(3);

/// The largest: the idle timeout of other connections.
pub const MOST_UPSTREAM_SILENCE: Duration = Duration::from_secs(30);

/// Connections of HTTP/3 to one address of an application. Many servers allow 100 requests on each, so that
/// [`MAX_UPSTREAM_REQUESTS`] need six; requests beyond their limits wait on the open ones.
pub const MAX_UPSTREAM_HTTP3_CONNECTIONS: usize = 64;

/// The largest window of HTTP/2 (RFC 9113, section 6.9.1).
pub const LARGEST_HTTP2_WINDOW: u32 = (1 << 31) - 1;

/// Requests that wait for a place at one application. Each holds its header, and its connection: 16,384 of 2 KiB take
/// 32 MiB. A network of clients may have half of the free places.
pub const MAX_WAITING_REQUESTS: u64 = 16 * 1024;

/// Idle connections that are kept to one application.
pub const MAX_IDLE_UPSTREAM_CONNECTIONS: usize = 64;

/// The time for which they are kept. Servers of Node.js close theirs after 5 s, those of Python as early; a request
/// that meets the end of its connection may have to fail.
pub const UPSTREAM_KEEP_ALIVE: Duration = Duration::from_secs(4);

/// Bytes of the header of an application's response: as much as that of a request.
pub const MAX_UPSTREAM_HEADER_BYTES: usize = 64 * 1024;

/// The time for which an application gets no requests after it could not be reached: the time of a
/// restart.
pub const UPSTREAM_FAIL_TIME: Duration = Duration::from_secs(10);

/// The time after which the name of an application is resolved again: that of records of services in clusters, as 30 s in
/// Kubernetes.
pub const RESOLVE_INTERVAL: Duration = Duration::from_secs(30);

/// The least time between two resolutions of a name whose addresses cannot be reached.
pub const LEAST_RESOLVE_INTERVAL: Duration = Duration::from_secs(1);

/// Addresses of one name that are used: more than an answer over UDP has.
pub const MAX_UPSTREAM_ADDRESSES: usize = 64;

/// The time between two checks of an application's health.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(5);

/// Retries of a request by a proxy: on two other applications.
pub const RETRIES: usize = 2;

/// The most that can be set: each takes a share of the time that the client waits.
pub const MAX_RETRIES: usize = 10;

/// The share of requests that a proxy sends again after an application got them: applications that fail get a fifth more.
pub const RETRY_BUDGET: f64 = 0.2;

/// Attempts of one request on connections that end before the response.
pub const MAX_ATTEMPTS: usize = 3;

/// Bytes of one part of a tunnel's content that are held for an end that does not read.
pub const TUNNEL_CHUNK_BYTES: usize = 16 * 1024;

/// Bytes of HTTP datagrams that one request holds until its task receives them: about 20 ms at 100 Mbit/s.
pub const MAX_QUEUED_DATAGRAM_BYTES: usize = 256 * 1024;

/// Datagrams that a connection receives before its streams have their turn.
pub const DATAGRAMS_AT_ONCE: usize = 64;

/// Tunnels and requests of a forward proxy at the same time; each takes two descriptors.
pub const MAX_TUNNELS: usize = 1024;

/// Bytes with which a connection of HTTP/2 without TLS begins (RFC 9113, section 3.4).
pub const HTTP2_PREFACE_BYTES: usize = 24;

/// The time in which these have to be complete once they have begun.
pub const PREFACE_TIMEOUT: Duration = Duration::from_secs(5);

/// Parts of content that wait to be written to a file or a pipe: 1 MiB of frames of HTTP/2.
pub const QUEUED_PARTS: usize = 64;

/// Interval at which a client checks whether a process reads the named pipe that it writes to.
pub const PIPE_POLL: Duration = Duration::from_millis(20);

/// Interval at which a client checks whether the settings of a server have arrived, without which it sends no extended CONNECT.
pub const SETTINGS_POLL: Duration = Duration::from_millis(10);

/// The number of checks: the settings follow the handshake, so that a second is ample.
pub const SETTINGS_POLLS: u32 = 100;

/// Connections of a pool to one origin. The policies of papers use five; more than some tens compete with each other.
pub const MAX_PIPES: usize = 64;

/// Origins to which a client has pools at a time. Those of a page are some tens. An unused pool makes room; if all are
/// in use, a further one lasts only for its fetch or page load.
pub const MAX_POOLS: usize = 1024;

/// Samples of a recorded radio signal: one each 100 ms for a day.
pub const MAX_SIGNAL_SAMPLES: usize = 864_000;

/// Bytes of the file of a recorded radio signal.
pub const MAX_SIGNAL_BYTES: u64 = 32 << 20;

/// Bytes of a line of a signal that a program writes: a time, SINR, and further output.
pub const MAX_SIGNAL_LINE: usize = 256;

/// Bytes without the end of a line after which the input of a signal is abandoned: 256 of the longest lines, which a
/// program may print before it has found its radio.
pub const MAX_WITHOUT_LINE: u64 = 256 * MAX_SIGNAL_LINE as u64;

/// The time between two reads of the input of a signal if the first was as large as a read may be: 400 kB/s, so that a program
/// that never waits takes little of a processor.
pub const SIGNAL_PAUSE: Duration = Duration::from_millis(10);

/// The time for which the last sample counts after the input of a signal has ended: a program that writes to a named
/// pipe may open and close it for each.
pub const SIGNAL_HOLD: Duration = Duration::from_secs(10);

/// Samples of a live signal that are kept. Pools catch up on 16 of their intervals.
pub const MAX_LIVE_SAMPLES: usize = 64;

/// The interval at which a radio of this machine is polled: the shortest that ModemManager supports
/// for measurements of a modem.
pub const SIGNAL_POLL: Duration = Duration::from_secs(1);

/// The time limit for its answer, after which it counts as lost.
pub const RADIO_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Messages of an answer of the kernel about its Wi-Fi: a station, or a channel, each.
pub const MAX_NETLINK_MESSAGES: usize = 1024;

/// The shortest content that is compressed, in bytes: what is shorter fits into one packet as it is.
pub const MIN_COMPRESSED_BYTES: u64 = 1024;

/// Bytes that are compressed before other tasks of the thread have their turn: the slowest encoder takes some milliseconds for them.
pub const COMPRESSED_AT_ONCE: usize = 1 << 16;

/// Responses that are compressed at the same time: the state of one takes up to some MiB. Others are sent as they are.
pub const COMPRESSIONS: usize = 64;

/// The places of these that a response takes which is sent as its difference from a dictionary: up to 20 MiB.
pub const COMPRESSIONS_OF_DIFFERENCE: u32 = 8;

/// The longest compressed content that is kept, in bytes: scripts of large applications have about 1 MB.
pub const MAX_COMPRESSED_ENTRY: usize = 2 << 20;

/// The sum of all that is kept, in bytes.
pub const COMPRESSED_CACHE_BYTES: usize = 32 << 20;

/// The longest response that becomes a dictionary of later ones, in bytes: scripts of large applications have some MB, and clients
/// have 8 MiB of a dictionary and the content behind it in reach (RFC 9842, section 5).
pub const MAX_DICTIONARY: usize = 4 << 20;

/// The sum of all dictionaries of a pattern of paths, in bytes.
pub const DICTIONARY_BYTES: usize = 32 << 20;

/// Threads for what may block, as reading files that are not in memory, of all workers of a server together: what tokio
/// allows a runtime.
pub const BLOCKING_THREADS: usize = 512;

/// Threads for what may block that each worker has at least.
pub const MIN_BLOCKING_THREADS: usize = 8;
