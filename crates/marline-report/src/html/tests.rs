//! Pages stand alone and hold what they are given, as text.

use super::nested::assert_nested;
use super::*;
use crate::chart::{Axis, Chart, Style, Unit};

fn page() -> String {
    let mut table = Table::new()
        .column("object")
        .number_column("bytes")
        .code_column("SHA-256");
    table.row(["<script>alert(1)</script>", "1 000", "\"ab\""]);
    table.row(["too few"]);
    table.row(["too", "many", "cells", "fourth"]);
    let chart = Chart::new(
        "rtt & more",
        Axis::new("time", Unit::Seconds),
        Axis::new("RTT", Unit::Seconds),
    )
    .series("x<y", Style::Points, vec![(0.0, 0.01), (1.0, 0.02)])
    .series("line", Style::Line, vec![(0.0, 0.01), (1.0, 0.02)]);
    Report::new("A & B")
        .lead("what it's about\u{0}")
        .facts([("lost", "3 <of> 4".to_owned())])
        .section("Objects")
        .table(&table)
        .subsection("Time")
        .text("text")
        .chart(&chart)
        .note("small print")
        .render()
}

#[test]
fn pages_are_well_formed() {
    assert_nested(&page());
}

#[test]
fn text_is_never_markup() {
    let page = page();
    assert!(!page.contains("<script") && !page.contains('\0'));
    for part in [
        "<h1>A &amp; B</h1>",
        "what it&#39;s about\u{fffd}",
        "<dd>3 &lt;of&gt; 4</dd>",
        "<td class=\"code\">&quot;ab&quot;</td>",
        "x&lt;y",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("fourth"));
}

#[test]
fn pages_load_nothing() {
    let page = page();
    for reference in ["http:", "https:", "src=", "href=", "@import"] {
        assert!(!page.contains(reference), "{reference}");
    }
}
