//! The addresses of selected names.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::Instant;

use super::message::Addresses;
use crate::packet::is_routable;

/// Addresses at a time: each has up to two routes.
const MAX: usize = 1024;

/// The least time for which an address is kept: programs use it longer than the answer is valid.
const LEAST: Duration = Duration::from_secs(600);

/// The longest.
const MOST: Duration = Duration::from_secs(24 * 3600);

/// The sockets of this host, those of other namespaces left out.
const SOCKETS: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];

/// The addresses of selected names, each until it is out of date.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    until: HashMap<IpAddr, Instant>,
}

/// There is no room for more addresses.
#[derive(Debug)]
pub(crate) struct Full;

impl Learned {
    /// Keeps the addresses of an answer; returns whether there are new ones.
    ///
    /// # Errors
    /// There is no room for all: none is kept.
    pub(crate) fn learn(&mut self, answer: &Addresses, now: Instant) -> Result<bool, Full> {
        let routable = answer.all.iter().filter(|address| is_routable(**address));
        let routable: HashSet<_> = routable.copied().collect();
        let is_known = |address: &&IpAddr| self.until.contains_key(*address);
        let new = routable.len() - routable.iter().filter(is_known).count();
        if self.until.len() + new > MAX {
            return Err(Full);
        }
        let until = now + answer.lifetime.clamp(LEAST, MOST);
        for address in routable {
            let kept = self.until.entry(address).or_insert(until);
            *kept = until.max(*kept);
        }
        Ok(new > 0)
    }

    /// Forgets what is out of date, unless sockets are connected to it; returns whether there was any.
    pub(crate) fn expire(&mut self, now: Instant, in_use: &HashSet<IpAddr>) -> bool {
        let before = self.until.len();
        self.until
            .retain(|address, until| now < *until || in_use.contains(address));
        self.until.len() < before
    }

    /// The addresses, in order.
    pub(crate) fn destinations(&self) -> Vec<IpNet> {
        let mut all: Vec<_> = self.until.keys().copied().map(IpNet::from).collect();
        all.sort();
        all
    }
}

/// The addresses that sockets of this host are connected to (`proc_net_tcp(5)`).
pub(crate) fn connected() -> HashSet<IpAddr> {
    let read = |name| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    let texts = SOCKETS.map(|name| read(name).unwrap_or_default());
    let lines = texts.iter().flat_map(|text| text.lines().skip(1));
    lines.filter_map(remote).collect()
}

/// The other end of a socket: words in the order of this machine, in hexadecimal.
fn remote(line: &str) -> Option<IpAddr> {
    let (digits, _port) = line.split_whitespace().nth(2)?.split_once(':')?;
    let word = |at: usize| {
        let word = digits.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes)
    };
    let address = match digits.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(address.to_canonical()).filter(|address| !address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(addresses: impl IntoIterator<Item = IpAddr>, seconds: u64) -> Addresses {
        Addresses {
            all: addresses.into_iter().collect(),
            lifetime: Duration::from_secs(seconds),
        }
    }

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0001 + number).into()
    }

    #[test]
    fn addresses_are_kept_while_they_are_valid_or_used() {
        let (mut learned, begin) = (Learned::default(), Instant::now());
        let [short, long, used] = [0, 1, 2].map(address);
        let local = Ipv4Addr::LOCALHOST.into();
        assert!(
            learned
                .learn(&answer([short, used, local], 5), begin)
                .unwrap()
        );
        assert!(
            learned
                .learn(&answer([long], u32::MAX.into()), begin)
                .unwrap()
        );
        assert!(!learned.learn(&answer([long], 0), begin).unwrap());
        assert_eq!(learned.destinations().len(), 3);
        let in_use = HashSet::from([used]);
        assert!(!learned.expire(begin + LEAST / 2, &in_use));
        assert!(learned.expire(begin + LEAST, &in_use));
        assert_eq!(learned.destinations(), [long, used].map(IpNet::from));
        assert!(learned.expire(begin + MOST, &HashSet::new()));
        assert!(learned.destinations().is_empty());
    }

    #[test]
    fn addresses_are_limited_in_number() {
        let (mut learned, begin) = (Learned::default(), Instant::now());
        for number in 0..MAX as u32 {
            learned.learn(&answer([address(number)], 5), begin).unwrap();
        }
        assert!(!learned.learn(&answer([address(0)], 5), begin).unwrap());
        let more = answer([address(0), address(MAX as u32)], 5);
        assert!(learned.learn(&more, begin).is_err());
        assert_eq!(learned.destinations().len(), MAX);
    }

    #[test]
    fn the_other_ends_of_sockets_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let found = connected();
        assert!(found.contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
        assert!(!found.contains(&Ipv4Addr::UNSPECIFIED.into()), "{found:?}");
    }
}
