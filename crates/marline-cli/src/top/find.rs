//! The metrics address of a server: as given, or of a process.

use std::net::SocketAddr;
use std::str::FromStr;

use super::source::Source;
use crate::failure::Failure;
use crate::listen::MetricsListen;

/// The server to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Address(MetricsListen),
    Process(u32),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, rest)) = text.split_once("://") {
            let address = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let known = address.parse::<MetricsListen>();
            let instead = known.map_or("127.0.0.1:9090", |_| address);
            return Err(format!(
                "must be the address of --metrics or the ID of a process, not a URL; write {instead}"
            ));
        }
        match text.parse() {
            Ok(process) => Ok(Self::Process(process)),
            Err(_) => text.parse().map(Self::Address),
        }
    }
}

/// The source that `target` names; by default the only server of this machine that has metrics.
pub(super) async fn source(target: Option<&Target>) -> Result<Source, Failure> {
    let failed = |message: String| Err(Failure::Failed(message));
    let processes = match target {
        Some(Target::Address(listen)) => {
            let listen = listen.addresses();
            let also = listen
                .also
                .map(|ip| SocketAddr::new(ip, listen.first.port()));
            for address in [Some(listen.first), also].into_iter().flatten() {
                let source = Source::new(reachable(address))?;
                if source.is_marline().await {
                    return Ok(source);
                }
            }
            // Errors are reported when it is read.
            return Source::new(reachable(listen.first));
        }
        Some(Target::Process(process)) => vec![*process],
        None => processes::of_marline(),
    };
    let mut found = Vec::new();
    for process in processes {
        for address in processes::listening(process) {
            let source = Source::new(address)?;
            if source.is_marline().await {
                found.push((process, address, source));
                break;
            }
        }
    }
    match (found.len(), target) {
        (0, Some(Target::Process(process))) => failed(format!(
            "process {process} shows no metrics to this user; start the server with --metrics :9090, or give the address"
        )),
        (0, _) => failed(
            "no server with metrics was found; start one with --metrics :9090, or give its address"
                .to_owned(),
        ),
        (1, _) => Ok(found.remove(0).2),
        _ => {
            let all = found
                .iter()
                .map(|(process, address, _)| format!("{process} ({address})"));
            let all: Vec<_> = all.collect();
            failed(format!("several servers run; name one: {}", all.join(", ")))
        }
    }
}

/// The address under which this machine reaches one that listens on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    use std::net::{Ipv4Addr, Ipv6Addr};

    match address.ip().is_unspecified() {
        true if address.is_ipv4() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        true => (Ipv6Addr::LOCALHOST, address.port()).into(),
        false => address,
    }
}

/// Processes of this machine, in `/proc`.
#[cfg(target_os = "linux")]
mod processes {
    use std::collections::BTreeSet;
    use std::fs;
    use std::net::{IpAddr, SocketAddr};

    use super::reachable;

    /// The state of a TCP socket that listens.
    const LISTEN: &str = "0A";

    /// The processes whose program is called as this one.
    pub(super) fn of_marline() -> Vec<u32> {
        let own = std::env::current_exe().ok();
        let name = own.as_deref().and_then(|path| path.file_name());
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_own = |process: &u32| {
            let path = fs::read_link(format!("/proc/{process}/exe")).ok();
            let other = path.as_deref().and_then(|path| path.file_name());
            other.is_some() && other == name && *process != std::process::id()
        };
        processes.filter(is_own).collect()
    }

    /// The addresses at which a process listens over TCP, and not over UDP as well, as a site does.
    pub(super) fn listening(process: u32) -> Vec<SocketAddr> {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default()
        };
        let sockets = sockets(process);
        let of_process = |text: &str, state: Option<&str>| -> Vec<SocketAddr> {
            let all = text.lines().filter_map(Socket::of);
            let fitting = all.filter(|one| {
                state.is_none_or(|state| one.state == state) && sockets.contains(&one.inode)
            });
            fitting.map(|one| one.local).collect()
        };
        let udp = [read("udp"), read("udp6")];
        let udp: BTreeSet<u16> = udp
            .iter()
            .flat_map(|text| of_process(text, None))
            .map(|local| local.port())
            .collect();
        let tcp = [read("tcp"), read("tcp6")];
        let tcp = tcp.iter().flat_map(|text| of_process(text, Some(LISTEN)));
        tcp.filter(|local| !udp.contains(&local.port()))
            .map(reachable)
            .collect()
    }

    /// The inodes of the sockets of a process.
    fn sockets(process: u32) -> BTreeSet<u64> {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
        let descriptors = descriptors.into_iter().flatten().flatten();
        let inode = |entry: fs::DirEntry| {
            let link = fs::read_link(entry.path()).ok()?;
            let link = link.to_str()?.strip_prefix("socket:[")?;
            link.strip_suffix(']')?.parse().ok()
        };
        descriptors.filter_map(inode).collect()
    }

    /// A line of `/proc/net/tcp` (proc_net_tcp(5)).
    struct Socket<'a> {
        local: SocketAddr,
        state: &'a str,
        inode: u64,
    }

    impl<'a> Socket<'a> {
        fn of(line: &'a str) -> Option<Self> {
            let fields: Vec<_> = line.split_whitespace().collect();
            Some(Self {
                local: address(fields.get(1)?)?,
                state: fields.get(3)?,
                inode: fields.get(9)?.parse().ok()?,
            })
        }
    }

    /// An address as words of the byte order of this machine, in hexadecimal.
    fn address(text: &str) -> Option<SocketAddr> {
        let (ip, port) = text.split_once(':')?;
        let word = |at: usize| {
            let word = ip.get(at * 8..at * 8 + 8)?;
            u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes)
        };
        let ip: IpAddr = match ip.len() {
            8 => word(0)?.into(),
            32 => {
                let mut bytes = [0; 16];
                for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                    part.copy_from_slice(&word(at)?);
                }
                bytes.into()
            }
            _ => return None,
        };
        let port = u16::from_str_radix(port, 16).ok()?;
        Some(SocketAddr::new(ip.to_canonical(), port))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_addresses_of_a_process_are_those_it_listens_on() {
            let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let tcp6 = std::net::TcpListener::bind("[::]:0").ok();
            let both = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = both.local_addr().unwrap().port();
            let _udp = std::net::UdpSocket::bind(("127.0.0.1", port)).unwrap();
            let found = listening(std::process::id());
            assert!(found.contains(&tcp.local_addr().unwrap()), "{found:?}");
            assert!(!found.iter().any(|one| one.port() == port), "{found:?}");
            if let Some(tcp6) = tcp6 {
                let port = tcp6.local_addr().unwrap().port();
                assert!(
                    found
                        .iter()
                        .any(|one| one.port() == port && one.ip().is_loopback())
                );
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod processes {
    use std::net::SocketAddr;

    pub(super) fn of_marline() -> Vec<u32> {
        Vec::new()
    }

    pub(super) fn listening(_process: u32) -> Vec<SocketAddr> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process_and_a_port_has_a_colon() {
        assert_eq!("9090".parse(), Ok(Target::Process(9090)));
        let Ok(Target::Address(address)) = ":9090".parse() else {
            panic!("no address");
        };
        assert!(address.addresses().is_loopback());
        assert!("here".parse::<Target>().is_err());
    }
}
