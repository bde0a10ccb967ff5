//! Ticks of axes.

use super::*;

struct Ticks {
    title: String,
    texts: Vec<String>,
}

fn ticks(axis: &Axis, values: &[f64]) -> Ticks {
    let scale = axis.scale(values.iter().copied(), 200.0, 40.0);
    Ticks {
        texts: scale.ticks.into_iter().map(|(_, text)| text).collect(),
        title: scale.title,
    }
}

#[test]
fn ticks_are_round_numbers_in_a_fitting_unit() {
    let Ticks { title, texts } = ticks(&Axis::new("window", Unit::Bytes), &[123_456.0]);
    assert_eq!(title, "window (kB)");
    assert_eq!(texts, ["0", "50", "100", "150"]);
    let Ticks { title, texts } = ticks(&Axis::new("RTT", Unit::Seconds), &[0.0421]);
    assert_eq!(title, "RTT (ms)");
    assert_eq!(texts, ["0", "10", "20", "30", "40", "50"]);
    let Ticks { texts, .. } = ticks(&Axis::new("ratio", Unit::Number), &[-0.2, 0.61]);
    assert_eq!(texts, ["\u{2212}0.2", "0.0", "0.2", "0.4", "0.6", "0.8"]);
    let Ticks { title, texts } = ticks(&Axis::new("gain", Unit::Percent), &[-4.0, 31.0]);
    assert_eq!(title, "gain (%)");
    assert_eq!(texts, ["\u{2212}10", "0", "10", "20", "30", "40"]);
}

#[test]
fn logarithmic_ticks_are_1_2_5_per_decade() {
    let time = Axis::new("time", Unit::Seconds).logarithmic();
    let Ticks { title, texts } = ticks(&time, &[0.013, 0.9]);
    assert_eq!(title, "time");
    assert_eq!(
        texts,
        [
            "10 ms", "20 ms", "50 ms", "100 ms", "200 ms", "500 ms", "1 s"
        ]
    );
    let size = Axis::new("size", Unit::Bytes).logarithmic();
    let Ticks { title, texts } = ticks(&size, &[300.0, 7e7]);
    assert_eq!(title, "size (B)");
    assert_eq!(texts, ["1 k", "10 k", "100 k", "1 M", "10 M", "100 M"]);
    let ratio = Axis::new("ratio", Unit::Number).logarithmic();
    let Ticks { texts, .. } = ticks(&ratio.spanning(0.05, 2.0), &[]);
    assert_eq!(texts, ["0.05", "0.1", "0.2", "0.5", "1", "2"]);
}

#[test]
fn logarithmic_axes_map_equal_ratios_to_equal_distances() {
    let axis = Axis::new("", Unit::Number).logarithmic();
    let scale = axis.scale([1.0, 100.0].into_iter(), 200.0, 40.0);
    assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
    assert_eq!((scale.at(0.0), scale.at(-3.0)), (0.0, 0.0));
    assert_eq!(scale.at(1e9), 200.0);
}

#[test]
fn extreme_values_have_finite_scales_and_ticks() {
    for values in [
        &[][..],
        &[0.0],
        &[-7.0],
        &[1e-300],
        &[1e300],
        &[f64::MAX],
        &[1e-300, 1e300],
    ] {
        for axis in [
            Axis::new("", Unit::Number),
            Axis::new("", Unit::Number).spanning(-2.0, -1.0),
            Axis::new("", Unit::Seconds).logarithmic(),
            Axis::new("", Unit::Bytes)
                .logarithmic()
                .spanning(-2.0, -1.0),
        ] {
            let scale = axis.scale(values.iter().copied(), 200.0, 40.0);
            assert!(scale.ticks.len() < 64);
            assert!(!scale.ticks.is_empty() && scale.from < scale.to);
            assert!(scale.at(0.5).is_finite());
        }
    }
}
