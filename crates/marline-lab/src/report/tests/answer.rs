//! The sentence on top, and what is below everything.

use super::*;

/// The text of the first element of the page that `class` has.
fn element(html: &str, class: &str) -> String {
    let (_, rest) = html.split_once(&format!("<p class=\"{class}\">")).unwrap();
    rest.split_once("</p>").unwrap().0.replace('\u{a0}', " ")
}

fn answer(text: &str, backend: fn(&Job) -> Result<Outcome, RunError>) -> String {
    element(&ResultsDirectory::of(text, backend).html(), "answer")
}

#[test]
fn the_answer_comes_first_and_counters_last() {
    let html = ResultsDirectory::of(TRAIN, fake).html();
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    let order = [
        "<h1>",
        "class=\"answer\"",
        "class=\"lead\"",
        "id=\"section-1\"",
        "Statistics and settings</h2>",
        "class=\"facts\"",
        "<footer>",
    ];
    assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
    assert_eq!(
        element(&html, "answer"),
        "fast has a smaller median completion time than slow at 2 of 2 points with 95 % confidence: from 20 % smaller \
         (95 % interval 20 %; 500 kB) to 20 % smaller (20 %; 2.4 MB)."
    );
}

#[test]
fn without_comparisons_the_best_variant_is_compared_with_the_next_best() {
    let three =
        format!("{PLAIN}[variant.slowest]\ncc = 'cubic'\n").replace("repeats = 1", "repeats = 8");
    let noisy = |job: &Job| {
        let mut outcome = fake(job)?;
        let time = match (&*job.variant, job.repeat) {
            ("slowest", _) => 2.0,
            ("slow", _) => 1.0 + 0.01 * f64::from(job.repeat),
            (_, repeat) => 0.7 + 0.02 * f64::from(repeat),
        };
        outcome.metrics.insert("completion_s".to_owned(), time);
        Ok(outcome)
    };
    let text = answer(&three, noisy);
    let begin = "fast has a 26 % smaller median completion time than slow (95 % interval ";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.ends_with("): 770 ms against 1.04 s."), "{text}");
}

#[test]
fn an_interval_that_has_zero_in_it_decides_nothing() {
    let either = |job: &Job| {
        let mut outcome = fake(job)?;
        let turn = if &*job.variant == "fast" { 0 } else { 3 };
        let time = 1.0 + 0.1 * f64::from((job.repeat + turn) % 8);
        outcome.metrics.insert("completion_s".to_owned(), time);
        Ok(outcome)
    };
    let text = answer(&PLAIN.replace("repeats = 1", "repeats = 8"), either);
    let begin = "It is not decided whether slow or fast has the smaller median completion time: that of slow is 0 % smaller (95 % interval ";
    assert!(text.starts_with(begin), "{text}");
    assert!(
        text.contains("% larger to ") && text.contains("% smaller)"),
        "{text}"
    );
}

#[test]
fn one_run_of_each_may_be_chance() {
    let text = answer(PLAIN, fake);
    assert!(
        text.starts_with("fast has a 20 % smaller median completion time than slow: "),
        "{text}"
    );
    assert!(
        text.ends_with("; with one run of each, that may be chance."),
        "{text}"
    );
}

#[test]
fn of_rates_the_larger_one_is_better() {
    let rates = |job: &Job| {
        let mut outcome = fake(job)?;
        let time = outcome.metrics["completion_s"];
        outcome
            .metrics
            .insert("goodput_mbps".to_owned(), 8.0 / time);
        Ok(outcome)
    };
    let text = format!("metrics = ['goodput_mbps']\n{}", PLAIN.trim_start());
    let text = answer(&text, rates);
    assert!(
        text.starts_with("fast has a 25 % larger median goodput than slow: "),
        "{text}"
    );
}

#[test]
fn a_single_variant_has_its_median_and_runs_that_failed_are_said_to_be() {
    let one = PLAIN.replace("[variant.fast]\ncc = \"bbr\"\n", "");
    let text = answer(&one, fake);
    assert!(
        text.starts_with("The median completion time is ") && text.ends_with("(one run)."),
        "{text}"
    );
    let none = |_: &Job| Err(RunError::Stalled("no data is sent".to_owned()));
    let html = ResultsDirectory::of(PLAIN, none).html();
    assert_eq!(
        element(&html, "answer"),
        "No run counts, so that there is no answer."
    );
    assert!(html.contains("<p>2 of 2 runs failed, and do not count.</p>"));
}
