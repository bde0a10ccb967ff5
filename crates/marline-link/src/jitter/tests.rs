use std::sync::Arc;
use std::time::Duration;

use super::{Distribution, Jitter, JitterConfig, Moments, Table, TableError};
use crate::{Link, Packet, Seed, Time};

const MILLI: u64 = 1_000_000;

/// The delays in ms, in order of arrival, of packets that arrive `gap` nanoseconds apart.
fn delays(config: JitterConfig, count: u64, gap: u64) -> Vec<f64> {
    let mut line = Jitter::new(config, Seed::new(1));
    let mut delays = vec![0.0; count as usize];
    for index in 0..count {
        line.push(Time::from_nanos(index * gap), Packet::new(100, index));
    }
    while let Some(exit) = line.pop(Time::MAX) {
        let came = Time::from_nanos(exit.packet.body * gap);
        delays[exit.packet.body as usize] = exit.at.since(came).as_nanos() as f64 / MILLI as f64;
    }
    delays
}

/// A base delay and reordering such that no deviation is clipped.
fn unclipped(law: Distribution) -> JitterConfig {
    JitterConfig {
        reorder: true,
        ..JitterConfig::new(Duration::from_millis(1000), Duration::from_millis(10), law)
    }
}

fn moments(values: &[f64]) -> Moments {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / count;
    Moments {
        mean,
        deviation: variance.sqrt(),
    }
}

#[test]
fn distributions_have_their_documented_mean_and_deviation() {
    for (law, mean, deviation, tolerance) in [
        (Distribution::Normal, 1000.0, 10.0, 0.15),
        (Distribution::Uniform, 1000.0, 10.0 / 3.0_f64.sqrt(), 0.1),
        (Distribution::Exponential, 1010.0, 10.0, 0.2),
        // The fourth moment of this distribution is infinite, so its deviation converges slowly.
        (Distribution::Pareto, 1000.0, 10.0, 1.5),
        (Distribution::ParetoNormal, 1000.0, 10.0, 1.5),
    ] {
        let found = moments(&delays(unclipped(law.clone()), 100_000, MILLI));
        assert!((found.mean - mean).abs() < 0.15, "{law:?}: {found:?}");
        assert!(
            (found.deviation - deviation).abs() < tolerance,
            "{law:?}: {found:?}"
        );
    }
}

#[test]
fn picoquic_wifi_jitter_has_milliseconds_and_rare_stalls() {
    let config = |jitter| JitterConfig {
        reorder: true,
        ..JitterConfig::new(
            Duration::ZERO,
            Duration::from_millis(jitter),
            Distribution::PicoquicWifi,
        )
    };
    // E[N] - P(N > 0) / 2 for N of Poisson with mean 1.
    let Moments { mean, .. } = moments(&delays(config(1), 50_000, MILLI));
    assert!((mean - (1.0 - 0.632_12 / 2.0)).abs() < 0.02, "{mean}");
    let stalls = delays(config(43), 50_000, MILLI);
    let share = stalls.iter().filter(|delay| **delay > 30.0).count() as f64 / 50_000.0;
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn packets_keep_their_order_unless_reorder_is_set() {
    let config = |reorder| JitterConfig {
        reorder,
        ..JitterConfig::new(
            Duration::from_millis(20),
            Duration::from_millis(5),
            Distribution::Normal,
        )
    };
    let order = |reorder| {
        let mut line = Jitter::new(config(reorder), Seed::new(2));
        for index in 0..1000 {
            line.push(Time::from_nanos(index * MILLI), Packet::new(100, index));
        }
        std::iter::from_fn(|| line.pop(Time::MAX))
            .map(|exit| exit.packet.body)
            .collect::<Vec<_>>()
    };
    assert!(order(false).is_sorted());
    assert!(!order(true).is_sorted());
}

#[test]
fn correlation_depends_on_time_not_on_packet_count() {
    let config = JitterConfig {
        correlation: Duration::from_millis(100),
        ..unclipped(Distribution::Normal)
    };
    for gap in [1, 10] {
        let values = delays(config.clone(), 200_000, gap * MILLI);
        let Moments { mean, deviation } = moments(&values);
        assert!((deviation - 10.0).abs() < 1.0, "{deviation}");
        let lag = (100 / gap) as usize;
        let products = values
            .windows(lag + 1)
            .map(|w| (w[0] - mean) * (w[lag] - mean));
        let correlation = products.sum::<f64>() / (values.len() - lag) as f64 / deviation.powi(2);
        assert!(
            (correlation - 0.368).abs() < 0.08,
            "{gap} ms: {correlation}"
        );
    }
}

#[test]
fn packets_of_a_batch_share_a_delay() {
    let config = JitterConfig {
        batch: Duration::from_millis(4),
        ..unclipped(Distribution::Normal)
    };
    let values = delays(config, 400, MILLI);
    for batch in values.chunks(4) {
        assert!(batch.iter().all(|value| value == &batch[0]), "{batch:?}");
    }
    assert!(values[0] != values[4]);
}

#[test]
fn delay_is_never_negative() {
    let config = JitterConfig {
        reorder: true,
        ..JitterConfig::new(
            Duration::from_millis(1),
            Duration::from_millis(50),
            Distribution::Normal,
        )
    };
    let values = delays(config, 10_000, MILLI);
    let zero = values.iter().filter(|value| **value == 0.0).count();
    assert!((4500..5200).contains(&zero), "{zero}");
}

#[test]
fn netem_tables_are_parsed_and_sampled() {
    let table: Table = "# a comment\n -8192 0  8192\n16384 # more\n"
        .parse()
        .unwrap();
    let Moments { mean, deviation } = table.moments();
    assert_eq!(mean, 0.5);
    assert!((deviation - 1.25_f64.sqrt()).abs() < 1e-12);
    let values = delays(
        unclipped(Distribution::Table(Arc::new(table))),
        40_000,
        MILLI,
    );
    for expected in [990.0, 1000.0, 1010.0, 1020.0] {
        let count = values.iter().filter(|value| **value == expected).count();
        assert!(count.abs_diff(10_000) < 400, "{expected}: {count}");
    }
    let line = |line, word: &str| TableError::Value {
        line,
        word: word.to_owned(),
    };
    assert_eq!("1\n2 x".parse::<Table>(), Err(line(2, "x")));
    assert_eq!("40000".parse::<Table>(), Err(line(1, "40000")));
    assert_eq!("# nothing".parse::<Table>(), Err(TableError::Empty));
}

/// `docs/laboratory.md` has these figures.
#[test]
fn keeping_the_order_raises_the_mean() {
    let rise = |law: Distribution, gap: u64| {
        let config = JitterConfig::new(Duration::from_millis(20), Duration::from_millis(5), law);
        moments(&delays(config, 200_000, gap)).mean - 20.0
    };
    let gap = 12 * MILLI / 10;
    for (law, gap, expected) in [
        (Distribution::Uniform, gap, 1.7),
        (Distribution::Normal, gap, 4.1),
        (Distribution::Exponential, gap, 10.9),
        (Distribution::Normal, gap / 10, 9.0),
    ] {
        let rise = rise(law.clone(), gap);
        assert!((rise - expected).abs() < 0.15, "{law:?}: {rise}");
    }
}
