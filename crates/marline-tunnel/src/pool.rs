//! The addresses that a server assigns to its clients.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;

/// Addresses of an IPv6 prefix that are assigned, at most: a longer list is no tunnel's.
const MAX_HOSTS: u128 = 1 << 32;

/// Users without a client whose addresses are remembered: certificates can have any number of names.
const MAX_REMEMBERED: usize = 4096;

/// Addresses that a server assigns, one of each family for a client, out of one prefix of each.
///
/// The first address of a prefix is the server's own. A user who comes back has the addresses of before, unless another has
/// them now.
#[derive(Debug)]
pub struct Pool {
    families: Vec<Family>,
    max_per_user: usize,
    state: Mutex<State>,
}

/// The addresses of one prefix.
#[derive(Clone, Copy, Debug)]
struct Family {
    prefix: IpNet,
    /// Addresses that can be assigned.
    hosts: u128,
}

#[derive(Debug, Default)]
struct State {
    /// Addresses in use.
    used: HashMap<IpAddr, Arc<str>>,
    /// Leases of each user that has any.
    leases: HashMap<Arc<str>, usize>,
    /// The addresses that a user had last, by user.
    last: HashMap<Arc<str>, Vec<IpAddr>>,
    /// Of each family, the number of the host that is tried next.
    next: Vec<u128>,
}

/// Why a prefix cannot be assigned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// There is no prefix.
    #[error("no prefix of addresses to assign; give one, as 10.77.0.0/24 or fd77::/64")]
    Empty,
    /// Two prefixes of one family.
    #[error("{0} is the second prefix of its family; give one of IPv4, one of IPv6, or both")]
    Second(IpNet),
    /// It has no address for a client.
    #[error("{0} has no address for a client beside the server's; give a shorter prefix")]
    Small(IpNet),
    /// It has bits of a host.
    #[error("{0} has bits of a host after its prefix; write {network}", network = .0.trunc())]
    HostBits(IpNet),
}

/// Why a client gets no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The user has as many tunnels as are allowed.
    #[error("the user has {0} tunnels already")]
    UserLimit(usize),
    /// All addresses of a prefix are in use.
    #[error("all addresses of {0} are in use")]
    Exhausted(IpNet),
}

/// The addresses of one client, until this is dropped.
#[derive(Debug)]
pub struct Lease {
    pool: Arc<Pool>,
    user: Arc<str>,
    addresses: Vec<IpAddr>,
}

impl Pool {
    /// A pool of these prefixes, of which a user has addresses for `max_per_user` clients at a time.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(prefixes: &[IpNet], max_per_user: usize) -> Result<Arc<Self>, PoolError> {
        let mut families: Vec<Family> = Vec::new();
        for prefix in prefixes {
            if prefix.trunc() != *prefix {
                return Err(PoolError::HostBits(*prefix));
            }
            let is_v4 = prefix.addr().is_ipv4();
            if families
                .iter()
                .any(|family| family.prefix.addr().is_ipv4() == is_v4)
            {
                return Err(PoolError::Second(*prefix));
            }
            let size = 1_u128
                .checked_shl((prefix.max_prefix_len() - prefix.prefix_len()).into())
                .unwrap_or(u128::MAX);
            // The network's, the server's, and for IPv4 that of broadcasts.
            let reserved = if is_v4 { 3 } else { 2 };
            let hosts = size.saturating_sub(reserved).min(MAX_HOSTS);
            if hosts == 0 {
                return Err(PoolError::Small(*prefix));
            }
            families.push(Family {
                prefix: *prefix,
                hosts,
            });
        }
        if families.is_empty() {
            return Err(PoolError::Empty);
        }
        Ok(Arc::new(Self {
            max_per_user,
            state: Mutex::new(State {
                next: vec![0; families.len()],
                ..State::default()
            }),
            families,
        }))
    }

    /// The server's own address in each prefix, with the length of the prefix.
    pub fn own(&self) -> impl Iterator<Item = IpNet> {
        self.families.iter().filter_map(|family| {
            let address = nth(family.prefix, 1);
            IpNet::new(address, family.prefix.prefix_len()).ok()
        })
    }

    /// Addresses for a client of `user`, one of each family.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub fn lease(self: &Arc<Self>, user: &str) -> Result<Lease, LeaseError> {
        let mut state = self.lock();
        let user: Arc<str> = user.into();
        if state.leases.get(&user).copied().unwrap_or(0) >= self.max_per_user {
            return Err(LeaseError::UserLimit(self.max_per_user));
        }
        let last = state.last.get(&user).cloned().unwrap_or_default();
        let mut addresses = Vec::new();
        for (index, family) in self.families.iter().enumerate() {
            let is_free = |state: &State, address: &IpAddr| !state.used.contains_key(address);
            let of_family = |address: &&IpAddr| family.prefix.contains(*address);
            let before = last.iter().filter(of_family).copied();
            let before = before.into_iter().find(|address| is_free(&state, address));
            let address = match before {
                Some(address) => address,
                None => state.free(index, family)?,
            };
            addresses.push(address);
        }
        for address in &addresses {
            state.used.insert(*address, Arc::clone(&user));
        }
        *state.leases.entry(Arc::clone(&user)).or_default() += 1;
        Ok(Lease {
            pool: Arc::clone(self),
            user,
            addresses,
        })
    }

    /// Clients that have addresses now.
    pub fn leases(&self) -> usize {
        self.lock().leases.values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A free address of a family. It looks at no more than one beyond those in use.
    fn free(&mut self, index: usize, family: &Family) -> Result<IpAddr, LeaseError> {
        for _ in 0..=self.used.len() {
            let host = self.next[index];
            if host >= family.hosts {
                self.next[index] = 0;
            }
            let host = self.next[index];
            self.next[index] = (host + 1) % family.hosts;
            let address = nth(family.prefix, host + 2);
            if !self.used.contains_key(&address) {
                return Ok(address);
            }
        }
        Err(LeaseError::Exhausted(family.prefix))
    }
}

/// The address with this number in a prefix that has it.
fn nth(prefix: IpNet, number: u128) -> IpAddr {
    match prefix.network() {
        IpAddr::V4(network) => Ipv4Addr::from_bits(network.to_bits() + number as u32).into(),
        IpAddr::V6(network) => Ipv6Addr::from_bits(network.to_bits() + number).into(),
    }
}

impl Lease {
    /// The addresses, one of each family of the pool.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The user who has them.
    pub fn user(&self) -> &str {
        &self.user
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        for address in &self.addresses {
            state.used.remove(address);
        }
        if let Some(leases) = state.leases.get_mut(&self.user) {
            *leases -= 1;
            if *leases == 0 {
                state.leases.remove(&self.user);
            }
        }
        let addresses = std::mem::take(&mut self.addresses);
        let State { last, leases, .. } = &mut *state;
        if last.len() >= MAX_REMEMBERED {
            last.retain(|user, _| leases.contains_key(user));
        }
        last.insert(Arc::clone(&self.user), addresses);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn pool(prefixes: &[&str], max_per_user: usize) -> Result<Arc<Pool>, PoolError> {
        let prefixes: Vec<_> = prefixes.iter().map(|text| text.parse().unwrap()).collect();
        Pool::new(&prefixes, max_per_user)
    }

    #[test]
    fn prefixes_that_cannot_be_assigned_from_are_refused() {
        assert_eq!(pool(&[], 1).unwrap_err(), PoolError::Empty);
        for small in ["10.0.0.0/31", "10.0.0.0/32", "fd00::/127", "fd00::/128"] {
            let expected = PoolError::Small(small.parse().unwrap());
            assert_eq!(pool(&[small], 1).unwrap_err(), expected);
        }
        let second = pool(&["10.0.0.0/24", "10.1.0.0/24"], 1).unwrap_err();
        assert!(matches!(second, PoolError::Second(_)));
        let host = pool(&["10.0.0.1/24"], 1).unwrap_err();
        assert!(matches!(host, PoolError::HostBits(_)));
    }

    #[test]
    fn users_who_have_left_are_forgotten_in_the_end_and_others_are_not() {
        let pool = pool(&["10.0.0.0/16"], 2).unwrap();
        let stays = pool.lease("stays").unwrap();
        drop(pool.lease("stays").unwrap());
        for user in 0..2 * MAX_REMEMBERED {
            drop(pool.lease(&user.to_string()).unwrap());
        }
        let state = pool.lock();
        assert!(state.last.len() <= MAX_REMEMBERED, "{}", state.last.len());
        assert!(state.last.contains_key("stays"));
        drop(state);
        drop(stays);
    }

    #[test]
    fn all_addresses_but_the_reserved_ones_are_assigned_once() {
        let pool = pool(&["10.0.0.0/29", "fd00::/64"], 100).unwrap();
        let leases: Vec<_> = (0..5).map(|_| pool.lease("a").unwrap()).collect();
        let v4: HashSet<_> = leases.iter().map(|lease| lease.addresses()[0]).collect();
        let expected: HashSet<IpAddr> = (2..7).map(|host| [10, 0, 0, host].into()).collect();
        assert_eq!(v4, expected);
        let error = pool.lease("b").unwrap_err();
        assert!(matches!(error, LeaseError::Exhausted(_)));
        drop(leases);
        assert_eq!(pool.leases(), 0);
        assert!(pool.lease("b").is_ok());
    }

    #[test]
    fn a_user_has_no_more_tunnels_than_are_allowed() {
        let pool = pool(&["10.0.0.0/24"], 2).unwrap();
        let first = pool.lease("a").unwrap();
        let _second = pool.lease("a").unwrap();
        assert_eq!(pool.lease("a").unwrap_err(), LeaseError::UserLimit(2));
        assert!(pool.lease("b").is_ok());
        drop(first);
        assert!(pool.lease("a").is_ok());
    }

    #[test]
    fn a_user_who_comes_back_has_the_addresses_of_before() {
        let pool = pool(&["10.0.0.0/24", "fd00::/64"], 2).unwrap();
        let _other = pool.lease("b").unwrap();
        let lease = pool.lease("a").unwrap();
        let addresses = lease.addresses().to_vec();
        drop(lease);
        drop(pool.lease("c").unwrap());
        let again = pool.lease("a").unwrap();
        assert_eq!(again.addresses(), addresses);
        // A second tunnel of the user has others.
        assert_ne!(pool.lease("a").unwrap().addresses(), addresses);
    }

    #[test]
    fn the_first_address_is_the_servers() {
        let pool = pool(&["10.0.0.0/24", "fd00::/64"], 1).unwrap();
        let own: Vec<_> = pool.own().map(|own| own.to_string()).collect();
        assert_eq!(own, ["10.0.0.1/24", "fd00::1/64"]);
    }

    proptest! {
        #[test]
        fn no_address_is_assigned_twice(steps in proptest::collection::vec((0..4_usize, any::<bool>()), 0..200)) {
            let pool = pool(&["10.0.0.0/28", "fd00::/124"], 5).unwrap();
            let mut held: Vec<Lease> = Vec::new();
            for (user, takes) in steps {
                if takes {
                    held.extend(pool.lease(&user.to_string()));
                } else if !held.is_empty() {
                    held.swap_remove(user % held.len());
                }
                let addresses: Vec<_> = held.iter().flat_map(Lease::addresses).collect();
                let distinct: HashSet<_> = addresses.iter().collect();
                prop_assert_eq!(distinct.len(), addresses.len());
                prop_assert_eq!(pool.leases(), held.len());
            }
        }
    }
}
