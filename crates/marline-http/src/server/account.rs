//! Accounts: the networks that budgets charge for their clients' use.

use std::net::Ipv4Addr;

use marline::Prefix;

use super::stop::{Stop, Stopped};

/// A response over QUIC, or a connection over TCP, which holds files and buffered bytes; or a request that has a place at an
/// application. It has to end when clients that are entitled to these need them. Clones are the same account, and may charge
/// another network.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    client: Prefix,
    number: u64,
    end: Stop,
}

impl Account {
    /// An account of `client`; `number` is unique.
    pub(crate) fn new(client: Prefix, number: u64) -> Self {
        Self {
            client,
            number,
            end: Stop::default(),
        }
    }

    /// The same account, charged together with all clients whose addresses may be forged: no network is charged for the requests of
    /// others in its name.
    pub(super) fn of_unproven(&self) -> Self {
        Self {
            client: Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0),
            ..self.clone()
        }
    }

    /// The number, which its clones share, whichever network they charge.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The network that is charged.
    pub(super) fn client(&self) -> Prefix {
        self.client
    }

    /// Asks the holder of the account to end.
    pub(super) fn evict(&self) {
        self.end.stop();
    }

    /// Completes when it has to end.
    pub(crate) fn evicted(&self) -> Stopped {
        self.end.stopped()
    }
}

/// Accounts for tests of budgets.
#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use futures_util::FutureExt;

    use super::*;

    /// A new account of the network with this number.
    pub(in crate::server) fn account(network: u8) -> Account {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let client = Prefix::of_network([10, 0, network, 1].into());
        Account::new(client, NUMBERS.fetch_add(1, Relaxed))
    }

    pub(in crate::server) fn is_evicted(account: &Account) -> bool {
        account.evicted().now_or_never().is_some()
    }
}
