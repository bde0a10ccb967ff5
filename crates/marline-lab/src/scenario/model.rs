//! What happens in one run, as plain data.

use std::time::Duration;

use marline_link::EcmpHash;
use serde::{Serialize, Serializer};

use super::{BackendKind, EndpointSettings, TcpFlows};

/// Everything that one run needs to know but its seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Where it runs.
    #[serde(serialize_with = "backend")]
    pub backend: BackendKind,
    /// Who is joined to whom.
    pub topology: Topology,
    /// On which of the paths between client and server connections begin, from 1; `None` if one way is all
    /// there is. Each link is a path then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<usize>,
    /// How the end that asks behaves.
    pub client: EndpointSettings,
    /// How the end that answers behaves.
    pub server: EndpointSettings,
    /// How HTTP uses connections.
    pub http: HttpSettings,
    /// What is measured.
    pub workload: Workload,
    /// What else is on the links.
    pub background: Vec<Background>,
    /// How the links change meanwhile, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// A run that takes longer has failed.
    #[serde(serialize_with = "seconds")]
    pub time_limit: Duration,
}

impl Settings {
    /// Whether connections of the workload may have several paths: both ends want it.
    pub fn is_multipath(&self) -> bool {
        let may = |end: &EndpointSettings| end.transport().multipath.is_some();
        may(&self.client) && may(&self.server)
    }

    /// Runs in `backend`, which decides who runs TCP in the background.
    pub fn run_in(&mut self, backend: BackendKind) {
        self.backend = backend;
        for background in &mut self.background {
            if let Traffic::Tcp(flows) = &mut background.traffic {
                flows.run_by = backend.into();
            }
        }
    }
}

/// Hosts, routers and the links among them.
///
/// Two hosts have a part to play: the workload goes on between [`CLIENT`](Self::CLIENT) and
/// [`SERVER`](Self::SERVER).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Names of the nodes that send and receive.
    pub hosts: Vec<String>,
    /// Names of the nodes that forward.
    pub routers: Vec<String>,
    /// The links, each with a name of its own.
    pub links: Vec<LinkDef>,
    /// How a router chooses among ways of equal length.
    pub ecmp: Ecmp,
}

impl Topology {
    /// The name of the host that asks.
    pub const CLIENT: &'static str = "client";
    /// The name of the host that answers.
    pub const SERVER: &'static str = "server";
}

/// A link, and whom it joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkDef {
    /// What reports call it.
    pub name: String,
    /// The nodes it joins: the first is its near end, towards the client, the others its far end.
    /// More than two share one medium.
    pub between: Vec<String>,
    /// What it is: a preset and settings, as in `lte-a, loss=1%`.
    pub spec: String,
}

/// Links become others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// When.
    pub when: When,
    /// The links as they are from then on.
    pub links: Vec<LinkDef>,
}

/// When links change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// So long after the start of the run.
    #[serde(serialize_with = "seconds")]
    At(Duration),
    /// When the client is about to pause before the visits of this number, from 1.
    BeforeVisit(usize),
}

/// How a router chooses among ways of equal length, from addresses, ports and protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecmp {
    /// By a hash that mixes all bits.
    #[default]
    Mixed,
    /// By their exclusive or, modulo the number of ways.
    Xor,
}

impl From<Ecmp> for EcmpHash {
    fn from(ecmp: Ecmp) -> Self {
        match ecmp {
            Ecmp::Mixed => Self::Mixed,
            Ecmp::Xor => Self::Xor,
        }
    }
}

/// How HTTP uses connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpSettings {
    /// The version of HTTP, and over what.
    pub version: HttpVersion,
    /// Connections to a host, at least 1.
    pub connections: usize,
    /// Objects of more than this many bytes are fetched in ranges over all connections; of a page, those in
    /// which others are found, in ranges of no fewer bytes than this. `None` is never.
    pub split: Option<u64>,
    /// How such an object is cut.
    pub ranges: RangeKind,
    /// Whether the client says that its connections to a host belong together, so that the server may
    /// coordinate them.
    pub bundle: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            version: HttpVersion::Http3,
            connections: 1,
            split: None,
            ranges: RangeKind::default(),
            bundle: false,
        }
    }
}

/// How an object that is fetched over several connections is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeKind {
    /// Equal if the server coordinates the connections, handed if it does not.
    #[default]
    Auto,
    /// One range for each connection, all of one length.
    Equal,
    /// The same at first, but handed on, in part, to connections that are done early.
    Handed,
}

/// The version of HTTP, and over what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum HttpVersion {
    /// HTTP/1.1 over TLS.
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/1.1 over TCP in the clear.
    #[serde(rename = "1.1c")]
    Http11Cleartext,
    /// HTTP/2 over one TCP connection.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/2 over two TCP connections that share the requests in turn.
    #[serde(rename = "2-parallel")]
    Http2Parallel,
    /// HTTP/3.
    #[default]
    #[serde(rename = "3")]
    Http3,
}

impl HttpVersion {
    /// Every version, with the name it has in scenarios.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("1.1", Self::Http11),
        ("1.1c", Self::Http11Cleartext),
        ("2", Self::Http2),
        ("2-parallel", Self::Http2Parallel),
        ("3", Self::Http3),
    ];
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// The client fetches objects.
    Objects {
        /// Their sizes, in bytes.
        objects: Vec<u64>,
        /// When each is asked for.
        order: Order,
        /// Whether the connections are open before the clock starts.
        warm: bool,
    },
    /// The client fetches the files of a directory, all at once, and compares what arrives with what was
    /// there.
    Files {
        /// The directory; those below it belong to it, and hidden files do not.
        directory: String,
        /// Whether the connections are open before the clock starts.
        warm: bool,
    },
    /// The client asks for streams with priorities over one connection, each when it begins, and the server
    /// sends them. Times of single streams count from there.
    Streams {
        /// The streams.
        streams: Vec<StreamDef>,
        /// Whether the connection is open before the clock starts.
        warm: bool,
    },
    /// The client loads a page as a browser does.
    Page {
        /// The name of a page, or of a file that describes one.
        page: String,
        /// What sizes and dependencies of a named page are drawn from.
        seed: u64,
    },
    /// The server sends without end over each of [`HttpSettings::connections`], which belong together as
    /// [`HttpSettings::bundle`] says, but without HTTP. Throughput is measured, that of flows in the
    /// background as well. Times count from the start of the run.
    Measure {
        /// From when on.
        #[serde(serialize_with = "seconds")]
        after: Duration,
        /// Until when, which is the end of the run.
        #[serde(serialize_with = "seconds")]
        until: Duration,
    },
    /// The client comes back again and again, each time over a new connection, for bytes that the server
    /// sends over one stream, without HTTP. The last time counts; those before are there to be learnt from.
    Visits {
        /// What is fetched, one after another.
        visits: Vec<Visit>,
        /// How long flows in the background are watched when the last is over.
        #[serde(serialize_with = "seconds")]
        afterwards: Duration,
    },
    /// One end sends so many bytes over one stream, without HTTP.
    Transfer {
        /// How many.
        bytes: u64,
        /// Which way.
        direction: Direction,
        /// Whether the connection is open before the clock starts.
        warm: bool,
    },
}

/// Equal visits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Visit {
    /// Bytes to be fetched.
    pub size: u64,
    /// How often, each over a connection of its own.
    pub times: u32,
    /// How long the client pauses before each.
    #[serde(serialize_with = "seconds")]
    pub pause: Duration,
}

/// When objects are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All at the start.
    #[default]
    AtOnce,
    /// Each when the one before has arrived.
    InSequence,
}

/// A stream with its place among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamDef {
    /// Its name in this list.
    pub id: u64,
    /// Bytes.
    pub size: u64,
    /// The stream on which it depends, for schedulers that know of that; `None`, and one that has not begun,
    /// is the root.
    pub parent: Option<u64>,
    /// Its share among streams of one parent, 1 to 256, for the same; what its urgency stands for
    /// ([`Priority`](marline::Priority)), unless a scenario says otherwise.
    pub weight: u16,
    /// Its urgency, 0 first and 7 last (RFC 9218).
    pub urgency: u8,
    /// Whether it shares with others of its urgency (RFC 9218).
    pub incremental: bool,
    /// It begins when this one has arrived; `None` is when the clock starts.
    pub after: Option<u64>,
    /// How much later it begins.
    #[serde(serialize_with = "seconds")]
    pub start: Duration,
    /// Streams of one group have metrics of their own.
    pub group: Option<String>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the one who asked.
    #[default]
    Down,
    /// From the one who asked.
    Up,
}

/// Traffic beside the workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Background {
    /// The host that opens the flows, or sends the packets.
    pub from: String,
    /// The other one.
    pub to: String,
    /// When it begins, from the start of the run.
    #[serde(serialize_with = "seconds")]
    pub start: Duration,
    /// What it is.
    pub traffic: Traffic,
}

/// What background traffic is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// Connections that always have something to send.
    Flows {
        /// How many.
        count: usize,
        /// How both of their ends behave.
        ends: Box<EndpointSettings>,
        /// Which way their bytes go; `Down` is to [`Background::from`].
        direction: Direction,
        /// Each begins within this time after [`Background::start`], at random.
        #[serde(serialize_with = "seconds")]
        spread: Duration,
    },
    /// Connections of TCP that always have something to send.
    Tcp(TcpFlows),
    /// Packets at a constant rate, with pauses.
    OnOff {
        /// Bits per second while on.
        rate: u64,
        /// How long it is on at a time; for ever if `off` is zero.
        #[serde(serialize_with = "seconds")]
        on: Duration,
        /// How long it pauses.
        #[serde(serialize_with = "seconds")]
        off: Duration,
        /// Bytes of payload in a packet.
        size: u16,
    },
    /// Packets with exponential gaps.
    Poisson {
        /// Bits per second in the long run.
        rate: u64,
        /// Bytes of payload in a packet.
        size: u16,
    },
}

/// Seconds, as results have them.
pub(super) fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}

/// The name of a backend.
fn backend<S: Serializer>(backend: &BackendKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(backend.name())
}
