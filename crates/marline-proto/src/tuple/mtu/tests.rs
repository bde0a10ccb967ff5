use super::*;
use proptest::prelude::*;

/// The payload of an Ethernet frame without IPv6 and UDP headers.
const CEILING: u16 = 1452;

/// Probes a path with an MTU of `limit` until the search pauses; returns the number of probes.
fn search(mtu: &mut MtuDiscovery, limit: u16, now: Instant) -> u64 {
    let mut number = 0;
    while let Some(size) = mtu.poll_probe(now) {
        assert!(size > mtu.current());
        mtu.on_probe_sent(number);
        assert_eq!(mtu.poll_probe(now), None, "one probe at a time");
        if size <= limit {
            assert_eq!(mtu.on_probe_acked(number), Some(size));
            assert_eq!(mtu.current(), size);
        } else {
            mtu.on_probe_lost(number);
        }
        number += 1;
    }
    number
}

#[test]
fn the_size_of_ethernet_is_found_with_one_probe() {
    let mut mtu = MtuDiscovery::new(CEILING);
    assert_eq!(mtu.current(), 1200);
    assert_eq!(search(&mut mtu, 1472, Instant::EPOCH), 1);
    assert_eq!(mtu.current(), 1452);
    let later = Instant::EPOCH + RAISE_INTERVAL * 2;
    assert_eq!(mtu.poll_probe(later), None, "the ceiling is reached");
}

#[test]
fn common_sizes_are_found_exactly() {
    for size in COMMON_SIZES {
        let mut mtu = MtuDiscovery::new(MAX_CEILING);
        let probes = search(&mut mtu, size, Instant::EPOCH);
        assert!(mtu.current() <= size && size - mtu.current() <= RESOLUTION);
        assert!(COMMON_SIZES.contains(&mtu.current()));
        assert!(probes <= 60, "{probes} probes to find {size}");
    }
}

#[test]
fn no_probe_is_sent_with_a_ceiling_of_1200() {
    for ceiling in [0, 1200] {
        assert_eq!(MtuDiscovery::new(ceiling).poll_probe(Instant::EPOCH), None);
    }
}

#[test]
fn the_limit_of_the_peer_lowers_the_ceiling() {
    let mut mtu = MtuDiscovery::new(CEILING);
    mtu.set_peer_limit(1300);
    search(&mut mtu, 9000, Instant::EPOCH);
    assert_eq!(mtu.current(), 1300);
    mtu.set_peer_limit(0);
    assert_eq!(mtu.current(), 1200);
    mtu.set_peer_limit(u64::MAX);
    assert_eq!(
        mtu.poll_probe(Instant::EPOCH),
        None,
        "the limit never grows"
    );
}

#[test]
fn larger_sizes_are_probed_again_after_the_raise_interval() {
    let mut mtu = MtuDiscovery::new(CEILING);
    search(&mut mtu, 1392, Instant::EPOCH);
    assert_eq!(mtu.current(), 1392);
    let before = Instant::EPOCH + RAISE_INTERVAL - Duration::from_nanos(1);
    assert_eq!(mtu.poll_probe(before), None);
    assert_eq!(
        mtu.poll_probe(Instant::EPOCH + RAISE_INTERVAL),
        Some(CEILING)
    );
}

#[test]
fn a_size_is_probed_again_after_fewer_losses_than_the_limit() {
    let mut mtu = MtuDiscovery::new(CEILING);
    for number in 0..u64::from(MTU_PROBES) - 1 {
        assert_eq!(mtu.poll_probe(Instant::EPOCH), Some(1452));
        mtu.on_probe_sent(number);
        mtu.on_probe_lost(number);
    }
    search(&mut mtu, 1452, Instant::EPOCH);
    assert_eq!(mtu.current(), 1452);
}

#[test]
fn acks_of_packets_that_were_no_probe_are_ignored() {
    let mut mtu = MtuDiscovery::new(CEILING);
    assert_eq!(mtu.on_probe_acked(7), None);
    assert_eq!(mtu.poll_probe(Instant::EPOCH), Some(1452));
    mtu.on_probe_sent(9);
    assert_eq!(mtu.on_probe_acked(8), None);
    assert_eq!(mtu.on_probe_acked(9), Some(1452));
}

#[test]
fn a_size_refused_by_the_interface_is_not_probed_again() {
    let mut mtu = MtuDiscovery::new(CEILING);
    assert_eq!(mtu.poll_probe(Instant::EPOCH), Some(1452));
    assert!(!mtu.on_refused(1452));
    search(&mut mtu, 1400, Instant::EPOCH);
    assert_eq!(mtu.current(), 1392);
    assert!(mtu.on_refused(1392), "the MTU of the interface decreased");
    assert_eq!(mtu.current(), 1200);
    assert!(!mtu.on_refused(1200));
    search(&mut mtu, 1372, Instant::EPOCH);
    assert_eq!(mtu.current(), 1372);
}

/// A search completed at 1452 bytes.
fn settled() -> MtuDiscovery {
    let mut mtu = MtuDiscovery::new(CEILING);
    search(&mut mtu, 1452, Instant::EPOCH);
    mtu
}

#[test]
fn a_black_hole_is_detected_and_smaller_sizes_are_probed_at_once() {
    let mut mtu = settled();
    for round in 1..=u64::from(MTU_BLACK_HOLE_ROUNDS) {
        let first = round * 100;
        mtu.on_acked(first + 10, 1200);
        let fell = (first..first + 10)
            .filter(|&lost| mtu.on_lost(lost, 1452, first + 10))
            .count();
        let last = round == u64::from(MTU_BLACK_HOLE_ROUNDS);
        assert_eq!(fell, usize::from(last), "round {round}");
    }
    assert_eq!(mtu.current(), 1200);
    search(&mut mtu, 1400, Instant::EPOCH);
    assert_eq!(mtu.current(), 1392, "smaller sizes are probed at once");
}

#[test]
fn losses_with_large_packets_acknowledged_are_no_black_hole() {
    let mut mtu = settled();
    for round in 0..50 {
        let first = round * 100;
        for lost in first..first + 90 {
            assert!(!mtu.on_lost(lost, 1452, first + 99));
        }
        mtu.on_acked(first + 95, 1100);
        mtu.on_acked(first + 96, 1452);
    }
    assert_eq!(mtu.current(), 1452);
}

#[test]
fn losses_without_any_ack_are_no_black_hole() {
    let mut mtu = settled();
    for number in 0..1000 {
        assert!(!mtu.on_lost(number, 1452, number));
    }
    assert_eq!(mtu.current(), 1452);
}

#[test]
fn losses_of_small_packets_are_no_black_hole() {
    let mut mtu = settled();
    for number in 0..1000 {
        mtu.on_acked(number, 40);
        assert!(!mtu.on_lost(number, 1200, number));
    }
}

proptest! {
    /// For any MTU the search ends, at most at the MTU and at most `RESOLUTION` below.
    #[test]
    fn the_search_ends_near_the_largest_size_that_passes(limit in 1200..=MAX_CEILING, ceiling in 1200..=MAX_CEILING) {
        let mut mtu = MtuDiscovery::new(ceiling);
        let probes = search(&mut mtu, limit, Instant::EPOCH);
        let best = limit.min(ceiling);
        prop_assert!(mtu.current() <= best);
        prop_assert!(best - mtu.current() <= RESOLUTION);
        prop_assert!(probes <= 66, "{} probes", probes);
    }

    /// After any events the size is within 1200..=ceiling.
    #[test]
    fn the_size_stays_between_1200_and_the_ceiling(
        ceiling: u16,
        events in prop::collection::vec((0..7u8, 0..64u64, any::<u16>()), 0..300),
    ) {
        let mut mtu = MtuDiscovery::new(ceiling);
        let top = ceiling.clamp(1200, MAX_CEILING);
        let mut now = Instant::EPOCH;
        for (event, number, size) in events {
            match event {
                0 | 1 => if mtu.poll_probe(now).is_some() { mtu.on_probe_sent(number) },
                2 => drop(mtu.on_probe_acked(number)),
                3 => mtu.on_probe_lost(number),
                4 => mtu.on_acked(number, size),
                5 => drop(mtu.on_lost(number, size, number + u64::from(size))),
                _ => drop(mtu.on_refused(size)),
            }
            now += Duration::from_secs(20);
            prop_assert!((1200..=top).contains(&mtu.current()));
        }
    }
}
