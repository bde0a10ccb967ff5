//! A resource shared by the clients of a server.

use std::collections::{BTreeMap, BTreeSet};

use marline::Prefix;

/// Units of a resource, and the holdings of each client.
///
/// A client may hold as many units as are left free: alone half of all, and the n-th of n clients that want all of it one
/// part in n + 1. Every other client finds some left, and none are reserved for absent clients (dynamic thresholds;
/// Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
///
/// The free part halves with each client that takes all it may. So each of n clients is entitled to one part in n + 1, as
/// if all had come at once: if less is free, [`greediest`](Self::greediest) is a client above that, which has to return
/// some.
#[derive(Debug)]
pub(super) struct Shares {
    limit: u64,
    used: u64,
    held: BTreeMap<Prefix, u64>,
    /// The clients, by their holdings.
    by_units: BTreeSet<(u64, Prefix)>,
}

impl Shares {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            held: BTreeMap::new(),
            by_units: BTreeSet::new(),
        }
    }

    /// Units that are held.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Units that `client` may take now.
    pub(super) fn available(&self, client: Prefix) -> u64 {
        // Half of the difference: what it holds afterwards is at most what is free afterwards.
        match self.unused().saturating_sub(self.held_by(client)) {
            0 => 0,
            more => more.div_ceil(2),
        }
    }

    /// The entitlement of every client while `client` is one of them.
    pub(super) fn entitlement(&self, client: Prefix) -> u64 {
        let others = self.held.len() - usize::from(self.held.contains_key(&client));
        self.limit / (others as u64 + 2)
    }

    /// Units that `client` lacks of its entitlement.
    pub(super) fn lacking(&self, client: Prefix) -> u64 {
        self.entitlement(client)
            .saturating_sub(self.held_by(client))
    }

    /// Units that `client` may take after waiting: the free ones up to its entitlement, and those available.
    pub(super) fn available_to_waiting(&self, client: Prefix) -> u64 {
        let entitled = self.lacking(client).min(self.unused());
        entitled.max(self.available(client))
    }

    /// The client with the largest holdings, if they exceed its entitlement while `client` is one of them. It exists if
    /// `client` lacks more than is free and all used units are charged: were all others at their entitlement e, at most a
    /// part of n / (n + 1) would be used, and e would be free.
    pub(super) fn greediest(&self, client: Prefix) -> Option<Prefix> {
        let &(_, greediest) = self.by_units.last()?;
        self.is_greedy(greediest, client).then_some(greediest)
    }

    /// Whether `holder` has more than its entitlement while `client` is one of the clients.
    pub(super) fn is_greedy(&self, holder: Prefix, client: Prefix) -> bool {
        self.held_by(holder) > self.entitlement(client)
    }

    /// Whether `client` holds more than its entitlement and more than is left free, which it could not have taken itself.
    pub(super) fn is_beyond(&self, client: Prefix) -> bool {
        self.is_greedy(client, client) && self.held_by(client) > self.unused()
    }

    /// Free units.
    pub(super) fn unused(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Units that `client` is charged for.
    pub(super) fn held_by(&self, client: Prefix) -> u64 {
        self.held.get(&client).copied().unwrap_or(0)
    }

    fn set_held(&mut self, client: Prefix, units: u64) {
        let before = match units {
            0 => self.held.remove(&client),
            _ => self.held.insert(client, units),
        };
        if let Some(before) = before {
            self.by_units.remove(&(before, client));
        }
        if units > 0 {
            self.by_units.insert((units, client));
        }
    }

    /// Takes `units` for `client` if it may after waiting.
    pub(super) fn take(&mut self, client: Prefix, units: u64) -> bool {
        let taken = units <= self.available_to_waiting(client);
        if taken {
            self.occupy(units);
            self.charge(client, units);
        }
        taken
    }

    /// Returns `units` of `client`.
    pub(super) fn give_back(&mut self, client: Prefix, units: u64) {
        self.free(units);
        self.discharge(client, units);
    }

    /// Uses `units` that no client is charged for yet.
    pub(super) fn occupy(&mut self, units: u64) {
        self.used += units;
    }

    /// Charges `client` for `units` already in use.
    pub(super) fn charge(&mut self, client: Prefix, units: u64) {
        self.set_held(client, self.held_by(client) + units);
    }

    /// Discharges `client` of `units`, which others may use.
    pub(super) fn discharge(&mut self, client: Prefix, units: u64) {
        self.set_held(client, self.held_by(client).saturating_sub(units));
    }

    /// Frees `units` that no client is charged for.
    pub(super) fn free(&mut self, units: u64) {
        self.used = self.used.saturating_sub(units);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(number: u8) -> Prefix {
        Prefix::of_network([10, 0, number, 1].into())
    }

    fn take_all(shares: &mut Shares, client: Prefix) -> u64 {
        let mut taken = 0;
        while shares.available(client) > 0 && shares.take(client, 1) {
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

    /// An action of one of several clients.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Take(u64),
        Wait(u64),
        GiveBack(u64),
    }

    fn acts() -> impl Strategy<Value = Vec<(u8, Act)>> {
        let act = (0..3, 1..2000_u64).prop_map(|(kind, units)| match kind {
            0 => Act::Take(units),
            1 => Act::Wait(units),
            _ => Act::GiveBack(units),
        });
        proptest::collection::vec((0..40_u8, act), 0..300)
    }

    proptest! {
        #[test]
        fn whatever_others_do_a_further_client_gets_one_part_in_their_number_plus_two(
            limit in 1..5000_u64,
            acts in acts(),
        ) {
            let mut shares = Shares::new(limit);
            for (number, act) in acts {
                let client = client(number);
                match act {
                    Act::Take(units) => {
                        let units = units.min(shares.available(client));
                        prop_assert!(shares.take(client, units));
                    }
                    Act::Wait(units) => {
                        let units = units.min(shares.available_to_waiting(client));
                        prop_assert!(shares.take(client, units));
                    }
                    Act::GiveBack(units) => {
                        let units = units.min(shares.held_by(client));
                        shares.give_back(client, units);
                    }
                }
                prop_assert!(shares.used() <= limit);
            }
            let newcomer = client(99);
            let entitlement = shares.entitlement(newcomer);
            prop_assert_eq!(entitlement, limit / (shares.held.len() as u64 + 2));
            while shares.held_by(newcomer) < entitlement {
                if !shares.take(newcomer, 1) {
                    let greediest = shares.greediest(newcomer).expect("somebody has more");
                    shares.give_back(greediest, 1);
                    prop_assert!(shares.held_by(greediest) >= entitlement);
                }
            }
        }
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
        assert!(shares.held.is_empty() && shares.by_units.is_empty());
        assert_eq!(shares.used(), 0);
    }
}
