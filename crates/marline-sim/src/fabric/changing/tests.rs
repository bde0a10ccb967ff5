use marline_link::Seed;
use marline_link::spec::LinkSpec;

use super::*;

fn medium(spec: &str) -> Box<dyn Medium<u32>> {
    let spec: LinkSpec = spec.parse().unwrap();
    spec.build(Seed::new(1)).unwrap().remove(0)
}

fn packet(body: u32) -> Packet<u32> {
    Packet::new(1000, body)
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

#[test]
fn packets_stay_on_the_medium_that_they_entered() {
    let switch = Switch::default();
    let mut changing =
        Changing::new(medium("rtt=200ms"), switch.clone()).then(2, medium("rtt=20ms"));
    changing.push(at(0), 0, 1, packet(1));
    switch.advance(1);
    changing.push(at(1), 0, 1, packet(2));
    switch.advance(2);
    switch.advance(1);
    assert_eq!(switch.state(), 2);
    changing.push(at(50), 0, 1, packet(3));
    let mut order = Vec::new();
    while let Some(due) = changing.next_event() {
        if let Some(carried) = changing.pop(due) {
            order.push((carried.exit.packet.body, carried.exit.at));
        }
    }
    assert_eq!(order, [(3, at(60)), (1, at(100)), (2, at(101))]);
}

#[test]
fn a_late_caller_gets_packets_in_the_order_of_their_times() {
    let switch = Switch::default();
    let mut changing =
        Changing::new(medium("rtt=200ms"), switch.clone()).then(1, medium("rtt=20ms"));
    changing.push(at(0), 0, 1, packet(1));
    switch.advance(1);
    changing.push(at(50), 1, 0, packet(2));
    let late = at(1000);
    let all: Vec<_> = std::iter::from_fn(|| changing.pop(late))
        .map(|carried| (carried.from, carried.exit.packet.body))
        .collect();
    assert_eq!(all, [(1, 2), (0, 1)]);
    assert_eq!(changing.stations(), 2);
}
