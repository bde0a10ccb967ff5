use super::*;
use conformance::conformance;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn rtt(millis: u64) -> RttView {
    RttView {
        latest: ms(millis),
        adjusted: ms(millis),
        smoothed: ms(millis),
        min: ms(millis),
        variance: Duration::ZERO,
    }
}

fn after(packets_after: u64) -> PacketView {
    PacketView {
        packets_after,
        sent_at: Instant::EPOCH,
    }
}

fn at(time: Duration) -> Instant {
    Instant::EPOCH + time
}

#[test]
fn every_detector_conforms() {
    DETECTORS.check_each(|make| conformance(|| make()));
}

#[test]
fn rfc9002_has_both_thresholds() {
    let detector = Fixed::rfc9002();
    let now = at(ms(1));
    assert_eq!(
        detector.is_lost(&after(3), &rtt(40), now),
        Verdict::Lost(Cause::Packet)
    );
    assert_eq!(
        detector.is_lost(&after(2), &rtt(40), now),
        Verdict::Until(at(ms(45)))
    );
    assert_eq!(
        detector.is_lost(&after(2), &rtt(40), at(ms(45))),
        Verdict::Lost(Cause::Time)
    );
    assert_eq!(detector.time_threshold(&rtt(0)), ms(1), "granularity");
}

#[test]
fn patient_waits_half_a_round_trip_however_many_packets_follow() {
    let detector = Fixed::patient();
    assert_eq!(
        detector.is_lost(&after(500), &rtt(40), at(ms(59))),
        Verdict::Until(at(ms(60)))
    );
}

#[test]
fn adaptive_learns_the_reordering_it_sees() {
    let mut detector = Adaptive::default();
    detector.on_spurious_loss(
        &Spurious {
            packets_after: 40,
            elapsed: ms(60),
        },
        &rtt(40),
    );
    assert_eq!(detector.packet_threshold(), Some(41));
    assert_eq!(
        detector.time_threshold(&rtt(40)),
        ms(60) + ms(60) / 16,
        "the same delay passes the next time"
    );
}

#[test]
fn adaptive_has_limits() {
    let mut detector = Adaptive::new(AdaptiveLimits {
        packets: 20,
        patience: 0.5,
        wait: ms(50),
        ..AdaptiveLimits::default()
    });
    detector.on_spurious_loss(
        &Spurious {
            packets_after: u64::MAX,
            elapsed: Duration::MAX,
        },
        &rtt(40),
    );
    assert_eq!(detector.packet_threshold(), Some(20));
    assert_eq!(detector.time_threshold(&rtt(40)), ms(60));
}

#[test]
fn adaptive_waits_for_what_came_late_however_short_the_round_trips_of_overtaking_packets() {
    let mut detector = Adaptive::default();
    let spurious = Spurious {
        packets_after: 40,
        elapsed: ms(10),
    };
    detector.on_spurious_loss(&spurious, &rtt(1));
    assert_eq!(detector.time_threshold(&rtt(1)), ms(10) + ms(10) / 16);
    let late = Spurious {
        elapsed: Duration::MAX,
        ..spurious
    };
    detector.on_spurious_loss(&late, &rtt(1));
    assert_eq!(detector.time_threshold(&rtt(1)), ms(100));
}

#[test]
fn adaptive_begins_and_ends_where_it_is_told() {
    let mut detector = Adaptive::new(AdaptiveLimits {
        from_packets: None,
        from_patience: 0.25,
        ..AdaptiveLimits::default()
    });
    assert_eq!(
        detector.is_lost(&after(500), &rtt(40), at(ms(49))),
        Verdict::Until(at(ms(50))),
        "no number of packets undoes the time threshold"
    );
    detector.on_spurious_loss(
        &Spurious {
            packets_after: 66,
            elapsed: ms(70),
        },
        &rtt(40),
    );
    assert_eq!(detector.packet_threshold(), None);
    assert!(detector.time_threshold(&rtt(40)) > ms(70));
    (0..16 * 20).for_each(|_| detector.on_loss());
    assert_eq!(detector.packet_threshold(), None);
    assert!(detector.time_threshold(&rtt(40)) < ms(51));
}

#[test]
fn adaptive_forgets_slowly() {
    let mut detector = Adaptive::default();
    let spurious = Spurious {
        packets_after: 66,
        elapsed: ms(80),
    };
    detector.on_spurious_loss(&spurious, &rtt(40));
    (0..15).for_each(|_| detector.on_loss());
    assert_eq!(detector.packet_threshold(), Some(67));
    detector.on_loss();
    assert_eq!(detector.packet_threshold(), Some(35));
    let halved = ms(40) * 9 / 8 + (ms(80) - ms(40) * 9 / 8) / 2;
    assert_eq!(detector.time_threshold(&rtt(40)), halved);
    (0..16 * 10).for_each(|_| detector.on_loss());
    assert_eq!(detector.packet_threshold(), Some(3));
    assert!(detector.time_threshold(&rtt(40)) < ms(46));
}

#[test]
fn adaptive_learns_no_patience_without_a_round_trip_time() {
    let mut detector = Adaptive::default();
    let spurious = Spurious {
        packets_after: 1,
        elapsed: ms(80),
    };
    detector.on_spurious_loss(&spurious, &rtt(0));
    assert_eq!(detector.time_threshold(&rtt(40)), ms(45));
}

#[test]
fn gquic_waits_an_eighth_of_a_round_trip_however_many_packets_follow() {
    let detector = Fixed::gquic();
    assert_eq!(
        detector.is_lost(&after(500), &rtt(40), at(ms(44))),
        Verdict::Until(at(ms(45)))
    );
}

#[test]
fn detectors_have_the_names_of_their_settings() {
    let detectors: [Box<dyn LossDetector>; 4] = [
        Box::new(Fixed::rfc9002()),
        Box::new(Fixed::gquic()),
        Box::new(Fixed::patient()),
        Box::new(Adaptive::default()),
    ];
    let specs = detectors.map(|detector| {
        let spec = detector.spec();
        assert_eq!(detector.name(), spec.name());
        spec.to_string()
    });
    let expected = ["rfc9002", "gquic", "patient", "adaptive"];
    assert_eq!(specs, expected);
}

#[test]
fn settings_make_each_detector_and_describe_it_in_its_own_words() {
    let names = DETECTORS.names();
    assert_eq!(names, ["rfc9002", "gquic", "patient", "adaptive"]);
    for name in names {
        let make = DETECTORS.make(name).expect("it is in the table");
        assert_eq!(make().name(), name);
        let named = DETECTORS.words().into_iter().find(|it| it.name == name);
        let about = named.expect("it is in the table").about;
        let same = DETECTORS.words().into_iter().filter(|it| it.about == about);
        assert_eq!(same.count(), 1, "{about}");
    }
}
