use super::super::{Comparison, Experiment};
use super::with;

const VARIANTS: &str = "[variant.1c]\n[variant.3c]\n[variant.bundle]\n[sweep]\n\
                        cca.reno = { cc = 'newreno' }\ncca.bbr = { cc = 'bbr' }\n\
                        content_kb = { 500 = { workload.objects = '500kB' }, 2400 = { workload.objects = '2400kB' } }\n";

fn read(more: &str) -> Result<Vec<Comparison>, String> {
    let directory = tempfile::tempdir().unwrap();
    let table = "statistic,content_kb,over_1c,over_3c,over_5c\n\
                 median,500,0,0,9\nmedian,2400,37.9,23.8,9\np95,2400,67.9,,9\n";
    std::fs::write(directory.path().join("gain.csv"), table).unwrap();
    let path = directory.path().join("pairs.toml");
    let text = with(&format!("{VARIANTS}[[comparison]]\n{more}"));
    std::fs::write(&path, text).unwrap();
    let read = Experiment::load(&path, "pairs", &[]);
    read.map(|experiment| experiment.comparisons)
        .map_err(|error| error.to_string())
}

#[test]
fn lists_are_compared_pair_by_pair() {
    let all = read(
        "a = ['bundle', '3c']\nb = ['1c', '3c']\nstatistic = ['median', 'p95']\nwhere = { cca = 'reno' }\n\
         published = { file = 'gain.csv', value = 'over_{b}', where = { statistic = '{statistic}' }, source = 'table 6' }",
    )
    .unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|one| (one.statistic.name(), one.a.as_str(), one.b.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("median", "bundle", "1c"),
            ("median", "bundle", "3c"),
            ("median", "3c", "1c"),
            ("p95", "bundle", "1c"),
            ("p95", "bundle", "3c"),
            ("p95", "3c", "1c"),
        ]
    );
    assert!(all.iter().all(|one| one.points == [0, 1]));
    let published: Vec<_> = all.iter().map(|one| one.published.as_slice()).collect();
    assert_eq!(published[1], [Some(0.0), Some(23.8), None, None]);
    assert_eq!(published[3], [None, Some(67.9), None, None]);
    assert_eq!(published[4], [None; 4]);
    assert_eq!(all[3].source.as_deref(), Some("table 6"));
    assert_eq!(all[4].source, None);
}

#[test]
fn one_pair_is_compared_at_every_point() {
    let all = read("a = 'bundle'\nb = '1c'").unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].points, [0, 1, 2, 3]);
    assert_eq!(all[0].statistic.name(), "median");
}

#[test]
fn errors_in_comparisons_name_table_and_key() {
    for (more, words) in [
        (
            "a = 'bundle'\nb = ['1c', '2c']",
            "[comparison] b: unknown variant \"2c\"",
        ),
        (
            "a = 'bundle'\nb = '1c'\nstatistic = ['median', 'std']",
            "[comparison] statistic: unknown statistic \"std\"",
        ),
        (
            "a = 'bundle'\nb = '1c'\nwhere = { cca = 'cubic' }",
            "[comparison.where] cca: no point has cca = cubic; its values, nearest first: ",
        ),
        (
            "a = 'bundle'\nb = '1c'\nwhere = { place = 'near' }",
            "[comparison.where] place: unknown parameter \"place\"; known: cca, content_kb",
        ),
        (
            "a = 'bundle'\nb = '1c'\npublished = { file = 'gain.csv', value = 'under_{b}', where = { statistic = 'p95' } }",
            "[comparison] published: unknown column \"under_1c\"",
        ),
        (
            "a = 'bundle'\nb = '1c'\npublished = { file = 'gain.csv', value = 'over_{b}', where = { statistic = 'mean' } }",
            "[comparison] published: no row of \"gain.csv\" matches",
        ),
        ("a = []\nb = '1c'", "[comparison] a: the list is empty"),
        (
            "a = '1c'\nb = '1c'",
            "comparison: a and b are the same; name something",
        ),
    ] {
        let error = read(more).unwrap_err();
        assert!(error.contains(words), "\n{error}\nis not\n{words}");
    }
}
