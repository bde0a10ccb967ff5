use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, run, satisfies_contract};

fn thinning(every: u64) -> AckThinning<u64> {
    AckThinning::new(NonZeroU64::new(every).unwrap(), Duration::from_millis(10))
}

fn passed(link: &mut AckThinning<u64>, packets: &[(Time, Packet<u64>)]) -> Vec<(u64, Time)> {
    let exits = run(link, packets, Time::MAX);
    let passed = exits.iter().filter(|exit| exit.dropped.is_none());
    passed.map(|exit| (exit.packet.body, exit.at)).collect()
}

#[test]
fn one_in_n_passes_and_the_newest_after_a_time() {
    let packets: Vec<_> = (0..10)
        .map(|body| (ms(body), Packet::new(64, body)))
        .collect();
    // The last two wait for the time since the first of them.
    assert_eq!(
        passed(&mut thinning(4), &packets),
        [(3, ms(3)), (7, ms(7)), (9, ms(18))]
    );
    assert_eq!(passed(&mut thinning(1), &packets).len(), 10);
}

#[test]
fn large_packets_and_other_flows_are_not_delayed() {
    let other = |flow| {
        let mut packet = Packet::new(64, flow);
        packet.flow = flow;
        packet
    };
    let packets = [
        (ms(0), other(1)),
        (ms(1), other(2)),
        (
            ms(2),
            Packet {
                size: 101,
                body: 3,
                ..other(1)
            },
        ),
    ];
    assert_eq!(
        passed(&mut thinning(4), &packets),
        [(1, ms(2)), (3, ms(2)), (2, ms(11))]
    );
}

proptest! {
    #[test]
    fn thinning_satisfies_the_contract_and_passes_the_newest(
        arrivals in arrivals(150, Duration::from_millis(20)),
        every in 1..6_u64,
    ) {
        satisfies_contract(|| thinning(every), &arrivals)?;
        let mut now = Time::ZERO;
        let packets: Vec<_> = (0..).zip(&arrivals).map(|(body, arrival)| {
            now += arrival.gap;
            (now, Packet { flow: arrival.flow, ..Packet::new(arrival.size, body) })
        }).collect();
        let passed = passed(&mut thinning(every), &packets);
        for flow in 0..4 {
            let last = packets.iter().rfind(|(_, packet)| packet.flow == flow);
            if let Some((_, last)) = last {
                prop_assert!(passed.iter().any(|(body, _)| *body == last.body));
            }
        }
        let small = packets.iter().filter(|(_, packet)| is_small(packet)).count();
        let large = packets.len() - small;
        prop_assert!(passed.len() >= large + small / every as usize / 4);
    }
}
