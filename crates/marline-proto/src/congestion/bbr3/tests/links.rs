//! Properties that hold on every link.

use super::*;

const LINKS: u64 = 24;

impl Bench {
    /// A link of random rate, delay and queue.
    fn random(seed: u64) -> Self {
        let mut rng = Pcg32::seed_from_u64(seed);
        let rate = 1 << rng.random_range(16..23_u32);
        let rtt = rng.random_range(1..300_u32) * MS;
        let product = rate as f64 * rtt.as_secs_f64();
        let buffer = product * rng.random_range(0.25..4.0);
        Self {
            rtt,
            smoothed: rtt,
            rng,
            ..Self::with(rate, (buffer as u64).max(10 * MTU))
        }
    }
}

#[test]
fn every_link_is_used_with_few_losses() {
    for seed in 0..LINKS {
        let mut bench = Bench::random(seed);
        bench.run(Duration::from_secs(8));
        let used = bench.utilization(Duration::from_secs(8));
        let lost = bench.loss_rate(Duration::from_secs(8));
        assert!(
            used > 0.75 && lost < 0.02,
            "seed {seed}: {used:.2} of {} bytes/s, {:?}, buffer {}: {lost:.3} lost",
            bench.rate,
            bench.rtt,
            bench.buffer
        );
    }
}

#[test]
fn the_window_keeps_its_minimum_and_sending_goes_on_whatever_is_lost() {
    for seed in 0..LINKS {
        let mut bench = Bench::random(seed);
        bench.loss = seed as f64 / LINKS as f64 / 2.0;
        for _ in 0..8 {
            let before = bench.delivered;
            bench.run(Duration::from_secs(3));
            assert!(bench.bbr.window() >= 4 * MTU, "seed {seed}");
            assert!(bench.delivered > before, "seed {seed}: {}", bench.loss);
        }
    }
}
