//! Several links side by side.

use super::*;

const HEAD: &str = "title = 'x'\npaths = ['rate=10mbps, rtt=20ms', 'rate=5mbps, rtt=80ms']\nworkload.transfer = '1MB'\n";

#[test]
fn paths_join_client_and_server() {
    let experiment = read(HEAD);
    let settings = &experiment.cells[0].settings;
    let links = settings.topology.links.iter();
    let links: Vec<_> = links
        .map(|link| (link.name.as_str(), link.between.join(" "), &*link.spec))
        .collect();
    let both = || "client server".to_owned();
    assert_eq!(
        links,
        [
            ("path1", both(), "rate=10mbps, rtt=20ms"),
            ("path2", both(), "rate=5mbps, rtt=80ms"),
        ]
    );
    assert_eq!(settings.path, Some(1));
    assert!(settings.topology.routers.is_empty());
    assert_eq!(read(&with("")).cells[0].settings.path, None);
}

#[test]
fn single_settings_of_paths_are_replaced() {
    let text = format!(
        "{HEAD}[variant.second]\npath = 2\n[variant.other]\npaths.1 = 'lte-a'\n\
         [sweep]\n'paths.2.rate' = ['5mbps', '10mbps']\n"
    );
    let experiment = read_with(&text, &["paths.2.rtt=160ms"]).unwrap();
    let cells = experiment.cells.iter().map(|cell| {
        let links = &cell.settings.topology.links;
        (cell.settings.path, links[1].spec.as_str())
    });
    let [slow, fast] = [5, 10].map(|rate| format!("rate={rate}mbps, rtt=160ms"));
    let expected = [
        (Some(2), &*slow),
        (Some(1), &*slow),
        (Some(2), &*fast),
        (Some(1), &*fast),
    ];
    assert_eq!(cells.collect::<Vec<_>>(), expected);
    assert_eq!(spec(&experiment, 0), "rate=10mbps, rtt=20ms");
    assert_eq!(spec(&experiment, 1), "lte-a");

    let each = read(&format!("{HEAD}[sweep]\npath = [1, 2]\n"));
    let each: Vec<_> = each.cells.iter().map(|cell| cell.settings.path).collect();
    assert_eq!(each, [Some(1), Some(2)]);
    let named = read(&with("[sweep.path]\nnear = {}\nfar = { link = 'lte-a' }\n"));
    assert_eq!(named.points.len(), 2, "a parameter may be called so");

    let one = read_with(HEAD, &["link=rate=1mbps"]).unwrap();
    let settings = &one.cells[0].settings;
    assert_eq!((settings.topology.links.len(), settings.path), (1, None));
}

#[test]
fn paths_change_in_turn() {
    let text = format!("{HEAD}[[change]]\nat = '1s'\npaths.1.loss = '100%'\n");
    let experiment = read(&text);
    let changed = &experiment.cells[0].settings.changes[0].links;
    assert_eq!((changed.len(), &*changed[0].name), (1, "path1"));
    assert_eq!(changed[0].spec, "rate=10mbps, rtt=20ms, loss=100%");
}

#[test]
fn errors_in_paths_name_line_and_key() {
    for (more, expected) in [
        (
            "path = 3",
            "train.toml:4: path: this must be an integer from 1 to 2",
        ),
        (
            "link = 'rate=1mbps'",
            "train.toml:2: paths: there is `link` already; keep one of them",
        ),
        (
            "routers = ['r']",
            "train.toml:4: routers: only links with names have routers",
        ),
        (
            "[variant.a]\npaths.3.rtt = '1ms'",
            "train.toml:5: [variant.a.paths.3] rtt: there is no such link;",
        ),
        (
            "[variant.a]\npaths.2.rtt = '1'",
            "train.toml:5: [variant.a.paths.2] rtt: rtt: \"1\" has no unit",
        ),
        (
            "[[change]]\nat = '1s'\npaths.3.loss = '1%'",
            "unknown path \"3\"; known: 1, 2",
        ),
    ] {
        let error = error(&format!("{HEAD}{more}"));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    for (head, expected) in [
        ("paths = []", "train.toml:2: paths: there are no paths"),
        ("paths = 'rtt=1ms'", "train.toml:2: paths: paths are a list"),
        (
            "paths = ['rtt=1ms', 'los=1%']",
            "train.toml:2: paths: los: unknown key",
        ),
        (
            "link = 'rtt=1ms'\npath = 2",
            "train.toml:3: path: there is only one path",
        ),
    ] {
        let error = error(&format!("title = 'x'\n{head}\nworkload.transfer = '1MB'\n"));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn multipath_needs_both_ends() {
    let text = format!(
        "{HEAD}path_scheduler = 'rr'\n[variant.both]\npath_scheduler = 'hbes'\n\
         [variant.one]\nclient.multipath = false\n[variant.none]\nmultipath = false\n"
    );
    let experiment = read(&text);
    let both = experiment.cells.iter().map(|cell| {
        let may = cell.settings.is_multipath();
        let server = cell.settings.server.transport().multipath;
        let scheduler = server.map(|config| (config.scheduler)().spec().to_string());
        (&*cell.variant, may, scheduler)
    });
    let scheduler = |name: &str| Some(name.to_owned());
    assert_eq!(
        both.collect::<Vec<_>>(),
        [
            ("both", true, scheduler("hbes")),
            ("one", false, scheduler("rr")),
            ("none", false, None),
        ]
    );
    let settings = serde_json::to_value(&*experiment.cells[0].settings).unwrap();
    let described = &settings["client"]["multipath"];
    assert_eq!(described["scheduler"], "hbes");
    assert_eq!(described["max_paths"], 16);
    let wrong = error(&format!("{HEAD}path_scheduler = 'fastest'\n"));
    assert!(wrong.contains("rr, lrf, ecf"), "{wrong}");
}
