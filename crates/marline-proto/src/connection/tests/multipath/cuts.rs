//! Outages of two paths at random: all data arrives, without long stalls while a path works.

use proptest::prelude::*;

use super::*;

/// Maximum time without progress while a path works: it may have failed before and is probed once a second, and
/// the failure of the other path may be detected late.
const LONGEST_STALL: Duration = Duration::from_millis(2500);

/// An action.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// All packets of a path are lost, in one direction or in both.
    Cut(usize, Option<Direction>),
    Restore(usize),
    Pass(u64),
}

fn turn() -> impl Strategy<Value = Turn> {
    let direction = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Direction::ToServer)),
        1 => Just(Some(Direction::ToClient)),
    ];
    prop_oneof![
        2 => (0..2usize, direction).prop_map(|(path, direction)| Turn::Cut(path, direction)),
        3 => (0..2usize).prop_map(Turn::Restore),
        5 => (20..2000u64).prop_map(Turn::Pass),
    ]
}

/// A link so slow that the transfers take seconds.
fn slow(delay: u64) -> Conditions {
    Conditions {
        delay: Duration::from_millis(delay),
        rate: Some(100_000),
        queue: 20_000,
        ..Conditions::default()
    }
}

/// The transfer in one direction, and its longest time without progress while a path worked.
struct Watched {
    transfer: Transfer,
    done: bool,
    received: usize,
    progress_at: Instant,
    longest: Duration,
}

impl Watched {
    fn new(transfer: Transfer, now: Instant) -> Self {
        Self {
            transfer,
            done: false,
            received: 0,
            progress_at: now,
            longest: Duration::ZERO,
        }
    }

    /// `up_since` is the time since which a path works.
    fn advance(&mut self, pair: &mut Pair, up_since: Option<Instant>) -> bool {
        if let (Some(up_since), false) = (up_since, self.done) {
            let stall = pair.now - self.progress_at.max(up_since);
            self.longest = self.longest.max(stall);
        }
        self.done = self.done || self.transfer.advance(pair);
        if self.transfer.received() > self.received {
            self.received = self.transfer.received();
            self.progress_at = pair.now;
        }
        self.done
    }
}

struct Exchange {
    several: Several,
    links: [Conditions; 2],
    /// Time since which each path works in both directions.
    up: [Option<Instant>; 2],
    transfers: [Watched; 2],
}

impl Exchange {
    fn new(delays: [u64; 2], seed: u64) -> Self {
        let transport = match seed % 2 {
            0 => several(),
            _ => TransportConfig {
                receive_window: Some(40_000),
                stream_receive_window: Some(40_000),
                ..several()
            },
        };
        let transport = TransportConfig {
            max_idle_timeout: Some(Duration::from_secs(120)),
            ..transport
        };
        let links = delays.map(slow);
        let mut pair = Pair::with(PairConfig {
            client: transport.clone(),
            server: transport,
            seed,
            ..PairConfig::default()
        });
        pair.network.set(links[0]);
        pair.network.set_link(address(1), links[1]);
        let mut several = Several::with(pair);
        several.pair.drive(Duration::from_secs(1));
        assert_eq!(several.open(1), Ok(ONE));
        several.pair.drive(Duration::from_secs(1));
        let (ends, now) = (several.ends, several.pair.now);
        let data = pattern(400_000);
        let down = Transfer::down(&mut several.pair, ends, &data);
        let up = Transfer::up(&mut several.pair, ends, &data);
        Self {
            several,
            links,
            up: [Some(now); 2],
            transfers: [Watched::new(down, now), Watched::new(up, now)],
        }
    }

    fn set(&mut self, path: usize, direction: Direction, down: bool) {
        let network = &mut self.several.pair.network;
        let conditions = match path {
            0 => network.conditions(direction),
            _ => network.link(address(1), direction),
        };
        *conditions = Conditions {
            down,
            ..self.links[path]
        };
    }

    fn turn(&mut self, turn: Turn) {
        const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];
        match turn {
            Turn::Cut(path, only) => {
                for direction in BOTH
                    .into_iter()
                    .filter(|&direction| only.is_none_or(|only| only == direction))
                {
                    self.set(path, direction, true);
                }
                self.up[path] = None;
            }
            Turn::Restore(path) => {
                for direction in BOTH {
                    self.set(path, direction, false);
                }
                self.up[path].get_or_insert(self.several.pair.now);
            }
            Turn::Pass(millis) => {
                self.pass(Duration::from_millis(millis));
            }
        }
    }

    /// Advances the time; returns whether all data has arrived.
    fn pass(&mut self, time: Duration) -> bool {
        let up_since = self.up.iter().flatten().min().copied();
        let [down, up] = &mut self.transfers;
        self.several.pair.drive_until(time, |pair| {
            let is_down = down.advance(pair, up_since);
            up.advance(pair, up_since) && is_down
        })
    }
}

fn run(turns: &[Turn], delays: [u64; 2], seed: u64) {
    let mut exchange = Exchange::new(delays, seed);
    for &turn in turns {
        exchange.turn(turn);
    }
    exchange.turn(Turn::Restore(0));
    exchange.turn(Turn::Restore(1));
    let done = exchange.pass(TIMEOUT);
    let received = exchange.transfers.each_ref().map(|it| it.received);
    assert!(done, "stalled: {received:?}");
    for transfer in &exchange.transfers {
        let longest = transfer.longest;
        assert!(longest <= LONGEST_STALL, "{longest:?} without progress");
    }
}

#[test]
fn random_outages_of_two_paths_lose_no_data_and_stall_at_most_2500_ms() {
    let delay = || 5..100u64;
    let turns = (
        prop::collection::vec(turn(), 1..40),
        [delay(), delay()],
        any::<u64>(),
    );
    for_random(24, &turns, |(turns, delays, seed)| {
        run(&turns, delays, seed);
    });
}
