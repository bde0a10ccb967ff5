//! Pages.

use super::nested::assert_nested;
use super::*;
use crate::chart::{Axis, Bars, Chart, Heat, Style, Unit};

fn page() -> String {
    let mut table = Table::new()
        .column("object")
        .number_column("bytes")
        .published_column("published & measured")
        .code_column("SHA-256");
    table.row(["<script>alert(1)</script>", "1 000", "9", "\"ab\""]);
    table.row(["too few"]);
    table.row(["too", "many", "cells", "are", "fifth"]);
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
fn text_is_escaped() {
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
    assert!(!page.contains("fifth"));
}

#[test]
fn pages_reference_no_other_resources() {
    let page = page();
    let page = page.replace("href=\"data:", "").replace("href=\"#", "");
    for reference in ["http:", "https:", "src=", "href=", "@import"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn long_pages_begin_with_a_table_of_contents() {
    let three = Report::new("short").section("a").section("b").section("c");
    assert!(!three.render().contains("<nav"));
    let page = three.lead("late lead").section("d <e>").render();
    assert_nested(&page);
    assert!(page.contains("<li><a href=\"#section-4\">d &lt;e&gt;</a></li>"));
    assert!(page.contains("<h2 id=\"section-4\">d &lt;e&gt;</h2>"));
    let at = |part| page.find(part).expect("it is there");
    assert!(at("<h1>") < at("<nav") && at("<nav") < at("<h2"));
    assert_eq!(page.matches("href=").count(), 4);
}

#[test]
fn charts_are_shown_unless_empty() {
    let axis = || Axis::new("x", Unit::Number);
    let pictures: [Box<dyn Picture>; 3] = [
        Box::new(Bars::new("bars", "", axis()).bar("a", "b", 1.0, None)),
        Box::new(Heat::new("heat", "", "", axis()).cell("a", "b", 1.0)),
        Box::new(Chart::new("empty", axis(), axis())),
    ];
    let page = pictures.iter().fold(Report::new("many"), |page, picture| {
        page.chart(picture.as_ref())
    });
    let page = page.render();
    assert_nested(&page);
    assert_eq!(page.matches("<figure>").count(), 2);
}

#[test]
fn verdicts_are_shown_as_words() {
    let page = Report::new("verdicts")
        .verdict(Verdict::Pass, "a < b")
        .verdict(Verdict::Differs, "b")
        .verdict(Verdict::NotComparable, "c")
        .verdict(Verdict::Holds, "d")
        .verdict(Verdict::Fails, "e")
        .verdict(Verdict::Unknown, "f")
        .verdict(Verdict::Undecided, "g")
        .render();
    assert_nested(&page);
    for part in [
        "Pass.",
        "a &lt; b",
        "Differs.",
        "Not comparable.",
        "Holds.",
        "Does not hold.",
        "Not known.",
        "Undecided.",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn details_contain_their_content() {
    let page = Report::new("settings")
        .details("raw <numbers>", |page| page.text("inside"))
        .text("outside")
        .render();
    assert_nested(&page);
    assert!(page.contains(
        "<details><summary>raw &lt;numbers&gt;</summary>\n<p>inside</p>\n</details>\n<p>outside</p>"
    ));
}

#[test]
fn the_last_footer_wins_and_is_at_the_end() {
    let page = Report::new("run")
        .footer(1, "old", "old", "old")
        .footer(7, "ab<cd", "marline lab run x --set 'a=b'", "marline 1.2.3")
        .text("text")
        .render();
    assert_nested(&page);
    assert_eq!(page.matches("<footer>").count(), 1);
    assert!(page.find("<footer>") > page.find("<p>text"));
    for part in [
        "<dd>7</dd>",
        "ab&lt;cd",
        "--set &#39;a=b&#39;",
        "<dd>marline 1.2.3</dd>",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn published_numbers_have_their_own_style() {
    let page = page();
    assert!(page.contains("<th class=\"number theirs\">published &amp; measured</th>"));
    assert!(page.contains("<td class=\"number theirs\">9</td>"));
}

#[test]
fn prose_has_code_between_backticks_and_escapes_the_rest() {
    for (text, html) in [
        ("plain", "plain"),
        ("`a` and `b<c`", "<code>a</code> and <code>b&lt;c</code>"),
        ("one ` alone & no more", "one ` alone &amp; no more"),
        ("`a` and ` alone", "<code>a</code> and ` alone"),
        ("`<script>`", "<code>&lt;script&gt;</code>"),
    ] {
        assert_eq!(prose(text), html);
    }
    let page = Report::new("`a`")
        .lead("`b`")
        .section("`c`")
        .text("`d`")
        .note("`e`");
    let page = page
        .details("`f`", |page| page)
        .verdict(Verdict::Holds, "`g`");
    let html = page.render();
    assert!(!html.contains('`'), "{html}");
    for code in ["a", "b", "c", "d", "e", "f", "g"] {
        assert!(html.contains(&format!("<code>{code}</code>")), "{code}");
    }
}
