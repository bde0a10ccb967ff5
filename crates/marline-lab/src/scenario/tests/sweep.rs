//! Points of a sweep, and their published values.

use super::*;

#[test]
fn sweeps_are_products_of_factors() {
    let text = with(
        "[sweep]\nplace.near = { link = 'lte-a' }\nplace.far = { 'link.rtt' = '150ms', time_limit = '9s' }\n\
         'workload.objects' = ['1kB', ['2kB', '3kB']]\nlink.loss = ['0%', '1%']\n\
         [sweep.content_kb]\n500 = { http.connections = 1 }\n2.5 = { http.connections = 2 }",
    );
    // A bare `2.5` is a dotted key.
    assert!(
        error(&text).contains("unknown key \"5\""),
        "{}",
        error(&text)
    );
    let experiment = read(&text.replace("2.5 =", "'2.5' ="));
    assert_eq!(experiment.points.len(), 16);
    let last = &experiment.points[15];
    assert_eq!(last["place"], "far");
    assert_eq!(last["content_kb"], 2.5);
    assert_eq!(last["workload.objects"], serde_json::json!(["2kB", "3kB"]));
    let settings = &experiment.cells[15].settings;
    assert_eq!(
        settings.topology.links[0].spec,
        "rate=1mbps, rtt=150ms, loss=1%"
    );
    assert_eq!(settings.http.connections, 2);
    // Whole links are replaced before single settings of them, regardless of the order.
    assert_eq!(spec(&experiment, 2), "lte-a, loss=1%");
}

#[test]
fn points_are_listed() {
    let text = with(
        "[sweep]\npoints = [{ 'link.rate' = '5mbps', cc = 'bbr' }, { cc = 'cubic', 'link.rate' = '9mbps' }]",
    );
    let experiment = read(&text);
    assert_eq!(experiment.points.len(), 2);
    assert_eq!(experiment.points[1]["link.rate"], "9mbps");
    assert_eq!(spec(&experiment, 1), "rate=9mbps, rtt=20ms");
    let uneven = with("[sweep]\npoints = [{ cc = 'bbr' }, { ecn = true }]");
    assert!(error(&uneven).contains("train.toml:5: [sweep] points: every point has the same keys"));
}

#[test]
fn a_value_that_is_there_twice_is_refused() {
    for (sweep, name) in [
        ("'link.loss' = ['0%', '1%', '0%']", "link.loss = \"0%\""),
        ("points = [{ cc = 'bbr' }, { cc = 'bbr' }]", "cc = \"bbr\""),
        (
            "wsp = { n = 30, factors = { 'link.rtt' = ['10ms', '20ms'] } }",
            "link.rtt = ",
        ),
    ] {
        let error = error(&with(&format!("[sweep]\n{sweep}")));
        assert!(
            error.contains(name) && error.contains("is there twice; leave one out"),
            "{error}"
        );
    }
}

#[test]
fn experiments_have_a_largest_size() {
    let values = |count: u32| (0..count).map(|it| format!("'{it}us'")).collect::<Vec<_>>();
    let variants: String = (0..11).map(|it| format!("[variant.v{it}]\n")).collect();
    let sweep = format!("[sweep]\n'link.rtt' = [{}]", values(10_000).join(", "));
    let error = error(&with(&format!("{variants}{sweep}")));
    assert!(error.contains("more than 100000"), "{error}");
}

#[test]
fn wsp_points_stay_within_their_bounds() {
    let text = with(
        "[sweep.wsp]\nn = 20\nseed = 3\nfactors = { link.rate = ['5mbps', '20mbps'], 'link.rtt' = ['1ms', '200ms'] }",
    );
    let experiment = read(&text);
    assert_eq!(experiment.points.len(), 20);
    for (point, cell) in experiment.points.iter().zip(&experiment.cells) {
        let rate = point["link.rate"].as_str().unwrap();
        let rtt = point["link.rtt"].as_str().unwrap();
        assert_eq!(
            cell.settings.topology.links[0].spec,
            format!("rate={rate}, rtt={rtt}")
        );
        assert!((5.0..=20.0).contains(&marline::settings::split_unit(rate).unwrap().0));
        assert_eq!(marline::settings::split_unit(rtt).unwrap().0.fract(), 0.0);
    }
    let bounds = with("[sweep.wsp]\nn = 20\nfactors = { 'link.rate' = ['5mbps', '20gbps'] }");
    assert!(error(&bounds).contains("a lower and a higher bound of one unit"));
}

#[test]
fn published_values_are_looked_up_at_each_point() {
    let directory = tempfile::tempdir().unwrap();
    let tables = directory.path().join("published");
    let group = directory.path().join("bundle");
    std::fs::create_dir(&tables).unwrap();
    std::fs::create_dir(&group).unwrap();
    std::fs::write(
        tables.join("gain.csv"),
        "# source: x, \"y\"\nlocation,content_kb,cca,gain_percent\nnear,500,new_reno,12.5\nnear,2400,new_reno,\nfar,500,new_reno,7\nfar,500,bbr,9\n",
    )
    .unwrap();
    let text = with(
        "[variant.a]\n[variant.b]\n[sweep]\nlocation.near = { cc = 'bbr' }\nlocation.far = { cc = 'bbr' }\n\
         [sweep.content_kb]\n500 = {}\n2400 = {}\n\
         [[comparison]]\na = 'a'\nb = 'b'\nstatistic = 'p95'\npublished = { file = 'gain.csv', value = 'gain_percent', where = { cca = 'new_reno' }, source = 'table 6' }\n\
         [[published]]\nvariant = 'b'\nmetric = 'completion_s'\nscale = 0.001\nfile = 'gain.csv'\nvalue = 'gain_percent'\nwhere = { cca = 'bbr' }\n",
    );
    let path = group.join("plain.toml");
    std::fs::write(&path, &text).unwrap();
    let experiment = Experiment::load(&path, "bundle/plain", &[]).unwrap();
    let comparison = &experiment.comparisons[0];
    assert_eq!(comparison.published, [Some(12.5), None, Some(7.0), None]);
    assert_eq!(comparison.source.as_deref(), Some("table 6"));
    assert_eq!(comparison.metric, "completion_s");
    assert_eq!(comparison.points, [0, 1, 2, 3]);
    assert_eq!(experiment.published.len(), 1);
    let value = &experiment.published[0];
    assert_eq!((value.variant.as_str(), value.point), ("b", 2));
    assert!((value.value - 0.009).abs() < 1e-15);
    assert_eq!(value.source, "gain.csv");
    for (from, to, words) in [
        (
            "cca = 'bbr'",
            "cca = 'vegas'",
            "no row of \"gain.csv\" matches",
        ),
        ("cca = 'bbr'", "color = 'red'", "unknown column \"color\""),
        (
            "where = { cca = 'bbr' }",
            "",
            "lines 5 and 6 of the table match",
        ),
        (
            "value = 'gain_percent'",
            "value = 'location'",
            "\"near\" in line 3 of the table is not a number",
        ),
    ] {
        std::fs::write(&path, text.replace(from, to)).unwrap();
        let error = Experiment::load(&path, "bundle/plain", &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("plain.toml:") && error.contains(words),
            "{error}"
        );
    }
    std::fs::write(tables.join("parameters.toml"), "x = 1").unwrap();
    let listed = list(directory.path()).unwrap();
    assert_eq!((listed.len(), listed[0].id.as_str()), (1, "bundle/plain"));
    let error = Experiment::load(&group.join("no.toml"), "x", &[]).unwrap_err();
    assert!(error.to_string().contains("cannot read it"));
}
