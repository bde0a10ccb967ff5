//! The sentence at the top, and the parts at the bottom.

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
fn a_sentence_and_a_picture_above_it_say_what_a_person_gains() {
    let html = ResultsDirectory::of(TRAIN, fake).html();
    assert!(html.find("class=\"gain\"") < html.find("class=\"answer\""));
    assert_eq!(
        element(&html, "gain"),
        "With fast instead of slow, the median completion time falls from 669 ms to 535 ms (500 kB) and from 3.18 s to 2.54 s (2.4 MB)."
    );
    let bar = "<dt>fast</dt><dd><span style=\"--share:0.8000;background:var(--s1)\"></span>2.54\u{a0}s</dd>";
    let group = "<dt class=\"group\">500\u{a0}kB</dt><dt>slow</dt>";
    for (text, count) in [
        (bar, 1),
        (group, 1),
        ("Median completion time of 8 runs each", 1),
    ] {
        assert_eq!(html.matches(text).count(), count, "{text}");
    }
}

#[test]
fn a_gain_hides_no_loss() {
    let mixed = |job: &Job| {
        let mut outcome = fake(job)?;
        if format!("{:?}", job.parameters).contains("2400") {
            let time = if &*job.variant == "fast" { 3.0 } else { 2.0 };
            outcome.metrics.insert("completion_s".to_owned(), time);
        }
        Ok(outcome)
    };
    let html = ResultsDirectory::of(TRAIN, mixed).html();
    assert_eq!(
        element(&html, "gain"),
        "With fast instead of slow, the median completion time falls from 669 ms to 535 ms (500 kB); it rises from 2 s to 3 s (2.4 MB)."
    );
    let few = TRAIN.replace("repeats = 8", "repeats = 2");
    let html = ResultsDirectory::of(&few, mixed).html();
    let gain = element(&html, "gain");
    assert!(
        gain.ends_with(" This is a first look, of 2 runs each."),
        "{gain}"
    );
    let equal = |job: &Job| {
        let mut outcome = fake(job)?;
        outcome.metrics.insert("completion_s".to_owned(), 1.0);
        Ok(outcome)
    };
    let html = ResultsDirectory::of(TRAIN, equal).html();
    assert_eq!(
        element(&html, "gain"),
        "With fast instead of slow, the median completion time is the same at 500 kB and 2.4 MB."
    );
}

#[test]
fn a_gain_that_is_undecided_is_none() {
    let noisy = |job: &Job| {
        let mut outcome = fake(job)?;
        let sign = if job.repeat.is_multiple_of(2) {
            1.0
        } else {
            -1.0
        };
        let time = match &*job.variant {
            "fast" => 1.0 + 0.1 * sign * f64::from(job.repeat + 1),
            _ => 1.01,
        };
        outcome.metrics.insert("completion_s".to_owned(), time);
        Ok(outcome)
    };
    let html = ResultsDirectory::of(TRAIN, noisy).html();
    assert_eq!(
        element(&html, "gain"),
        "With fast instead of slow, the median completion time is not shown to change at 500 kB and 2.4 MB."
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
    let begin = "It is not decided whether slow or fast has the smaller median completion time: that of slow is equal (95 % interval ";
    assert!(text.starts_with(begin), "{text}");
    assert!(
        text.contains("% larger to ") && text.contains("% smaller)"),
        "{text}"
    );
}

#[test]
fn one_run_of_each_is_too_few_to_be_sure() {
    let text = answer(PLAIN, fake);
    let begin = "It is not decided whether fast or slow has the smaller median completion time, in 1 run each, too few to be sure: \
                 that of fast is 20 % smaller: ";
    assert!(text.starts_with(begin), "{text}");
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
        text.contains("has the larger median goodput, in 1 run each")
            && text.contains("25 % larger"),
        "{text}"
    );
}

#[test]
fn a_single_variant_has_its_median_and_runs_that_failed_are_said_to_be() {
    let one = PLAIN.replace("[variant.fast]\ncc = \"bbr\"\n", "");
    let text = answer(&one, fake);
    assert!(
        text.starts_with("The median completion time is ")
            && text.ends_with("(in 1 run, too few to be sure)."),
        "{text}"
    );
    let none = |_: &Job| Err(RunError::Stalled("no data is sent".to_owned()));
    let html = ResultsDirectory::of(PLAIN, none).html();
    assert_eq!(
        element(&html, "answer"),
        "No run counts, so there is no answer."
    );
    assert!(html.contains("<p>2 of 2 runs failed, and do not count.</p>"));
}

/// Three variants at three sizes, without comparisons.
fn three_variants(repeats: u32) -> String {
    let text = PLAIN.replace("repeats = 1", &format!("repeats = {repeats}"));
    format!(
        "{text}[variant.other]\ncc = 'cubic'\n[sweep.content_kb]\n500 = {{}}\n2400 = {{}}\n6000 = {{}}\n"
    )
}

/// `slow` and `other` are equal; `fast` is slower than they are for a medium size, and faster only for the largest.
fn ties(job: &Job) -> Result<Outcome, RunError> {
    let mut outcome = fake(job)?;
    let factor = match (&*job.variant, job.parameters["content_kb"].as_u64()) {
        ("fast", Some(2400)) => 1.75,
        ("fast", Some(6000)) => 0.57,
        _ => 1.0,
    };
    let time = factor * (1.0 + 0.01 * f64::from(job.repeat));
    outcome.metrics.insert("completion_s".to_owned(), time);
    Ok(outcome)
}

#[test]
fn ties_are_no_wins() {
    assert_eq!(
        answer(&three_variants(8), ties),
        "fast has the smallest median completion time at 1 of 3 points: 43 % smaller than the next best, slow \
         (95 % interval 43 %; 6 MB). No variant is decidedly the best at the other 2."
    );
}

#[test]
fn each_variant_that_is_decidedly_the_best_somewhere_is_named() {
    let two = three_variants(8).replace("[variant.other]\ncc = 'cubic'\n", "");
    assert_eq!(
        answer(&two, ties),
        "slow has the smallest median completion time at 1 of 3 points: 43 % smaller than the next best, fast \
         (95 % interval 43 %; 2.4 MB). fast has it at 1. No variant is decidedly the best at the other one."
    );
    let faster = |job: &Job| {
        let mut outcome = ties(job)?;
        if &*job.variant == "fast" {
            outcome.metrics.insert("completion_s".to_owned(), 0.5);
        }
        Ok(outcome)
    };
    let text = answer(&two, faster);
    let begin = "fast has the smallest median completion time at 3 of 3 points: from 52 % smaller than the next best, slow (95 % interval ";
    assert!(text.starts_with(begin), "{text}");
}

#[test]
fn without_a_decided_point_no_variant_is_the_fastest() {
    let equal = |job: &Job| {
        let mut outcome = fake(job)?;
        let time = 1.0 + 0.01 * f64::from(job.repeat);
        outcome.metrics.insert("completion_s".to_owned(), time);
        Ok(outcome)
    };
    assert_eq!(
        answer(&three_variants(8), equal),
        "No variant is decidedly the fastest at any of 3 points."
    );
    let two = three_variants(8).replace("[variant.other]\ncc = 'cubic'\n", "");
    assert_eq!(
        answer(&two, equal),
        "No variant is decidedly faster at any of 3 points."
    );
    let one_point = PLAIN.replace("repeats = 1", "repeats = 8");
    let text = answer(&one_point, equal);
    assert_eq!(
        text,
        "The median completion time of slow is equal to that of fast: 1.04 s against 1.04 s."
    );
}

#[test]
fn fewer_runs_than_an_interval_of_the_median_takes_have_none() {
    let text = answer(&three_variants(5), ties);
    assert_eq!(
        text,
        "fast has the smallest median completion time at 1 of 3 points, in 5 runs each, too few to be sure: 43 % \
         smaller than the next best, slow (6 MB). At the other 2, the best are equal."
    );
    let text = answer(&TRAIN.replace("repeats = 8", "repeats = 5"), fake);
    assert_eq!(
        text,
        "It is not decided at any of 2 points whether fast or slow has the smaller median completion time, in 5 runs each, \
         too few to be sure: that of fast is from 20 % smaller (500 kB) to 20 % smaller (2.4 MB)."
    );
}

#[test]
fn the_answer_and_the_comparisons_agree() {
    for (repeats, answered, compared) in [
        (
            "1",
            "not decided at any of 2 points",
            "at 0 of 2 points, worse at 0, undecided at 2",
        ),
        (
            "5",
            "not decided at any of 2 points",
            "at 0 of 2 points, worse at 0, undecided at 2",
        ),
        (
            "8",
            "at 2 of 2 points with 95 % confidence",
            "at 2 of 2 points, worse at 0, undecided at 0",
        ),
    ] {
        let scenario = TRAIN.replace("repeats = 8", &format!("repeats = {repeats}"));
        let text = answer(&scenario, fake);
        assert!(text.contains(answered), "{repeats}: {text}");
        let html = ResultsDirectory::of(&scenario, fake).html();
        assert!(html.contains(compared), "{repeats}");
    }
}

#[test]
fn names_between_backticks_are_set_as_code() {
    let scenario = TRAIN
        .replace("A download", "A `fast` download")
        .replace("<one>", "`one`");
    let html = ResultsDirectory::of(&scenario, fake).html();
    assert!(html.contains("A <code>fast</code> download"), "{html}");
    // Settings are shown as they are written.
    let (prose, _) = html.split_once("Statistics and settings</h2>").unwrap();
    assert!(!prose.contains('`'), "{prose}");
}

#[test]
fn values_that_may_be_of_anything_have_the_name_of_their_parameter() {
    let sweep =
        "[sweep]\n\"link.loss\" = [\"0%\", \"1%\"]\n[[comparison]]\na = 'fast'\nb = 'slow'\n";
    let text = format!("{}{sweep}", PLAIN.replace("repeats = 1", "repeats = 8"));
    let text = answer(&text, fake);
    assert!(
        text.contains("; loss 0 %)") && text.contains("; loss 1 %)"),
        "{text}"
    );
}
