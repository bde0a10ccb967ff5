//! The tunnels of a server, which `tunnel serve` and `serve` have in common.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use marline_http::HostPattern;
use marline_http::server::{ClientCertificates, ClientRules};
use marline_tunnel::dns::MAX_RESOLVERS;
use marline_tunnel::gateway::{Gateway, GatewayConfig};
use marline_tunnel::ipnet::IpNet;
use marline_tunnel::packet::MIN_MTU;
use marline_tunnel::pool::Pool;
use marline_tunnel::server::{ServerConfig, Tunnels};
use marline_tunnel::tokens::Tokens;

use crate::config_file::{FlagsFile, WrittenTable, choice, flag_keys};
use crate::failure::Failure;

/// The network device of a server.
const DEVICE: &str = "marline-tunnel";

/// The prefixes of addresses without --pool: of 10.0.0.0/8 one that few networks have, and a unique local one of IPv6.
const POOL: [&str; 2] = ["10.77.0.0/24", "fd77:6d61:726c::/64"];

/// Tunnels of a user without --per-user.
const PER_USER: u16 = 8;

/// The largest packet without --mtu: what most paths carry in a datagram.
const MTU: u16 = 1400;

/// The key of the names in a table `[tunnel]`.
const NAMES: &str = "names";

/// The key of a table `[tunnel]` for users with a certificate.
const CERTIFICATES: &str = "client_certificates";

/// How connections of TCP are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tcp {
    Streams,
    Packets,
}

/// The settings of the tunnels of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct TunnelFlags {
    /// The file of users, to which `tunnel token` appends
    #[arg(long, value_name = "FILE", required_unless_present_any = ["config", "client_ca"])]
    tokens: Option<PathBuf>,

    /// The prefix of clients' addresses, one of IPv4, one of IPv6, or both [default: 10.77.0.0/24 and fd77:6d61:726c::/64]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = network)]
    pool: Vec<IpNet>,

    /// Give packets of clients the address of this machine, with nftables
    #[arg(long)]
    nat: bool,

    /// Carry TCP as streams or packets [default: streams, where the server has --nat or this flag]
    #[arg(long, value_name = "HOW")]
    tcp: Option<Tcp>,

    /// Give clients sockets of UDP (CONNECT-UDP), which have the address of this machine, as --nat does
    #[arg(long)]
    udp: bool,

    /// Announce the address of a resolver to clients; repeatable, at most three
    #[arg(long, value_name = "ADDR")]
    dns: Vec<IpAddr>,

    /// Let clients reach these addresses only; repeatable [default: all]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = network)]
    allow: Vec<IpNet>,

    /// Tunnels of one user at a time [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    per_user: Option<u16>,

    /// The largest packet to clients, in bytes [default: 1400]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,

    /// The name of the network device
    ///
    /// By default marline0, of a server marline-tunnel.
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    device: Option<String>,
}

/// A setting that cannot be used.
#[derive(Debug)]
struct Invalid {
    key: &'static str,
    why: String,
}

impl From<Invalid> for Failure {
    fn from(Invalid { key, why }: Invalid) -> Self {
        Self::Usage(format!("--{}: {why}", key.replace('_', "-")))
    }
}

/// A name that Linux allows for a network device.
pub(crate) fn device_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = !text.is_empty() && text.len() < 16 && text.chars().all(is_allowed);
    match is_name && text != "." && text != ".." {
        true => Ok(text.to_owned()),
        false => Err("write 1 to 15 letters, digits, or - _ .".to_owned()),
    }
}

/// Parses an address or a prefix.
fn network(text: &str) -> Result<IpNet, String> {
    let network: marline_http::Network = text
        .parse()
        .map_err(|error: marline_http::InvalidNetwork| error.to_string())?;
    network
        .to_string()
        .parse()
        .map_err(|_| "not a network".to_owned())
}

impl TunnelFlags {
    /// Takes over from a file what the flags leave open.
    pub(crate) fn read(&mut self, file: &FlagsFile) -> Result<(), Failure> {
        file.file("tokens", &mut self.tokens)?;
        file.several("pool", &mut self.pool, network)?;
        file.switch("nat", &mut self.nat)?;
        file.one("tcp", &mut self.tcp, choice)?;
        file.switch("udp", &mut self.udp)?;
        file.several("dns", &mut self.dns, str::parse)?;
        file.several("allow", &mut self.allow, network)?;
        file.number("per_user", &mut self.per_user, 1)?;
        file.number("mtu", &mut self.mtu, MIN_MTU)?;
        file.one("device", &mut self.device, device_name)
    }

    /// Makes its paths relative to `base`.
    fn resolve(&mut self, base: &Path) {
        self.tokens = self.tokens.take().map(|path| base.join(path));
    }

    fn check(&self, has_certificates: bool) -> Result<Arc<Pool>, Invalid> {
        if self.tokens.is_none() && !has_certificates {
            let why = "the file of users is missing; name it".to_owned();
            return Err(Invalid { key: "tokens", why });
        }
        if self.dns.len() > MAX_RESOLVERS {
            let why = format!("give at most {MAX_RESOLVERS} addresses, which is what hosts use");
            return Err(Invalid { key: "dns", why });
        }
        let default = POOL.iter().filter_map(|text| text.parse().ok());
        let prefixes: Vec<IpNet> = match self.pool.is_empty() {
            true => default.collect(),
            false => self.pool.clone(),
        };
        let pool = Pool::new(&prefixes, self.per_user.unwrap_or(PER_USER).into());
        pool.map_err(|error| Invalid {
            key: "pool",
            why: error.to_string(),
        })
    }

    /// Reads the users with a token, of whom none may be left, and adds those with a certificate.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(crate) fn users(&self, certificates: Vec<ClientCertificates>) -> Result<Tokens, Failure> {
        let tokens = self.tokens.as_deref().map(Tokens::read).transpose();
        let tokens = tokens.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(tokens.unwrap_or_default().with_certificates(certificates))
    }

    /// Reads the users of a server that starts.
    ///
    /// # Errors
    /// The file cannot be used, or there would be no user.
    pub(crate) fn some_users(
        &self,
        certificates: Vec<ClientCertificates>,
    ) -> Result<Tokens, Failure> {
        if let (Some(path), true) = (&self.tokens, certificates.is_empty()) {
            return Tokens::read_some(path).map_err(|error| Failure::Failed(error.to_string()));
        }
        self.users(certificates)
    }

    /// Whether a running server has all settings of `other` but for its users.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let fixed = |flags: &Self| Self {
            tokens: None,
            ..flags.clone()
        };
        fixed(self) == fixed(other)
    }

    fn destinations(&self) -> Vec<IpNet> {
        match self.allow.is_empty() {
            true => [IpNet::V4(Default::default()), IpNet::V6(Default::default())].into(),
            false => self.allow.clone(),
        }
    }
}

/// The table `[tunnel]` of a server of sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TunnelTable {
    pub(crate) flags: TunnelFlags,
    /// The names of the server by which clients ask for tunnels; without any, all.
    pub(crate) names: Vec<HostPattern>,
    /// Whether users can be those with a certificate that the sites of these names ask for.
    has_certificates: bool,
}

impl TunnelTable {
    /// Reads what is `written`; relative paths start at `base`.
    ///
    /// # Errors
    /// A key is unknown or missing, or its value is refused: with file, line and key.
    pub(crate) fn read(written: WrittenTable, base: &Path) -> Result<Self, Failure> {
        let file = FlagsFile::of_table::<TunnelFlags>(written, &[NAMES, CERTIFICATES])?;
        let mut table = Self::default();
        table.flags.read(&file)?;
        file.several(NAMES, &mut table.names, str::parse)?;
        file.switch(CERTIFICATES, &mut table.has_certificates)?;
        table.flags.resolve(base);
        let checked = table.flags.check(table.has_certificates);
        checked.map_err(|Invalid { key, why }| file.wrong(key, &why))?;
        Ok(table)
    }

    /// The keys of the table, in words.
    pub(crate) fn keys() -> String {
        let mut keys = flag_keys::<TunnelFlags>();
        keys.extend([NAMES, CERTIFICATES].map(str::to_owned));
        keys.join(", ")
    }

    /// The certificates of its users, of those that sites ask their clients for.
    ///
    /// # Errors
    /// No site asks for one.
    pub(crate) fn certificates(
        &self,
        asked: &ClientRules,
    ) -> Result<Vec<ClientCertificates>, Failure> {
        let found = match self.has_certificates {
            true => asked.of_names(&self.names),
            false => Vec::new(),
        };
        match self.has_certificates && found.is_empty() {
            true => Err(Failure::Usage(
                "tunnel.client_certificates: no site of these names asks for certificates; give it a table [site.client_certificates]"
                    .to_owned(),
            )),
            false => Ok(found),
        }
    }

    /// Refuses a server that gives up the rights that its tunnels need.
    ///
    /// # Errors
    /// There is a `user` to become.
    pub(crate) fn refuse_user(table: Option<&Self>, user: Option<&str>) -> Result<(), Failure> {
        match (table, user) {
            (Some(_), Some(_)) => Err(Failure::Usage(
                "[tunnel] needs CAP_NET_ADMIN until the end, which a server with `user` gives up; leave `user` out, and start it as root or with that capability"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

/// The tunnels of a server, with the host's device for them.
pub(crate) struct OpenTunnels {
    tunnels: Arc<Tunnels>,
    gateway: Gateway,
}

impl OpenTunnels {
    /// Opens the device, by which no packets pass before [`begin`](Self::begin).
    ///
    /// # Errors
    /// A setting cannot be used, or the host refuses.
    pub(crate) fn open(
        flags: &TunnelFlags,
        certificates: Vec<ClientCertificates>,
    ) -> Result<Self, Failure> {
        let pool = flags.check(!certificates.is_empty())?;
        let tokens = flags.some_users(certificates)?;
        let gateway = GatewayConfig {
            device: flags.device.clone().unwrap_or(DEVICE.to_owned()),
            mtu: flags.mtu.unwrap_or(MTU),
            nat: flags.nat,
        };
        let gateway = Gateway::open(gateway, &pool);
        let gateway = gateway.map_err(|error| Failure::Failed(error.to_string()))?;
        let config = ServerConfig {
            tokens,
            pool,
            destinations: flags.destinations(),
            split_tcp: match flags.tcp {
                Some(tcp) => matches!(tcp, Tcp::Streams),
                // Otherwise the networks behind see the addresses of clients.
                None => flags.nat,
            },
            resolvers: flags.dns.clone(),
            proxy_udp: flags.udp || flags.nat,
        };
        Ok(Self {
            tunnels: Tunnels::new(config, gateway.device()),
            gateway,
        })
    }

    /// Its tunnels.
    pub(crate) fn tunnels(&self) -> &Arc<Tunnels> {
        &self.tunnels
    }

    /// Lets packets pass, once the server has its port.
    ///
    /// # Errors
    /// The host refuses.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        let set_up = self.gateway.set_up();
        set_up.map_err(|error| Failure::Failed(error.to_string()))
    }

    /// Passes packets until the device is gone.
    pub(crate) async fn run(&self) -> Failure {
        match self.tunnels.run().await {
            Ok(never) => match never {},
            Err(error) => Failure::Failed(format!("the network device is gone: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_file::{ConfigFile, FileKeys};

    fn table(text: &str) -> Result<TunnelTable, String> {
        let text = format!("dir = \"d\"\n[tunnel]\n{text}");
        let file = ConfigFile::parse("t.toml", &text, Path::new("/base"), FileKeys::Serve);
        Ok(file?.tunnel.unwrap())
    }

    #[test]
    fn errors_of_the_table_name_line_and_key() {
        for (text, expected) in [
            ("", "t.toml:2: tunnel.tokens: the file of users is missing"),
            ("tokns = \"t\"", "t.toml:3: unknown key \"tokns\""),
            (
                "tokens = \"t\"\nmtu = 500",
                "t.toml:4: tunnel.mtu: this must be a number from 1280 to 65535, not 500",
            ),
            ("tcp = \"stream\"", "t.toml:3: tunnel.tcp: "),
            (
                "tokens = \"t\"\npool = [\"10.0.0.0/8\", \"10.0.0.0/9\"]",
                "t.toml:4: tunnel.pool: 10.0.0.0/9 is the second prefix",
            ),
            (
                "dns = [\"10.0.0.1\", \"10.0.0.2\", \"10.0.0.3\", \"10.0.0.4\"]\ntokens = \"t\"",
                "t.toml:3: tunnel.dns: give at most 3",
            ),
            ("names = \"a b\"", "t.toml:3: tunnel.names: "),
            (
                "client_certificates = 1",
                "t.toml:3: tunnel.client_certificates: this must be true or false",
            ),
        ] {
            let message = table(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
        let proxy = ConfigFile::parse("t.toml", "[tunnel]", Path::new(""), FileKeys::Proxy);
        assert!(proxy.unwrap_err().contains("unknown key \"tunnel\""));
    }

    #[test]
    fn other_users_need_no_restart_and_other_addresses_do() {
        let first = table("tokens = \"t\"").unwrap().flags;
        assert_eq!(first.tokens.as_deref(), Some(Path::new("/base/t")));
        assert!(first.is_alike(&table("tokens = \"u\"").unwrap().flags));
        let pool = table("tokens = \"t\"\npool = \"10.0.0.0/8\"").unwrap();
        assert!(!first.is_alike(&pool.flags));
    }

    #[test]
    fn certificates_of_users_are_those_that_a_site_asks_for() {
        let table = table("client_certificates = true").unwrap();
        let Err(Failure::Usage(message)) = table.certificates(&ClientRules::default()) else {
            panic!("there are none");
        };
        assert!(message.contains("[site.client_certificates]"), "{message}");
    }

    #[test]
    fn a_server_that_becomes_another_user_has_no_tunnels() {
        let table = table("tokens = \"t\"").unwrap();
        let Err(Failure::Usage(message)) = TunnelTable::refuse_user(Some(&table), Some("www"))
        else {
            panic!("it is refused");
        };
        assert!(message.contains("leave `user` out"), "{message}");
        assert!(TunnelTable::refuse_user(None, Some("www")).is_ok());
        assert!(TunnelTable::refuse_user(Some(&table), None).is_ok());
    }
}
