//! A tunnel that stays: the device, the routes, and a new connection when one is lost.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use marline::{PathPolicy, PathSource, PathStatus};
use marline_http::client::{Client, ClientConfig, ClientError, HttpVersion, Origin, parse_url};

use super::session::{Ended, OpenError, Session, set_transport};
use crate::caps::{Cap, Caps, CapsError, Used};
use crate::counters::{Counters, SplitBytes};
use crate::device::{self, Tun};
use crate::dns::{Dns, DnsError};
use crate::mode::Mode;
use crate::names::Name;
use crate::names::forwarder::{self, Forwarder, PORT, Upstreams};
use crate::names::routes::{Owner, RouteInputs, Routes};
use crate::networks::{self, Networks, is_mobile};
use crate::programs::ProgramChoice;
use crate::restore::{Found, RestoreError};
use crate::route::Range;
use crate::routing::{Family, Routing};
use crate::selection::Selection;
use crate::split::LocalError;
use crate::split::client::Splitter;

/// The first pause before a connection is tried again; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Destinations of a tunnel: each has two routes, in the file of changes as well.
const MAX_DESTINATIONS: usize = 4096;

/// The settings of a client's tunnel.
#[derive(Clone, Debug)]
pub struct UpConfig {
    /// The server, as `HOST` or `HOST:PORT`.
    pub host: String,
    /// The port of a server without one.
    pub default_port: u16,
    /// The token of the user, unless the certificate of the connections proves who that is.
    pub token: Option<String>,
    /// The name of the network device.
    pub device: String,
    /// The packets that go into the tunnel.
    pub split: Selection,
    /// Whether connections of TCP are carried as streams, where the server offers it.
    pub split_tcp: bool,
    /// The resolvers while the tunnel is up.
    pub dns: DnsChoice,
    /// The use of several networks.
    pub mode: Mode,
    /// The bytes that networks may carry in a month.
    pub caps: Vec<Cap>,
    /// The directory where what these have carried is kept.
    pub state: PathBuf,
    /// The connections. Without [`ClientConfig::paths`], the networks that lead to the server are found, and followed.
    pub http: ClientConfig,
}

/// The choice of resolvers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DnsChoice {
    /// Those that the server announces, for a tunnel of all packets.
    #[default]
    Announced,
    /// These.
    Addresses(Vec<IpAddr>),
    /// Those of before.
    Unchanged,
}

/// An event in the life of a tunnel.
#[derive(Debug)]
pub enum Report<'a> {
    /// Packets pass.
    Up {
        /// The addresses of this host.
        addresses: &'a [IpNet],
        /// The destinations whose packets go into the tunnel.
        destinations: &'a [IpNet],
        /// The programs whose packets go there as well, to all destinations.
        programs: &'a ProgramChoice,
        /// The names to whose addresses packets go there as well.
        names: &'a [Name],
        /// The largest packet.
        mtu: u16,
        /// Whether connections of TCP are carried as streams.
        splits_tcp: bool,
        /// The resolvers that were set.
        resolvers: &'a [IpAddr],
    },
    /// These networks are used from now on.
    Networks(&'a [String]),
    /// The usage of the networks with a cap this month: at the start, when a cap is spent, and when a month begins.
    Used(&'a [Used<'a>]),
    /// The usage of the networks with a cap cannot be written.
    NotKept(&'a CapsError),
    /// Connections of TCP are carried as packets, though the server offers streams.
    NotSplit(&'a LocalError),
    /// The largest packet has changed.
    Mtu(u16),
    /// The connection is lost; packets for the tunnel are dropped until there is another.
    Lost(&'a Ended),
    /// There is no connection, or this host cannot be configured for it; another is tried after the pause.
    Failed {
        /// The reason.
        error: &'a UpError,
        /// The pause.
        pause: Duration,
    },
}

/// Why a tunnel cannot be, or cannot stay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// The host is none.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server has no address.
    #[error("cannot resolve {host}: {cause}")]
    Resolve {
        /// The server.
        host: String,
        /// The reason.
        cause: io::Error,
    },
    /// The networks of this host are not listed.
    #[error("cannot list the networks: {0}")]
    Networks(io::Error),
    /// There is no tunnel.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no device.
    #[error(transparent)]
    Device(#[from] device::OpenError),
    /// The device is not configured.
    #[error("cannot configure the network device {device}: {cause}")]
    Configure {
        /// The device.
        device: String,
        /// The reason.
        cause: io::Error,
    },
    /// The server carries, or the user selects, too many.
    #[error(
        "there are {0} destinations, and at most {MAX_DESTINATIONS} are possible; name larger networks, at the server or with --split"
    )]
    TooManyRoutes(usize),
    /// The routes are not changed.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Queries of this host cannot be answered.
    #[error(
        "cannot answer queries for names at {address}, for --split by name: {cause}; end what answers there, as `ss -lnp sport = 53` \
         shows it"
    )]
    Names {
        /// Where.
        address: IpAddr,
        /// The reason.
        cause: io::Error,
    },
    /// The resolvers are not changed.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// The caps of networks cannot be kept.
    #[error(transparent)]
    Caps(#[from] CapsError),
}

/// Keeps a tunnel open. Dropped, it ends the tunnel and puts the routes back.
///
/// Once packets have passed, nothing but that puts the routes back: without a connection, also for a token that was revoked, packets
/// for the tunnel are dropped.
///
/// # Errors
/// See [`UpError`]: the first connection fails, or the host cannot be configured for it. Later ones are tried again.
pub async fn up(
    config: UpConfig,
    counters: Arc<Counters>,
    report: impl Fn(&Report<'_>),
) -> Result<Infallible, UpError> {
    let mut http = with_datagrams(config.http.clone());
    let origin = origin(&config.host, config.default_port)?;
    let left = Found::of(&config.device)?;
    let left_server = left.and_then(|left| left.server(&config.host));
    match left_server {
        Some(server) => http.network.resolve.extend(pinned(&origin, server)),
        // Nobody answers at the resolver of a client that was killed.
        None => drop(Dns::put_back(&config.device)?),
    }
    let mut caps = Caps::open(&config.caps, &config.state)?;
    if !config.caps.is_empty() {
        report(&Report::Used(&caps.used()));
    }
    let networks = set_paths(&config, &mut http, &caps, &origin, left_server).await?;
    if let Some(networks) = &networks {
        report(&Report::Networks(&networks.names()));
    }
    let client = Client::new(http.clone())?;
    let open = |client: Arc<Client>| {
        let (counters, origin) = (Arc::clone(&counters), origin.clone());
        let token = config.token.as_deref();
        async move { Session::open(client, &origin, token, config.mode, counters).await }
    };
    let mut client = Arc::new(client);
    let mut session = open(Arc::clone(&client)).await?;
    let server = SocketAddr::new(session.server(), origin.port());
    // Later, names may resolve through the tunnel only.
    if let Some(pinned) = pinned(&origin, session.server()) {
        http.network.resolve.clear();
        http.network.resolve.push(pinned);
        client = Arc::new(Client::new(http)?);
    }
    let mut host = Host::new(&config)?;
    host.configure(&session)?;
    let forwarder = host.forwarder.clone();
    let mut splits = Splits {
        is_wanted: config.split_tcp,
        splitter: None,
        bytes: Arc::clone(&counters.split),
    };
    let stays = async {
        loop {
            let destinations = destinations(&config.split, session.ranges());
            let splitter = match session.offers_streams() {
                true => splits.splitter(&host, &report).await,
                false => None,
            };
            report(&Report::Up {
                addresses: session.addresses(),
                destinations: &destinations,
                programs: &config.split.programs,
                names: &config.split.names,
                mtu: session.mtu(),
                splits_tcp: splitter.is_some(),
                resolvers: host.resolvers(),
            });
            let ended = session.run_with(&*host.tun, splitter, |mtu| {
                // Otherwise the device keeps the MTU that it has: what is too large is answered.
                if host.set_mtu(mtu).is_ok() {
                    report(&Report::Mtu(mtu));
                }
            });
            let ended = ended.await;
            report(&Report::Lost(&ended));
            if matches!(ended, Ended::Device(_)) {
                host.is_gone = true;
                splits.splitter = None;
            }
            let again = async {
                let mut pause = FIRST_PAUSE;
                loop {
                    let opened = open(Arc::clone(&client)).await.map_err(UpError::from);
                    let configured = opened.and_then(|session| {
                        host.configure(&session)?;
                        Ok(session)
                    });
                    match configured {
                        Ok(session) => return session,
                        Err(error) => report(&Report::Failed {
                            error: &error,
                            pause,
                        }),
                    }
                    tokio::time::sleep(pause).await;
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
            };
            session = tokio::select! {
                session = again => session,
                never = splits.drain() => match never {},
            };
        }
    };
    let answers = async {
        match forwarder {
            Some(forwarder) => forwarder.run().await,
            None => std::future::pending().await,
        }
    };
    let follows = networks::follow(networks.as_ref(), server, |names| {
        report(&Report::Networks(names));
    });
    let counts = caps.follow(
        |used| report(&Report::Used(used)),
        |error| report(&Report::NotKept(error)),
    );
    tokio::select! {
        never = stays => never,
        never = follows => match never {},
        never = answers => match never {},
        never = counts => match never {},
    }
}

/// Has connections use the networks that lead to the server, unless the settings name others; none if there is none, as to a
/// server on this host, and none has a cap.
///
/// # Errors
/// The server has no address, or a cap does not fit the paths.
async fn set_paths(
    config: &UpConfig,
    http: &mut ClientConfig,
    caps: &Caps,
    origin: &Origin,
    server: Option<IpAddr>,
) -> Result<Option<Networks>, UpError> {
    if let Some(paths) = &mut http.paths {
        let is_saved = |source: &PathSource| match source {
            PathSource::Interface(name) => is_mobile(name),
            _ => false,
        };
        for rule in &mut paths.rules {
            if config.mode == Mode::Save && is_saved(&rule.source) {
                rule.status = PathStatus::Backup;
            }
        }
        caps.apply(&mut paths.rules)?;
        return Ok(None);
    }
    let servers: Vec<_> = match server {
        Some(server) => vec![SocketAddr::new(server, origin.port())],
        None => {
            let found = tokio::net::lookup_host((origin.host(), origin.port())).await;
            let found = found.map_err(|cause| UpError::Resolve {
                host: origin.host().to_owned(),
                cause,
            });
            found?.collect()
        }
    };
    let networks = Networks::new(&config.device, config.mode, caps).map_err(UpError::Networks)?;
    networks.update(&servers);
    if networks.names().is_empty() && config.caps.is_empty() {
        return Ok(None);
    }
    let rules = networks.rules(caps);
    let transport = Arc::make_mut(&mut http.quic.transport);
    let multipath = transport.multipath.get_or_insert_default();
    // One ID for each path, and one for a replacement.
    multipath.max_paths = multipath.max_paths.max(rules.len() as u32 + 1);
    http.migrate = true;
    http.paths = Some(PathPolicy {
        rules,
        ..PathPolicy::default()
    });
    Ok(Some(networks))
}

/// The settings of connections that carry datagrams.
pub(crate) fn with_datagrams(mut http: ClientConfig) -> ClientConfig {
    http.version = HttpVersion::Http3;
    http.fallback = false;
    http.datagrams = true;
    // A tunnel may be silent.
    http.stall_timeout = None;
    set_transport(Arc::make_mut(&mut http.quic.transport));
    http
}

/// The connections of TCP that are carried as streams, through all tunnels.
struct Splits {
    is_wanted: bool,
    splitter: Option<Arc<Splitter>>,
    bytes: Arc<SplitBytes>,
}

impl Splits {
    /// That of the host, unless it does not work here, which is reported once.
    async fn splitter(
        &mut self,
        host: &Host,
        report: &impl Fn(&Report<'_>),
    ) -> Option<Arc<Splitter>> {
        if self.is_wanted && self.splitter.is_none() {
            let families = Family::ALL.into_iter();
            let families = families.filter(|family| host.has_v6 || *family == Family::V4);
            let families: Vec<_> = families.collect();
            let device = Arc::clone(&host.tun);
            match Splitter::open(device, &families, Arc::clone(&self.bytes)).await {
                Ok(splitter) => self.splitter = Some(splitter),
                Err(error) => {
                    self.is_wanted = false;
                    report(&Report::NotSplit(&error));
                }
            }
        }
        self.splitter.clone()
    }

    /// Lets programs know that their connections have ended, while there is no tunnel.
    async fn drain(&self) -> Infallible {
        match &self.splitter {
            Some(splitter) => splitter.drain().await,
            None => std::future::pending().await,
        }
    }
}

/// The origin of `HOST` or `HOST:PORT`.
///
/// # Errors
/// It is none.
pub(crate) fn origin(host: &str, default_port: u16) -> Result<Origin, ClientError> {
    let bare = host.parse::<std::net::Ipv6Addr>();
    let host = bare.map_or_else(|_| host.to_owned(), |address| format!("[{address}]"));
    let parsed = parse_url(&format!("https://{host}/"), HttpVersion::Http3)?;
    let has_port = parsed.uri.port().is_some();
    match has_port {
        true => Ok(parsed.origin),
        false => {
            let url = format!("https://{host}:{default_port}/");
            Ok(parse_url(&url, HttpVersion::Http3)?.origin)
        }
    }
}

/// The address of the server, so that it is not asked for again.
fn pinned(origin: &Origin, server: IpAddr) -> Option<marline_http::client::Resolve> {
    let (host, port) = (origin.host(), origin.port());
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    format!("{host}:{port}:{server}").parse().ok()
}

/// The destinations whose packets go into the tunnel: those that are `wanted`, or what the server carries.
fn destinations(wanted: &Selection, ranges: &[Range]) -> Vec<IpNet> {
    match wanted.is_empty() {
        true => carried(ranges),
        false => wanted.networks.clone(),
    }
}

/// The destinations that the server carries. If that is all packets of a family, those of the other go nowhere else.
fn carried(ranges: &[Range]) -> Vec<IpNet> {
    let all = Family::ALL.map(Family::all);
    let carried: Vec<_> = ranges.iter().flat_map(Range::prefixes).collect();
    match carried.iter().any(|prefix| all.contains(prefix)) {
        true => all.into(),
        false => carried,
    }
}

/// A setting of IPv6 of a device.
fn v6_setting(device: &str, name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{device}/{name}")
}

/// The device of a tunnel, without link-local addresses: nobody on the link would answer.
fn open_device(name: &str, split: &Selection) -> Result<Tun, device::OpenError> {
    let tun = Tun::open(name)?;
    if !split.programs.is_empty() {
        // Packets come to programs from where those of others do not go.
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "2");
    }
    // They fail where there is no IPv6.
    let _ = fs::write(v6_setting(name, "addr_gen_mode"), "1");
    let _ = fs::write(v6_setting(name, "disable_ipv6"), "0");
    Ok(tun)
}

/// The configuration of this host.
struct Host {
    /// Dropped before the device, without which nobody answers queries.
    dns: Option<Dns>,
    tun: Arc<Tun>,
    choice: DnsChoice,
    split: Selection,
    addresses: Vec<IpNet>,
    routes: Arc<Mutex<Routes>>,
    /// Answers queries, if names are selected.
    forwarder: Option<Arc<Forwarder>>,
    has_v6: bool,
    /// Whether somebody has removed the device.
    is_gone: bool,
}

impl Host {
    fn new(config: &UpConfig) -> Result<Self, UpError> {
        let device = &config.device;
        let tun = open_device(device, &config.split)?;
        Dns::put_back(device)?;
        let owner = Owner {
            device: device.clone(),
            host: config.host.clone(),
            programs: config.split.programs.clone(),
            has_names: !config.split.names.is_empty(),
        };
        Ok(Self {
            choice: config.dns.clone(),
            split: config.split.clone(),
            dns: None,
            has_v6: fs::exists(v6_setting(device, "disable_ipv6")).unwrap_or(false),
            tun: Arc::new(tun),
            addresses: Vec::new(),
            routes: Arc::new(Mutex::new(Routes::new(owner))),
            forwarder: None,
            is_gone: false,
        })
    }

    /// Sets addresses, MTU and routes for a session.
    fn configure(&mut self, session: &Session) -> Result<(), UpError> {
        if self.is_gone {
            self.tun = Arc::new(open_device(self.tun.name(), &self.split)?);
            self.addresses.clear();
            self.is_gone = false;
        }
        let index = self.tun.index();
        let is_usable = |net: &&IpNet| self.has_v6 || net.addr().is_ipv4();
        let wanted: Vec<_> = session
            .addresses()
            .iter()
            .filter(is_usable)
            // A prefix would be a route to its addresses, which the server does not choose.
            .map(|assigned| IpNet::from(assigned.addr()))
            .collect();
        let mut destinations = destinations(&self.split, session.ranges());
        destinations.retain(|to| is_usable(&to));
        let failed = |cause| UpError::Configure {
            device: self.tun.name().to_owned(),
            cause,
        };
        let mut of_programs = match self.split.programs.is_empty() {
            true => Vec::new(),
            false => carried(session.ranges()),
        };
        of_programs.retain(|to| is_usable(&to));
        let most = destinations.len().max(of_programs.len());
        if most > MAX_DESTINATIONS {
            return Err(UpError::TooManyRoutes(most));
        }
        let mut routing = Routing::open().map_err(failed)?;
        routing.set_up(index, session.mtu()).map_err(failed)?;
        for old in self.addresses.iter().filter(|old| !wanted.contains(old)) {
            // The kernel may have removed it.
            let _ = routing.remove_address(index, *old);
        }
        for new in wanted.iter().filter(|new| !self.addresses.contains(new)) {
            routing.add_address(index, *new).map_err(failed)?;
        }
        let mut families: Vec<_> = wanted.iter().map(|own| Family::of(own.addr())).collect();
        families.dedup();
        self.addresses = wanted;
        let is_all = Family::ALL.map(Family::all);
        let is_all = destinations.iter().any(|to| is_all.contains(to));
        let has_names = !self.split.names.is_empty();
        let resolvers = match &self.choice {
            DnsChoice::Announced if is_all || has_names => session.resolvers(),
            DnsChoice::Addresses(addresses) => addresses,
            _ => &[],
        };
        let mut resolvers = resolvers.to_vec();
        resolvers.retain(|resolver| families.contains(&Family::of(*resolver)));
        if has_names {
            destinations.extend(resolvers.iter().copied().map(IpNet::from));
            // After the client was killed, nobody else is asked there.
            destinations.push(IpAddr::from(forwarder::ADDRESS).into());
        }
        let mut of_host = Family::ALL.to_vec();
        of_host.retain(|family| self.has_v6 || *family == Family::V4);
        let others = match has_names {
            true => Dns::of_before(self.tun.name()),
            false => Vec::new(),
        };
        let inputs = RouteInputs {
            server: session.server(),
            device: index,
            families,
            destinations,
            of_programs,
            of_host,
            direct: others.iter().map(SocketAddr::ip).collect(),
            has_queries: !resolvers.is_empty() && !has_names,
        };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.set(inputs)?;
        drop(routes);
        if has_names {
            self.forward(&mut routing, &resolvers, others)?;
            resolvers = vec![forwarder::ADDRESS.into()];
        }
        match &mut self.dns {
            Some(dns) if !resolvers.is_empty() => dns.replace(&resolvers)?,
            none if !resolvers.is_empty() => {
                *none = Some(Dns::set(self.tun.name(), &resolvers, &self.split.names)?);
            }
            dns => *dns = None,
        }
        Ok(())
    }

    /// Has queries answered on this host, those about selected names by these resolvers.
    fn forward(
        &mut self,
        routing: &mut Routing,
        resolvers: &[IpAddr],
        others: Vec<SocketAddr>,
    ) -> Result<(), UpError> {
        let address: IpAddr = forwarder::ADDRESS.into();
        let failed = |cause| UpError::Names { address, cause };
        match routing.add_address(self.tun.index(), address.into()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            added => added.map_err(failed)?,
        }
        if self.forwarder.is_none() {
            let opened = Forwarder::open(&self.split.names, &self.routes);
            self.forwarder = Some(opened.map_err(failed)?);
        }
        let announced = resolvers.iter().map(|resolver| (*resolver, PORT).into());
        let selected = match resolvers.is_empty() {
            true => others.clone(),
            false => announced.collect(),
        };
        if let Some(forwarder) = &self.forwarder {
            forwarder.set(Upstreams { selected, others });
        }
        Ok(())
    }

    /// The resolvers that were set.
    fn resolvers(&self) -> &[IpAddr] {
        self.dns.as_ref().map_or(&[], Dns::resolvers)
    }

    fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        Routing::open()?.set_up(self.tun.index(), mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_has_the_default_one() {
        for (text, host, port) in [
            ("example.org", "example.org", 4433),
            ("example.org:443", "example.org", 443),
            ("192.0.2.1", "192.0.2.1", 4433),
            ("2001:db8::1", "2001:db8::1", 4433),
            ("[2001:db8::1]:8443", "2001:db8::1", 8443),
        ] {
            let origin = origin(text, 4433).unwrap();
            assert_eq!((origin.host(), origin.port()), (host, port), "{text}");
            assert!(pinned(&origin, "192.0.2.9".parse().unwrap()).is_some());
        }
        assert!(origin("a b", 4433).is_err());
    }

    #[test]
    fn nothing_passes_beside_a_tunnel_of_all_packets() {
        let ranges = |prefixes: &[&str]| -> Vec<Range> {
            let prefixes = prefixes.iter().map(|text| text.parse().unwrap());
            prefixes.map(|prefix| Range::of(prefix, None)).collect()
        };
        let texts = |wanted: &[&str], carried: &[&str]| -> Vec<String> {
            let wanted = wanted.iter().map(|text| text.parse().unwrap()).collect();
            let destinations = destinations(&wanted, &ranges(carried));
            destinations.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(&[], &["0.0.0.0/0"]), ["0.0.0.0/0", "::/0"]);
        assert_eq!(texts(&[], &["10.0.0.0/8"]), ["10.0.0.0/8"]);
        let all = ["0.0.0.0/0", "::/0"];
        assert_eq!(texts(&["10.1.0.0/16"], &all), ["10.1.0.0/16"]);
        assert_eq!(texts(&["programs"], &all), [""; 0]);
    }
}
