//! The settings of a run, as plain data.

use std::path::Path;
use std::time::Duration;

use marline::settings::is_key;
use marline_link::spec::{Radio, words};
use marline_link::{EcmpHash, LinkSpec};
use serde::{Serialize, Serializer};

use super::{BackendKind, CallDef, ChannelDef, EndpointSettings, TcpFlows, VideoDef};

/// All settings of a run except its seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// The backend.
    #[serde(serialize_with = "backend")]
    pub backend: BackendKind,
    /// The nodes and links.
    pub topology: Topology,
    /// The path on which connections begin, from 1; `None` if there is only one path. If it is set, each link
    /// is a path between client and server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<usize>,
    /// The settings of the client.
    pub client: EndpointSettings,
    /// The settings of the server.
    pub server: EndpointSettings,
    /// The use of connections by HTTP.
    pub http: HttpSettings,
    /// The measured workload.
    pub workload: Workload,
    /// Background traffic.
    pub background: Vec<Background>,
    /// Changes of links during the run, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Hosts whose processor has other work; only the emulator's have processors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stress: Vec<Stress>,
    /// The limit after which a run has failed.
    #[serde(serialize_with = "seconds")]
    pub time_limit: Duration,
}

impl Settings {
    /// Whether connections of the workload may have several paths: both ends have multipath on.
    pub fn is_multipath(&self) -> bool {
        let may = |end: &EndpointSettings| end.transport().multipath.is_some();
        may(&self.client) && may(&self.server)
    }

    /// The client's link on the path on which connections begin, if it has a radio of its own.
    pub(crate) fn radio_link(&self) -> Result<&LinkDef, String> {
        let mut links = self.topology.links.iter();
        let joins = |link: &&LinkDef| link.between.iter().any(|node| node == Topology::CLIENT);
        let place = self.path.map_or(0, |path| path.saturating_sub(1));
        let link = links.by_ref().filter(joins).nth(place);
        let link = link.ok_or("the client has no such link")?;
        let name = &link.name;
        if link.channel.is_some() {
            return Err(format!(
                "link {name} is of a channel, whose radios state no SINR; write samples, as \"0 25; 60 8\""
            ));
        }
        let spec: LinkSpec = link
            .spec
            .parse()
            .map_err(|why| format!("link {name}: {why}"))?;
        match spec.radio {
            Radio::None => Err(format!(
                "the client's link {name} has no radio; add model=lte or model=wifi to it, or write samples, as \"0 25; 60 8\""
            )),
            Radio::Lte(_) | Radio::Wifi(_) => Ok(link),
        }
    }

    /// Resolves the relative paths of traces, pages and files against `directory`.
    pub(super) fn find_files_from(&mut self, directory: &Path) {
        self.rename_files(|path| directory.join(path).to_string_lossy().into_owned());
    }

    /// These with the files in `directory` named from there, wherever that is.
    pub(crate) fn named_from(&self, directory: &Path) -> Self {
        let mut named = self.clone();
        named.rename_files(|path| match Path::new(path).strip_prefix(directory) {
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => path.to_owned(),
        });
        named
    }

    fn rename_files(&mut self, found: impl Fn(&str) -> String) {
        let changed = self.changes.iter_mut().flat_map(|change| &mut change.links);
        for link in self.topology.links.iter_mut().chain(changed) {
            let parts = words(&link.spec).into_iter();
            let parts = parts.map(|part| match part.split_once('=') {
                Some((key, path))
                    if ["trace", "delay-trace"].iter().any(|name| names(key, name))
                        && path.trim() != "none" =>
                {
                    format!("{key}={}", found(path.trim()))
                }
                Some((key, law)) if names(key, "jitter-law") => match law.trim().split_once(':') {
                    Some(("table", path)) => format!("{key}=table:{}", found(path)),
                    _ => part.to_owned(),
                },
                _ => part.to_owned(),
            });
            link.spec = parts.collect::<Vec<_>>().join(",");
        }
        match &mut self.workload {
            Workload::Page { page, .. } | Workload::Devices { page, .. }
                if page.ends_with(".json") =>
            {
                *page = found(page);
            }
            Workload::Files { directory, .. } => *directory = found(directory),
            _ => {}
        }
    }

    /// Lets each run begin at a random place of the traces of its links, unless the links say where: repeats over a trace from
    /// its first line would be one measurement.
    pub(super) fn begin_traces_at_random(&mut self) {
        let changed = self.changes.iter_mut().flat_map(|change| &mut change.links);
        for link in self.topology.links.iter_mut().chain(changed) {
            let keys = words(&link.spec).into_iter();
            let mut keys = keys.filter_map(|word| word.split_once('='));
            let says_where = keys.any(|(key, _)| names(key, "trace-start"));
            let spec = link.spec.parse::<LinkSpec>();
            let Some(spec) = spec.ok().filter(|_| !says_where && link.channel.is_none()) else {
                continue;
            };
            for (way, direction) in [("up", &spec.up), ("down", &spec.down)] {
                let has_trace = direction.trace.is_some() || direction.delay_trace.is_some();
                if has_trace && !direction.once {
                    link.spec.push_str(&format!(",{way}.trace-start=random"));
                }
            }
        }
    }

    /// Sets the backend, and with it the implementation of background TCP flows.
    pub fn run_in(&mut self, backend: BackendKind) {
        self.backend = backend;
        for background in &mut self.background {
            if let Traffic::Tcp(flows) = &mut background.traffic {
                flows.run_by = backend.into();
            }
        }
    }
}

/// Whether `written` is the key of a link with this name, for one direction or for both.
fn names(written: &str, name: &str) -> bool {
    let written = written.trim();
    let key = written
        .strip_prefix("up.")
        .or(written.strip_prefix("down."));
    is_key(key.unwrap_or(written), name)
}

/// Hosts, routers and the links between them.
///
/// The workload runs between the hosts [`CLIENT`](Self::CLIENT) and [`SERVER`](Self::SERVER).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Names of the nodes that send and receive.
    pub hosts: Vec<String>,
    /// Names of the nodes that forward.
    pub routers: Vec<String>,
    /// The links, each with a name of its own.
    pub links: Vec<LinkDef>,
    /// The Wi-Fi channels that links share.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelDef>,
    /// The routers' choice among routes of equal length.
    pub ecmp: Ecmp,
}

impl Topology {
    /// The name of the host that sends requests.
    pub const CLIENT: &'static str = "client";
    /// The name of the host that answers them.
    pub const SERVER: &'static str = "server";

    /// Makes a change. Returns whether it changes the channel `name`, or a link of it.
    pub(crate) fn change(&mut self, change: &Change, name: &str) -> bool {
        let mut changes = false;
        for link in &change.links {
            if let Some(own) = self.links.iter_mut().find(|own| own.name == link.name) {
                changes |= own.channel.as_deref() == Some(name);
                own.clone_from(link);
            }
        }
        for channel in &change.channels {
            if let Some(own) = self
                .channels
                .iter_mut()
                .find(|own| own.name == channel.name)
            {
                changes |= own.name == name;
                own.clone_from(channel);
            }
        }
        changes
    }
}

/// A link, and the nodes that it joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkDef {
    /// Its name in reports.
    pub name: String,
    /// The nodes it joins: the first is its near end, towards the client, the others its far end.
    /// More than two share one medium.
    pub between: Vec<String>,
    /// Its description: a preset and settings, as in `lte-a, loss=1%`; of a link of a channel, what differs
    /// from the channel.
    pub spec: String,
    /// The name of the channel that carries it; `None` if it is a medium of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// A change of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// When the links change.
    pub when: When,
    /// The links from then on.
    pub links: Vec<LinkDef>,
    /// The channels from then on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelDef>,
}

/// A host whose endpoints and programs run on one processor, and the other load of this processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stress {
    /// The name of the host.
    pub host: String,
    /// Threads that compute without end; with 0 the processor has no other work.
    pub threads: usize,
}

/// When links change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// This long after the start of the run.
    #[serde(serialize_with = "seconds")]
    At(Duration),
    /// Before the pause that precedes the visits of this number, from 1.
    BeforeVisit(usize),
}

/// A router's choice among routes of equal length, from addresses, ports and protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecmp {
    /// By a hash that mixes all bits.
    #[default]
    Mixed,
    /// By their exclusive or, modulo the number of routes.
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

/// The use of connections by HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpSettings {
    /// The client that loads pages.
    #[serde(skip_serializing_if = "HttpClient::is_own")]
    pub client: HttpClient,
    /// A command that serves the objects as files, instead of marline's server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether a browser uses marline's gateway on its own host, without encryption, instead of the server: the following
    /// settings are then those of the gateway's client.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
    /// The version of HTTP, and its transport.
    pub version: HttpVersion,
    /// Connections to a host, at least 1; 0 is allowed for a measurement of background flows alone.
    pub connections: usize,
    /// Objects of more than this many bytes are fetched in ranges over all connections; of a page, the
    /// objects in which others are found, in ranges of at least this many bytes. `None` disables ranges.
    pub split: Option<u64>,
    /// The splitting of such an object into ranges.
    pub ranges: RangeKind,
    /// Whether all objects that are not split go over the first connection.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole_on_first: bool,
    /// Whether the client declares that its connections to a host are one bundle, so that the server may
    /// coordinate them.
    pub bundle: bool,
    /// Whether each of the client's QUIC connections has a socket of its own, and so a port by which a router may choose another
    /// route for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_sockets: bool,
    /// The policy of the client's pipes, as `cba(combine=min)`; with it, `connections` and `split` are not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipes: Option<String>,
    /// The radio signal at the client, for its pipes: times in seconds from the start of the run and SINR in dB, as `0 25; 10 3`;
    /// or `link`, that of the client's link, which must have a radio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinr: Option<String>,
    /// The time to resolve the name of a host of a page.
    #[serde(serialize_with = "seconds", skip_serializing_if = "Duration::is_zero")]
    pub name_resolution: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            client: HttpClient::default(),
            server: None,
            gateway: false,
            version: HttpVersion::Http3,
            connections: 1,
            split: None,
            ranges: RangeKind::default(),
            whole_on_first: false,
            bundle: false,
            own_sockets: false,
            pipes: None,
            sinr: None,
            name_resolution: Duration::ZERO,
        }
    }
}

/// A client of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpClient {
    /// marline's client, with its page loader.
    #[default]
    Marline,
    /// The browser Chromium, with a new profile for each load. It opens connections by its own policy; of [`HttpSettings`] it
    /// uses only the version; with [`HttpSettings::gateway`], the gateway uses the others.
    Chromium,
}

impl HttpClient {
    /// Every client, with its name in scenarios.
    pub const NAMES: [(&'static str, Self); 2] =
        [("marline", Self::Marline), ("chromium", Self::Chromium)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_own(&self) -> bool {
        *self == Self::Marline
    }
}

/// The splitting into ranges of an object fetched over several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeKind {
    /// Equal if the server coordinates the connections, otherwise handed.
    #[default]
    Auto,
    /// One range for each connection, all of the same length.
    Equal,
    /// Equal at first; connections that finish early take over a part of other ranges.
    Handed,
}

/// The version of HTTP, and its transport.
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
    /// HTTP/2 over two TCP connections, to which requests are assigned alternately.
    #[serde(rename = "2-parallel")]
    Http2Parallel,
    /// HTTP/2 over one connection of Multipath TCP with two subflows.
    #[serde(rename = "2-mptcp")]
    Http2Multipath,
    /// HTTP/3.
    #[default]
    #[serde(rename = "3")]
    Http3,
}

impl HttpVersion {
    /// Every version, with its name in scenarios.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("1.1", Self::Http11),
        ("1.1c", Self::Http11Cleartext),
        ("2", Self::Http2),
        ("2-parallel", Self::Http2Parallel),
        ("2-mptcp", Self::Http2Multipath),
        ("3", Self::Http3),
    ];

    /// Default number of connections to a host: as many as browsers open, and two to alternate between.
    pub(super) fn connections(self) -> usize {
        match self {
            Self::Http11 | Self::Http11Cleartext => 6,
            Self::Http2Parallel => 2,
            Self::Http2 | Self::Http2Multipath | Self::Http3 => 1,
        }
    }

    /// Whether it runs over TCP.
    pub fn is_over_tcp(self) -> bool {
        self != Self::Http3
    }
}

/// The measured workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// The client fetches objects.
    Objects {
        /// Their sizes, in bytes.
        objects: Vec<u64>,
        /// When each is requested.
        order: Order,
        /// Whether the connections are open before the clock starts.
        warm: bool,
    },
    /// The client plays an adaptive video, which it fetches segment by segment.
    Video {
        /// The video and the player.
        video: VideoDef,
    },
    /// A real-time call over one connection, without HTTP.
    Call {
        /// The call.
        call: CallDef,
    },
    /// The client fetches the files of a directory, all at once, and compares them with the originals.
    Files {
        /// The directory with its subdirectories, without hidden files and the results of experiments.
        directory: String,
        /// Whether the connections are open before the clock starts.
        warm: bool,
    },
    /// The client requests streams with priorities over one connection, each at its start, and the server
    /// sends them. Times of single streams count from their start.
    Streams {
        /// The streams.
        streams: Vec<StreamDef>,
        /// Whether they are requested in an order that is random in each repeat; otherwise in their own.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        shuffled: bool,
        /// Whether the connection is open before the clock starts.
        warm: bool,
    },
    /// The client loads a page as a browser does.
    Page {
        /// The name of a page, or of a file that describes one.
        page: String,
        /// The seed of the sizes and dependencies of a named page.
        seed: u64,
        /// Whether its objects have content in which a browser finds the others. An object that is too small for it grows, and
        /// the largest one shrinks by as much.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        readable: bool,
        /// The number of loads, one after another, by one client, which keeps its pipes. The last load is measured; the time of
        /// each load and its open pipes at the end are also metrics.
        #[serde(skip_serializing_if = "is_one")]
        loads: u32,
        /// The pause between two loads.
        #[serde(serialize_with = "seconds", skip_serializing_if = "Duration::is_zero")]
        pause: Duration,
        /// The delay from the start of the run to the first load.
        #[serde(serialize_with = "seconds", skip_serializing_if = "Duration::is_zero")]
        start: Duration,
        /// The time for which the senders' congestion windows are measured, if any.
        #[serde(
            serialize_with = "optional_seconds",
            skip_serializing_if = "Option::is_none"
        )]
        windows: Option<Duration>,
    },
    /// Several devices load the same page, each once and with connections and pipes of its own. All are on the client's host. The
    /// throughput of each while all are active is measured.
    Devices {
        /// The name of the page, or of a file that describes one.
        page: String,
        /// The seed of the sizes and dependencies of a named page.
        seed: u64,
        /// The number of devices, at least two.
        count: usize,
        /// The delay between the starts of two devices.
        #[serde(serialize_with = "seconds")]
        apart: Duration,
    },
    /// The server sends without end over each of [`HttpSettings::connections`], without HTTP;
    /// [`HttpSettings::bundle`] applies. The throughput of the connections and of background flows is
    /// measured. Times count from the start of the run.
    Measure {
        /// The start of the measurement.
        #[serde(serialize_with = "seconds")]
        after: Duration,
        /// The end of the measurement and of the run.
        #[serde(serialize_with = "seconds")]
        until: Duration,
        /// The direction of the bytes of the workload's connections.
        #[serde(skip_serializing_if = "is_down")]
        direction: Direction,
    },
    /// The client fetches bytes repeatedly, each time over a new connection and one stream, without HTTP. The
    /// last visit is measured; those before it provide history.
    Visits {
        /// The visits, one after another.
        visits: Vec<Visit>,
        /// The time for which background flows are observed after the last visit.
        #[serde(serialize_with = "seconds")]
        afterwards: Duration,
    },
    /// One end sends bytes over one stream, without HTTP.
    Transfer {
        /// The number of bytes.
        bytes: u64,
        /// The direction.
        direction: Direction,
        /// Whether the connection is open before the clock starts.
        warm: bool,
        /// Whether packets are recorded at both ends, for [`features`](crate::features) and for the sender's spurious detections
        /// of losses and of a full queue.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        features: bool,
    },
}

/// Equal visits, one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Visit {
    /// Bytes to fetch.
    pub size: u64,
    /// The number of visits, each over a new connection.
    pub times: u32,
    /// The pause before each visit.
    #[serde(serialize_with = "seconds")]
    pub pause: Duration,
    /// Whether its connection stays open until the last visit is over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Whether it is requested in 0-RTT data, if a session with the server is known from an earlier visit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub early: bool,
}

/// When objects are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All at the start.
    #[default]
    AtOnce,
    /// Each when the previous one has arrived.
    InSequence,
}

/// A stream, with its priority among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamDef {
    /// Its ID in this list.
    pub id: u64,
    /// Bytes.
    pub size: u64,
    /// The stream on which it depends, for schedulers that use dependencies. With `None`, or if that stream
    /// has not begun, it depends on the root.
    pub parent: Option<u64>,
    /// Its weight among streams of one parent, 1 to 256, for the same schedulers; by default derived from its
    /// urgency ([`Priority`](marline::Priority)).
    pub weight: u16,
    /// Its urgency, 0 first and 7 last (RFC 9218).
    pub urgency: u8,
    /// Whether it is incremental (RFC 9218).
    pub incremental: bool,
    /// The stream after whose end it begins; with `None`, it begins with the clock.
    pub after: Option<u64>,
    /// The delay after that.
    #[serde(serialize_with = "seconds")]
    pub start: Duration,
    /// The group of streams to whose metrics it contributes.
    pub group: Option<String>,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the client of the flow.
    #[default]
    Down,
    /// From the client of the flow.
    Up,
}

/// Background traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Background {
    /// The host that opens the flows, or sends the packets.
    pub from: String,
    /// The other host.
    pub to: String,
    /// When it begins, from the start of the run.
    #[serde(serialize_with = "seconds")]
    pub start: Duration,
    /// The kind of traffic.
    pub traffic: Traffic,
    /// Whether its goodput is a metric of the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub measured: bool,
}

/// The kinds of background traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// QUIC connections that always have data to send.
    Flows {
        /// The number of connections.
        count: usize,
        /// The settings of both ends.
        ends: Box<EndpointSettings>,
        /// The direction of their bytes; `Down` is to [`Background::from`].
        direction: Direction,
        /// Each begins at a random time within this span after [`Background::start`].
        #[serde(serialize_with = "seconds")]
        spread: Duration,
    },
    /// TCP connections that always have data to send.
    Tcp(TcpFlows),
    /// Packets at a constant rate, with pauses.
    OnOff {
        /// Bits per second while on.
        rate: u64,
        /// The length of an on period; unlimited if `off` is zero.
        #[serde(serialize_with = "seconds")]
        on: Duration,
        /// The length of an off period.
        #[serde(serialize_with = "seconds")]
        off: Duration,
        /// Bytes of payload in a packet.
        size: u16,
    },
    /// Packets with exponentially distributed gaps.
    Poisson {
        /// Mean bits per second.
        rate: u64,
        /// Bytes of payload in a packet.
        size: u16,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_down(direction: &Direction) -> bool {
    *direction == Direction::Down
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Seconds, as in results.
pub(super) fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}

/// Optional seconds, as in results.
#[expect(clippy::ref_option, reason = "serde's signature")]
fn optional_seconds<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(to)
}

/// The name of a backend.
fn backend<S: Serializer>(backend: &BackendKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(backend.name())
}
