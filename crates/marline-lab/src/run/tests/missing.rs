//! Results in which runs or values are missing.

use super::*;

#[test]
fn a_variant_of_which_no_run_counts_is_an_error() {
    let backend = |job: &Job| match &*job.variant {
        "slow" => Err(RunError::TimeLimit { seconds: 300.0 }),
        _ => fake(job),
    };
    let finished = run(&experiment(), &backend, &options(None), &mut |_| {}).unwrap();
    let error = finished.results.unwrap().require_runs().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no run of variant slow counts: not done after 300 s; raise time_limit if it may take longer"
    );
    complete(&options(None)).require_runs().unwrap();
}

#[test]
fn a_variant_without_the_main_metric_is_an_error() {
    let mut results = complete(&options(None));
    for cell in &mut results.cells {
        cell.metrics.remove(&results.metrics[0]);
    }
    assert_eq!(
        results.require_runs().unwrap_err().to_string(),
        "no run of variant fast has completion_s; name a metric that its workload has first"
    );
}

#[test]
fn a_point_at_which_no_run_counts_is_an_error() {
    let backend = |job: &Job| match (&*job.variant, job.parameters["link.loss"].as_str()) {
        ("slow", Some("3%")) => Err(RunError::Failed("it broke".to_owned())),
        _ => fake(job),
    };
    let finished = run(&experiment(), &backend, &options(None), &mut |_| {}).unwrap();
    let results = finished.results.unwrap();
    let error = results.require_runs().unwrap_err();
    assert_eq!(
        error.to_string(),
        "these have no results: slow at link.loss=3%; it broke"
    );
}

#[test]
fn a_point_at_which_some_runs_count_is_no_error() {
    let backend = |job: &Job| match job.repeat {
        0 => Err(RunError::Failed("it broke".to_owned())),
        _ => fake(job),
    };
    let finished = run(&experiment(), &backend, &options(None), &mut |_| {}).unwrap();
    finished.results.unwrap().require_runs().unwrap();
}
