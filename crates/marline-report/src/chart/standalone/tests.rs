//! Figures as files.

use super::*;
use crate::chart::{Axis, Boxes, Chart, Picture, Stack, Style as Look, Unit};
use crate::html::nested::assert_sound;

fn axis(label: &str) -> Axis {
    Axis::new(label, Unit::Seconds)
}

fn chart() -> Chart {
    Chart::new("RTT & `rate`", axis("time"), axis("RTT"))
        .series("one <way>", Look::Line, vec![(0.0, 1.0), (1.0, 2.0)])
        .series("other", Look::Steps, vec![(0.0, 2.0), (1.0, 1.0)])
        .fit("other", "fit", 1.0, 0.5)
        .note("A note.")
}

/// The file that the link of a figure has.
fn saved(figure: &str) -> String {
    let (_, url) = figure.split_once("href=\"data:image/svg+xml,").unwrap();
    let (url, _) = url.split_once('"').unwrap();
    let mut pieces = url.split('%');
    let mut file = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let code = u8::from_str_radix(&piece[..2], 16).unwrap();
        file.push(char::from(code));
        file.push_str(&piece[2..]);
    }
    file
}

#[test]
fn a_file_has_title_legend_chart_and_note() {
    let file = saved(&chart().to_html());
    assert_sound(&file);
    assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    for part in [
        "RTT &amp; rate</text>",
        ">one &lt;way&gt;</text>",
        ">A note.</text>",
        "<path class=\"line s0\"",
        "<path class=\"fit s1\"",
    ] {
        assert!(file.contains(part), "{part} is missing in {file}");
    }
}

#[test]
fn a_file_has_the_style_that_it_uses_and_no_other() {
    let file = saved(&chart().to_html());
    let (style, _) = file.split_once("</style>").unwrap();
    assert!(style.contains("prefers-color-scheme: dark"));
    assert!(style.contains(".line.s1 {"));
    for other in [".s3 {", ".line.s2", "table", "@media print", ".chart {"] {
        assert!(!style.contains(other), "{other}");
    }
}

#[test]
fn a_file_has_the_patterns_of_its_boxes() {
    let samples = |n: u32| (0..20).map(|at| f64::from(at * n)).collect::<Vec<_>>();
    let boxes = Boxes::new("times", "points", axis("time"))
        .series(["a", "b"])
        .samples("x", "a", samples(1))
        .samples("x", "b", samples(2));
    let file = saved(&boxes.to_html());
    assert_sound(&file);
    assert!(file.contains("<pattern id=\"f1\""));
    assert!(!file.contains("<pattern id=\"f2\""));
    assert!(file.contains(".under {"));
}

#[test]
fn charts_of_a_stack_are_below_each_other() {
    let stack = Stack::new("run", axis("time"))
        .chart(chart())
        .chart(chart())
        .events("lost", vec![0.5]);
    let file = saved(&stack.to_html());
    assert_sound(&file);
    let tops: Vec<f64> = file
        .split("<svg class=\"chart\" x=\"14\" y=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(tops.len(), 2);
    assert!(tops[1] > tops[0] + 100.0);
    assert_eq!(file.matches("class=\"name\"").count(), 2);
}

#[test]
fn names_of_files_are_plain() {
    assert_eq!(
        name("Completion time, at `loss` = 1 %"),
        "completion-time-at-loss-1"
    );
    assert_eq!(name("µ"), "figure");
}
