use super::*;

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

/// Flows with 8 Mbit/s that get a quarter of it from 4 s to 7 s; one packet of ten is lost then.
fn course(until: u64) -> FlowCounts {
    let mut now = Count::default();
    let mut counts = vec![now];
    for ms in (50..=until).step_by(50) {
        let quarter = (4_001..=7_000).contains(&ms);
        now.at = at(ms);
        now.received += if quarter { 12_500 } else { 50_000 };
        now.sent += 10;
        now.lost += u64::from(quarter);
        counts.push(now);
    }
    FlowCounts {
        counts,
        before: at(2_000),
        start: at(4_000),
        end: at(5_000),
    }
}

fn metric(course: &FlowCounts, name: &str) -> f64 {
    let mut outcome = Outcome::default();
    course.add_to(&mut outcome, false);
    (outcome.metrics[name] * 1e6).round() / 1e6
}

#[test]
fn missing_bytes_are_relative_to_the_rate_before_the_visit() {
    let course = course(10_000);
    assert_eq!(metric(&course, "background_before_mbps"), 8.0);
    assert_eq!(metric(&course, "background_during_mbps"), 2.0);
    assert_eq!(metric(&course, "background_after_mbps"), 5.6);
    assert_eq!(metric(&course, "background_before_loss_ratio"), 0.0);
    assert_eq!(metric(&course, "background_during_loss_ratio"), 0.1);
    assert_eq!(metric(&course, "background_missing_bytes"), 2_250_000.0);
}

#[test]
fn flows_recover_with_nine_tenths_of_their_rate_for_a_second() {
    // A second from 6.9 s on has 0.1 s of a quarter: 92.5 %.
    let back = metric(&course(10_000), "background_recovery_s");
    assert!((1.85..=1.95).contains(&back), "{back}");
    // Flows that do not recover are observed to the end.
    assert_eq!(metric(&course(6_500), "background_recovery_s"), 1.5);
}
