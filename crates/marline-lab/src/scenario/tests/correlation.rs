//! Correlations of metrics.

use super::*;

#[test]
fn metrics_are_correlated_where_they_are_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    write("r.csv", "cca,content_kb,r\nnew_reno,2400,-0.85\n");
    let head = with(
        "[variant.new_reno]\ncc = 'newreno'\n[variant.bbr]\ncc = 'bbr'\n\
         [sweep.content_kb]\n500 = { 'workload.objects' = '500kB' }\n2400 = { 'workload.objects' = '2400kB' }\n",
    );
    let read = |more: &str| {
        let path = write("fits.toml", &format!("{head}[[correlation]]\n{more}"));
        Experiment::load(&path, "fits", &[])
            .map(|experiment| experiment.correlations)
            .map_err(|error| error.to_string())
    };
    let all = read("x = 'fluctuations'").unwrap();
    let places: Vec<_> = all
        .iter()
        .map(|one| (one.variant.as_str(), one.point))
        .collect();
    assert_eq!(
        places,
        [("new_reno", 0), ("new_reno", 1), ("bbr", 0), ("bbr", 1)]
    );
    assert_eq!(
        (all[0].x.as_str(), all[0].y.as_str()),
        ("fluctuations", "completion_s")
    );
    assert_eq!((all[0].published, &all[0].source), (None, &None));

    let lookup = "published = { file = 'r.csv', where = { cca = '{variant}' }, value = 'r', source = 'figure 2' }";
    let large = read(&format!(
        "where = {{ content_kb = 2400 }}\nx = 'loss_ratio'\ny = 'goodput_mbps'\n{lookup}"
    ))
    .unwrap();
    assert_eq!(large.len(), 2);
    assert_eq!((large[0].point, large[0].published), (1, Some(-0.85)));
    assert_eq!(large[0].source.as_deref(), Some("figure 2"));
    assert_eq!((large[1].published, &large[1].source), (None, &None));

    for (wrong, words) in [
        (
            "y = 'goodput_mbps'",
            "fits.toml:11: correlation: x is missing; add x = ",
        ),
        (
            "x = 'loss_ratio'\nwhere = { kb = 1 }",
            "unknown parameter \"kb\"; did you mean content_kb? known: content_kb",
        ),
        (
            "x = 'loss_ratio'\nwhere = { content_kb = 1 }",
            "[correlation.where] content_kb: no point has content_kb = 1; its values, nearest first: 500, 2400",
        ),
        (
            "x = 'loss_ratio'\nvariant = 'cubic'",
            "unknown variant \"cubic\"",
        ),
        ("x = 'loss_ratio'\nz = 'goodput_mbps'", "unknown key \"z\""),
        (
            &format!("variant = 'bbr'\nx = 'loss_ratio'\n{lookup}"),
            "no row of \"r.csv\" matches",
        ),
    ] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(error.contains("fits.toml:1"), "{error}");
    }
    let error = error(&with(
        "[[correlation]]\nx = 'loss_ratio'\nwhere = { b = 1 }\n",
    ));
    assert!(
        error.contains("there is no sweep to choose points from"),
        "{error}"
    );
}
