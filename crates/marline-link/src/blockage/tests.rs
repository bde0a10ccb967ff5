use super::*;
use crate::process::Steady;

const CONFIG: BlockageConfig = BlockageConfig {
    clear: Duration::from_secs(3),
    blocked: Duration::from_secs(1),
    rate: 0.1,
};

fn blockage(seed: u64) -> Blockage {
    let steady = Steady {
        bits_per_second: 1_000_000,
    };
    Blockage::new(CONFIG, Box::new(steady), Seed::new(seed))
}

#[test]
fn periods_have_their_mean_lengths_and_rates() {
    let mut process = blockage(1);
    let (mut now, mut lengths) = (Time::ZERO, [Vec::new(), Vec::new()]);
    for _ in 0..20_000 {
        let segment = process.at(now);
        let is_blocked = segment.bits_per_second != 1_000_000;
        assert!(!is_blocked || segment.bits_per_second == 100_000);
        lengths[usize::from(is_blocked)].push(segment.until.since(now).as_secs_f64());
        now = segment.until;
    }
    let mean = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len() as f64;
    let [clear, blocked] = [mean(&lengths[0]), mean(&lengths[1])];
    assert!(
        (clear - 3.0).abs() < 0.1 && (blocked - 1.0).abs() < 0.03,
        "{clear} {blocked}"
    );
    // Exponential: the standard deviation is the mean.
    let square = lengths[0].iter().map(|x| (x - clear).powi(2)).sum::<f64>();
    let deviation = (square / lengths[0].len() as f64).sqrt();
    assert!((deviation - 3.0).abs() < 0.15, "{deviation}");
}

#[test]
fn it_begins_in_the_stationary_state() {
    let blocked =
        (0..4000).filter(|seed| blockage(*seed).at(Time::ZERO).bits_per_second == 100_000);
    let share = blocked.count() as f64 / 4000.0;
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

#[test]
fn states_depend_on_time_only() {
    let (mut often, mut seldom) = (blockage(2), blockage(2));
    for second in 0..300 {
        let now = Time::from_nanos(second * 1_000_000_000);
        let segment = often.at(now);
        if second % 7 == 0 {
            assert_eq!(seldom.at(now), segment);
        }
    }
}
