use super::*;
use crate::congestion::conformance::conformance;
use crate::congestion::{Algorithm, Bbr3Config, ControllerConfig, ControllerFactory};

const MTU: u64 = 1200;
const WINDOW: u64 = 32 * MTU;
const RTT: Duration = Duration::from_millis(40);
const VIEW: RttView = RttView {
    latest: RTT,
    adjusted: RTT,
    smoothed: RTT,
    min: RTT,
    variance: Duration::ZERO,
};

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(1000 + ms)
}

fn own() -> Box<dyn Controller> {
    Bbr3Config::WIRELESS.build(ControllerConfig {
        initial_window: WINDOW,
        ..ControllerConfig::new(MTU)
    })
}

fn joins() -> Joins {
    Joins {
        in_flight: 0,
        datagram: MTU,
        rate: DeliveryRate::default(),
        rtt: RTT,
    }
}

/// Members of one bundle, with what each has in flight and has sent.
struct Members {
    shared: SharedController,
    members: Vec<Box<dyn Controller>>,
    in_flight: Vec<u64>,
    next: Vec<u64>,
    delivered: Vec<u64>,
}

impl Members {
    fn new(count: usize) -> Self {
        let shared = SharedController::default();
        let members = (0..count).map(|_| {
            let mut member = own();
            assert!(shared.add(&mut member, &joins()));
            member
        });
        Self {
            members: members.collect(),
            shared: shared.clone(),
            in_flight: vec![0; count],
            next: vec![0; count],
            delivered: vec![0; count],
        }
    }

    fn window(&self, member: usize) -> u64 {
        self.members[member].window()
    }

    /// A member sends `packets`.
    fn send(&mut self, now: Instant, member: usize, packets: u64, app_limited: bool) {
        for _ in 0..packets {
            self.in_flight[member] += MTU;
            let sent = SentSample {
                packet_number: self.next[member],
                bytes: MTU,
                bytes_in_flight: self.in_flight[member],
                app_limited,
            };
            self.next[member] += 1;
            self.members[member].on_sent(now, &sent);
        }
    }

    /// A member sends all that its window has room for.
    fn fill(&mut self, now: Instant, member: usize) {
        let room = self.window(member).saturating_sub(self.in_flight[member]);
        self.send(now, member, room / MTU, false);
    }

    /// All that a member sent at `sent_at` is acknowledged.
    fn acknowledge(&mut self, now: Instant, member: usize, sent_at: Instant, app_limited: bool) {
        let bytes = std::mem::take(&mut self.in_flight[member]);
        self.delivered[member] += bytes;
        let ack = AckSample {
            bytes,
            bytes_in_flight: 0,
            prior_in_flight: bytes,
            largest_acked: self.next[member] - 1,
            largest_sent: self.next[member] - 1,
            largest_acked_sent_at: sent_at,
            rtt: VIEW,
            rtt_updated: true,
            rate: Some(crate::samples::RateSample {
                delivered: bytes,
                interval: RTT,
                prior_delivered: self.delivered[member] - bytes,
                delivered_total: self.delivered[member],
                in_flight_at_send: bytes,
                lost: 0,
                app_limited,
            }),
            app_limited,
        };
        self.members[member].on_ack(now, &ack);
    }

    /// `rounds` round trips from `start` on in which `members` send all they may; returns when they end.
    fn rounds(&mut self, start: u64, rounds: u64, members: &[usize]) -> u64 {
        for round in 0..rounds {
            let ms = start + 40 * round;
            for &member in members {
                self.fill(at(ms), member);
            }
            for &member in members {
                self.acknowledge(at(ms + 40), member, at(ms), false);
            }
        }
        start + 40 * rounds
    }
}

#[test]
fn a_lone_member_conforms_like_the_controller_itself() {
    let factories: [Box<dyn ControllerFactory>; 3] = [
        Box::new(Algorithm::Bbr),
        Box::new(Algorithm::Bbr3),
        Box::new(Bbr3Config::WIRELESS),
    ];
    for factory in factories {
        conformance(|config| {
            let mut member = factory.build(config);
            assert!(SharedController::default().add(&mut member, &joins()));
            member
        });
    }
}

#[test]
fn idle_members_leave_the_whole_window_and_rate_to_the_others() {
    let mut members = Members::new(3);
    assert_eq!(members.window(2), WINDOW);
    let alone = own().pacing_rate(&VIEW);
    assert_eq!(members.members[2].pacing_rate(&VIEW), alone);
    let end = members.rounds(0, 4, &[0, 1, 2]);
    for member in 0..3 {
        assert_eq!(Some(members.window(member)), members.shared.window());
    }
    members.send(at(end), 0, 1, false);
    let rest = members.shared.window().map(|window| window - MTU);
    assert_eq!(Some(members.window(1)), rest);
}

#[test]
fn members_that_begin_together_send_one_initial_window() {
    let mut members = Members::new(3);
    for packet in 0..WINDOW / MTU {
        members.send(at(0), packet as usize % 3, 1, false);
    }
    for member in 0..3 {
        assert!(members.window(member) <= members.in_flight[member] + 2 * MTU);
    }
}

#[test]
fn members_with_data_share_the_window_equally() {
    let mut members = Members::new(2);
    members.fill(at(0), 0);
    assert_eq!(members.in_flight[0], WINDOW);
    // The other may begin at once, and the first gives way as it is acknowledged.
    assert_eq!(members.window(1), WINDOW / 2);
    members.fill(at(1), 1);
    assert_eq!(members.window(0), WINDOW / 2);
}

#[test]
fn a_joining_member_begins_with_the_window_and_rate_of_the_others() {
    let mut members = Members::new(1);
    members.rounds(0, 6, &[0]);
    let grown = members.shared.window();
    assert!(grown > Some(4 * WINDOW));
    let mut joining = own();
    assert!(members.shared.add(&mut joining, &joins()));
    assert_eq!(Some(joining.window()), grown);
    assert!(joining.bandwidth().is_some());
    assert_eq!(joining.bandwidth(), members.members[0].bandwidth());
}

#[test]
fn the_delivery_rate_is_that_of_all_members() {
    let mut one = Members::new(1);
    one.rounds(0, 3, &[0]);
    let mut three = Members::new(3);
    for round in 0..3 {
        let ms = 40 * round;
        let each = one_window(&three) / 3 / MTU;
        (0..3).for_each(|member| three.send(at(ms), member, each, false));
        (0..3).for_each(|member| three.acknowledge(at(ms + 40), member, at(ms), false));
    }
    let of = |members: &Members| members.members[0].bandwidth().expect("it is measured");
    let (one, three) = (of(&one), of(&three));
    assert!(three > one * 4 / 5 && three < one * 6 / 5, "{one}, {three}");
}

fn one_window(members: &Members) -> u64 {
    members.shared.window().expect("there are members")
}

#[test]
fn persistent_congestion_of_one_is_that_of_all_unless_another_was_answered() {
    let mut members = Members::new(2);
    let end = members.rounds(0, 5, &[0, 1]);
    let loss = |sent: u64| LossSample {
        bytes: MTU,
        packets: 1,
        largest_lost: 1,
        latest_sent_at: at(sent),
        largest_sent: 1,
        bytes_in_flight: 0,
        persistent: true,
    };
    let before = members.shared.window();
    // Another member was answered since: the path delivers.
    members.members[0].on_loss(at(end), &loss(end - 50));
    assert_eq!(members.shared.window(), before);
    members.members[0].on_loss(at(end + 500), &loss(end + 100));
    assert!(members.shared.window() < before);
    assert_eq!(Some(members.window(1)), members.shared.window());
}

#[test]
fn a_member_that_is_not_answered_or_gone_holds_nothing_of_the_window() {
    let mut members = Members::new(3);
    let end = members.rounds(0, 4, &[0, 1, 2]);
    members.fill(at(end), 0);
    members.fill(at(end), 1);
    assert!(Some(members.window(2)) < members.shared.window());
    members.send(at(end + 161), 2, 1, false);
    assert_eq!(Some(members.window(2)), members.shared.window());
    let mut members = Members::new(2);
    members.fill(at(0), 0);
    drop(members.members.remove(0));
    assert_eq!(members.members[0].window(), WINDOW);
}

#[test]
fn no_more_members_share_than_a_bundle_may_have() {
    let members = Members::new(MAX_MEMBERS);
    let mut further = own();
    assert!(!members.shared.add(&mut further, &joins()));
    assert_eq!(further.window(), WINDOW);
}

#[test]
fn a_member_may_join_the_controller_that_it_uses_already() {
    let mut members = Members::new(1);
    let shared = members.shared.clone();
    assert!(shared.add(&mut members.members[0], &joins()));
    assert_eq!(members.window(0), WINDOW);
}

fn sent(packet_number: u64, packets_in_flight: u64) -> SentSample {
    SentSample {
        packet_number,
        bytes: MTU,
        bytes_in_flight: packets_in_flight * MTU,
        app_limited: false,
    }
}

/// All of a member's `packets` are acknowledged, the last of which is `largest` and left at `sent_at`.
fn acked(largest: u64, packets: u64, sent_at: Instant) -> AckSample {
    AckSample {
        bytes: packets * MTU,
        bytes_in_flight: 0,
        prior_in_flight: packets * MTU,
        largest_acked: largest,
        largest_sent: largest,
        largest_acked_sent_at: sent_at,
        rtt: VIEW,
        rtt_updated: true,
        rate: Some(crate::samples::RateSample {
            delivered: packets * MTU,
            interval: RTT,
            prior_delivered: 0,
            delivered_total: packets * MTU,
            in_flight_at_send: packets * MTU,
            lost: 0,
            app_limited: false,
        }),
        app_limited: false,
    }
}

fn lost(packet_number: u64, sent_at: Instant) -> PacketLoss {
    PacketLoss {
        packet_number,
        bytes: MTU,
        sent_at,
        in_flight_at_send: MTU,
        lost: MTU,
        delivered_total: 0,
        app_limited: false,
    }
}

/// Members that joined in this order.
fn sending(members: usize) -> (Sending, Vec<MemberId>) {
    let mut sending = Sending::default();
    let ids = (0..members).map(|place| sending.join(&joins(), place == 0));
    let ids = ids.collect();
    (sending, ids)
}

#[test]
fn packets_of_all_members_are_numbered_in_the_order_in_which_they_were_sent() {
    let (mut sending, ids) = sending(2);
    for number in 0..6 {
        let member = ids[number as usize % 2];
        let sample = sending.on_sent(at(0), member, &sent(number / 2, number / 2 + 1));
        assert_eq!(sample.packet_number, number);
    }
    // A row on the path, of which each member sees a part.
    let numbers = [(0, 1), (0, 2), (1, 0), (1, 1)]
        .map(|(member, number)| sending.on_packet_lost(ids[member], &lost(number, at(0))))
        .map(|lost| lost.packet_number);
    assert_eq!(numbers, [2, 4, 1, 3]);
}

#[test]
fn a_member_that_no_other_ever_joined_sees_its_own_samples() {
    let (mut sending, ids) = sending(1);
    let text = |value: &dyn fmt::Debug| format!("{value:?}");
    for packet in [sent(7, 1), sent(9, 2)] {
        assert_eq!(
            text(&sending.on_sent(at(0), ids[0], &packet)),
            text(&packet)
        );
    }
    let loss = lost(7, at(0));
    assert_eq!(text(&sending.on_packet_lost(ids[0], &loss)), text(&loss));
    let ack = acked(9, 1, at(0));
    assert_eq!(text(&sending.on_ack(at(40), ids[0], &ack)), text(&ack));
}

#[test]
fn acknowledgments_that_arrive_together_are_delivered_before_what_is_sent_then() {
    let (mut sending, ids) = sending(2);
    for number in 0..10 {
        for &member in &ids {
            sending.on_sent(at(0), member, &sent(number, number + 1));
        }
    }
    sending.on_ack(at(40), ids[0], &acked(9, 10, at(0)));
    sending.on_sent(at(40), ids[0], &sent(10, 1));
    sending.on_ack(at(40), ids[1], &acked(9, 10, at(0)));
    let ack = sending.on_ack(at(80), ids[0], &acked(10, 1, at(40)));
    assert_eq!(ack.rate.map(|rate| rate.delivered), Some(MTU));
}
