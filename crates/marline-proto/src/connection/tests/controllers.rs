//! Each congestion controller on a bottleneck of 10 Mbit/s and 40 ms.

use super::*;
use crate::congestion::Algorithm;

const RATE: u64 = 1_250_000;

fn bottleneck(algorithm: Algorithm, seed: u64, conditions: Conditions) -> Pair {
    let transport = TransportConfig {
        controller: Arc::new(algorithm),
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(PairConfig {
        server: transport,
        seed,
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        rate: Some(RATE),
        delay: Duration::from_millis(20),
        ..conditions
    });
    pair
}

/// The share of the bottleneck's rate that a transfer of 6 MB gets.
fn share(algorithm: Algorithm, seed: u64, conditions: Conditions) -> f64 {
    let mut pair = bottleneck(algorithm, seed, conditions);
    let ends = pair.establish();
    let took = download(&mut pair, ends, &pattern(6_000_000));
    assert_eq!(
        pair.server(ends.server).stats().paths[0].controller,
        algorithm.name()
    );
    6_000_000.0 / took.as_secs_f64() / RATE as f64
}

#[test]
fn every_controller_uses_85_percent_of_a_bottleneck() {
    for algorithm in Algorithm::ALL {
        for queue in [50_000, 200_000] {
            let share = share(
                algorithm,
                1,
                Conditions {
                    queue,
                    ..Conditions::default()
                },
            );
            assert!(share > 0.85, "{algorithm}, queue {queue}: {share:.2}");
        }
    }
}

#[test]
fn every_controller_loses_less_than_five_percent_at_a_small_queue() {
    for algorithm in Algorithm::ALL {
        let mut pair = bottleneck(
            algorithm,
            1,
            Conditions {
                queue: 50_000,
                ..Conditions::default()
            },
        );
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(6_000_000));
        let counts = pair.network.counts(Direction::ToClient);
        assert!(counts.lost * 20 < counts.sent, "{algorithm}: {counts:?}");
    }
}

#[test]
fn bbr_keeps_its_rate_under_random_loss_of_one_percent() {
    let lossy = Conditions {
        loss: 0.01,
        queue: 100_000,
        ..Conditions::default()
    };
    let bbr = share(Algorithm::Bbr, 2, lossy);
    assert!(bbr > 0.8, "{bbr:.2}");
}

#[test]
fn each_of_two_connections_gets_a_quarter_of_a_bottleneck() {
    for algorithm in Algorithm::ALL {
        let mut pair = bottleneck(
            algorithm,
            3,
            Conditions {
                queue: 50_000,
                ..Conditions::default()
            },
        );
        let mut transfers: Vec<Transfer> = (0..2)
            .map(|_| {
                let ends = pair.establish();
                Transfer::down(&mut pair, ends, &pattern(20_000_000))
            })
            .collect();
        pair.drive_until(Duration::from_secs(15), |pair| {
            for transfer in &mut transfers {
                transfer.advance(pair);
            }
            false
        });
        let received: Vec<usize> = transfers.iter().map(Transfer::received).collect();
        let least = *received.iter().min().expect("there are two") as f64;
        let total = received.iter().sum::<usize>() as f64;
        assert!(least / total > 0.25, "{algorithm}: {received:?}");
        assert!(
            total > 0.85 * 15.0 * RATE as f64,
            "{algorithm}: {received:?}"
        );
    }
}
