//! Packets that arrive after they were declared lost.

use super::*;

#[test]
fn late_packet_is_reported_and_does_not_count_as_in_flight_again() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.path.lost, [1]);
    bench.ack(at(160), 1..=4);
    assert_eq!(bench.path.spurious, [1]);
    assert_eq!(bench.path.acked, [2, 3, 4, 1]);
    assert_eq!(bench.recovery.in_flight(), 0);
    assert_eq!(bench.recovery.counters().spurious_losses, 1);
}

#[test]
fn epoch_whose_losses_were_all_spurious_is_undone_by_controllers_that_can() {
    let mut bench = Bench::with(Algorithm::Cubic, None);
    bench.send(at(0));
    bench.ack(at(50), 0..=0);
    let before = bench.window();
    bench.send_many(at(100), 5);
    bench.ack(at(150), 5..=5);
    assert_eq!(bench.path.lost, [1, 2]);
    assert!(bench.window() < before);
    bench.ack(at(155), 1..=1);
    let reduced = bench.window();
    assert!(reduced < before, "one loss is still unexplained");
    bench.ack(at(160), 2..=2);
    assert!(bench.window() > reduced);
}

#[test]
fn spurious_loss_of_an_earlier_flight_does_not_explain_the_latest_epoch() {
    let mut epoch = epoch::LossEpoch::default();
    let sample = |packets, sent_at| crate::samples::LossSample {
        bytes: 0,
        packets,
        largest_lost: 0,
        latest_sent_at: sent_at,
        largest_sent: 0,
        bytes_in_flight: 0,
        persistent: false,
    };
    assert!(epoch.on_loss(at(150), &sample(1, at(100))));
    assert!(!epoch.on_loss(at(151), &sample(1, at(101))));
    assert_eq!(epoch.on_spurious_loss(at(160)), None, "sent after it began");
    assert_eq!(epoch.on_spurious_loss(at(100)), None, "one is left");
    assert_eq!(epoch.on_spurious_loss(at(101)), Some(at(100)));
    assert_eq!(epoch.on_spurious_loss(at(101)), None, "nothing is left");
}

#[test]
fn lost_packets_are_remembered_for_three_probe_timeouts() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 2..=4);
    bench.send(at(2_000));
    bench.ack(at(2_050), 5..=5);
    assert_eq!(bench.ack(at(2_051), 1..=5), None);
    assert!(bench.path.spurious.is_empty());
}

/// Section 7.3.2: a new epoch begins with a packet that was sent after the last one began.
#[test]
fn loss_of_a_packet_sent_at_the_moment_of_the_reduction_is_of_the_same_epoch() {
    let mut epoch = epoch::LossEpoch::default();
    let sample = |sent_at| crate::samples::LossSample {
        bytes: 0,
        packets: 1,
        largest_lost: 0,
        latest_sent_at: sent_at,
        largest_sent: 0,
        bytes_in_flight: 0,
        persistent: false,
    };
    assert!(epoch.on_loss(at(150), &sample(at(100))));
    assert!(!epoch.on_loss(at(200), &sample(at(150))));
    assert!(epoch.on_loss(at(201), &sample(at(151))));
}
