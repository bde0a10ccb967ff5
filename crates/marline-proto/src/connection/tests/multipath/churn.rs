//! Paths are opened and abandoned at random during transfers.

use proptest::prelude::*;

use super::*;
use crate::coordination::bundle::BundleConfig;
use std::sync::Arc;

/// Limit on events of a case, which takes a few thousand.
const MAX_STEPS: usize = 100_000;

/// An action.
#[derive(Clone, Debug)]
enum Turn {
    Open(u8),
    Abandon(Side, u8),
    Status(Side, u8, bool),
    /// Changes the link of an address.
    Link {
        n: u8,
        delay_ms: u64,
        loss: f64,
        down: bool,
    },
    Rebind(u16),
    UpdateKeys(Side),
    Pass(u64),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        4 => (0..4u8).prop_map(Turn::Open),
        2 => (side(), any::<u8>()).prop_map(|(side, n)| Turn::Abandon(side, n)),
        1 => (side(), any::<u8>(), any::<bool>()).prop_map(|(side, n, b)| Turn::Status(side, n, b)),
        4 => (0..4u8, 1..80u64, 0.0..0.1f64, prop::bool::weighted(0.2))
            .prop_map(|(n, delay_ms, loss, down)| Turn::Link { n, delay_ms, loss, down }),
        1 => any::<u16>().prop_map(Turn::Rebind),
        1 => side().prop_map(Turn::UpdateKeys),
        6 => (0..400u64).prop_map(Turn::Pass),
    ]
}

fn link(several: &mut Several, n: u8, conditions: Conditions) {
    match n {
        0 => several.pair.network.set(conditions),
        n => several.pair.network.set_link(address(n), conditions),
    }
}

fn run(turns: &[Turn], seed: u64) {
    let names = SCHEDULERS.names();
    let name = names[(seed % names.len() as u64) as usize];
    let reinjection = (seed / 7).is_multiple_of(2).then_some(ReinjectionConfig {
        budget: 1.0,
        ..ReinjectionConfig::default()
    });
    let mut config = TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(120)),
        ..reinjecting(scheduler(name), reinjection)
    };
    if let Some(multipath) = config.multipath.as_mut().filter(|_| seed & 1024 != 0) {
        multipath.same_tuple_paths = 2;
        multipath.bundle_paths = Some(Arc::new(BundleConfig::default()));
    }
    let mut several = Several::with(Pair::with(PairConfig {
        client: config.clone(),
        server: config,
        seed,
        ..PairConfig::default()
    }));
    for n in 0..4 {
        link(&mut several, n, narrow());
    }
    let ends = several.ends;
    let data = pattern(1_000_000);
    let mut down = Transfer::down(&mut several.pair, ends, &data);
    let mut up = Transfer::up(&mut several.pair, ends, &data);
    let (mut down_done, mut up_done) = (false, false);
    let mut steps = 0;
    let mut advance = |pair: &mut Pair| {
        steps += 1;
        assert!(steps < MAX_STEPS, "no progress at {:?}", pair.now);
        if pair.client(ends.client).is_closed() || pair.server(ends.server).is_closed() {
            return true;
        }
        down_done = down_done || down.advance(pair);
        up_done = up_done || up.advance(pair);
        down_done && up_done
    };
    for turn in turns {
        let now = several.pair.now;
        let pick = |several: &mut Several, side, n: u8| {
            let paths = several.paths(side);
            PathId(paths[usize::from(n) % paths.len()])
        };
        match *turn {
            Turn::Open(n) => {
                let _ = several.open(n);
            }
            Turn::Abandon(side, n) => {
                let path = pick(&mut several, side, n);
                let error = ErrorCode::APPLICATION_ABANDON_PATH;
                let _ = several.end(side).abandon_path(now, path, error);
            }
            Turn::Status(side, n, backup) => {
                let path = pick(&mut several, side, n);
                let status = match backup {
                    true => PathStatus::Backup,
                    false => PathStatus::Available,
                };
                several.end(side).set_path_status(path, status);
            }
            Turn::Link {
                n,
                delay_ms,
                loss,
                down,
            } => {
                let conditions = Conditions {
                    delay: Duration::from_millis(delay_ms),
                    loss,
                    down,
                    ..narrow()
                };
                link(&mut several, n, conditions);
            }
            Turn::Rebind(port) => {
                let port = 1024 + port % 60_000;
                let outside = SocketAddr::from(([203, 0, 113, 1], port));
                several.pair.rebind_nat(outside);
            }
            Turn::UpdateKeys(side) => {
                several.end(side).initiate_key_update(now);
            }
            Turn::Pass(millis) => {
                several
                    .pair
                    .drive_until(Duration::from_millis(millis), &mut advance);
            }
        }
        if several.client().is_closed() || several.server().is_closed() {
            break;
        }
    }
    for n in 0..4 {
        link(&mut several, n, Conditions::default());
    }
    let done = several.pair.drive_until(TIMEOUT, &mut advance);
    // Both ends may abandon different paths concurrently, and a NAT rebinding may break the last path.
    let no_path = |error: Option<&ConnectionError>| match error {
        Some(ConnectionError::Transport(error)) => error.code == ErrorCode::NO_VIABLE_PATH,
        Some(ConnectionError::PeerTransport { code, .. }) => *code == ErrorCode::NO_VIABLE_PATH,
        Some(_) => false,
        None => true,
    };
    assert!(
        done,
        "stalled: {} down, {} up",
        down.received(),
        up.received()
    );
    for side in [Side::Client, Side::Server] {
        let connection = several.end(side);
        assert!(no_path(connection.error()), "{:?}", connection.error());
    }
}

#[test]
fn data_arrives_complete_while_paths_are_opened_and_abandoned_at_random() {
    let turns = (prop::collection::vec(turn(), 1..30), any::<u64>());
    for_random(24, &turns, |(turns, seed)| run(&turns, seed));
}
