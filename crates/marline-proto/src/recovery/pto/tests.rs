use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn rtt(smoothed: Duration, variance: Duration) -> RttView {
    RttView {
        latest: smoothed,
        adjusted: smoothed,
        smoothed,
        min: smoothed,
        variance,
    }
}

#[test]
fn periods_follow_the_formula() {
    let rtt = rtt(ms(40), ms(5));
    assert_eq!(period(&rtt), ms(60));
    assert_eq!(persistent_congestion(period(&rtt) + ms(25)), ms(255));
}

#[test]
fn a_steady_path_still_waits_a_granule() {
    assert_eq!(period(&rtt(ms(40), ms(0))), ms(41));
}

#[test]
fn each_timeout_doubles_the_next_within_bounds() {
    assert_eq!(backoff(ms(85), 0), ms(85));
    assert_eq!(backoff(ms(85), 3), ms(680));
    assert_eq!(backoff(ms(85), u32::MAX), backoff(ms(85), MAX_BACKOFF));
    assert_eq!(backoff(Duration::MAX, 5), Duration::MAX);
}
