//! A resource that the clients of a server share.

use std::collections::BTreeMap;

use marline::Prefix;

/// Units of a resource, and how many each client holds.
///
/// A client may hold as much as is left free: alone half of all, and the n-th of n clients that want all of it one part
/// in n + 1. Something is left for every other client, and nothing is set aside for clients that do not come (dynamic
/// thresholds; Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
#[derive(Debug)]
pub(super) struct Shares {
    limit: u64,
    used: u64,
    held: BTreeMap<Prefix, u64>,
}

impl Shares {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            held: BTreeMap::new(),
        }
    }

    /// Units that are held.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Units that `client` may take now.
    pub(super) fn available(&self, client: Prefix) -> u64 {
        let free = self.limit.saturating_sub(self.used);
        let held = self.held.get(&client).copied().unwrap_or(0);
        // Half of the difference: what it holds afterwards is at most what is free afterwards.
        match free.saturating_sub(held) {
            0 => 0,
            more => more.div_ceil(2),
        }
    }

    /// Takes `units` for `client` if they are available.
    pub(super) fn take(&mut self, client: Prefix, units: u64) -> bool {
        let taken = units <= self.available(client);
        if taken {
            self.used += units;
            self.charge(client, units);
        }
        taken
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&mut self, client: Prefix, units: u64) {
        self.free(units);
        self.discharge(client, units);
    }

    /// `client` holds units that are in use already.
    pub(super) fn charge(&mut self, client: Prefix, units: u64) {
        *self.held.entry(client).or_default() += units;
    }

    /// `client` no longer holds `units`, which others may use.
    pub(super) fn discharge(&mut self, client: Prefix, units: u64) {
        if let Some(held) = self.held.get_mut(&client) {
            *held = held.saturating_sub(units);
            if *held == 0 {
                self.held.remove(&client);
            }
        }
    }

    /// `units` that nobody is charged for any more are free.
    pub(super) fn free(&mut self, units: u64) {
        self.used = self.used.saturating_sub(units);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Prefix {
        Prefix::of_network([10, 0, number, 1].into())
    }

    fn take_all(shares: &mut Shares, client: Prefix) -> u64 {
        let mut taken = 0;
        while shares.take(client, 1) {
            taken += 1;
        }
        taken
    }

    #[test]
    fn greedy_clients_leave_something_for_others() {
        let mut shares = Shares::new(100);
        assert_eq!(take_all(&mut shares, client(1)), 50);
        assert_eq!(take_all(&mut shares, client(2)), 25);
        assert!(take_all(&mut shares, client(3)) > 10);
        assert!(shares.available(client(4)) > 0);
        shares.give_back(client(1), 50);
        assert_eq!(shares.available(client(1)), 31);
    }

    #[test]
    fn a_single_unit_can_be_taken() {
        let mut shares = Shares::new(1);
        assert!(shares.take(client(1), 1));
        assert!(!shares.take(client(2), 1));
        shares.give_back(client(1), 1);
        assert!(shares.take(client(2), 1));
        assert!(!Shares::new(0).take(client(1), 1));
    }

    #[test]
    fn what_was_given_back_is_forgotten() {
        let mut shares = Shares::new(10);
        assert!(shares.take(client(1), 3));
        shares.give_back(client(1), 3);
        assert!(shares.held.is_empty());
        assert_eq!(shares.used(), 0);
    }
}
