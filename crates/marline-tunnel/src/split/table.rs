//! The connections that are split, by their ends and by the ports that stand for them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::segment::Ends;

/// How long the port of a connection that is over stands for it: as long as the kernel may send its last segments, and waits
/// after them (60 s).
const LINGER: Duration = Duration::from_secs(90);

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLimits {
    /// Connections that are known, those that are over included; fewer than ports.
    pub(crate) known: usize,
    /// Connections that are not over.
    pub(crate) open: usize,
}

/// Which connections are split.
#[derive(Debug)]
pub(crate) struct Table {
    limits: TableLimits,
    ports: HashMap<Ends, u16>,
    flows: HashMap<u16, Flow>,
    /// Those that are over, by the time since when; some may have been replaced.
    over: VecDeque<Over>,
    open: usize,
    next: u16,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    ends: Ends,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is not known yet whether its destination can be reached.
    Opening,
    Open,
    Over(Instant),
}

#[derive(Clone, Copy, Debug)]
struct Over {
    port: u16,
    since: Instant,
}

/// The treatment of a packet of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It begins a connection, which this port stands for.
    Opens(u16),
    /// It belongs to a connection that is being opened: it is dropped.
    Held,
    /// It belongs to the connection that this port stands for.
    Belongs(u16),
    /// It belongs to no connection that is split.
    Other,
}

impl Table {
    pub(crate) fn new(limits: TableLimits) -> Self {
        Self {
            limits,
            ports: HashMap::new(),
            flows: HashMap::new(),
            over: VecDeque::new(),
            open: 0,
            next: 1,
        }
    }

    /// The treatment of a segment with these ends; `is_first` if it begins a connection.
    pub(crate) fn outgoing(&mut self, ends: Ends, is_first: bool, now: Instant) -> Verdict {
        if let Some(&port) = self.ports.get(&ends) {
            match self.flows.get(&port).map(|flow| flow.state) {
                Some(State::Opening) => return Verdict::Held,
                Some(State::Over(_)) if is_first => self.remove(port),
                _ => return Verdict::Belongs(port),
            }
        }
        match is_first && self.has_room(now) {
            true => Verdict::Opens(self.insert(ends)),
            false => Verdict::Other,
        }
    }

    /// The ends of the connection that `port` stands for.
    pub(crate) fn ends(&self, port: u16) -> Option<Ends> {
        self.flows.get(&port).map(|flow| flow.ends)
    }

    /// The destination of a connection accepts it.
    pub(crate) fn opened(&mut self, port: u16) {
        if let Some(flow) = self.flows.get_mut(&port)
            && flow.state == State::Opening
        {
            flow.state = State::Open;
        }
    }

    /// A connection is over. It is known for a while, unless others need its place.
    pub(crate) fn closed(&mut self, port: u16, now: Instant) {
        let Some(flow) = self.flows.get_mut(&port) else {
            return;
        };
        if !matches!(flow.state, State::Over(_)) {
            flow.state = State::Over(now);
            self.open -= 1;
            self.over.push_back(Over { port, since: now });
        }
    }

    /// A connection was not opened.
    pub(crate) fn remove(&mut self, port: u16) {
        let Some(flow) = self.flows.remove(&port) else {
            return;
        };
        self.ports.remove(&flow.ends);
        if !matches!(flow.state, State::Over(_)) {
            self.open -= 1;
        }
    }

    /// Forgets those that have been over for long, and the oldest of the others if there is no room.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.open >= self.limits.open {
            return false;
        }
        while let Some(&Over { port, since }) = self.over.front() {
            let is_full = self.flows.len().max(self.over.len()) >= self.limits.known;
            if !is_full && now < since + LINGER {
                break;
            }
            self.over.pop_front();
            let state = self.flows.get(&port).map(|flow| flow.state);
            if state == Some(State::Over(since)) {
                self.remove(port);
            }
        }
        self.flows.len() < self.limits.known
    }

    fn insert(&mut self, ends: Ends) -> u16 {
        // One is free: there are fewer connections. Those that were used last come last.
        while self.next == 0 || self.flows.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let port = self.next;
        self.next = self.next.wrapping_add(1);
        let state = State::Opening;
        self.flows.insert(port, Flow { ends, state });
        self.ports.insert(ends, port);
        self.open += 1;
        port
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;

    const LIMITS: TableLimits = TableLimits { known: 6, open: 4 };

    fn ends(number: u16) -> Ends {
        Ends {
            source: SocketAddr::from(([10, 0, 0, 2], 1000 + number)),
            destination: SocketAddr::from(([192, 0, 2, 1], 80)),
        }
    }

    /// The port of a new connection.
    #[track_caller]
    fn opens(table: &mut Table, number: u16, now: Instant) -> u16 {
        match table.outgoing(ends(number), true, now) {
            Verdict::Opens(port) => port,
            verdict => panic!("{verdict:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_first_segments_open_one_connection() {
        let (mut table, now) = (Table::new(LIMITS), Instant::now());
        let port = opens(&mut table, 1, now);
        for _ in 0..3 {
            assert_eq!(table.outgoing(ends(1), true, now), Verdict::Held);
        }
        table.opened(port);
        assert_eq!(table.outgoing(ends(1), true, now), Verdict::Belongs(port));
        assert_eq!(table.outgoing(ends(1), false, now), Verdict::Belongs(port));
        assert_eq!(table.ends(port), Some(ends(1)));
        assert_eq!(table.open, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn segments_of_connections_that_began_otherwise_are_left_alone() {
        let (mut table, now) = (Table::new(LIMITS), Instant::now());
        assert_eq!(table.outgoing(ends(1), false, now), Verdict::Other);
        // A destination that was refused can be tried again.
        let port = opens(&mut table, 1, now);
        table.remove(port);
        assert_ne!(opens(&mut table, 1, now), port);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_segments_of_a_connection_pass_until_another_takes_its_ends() {
        let (mut table, now) = (Table::new(LIMITS), Instant::now());
        let port = opens(&mut table, 1, now);
        table.opened(port);
        table.closed(port, now);
        assert_eq!(table.outgoing(ends(1), false, now), Verdict::Belongs(port));
        let again = opens(&mut table, 1, now);
        assert_ne!(again, port);
        assert_eq!(table.ends(port), None);
        // The time of the first does not end the second.
        opens(&mut table, 2, now + 2 * LINGER);
        assert_eq!(table.ends(again), Some(ends(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_are_over_give_way_and_open_ones_do_not() {
        let (mut table, now) = (Table::new(LIMITS), Instant::now());
        for number in 0..4 {
            let port = opens(&mut table, number, now);
            table.opened(port);
            table.closed(port, now);
        }
        let later: Vec<_> = (10..14)
            .map(|number| opens(&mut table, number, now))
            .collect();
        assert_eq!(table.outgoing(ends(20), true, now), Verdict::Other);
        assert_eq!(table.flows.len(), 6);
        // The oldest went first.
        assert_eq!(table.outgoing(ends(0), false, now), Verdict::Other);
        assert!(matches!(
            table.outgoing(ends(3), false, now),
            Verdict::Belongs(_)
        ));
        table.closed(later[0], now);
        opens(&mut table, 20, now);
    }

    proptest! {
        #[test]
        fn the_table_stays_bounded_and_consistent(
            steps in proptest::collection::vec((0..12_u16, 0..5_u8, 0..40_u64), 0..300),
        ) {
            let mut table = Table::new(LIMITS);
            let mut now = Instant::now();
            for (number, action, seconds) in steps {
                now += Duration::from_secs(seconds);
                let port = table.ports.get(&ends(number)).copied();
                match (action, port) {
                    (0, _) => drop(table.outgoing(ends(number), true, now)),
                    (1, _) => {
                        let before = table.flows.len();
                        table.outgoing(ends(number), false, now);
                        prop_assert_eq!(table.flows.len(), before);
                    }
                    (2, Some(port)) => table.opened(port),
                    (3, Some(port)) => table.closed(port, now),
                    (4, Some(port)) => table.remove(port),
                    _ => {}
                }
                prop_assert!(table.flows.len() <= LIMITS.known);
                prop_assert_eq!(table.flows.len(), table.ports.len());
                for (port, flow) in &table.flows {
                    prop_assert_eq!(table.ports.get(&flow.ends), Some(port));
                }
                let is_open = |flow: &&Flow| !matches!(flow.state, State::Over(_));
                prop_assert_eq!(table.flows.values().filter(is_open).count(), table.open);
                prop_assert!(table.open <= LIMITS.open);
                prop_assert!(table.over.len() <= LIMITS.known + LIMITS.open);
            }
        }
    }
}
