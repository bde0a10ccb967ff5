//! Columns of charts.

use super::*;
use crate::chart::{Style, Unit};
use crate::html::nested::{assert_sound, shown};

fn axis(label: &str) -> Axis {
    Axis::new(label, Unit::Seconds)
}

fn chart(title: &str, points: Vec<(f64, f64)>) -> Chart {
    Chart::new(title, axis("own"), axis("delay")).series(title, Style::Steps, points)
}

#[test]
fn charts_share_one_axis() {
    let html = Stack::new("one transfer", axis("time"))
        .chart(chart("a & b", vec![(0.0, 1.0), (3.0, 2.0)]))
        .chart(chart("second", vec![(0.0, 1.0), (9.0, 2.0)]))
        .chart(chart("none", Vec::new()))
        .events("lost", vec![1.0, f64::NAN, 2.0])
        .to_html();
    assert_sound(&html);
    let html = shown(&html);
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 2);
    assert_eq!(html.matches("time (s)").count(), 1);
    assert_eq!(html.matches("class=\"rule m0\"").count(), 2);
    assert!(!html.contains("own") && !html.contains("none"));
    assert!(html.contains("<b>a &amp; b</b>") && html.contains("<title>lost: 2</title>"));
}

#[test]
fn empty_charts_are_not_shown() {
    let stack = Stack::new("", axis("")).events("lost", vec![1.0]);
    assert!(stack.is_empty());
    assert_sound(&stack.to_html());
}
