//! Explicit congestion notification.

use super::*;
use crate::config::EcnMode;
use crate::congestion::Algorithm;
use crate::observe::events::EcnState;
use crate::tuple::EcnCodepoint;

/// 10 Mbit/s and 40 ms; `share` of the packets is CE-marked.
fn marking(share: f64) -> Conditions {
    Conditions {
        mark: share,
        delay: Duration::from_millis(20),
        rate: Some(1_250_000),
        queue: 100_000,
        ..Conditions::default()
    }
}

#[test]
fn both_ends_validate_ecn_on_a_path_that_keeps_marks() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
    upload(&mut pair, ends, &pattern(100_000));
    for stats in [
        pair.client(ends.client).stats(),
        pair.server(ends.server).stats(),
    ] {
        assert_eq!(stats.paths[0].ecn, EcnState::Capable);
        assert_eq!(stats.paths[0].ecn_ce, 0);
    }
}

#[test]
fn ce_marks_slow_a_window_based_sender_without_any_loss() {
    let cubic = || {
        Pair::with(PairConfig {
            server: TransportConfig {
                controller: Arc::new(Algorithm::Cubic),
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        })
    };
    let mut pair = cubic();
    pair.network.set(marking(0.0));
    let ends = pair.establish();
    let free = download(&mut pair, ends, &pattern(3_000_000));

    let mut pair = cubic();
    pair.network.set(marking(0.0));
    *pair.network.conditions(Direction::ToClient) = marking(0.03);
    let ends = pair.establish();
    let marked = download(&mut pair, ends, &pattern(3_000_000));
    let path = pair.server(ends.server).stats().paths.remove(0);
    assert_eq!(path.packets_lost, 0);
    assert_eq!(path.ecn, EcnState::Capable);
    assert!(path.ecn_ce > 20, "{} marks", path.ecn_ce);
    assert!(
        marked > free.mul_f64(1.3),
        "{free:?} without marks, {marked:?} with marks"
    );
}

#[test]
fn erased_marks_disable_ecn_in_their_direction_only() {
    let mut pair = Pair::new();
    pair.network.conditions(Direction::ToClient).erase_marks = true;
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
    upload(&mut pair, ends, &pattern(100_000));
    assert_eq!(
        pair.server(ends.server).stats().paths[0].ecn,
        EcnState::Failed
    );
    assert_eq!(
        pair.client(ends.client).stats().paths[0].ecn,
        EcnState::Capable
    );
}

#[test]
fn marks_erased_after_validation_disable_ecn() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
    assert_eq!(
        pair.server(ends.server).stats().paths[0].ecn,
        EcnState::Capable
    );
    pair.network.conditions(Direction::ToClient).erase_marks = true;
    download(&mut pair, ends, &pattern(100_000));
    assert_eq!(
        pair.server(ends.server).stats().paths[0].ecn,
        EcnState::Failed
    );
}

#[test]
fn a_transfer_completes_over_a_network_that_drops_marked_packets() {
    let mut pair = both(patient());
    pair.network.filter = Some(Box::new(|_, datagram| datagram.ecn.is_some()));
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
}

#[test]
fn no_packet_is_marked_if_ecn_is_disabled() {
    let mut pair = both(TransportConfig {
        ecn: EcnMode::Off,
        ..TransportConfig::default()
    });
    pair.network.filter = Some(Box::new(|_, datagram| {
        assert_eq!(datagram.ecn, None);
        false
    }));
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
}

/// A server whose packets carry ECT(1) if `controller` is scalable.
fn l4s(controller: Algorithm) -> Pair {
    Pair::with(PairConfig {
        server: TransportConfig {
            controller: Arc::new(controller),
            ecn: EcnMode::L4s,
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    })
}

/// Downloads some data, and returns the number of the server's datagrams with each codepoint before the network changed
/// them.
fn codepoints(pair: &mut Pair) -> [usize; 3] {
    let seen = Arc::new(std::sync::Mutex::new([0; 3]));
    let counted = Arc::clone(&seen);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        let index = match datagram.ecn {
            _ if direction == Direction::ToServer => return false,
            None => 0,
            Some(EcnCodepoint::Ect0) => 1,
            Some(EcnCodepoint::Ect1 | EcnCodepoint::Ce) => 2,
        };
        counted.lock().unwrap()[index] += 1;
        false
    }));
    let ends = pair.establish();
    download(pair, ends, &pattern(300_000));
    let path = pair.server(ends.server).stats().paths.remove(0);
    let seen = *seen.lock().unwrap();
    // PMTU probes are not marked.
    assert_eq!(path.ecn == EcnState::Capable, seen[0] < 5, "{seen:?}");
    seen
}

#[test]
fn controllers_that_are_scalable_send_ect1_with_l4s() {
    for controller in Algorithm::ALL {
        let is_scalable = matches!(controller, Algorithm::Prague | Algorithm::Bbr3);
        let [unmarked, ect0, ect1] = codepoints(&mut l4s(controller));
        assert!(unmarked < 5, "{controller}");
        assert_eq!(
            (ect0 == 0, ect1 > 0),
            (is_scalable, is_scalable),
            "{controller}"
        );
    }
}

#[test]
fn l4s_ends_on_a_path_that_erases_marks_and_transfers_complete() {
    let mut pair = l4s(Algorithm::Prague);
    pair.network.conditions(Direction::ToClient).erase_marks = true;
    let [unmarked, ect0, ect1] = codepoints(&mut pair);
    assert!(
        unmarked > 100 && ect0 == 0 && ect1 < 50,
        "{unmarked}, {ect0}, {ect1}"
    );
}

#[test]
fn a_few_marks_cost_prague_less_than_cubic() {
    let time = |controller: Algorithm, ecn: EcnMode| {
        let mut pair = Pair::with(PairConfig {
            server: TransportConfig {
                controller: Arc::new(controller),
                ecn,
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        });
        *pair.network.conditions(Direction::ToClient) = marking(0.03);
        let ends = pair.establish();
        let time = download(&mut pair, ends, &pattern(3_000_000));
        let path = pair.server(ends.server).stats().paths.remove(0);
        assert!(path.ecn_ce > 20, "{} marks", path.ecn_ce);
        time
    };
    let classic = time(Algorithm::Cubic, EcnMode::Classic);
    let scalable = time(Algorithm::Prague, EcnMode::L4s);
    assert!(scalable < classic, "{scalable:?}, {classic:?} with CUBIC");
}
