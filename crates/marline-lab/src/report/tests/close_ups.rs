//! Single runs over time, and where their axes end.

use super::*;

/// The part of the page about one run.
fn figure<'h>(html: &'h str, title: &str) -> &'h str {
    let (_, rest) = html
        .split_once(&format!("<figcaption>{title}"))
        .unwrap_or_else(|| panic!("{title}"));
    rest.split_once("</figure>").unwrap().0
}

#[test]
fn a_close_up_is_of_the_run_nearest_to_the_median() {
    // The times of the repeats are 1, 2, 3, 4, 9, 16, 25, 36: the median is 6.5.
    let times = |job: &Job| {
        let mut outcome = fake(job)?;
        let time = f64::from(match job.repeat {
            early @ 0..4 => early + 1,
            late => (late - 1) * (late - 1),
        });
        outcome.metrics.insert("completion_s".to_owned(), time);
        Ok(outcome)
    };
    let html = ResultsDirectory::of(&PLAIN.replace("repeats = 1", "repeats = 8"), times).html();
    let title = "fast: repeat 3, completion time 4\u{a0}s (median 6.5\u{a0}s)</figcaption>";
    assert!(html.contains(title), "{html}");
    assert!(!html.contains("repeat 0"));
}

#[test]
fn a_late_sample_does_not_flatten_the_round_trip_times() {
    let late = |job: &Job| {
        let mut outcome = fake(job)?;
        let Some(watched) = &mut outcome.series else {
            return Ok(outcome);
        };
        if let (Some(points), "slow") = (watched.series.get_mut("rtt_s"), &*job.variant) {
            points.last_mut().unwrap().1 = 7.5;
        }
        Ok(outcome)
    };
    let html = ResultsDirectory::of(PLAIN, late).html();
    // Both end where the usual values do, and state that one value is beyond.
    let slow = figure(&html, "slow");
    assert!(
        slow.contains("<b>Round-trip time, up to 7.5 s beyond the axis</b>"),
        "{slow}"
    );
    let fast = figure(&html, "fast");
    assert!(fast.contains("<b>Round-trip time</b>"), "{fast}");
    for figure in [slow, fast] {
        assert!(figure.contains("RTT (ms)"), "{figure}");
    }
}

/// The round-trip times of `fast` are `factor` times as long.
fn sized(job: &Job, factor: f64) -> Result<Outcome, RunError> {
    let mut outcome = fake(job)?;
    let Some(watched) = &mut outcome.series else {
        return Ok(outcome);
    };
    if let ("fast", Some(points)) = (&*job.variant, watched.series.get_mut("rtt_s")) {
        points.iter_mut().for_each(|point| point.1 *= factor);
    }
    Ok(outcome)
}

#[test]
fn variants_share_an_axis_unless_one_would_be_flat() {
    let own = "<b>Round-trip time, own axis</b>";
    let twice = |job: &Job| sized(job, 2.0);
    assert!(!ResultsDirectory::of(PLAIN, twice).html().contains(own));
    let ten_times = |job: &Job| sized(job, 10.0);
    assert_eq!(
        ResultsDirectory::of(PLAIN, ten_times)
            .html()
            .matches(own)
            .count(),
        2
    );
}

#[test]
fn the_axis_of_a_distribution_begins_where_its_values_do() {
    let html = ResultsDirectory::of(TRAIN, fake).html();
    // Times are from 1.8 to 3.6 s. The only zero is that of the shares.
    let figure = figure(&html, "Completion time, 2.4\u{a0}MB");
    assert!(figure.contains("share of runs"));
    assert!(
        figure.contains(">1.8</text>") && !figure.contains(">0.0</text>"),
        "{figure}"
    );

    let one_late = |job: &Job| {
        let mut outcome = fake(job)?;
        if job.repeat == 0 && &*job.variant == "slow" {
            outcome.metrics.insert("completion_s".to_owned(), 300.0);
        }
        Ok(outcome)
    };
    let html = ResultsDirectory::of(TRAIN, one_late).html();
    assert!(html.contains("1 of the runs are beyond the axis, up to 300 s."));
}
