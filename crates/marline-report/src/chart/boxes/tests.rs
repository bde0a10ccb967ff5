//! Box plots.

use super::*;
use crate::chart::Unit;
use crate::html::nested::assert_sound;

fn empty() -> Boxes {
    Boxes::new("a <title>", "size", Axis::new("time", Unit::Seconds))
}

fn one_to(last: u32) -> Vec<f64> {
    (1..=last).rev().map(f64::from).collect()
}

#[test]
fn percentiles_are_interpolated_between_ranks() {
    let spread = Spread::of(one_to(101)).expect("there are samples");
    assert_eq!((spread.p5, spread.p25, spread.median), (6.0, 26.0, 51.0));
    assert_eq!((spread.p75, spread.p95, spread.count), (76.0, 96.0, 101));
    assert!((spread.mean - 51.0).abs() < 1e-9);
    assert_eq!(spread.outliers.len(), 10);
    assert_eq!(Spread::of(one_to(2)).map(|s| s.median), Some(1.5));
    assert_eq!(Spread::of(vec![f64::NAN]), None);
}

#[test]
fn every_series_of_a_group_has_a_box() {
    let html = empty()
        .samples("1 MB", "1c", one_to(200))
        .samples("1 MB", "<bundle>", one_to(100))
        .samples("2 MB", "1c", one_to(50))
        .published("2 MB", "1c", 30.0)
        .published("3 MB", "1c", f64::NAN)
        .to_html();
    assert_sound(&html);
    assert_eq!(html.matches("class=\"whisker").count(), 3);
    assert_eq!(html.matches("class=\"median\"").count(), 3);
    assert_eq!(html.matches("class=\"mean\"").count(), 3);
    // One of each is in the legend.
    assert_eq!(html.matches("class=\"published\"").count(), 2);
    assert_eq!(html.matches("class=\"box").count(), 5);
    assert!(html.contains("&lt;bundle&gt;, 1 MB: median 50.5 s") && !html.contains("3 MB"));
}

#[test]
fn declared_series_fix_order_and_style() {
    let html = empty()
        .series(["1c", "3c", "bundle"])
        .samples("1 MB", "bundle", one_to(9))
        .to_html();
    assert!(html.contains("<rect class=\"box s2 f2\""));
    assert!(html.find("1c") < html.find("3c") && html.find("3c") < html.find("bundle"));
}

#[test]
fn many_groups_are_split_into_rows() {
    let boxes = (0..40).fold(empty(), |boxes, group| {
        (0..10).fold(boxes, |boxes, series| {
            boxes.samples(&format!("group {group}"), &format!("s{series}"), one_to(30))
        })
    });
    let html = boxes.to_html();
    assert_sound(&html);
    assert_eq!(html.matches("class=\"whisker").count(), 400);
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 6);
}

#[test]
fn non_finite_samples_are_omitted_and_extreme_ones_give_well_formed_svg() {
    assert!(empty().is_empty());
    assert!(
        empty()
            .series(["a"])
            .samples("x", "a", Vec::new())
            .is_empty()
    );
    assert_sound(&empty().to_html());
    for samples in [
        vec![0.0],
        vec![f64::MAX; 3],
        vec![-1.0, f64::INFINITY],
        vec![1e-300, 1e300],
    ] {
        for axis in [
            Axis::new("", Unit::Number),
            Axis::new("", Unit::Bytes).logarithmic(),
        ] {
            let boxes = Boxes::new("", "", axis).samples("", "", samples.clone());
            assert!(!boxes.is_empty());
            assert_sound(&boxes.to_html());
        }
    }
}
