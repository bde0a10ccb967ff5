use std::time::Duration;

use marline::coordination::bundle::BundleConfig;

use super::*;

mod bundle;
mod channels;
mod comparison;
mod initial_window;
mod paths;
mod settings;
mod streams;
mod tcp;
mod visits;

const TRAIN: &str = r#"title = "A download on the train"
link = "rate=12mbps, rtt=80ms, loss=1%, buffer=200kB"
repeats = 30
[workload]
objects = ["500kB", "2400kB"]
[variant.newreno]
cc = "newreno"
[variant.bbr]
cc = "bbr"
[sweep]
"link.loss" = ["0%", "1%", "3%"]
"#;

fn read(text: &str) -> Experiment {
    read_with(text, &[]).unwrap()
}

fn read_with(text: &str, sets: &[&str]) -> Result<Experiment, String> {
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    Experiment::parse(text, "train.toml", &sets).map_err(|error| error.to_string())
}

/// A scenario with `more` after the first three lines.
fn with(more: &str) -> String {
    let head = "title = 'x'\nlink = 'rate=1mbps, rtt=20ms'\nworkload.objects = '1MB'\n";
    format!("{head}{more}")
}

fn error(text: &str) -> String {
    read_with(text, &[]).unwrap_err()
}

/// The name of the controller of an end.
fn cc(end: &EndpointSettings) -> &'static str {
    end.transport().controller.spec().name()
}

fn spec(experiment: &Experiment, cell: usize) -> &str {
    &experiment.cells[cell].settings.topology.links[0].spec
}

#[test]
fn a_duplicate_key_is_named_with_its_line() {
    let error = read_with(
        "title = 'x'\nlink = 'lte-a'\n[workload]\nobjects = '1MB'\nobjects = '2MB'\n",
        &[],
    );
    let error = error.unwrap_err();
    assert!(
        error.starts_with("train.toml:5: objects: duplicate key"),
        "{error}"
    );
}

#[test]
fn a_value_that_a_sweep_or_every_variant_replaces_must_be_valid() {
    let head = "title = 'x'\nworkload.objects = '1MB'\n";
    for (text, line, word) in [
        (
            "link = 'rate=1mbps, rtt=20ms, loss=150%'\n[sweep]\n'link.loss' = ['0%', '1%']\n",
            ":3: link",
            "150%",
        ),
        (
            "[link]\nrate = '1mbps'\nloss = '150%'\n[sweep]\n'link.loss' = ['0%', '1%']\n",
            ":5: [link] loss",
            "150%",
        ),
        (
            "link = 'rate=1mbps'\ncc = 'cubik'\n[variant.a]\ncc = 'bbr'\n[variant.b]\ncc = 'cubic'\n",
            ":4: cc",
            "cubik",
        ),
        (
            "cc = 'cubik'\n[sweep]\nlink = ['rate=1mbps', 'rate=2mbps']\ncc = ['cubic', 'bbr']\n",
            ":3: cc",
            "cubik",
        ),
    ] {
        let error = read_with(&format!("{head}{text}"), &[]).unwrap_err();
        assert!(error.contains(line) && error.contains(word), "{error}");
    }
    // A value may be missing.
    read(&format!(
        "{head}[sweep]\nlink = ['rate=1mbps', 'rate=2mbps']\n"
    ));
    read(&format!(
        "{head}link = 'rtt=20ms'\n[sweep]\n'link.rate' = ['1mbps', '2mbps']\n"
    ));
}

#[test]
fn a_scenario_of_fifteen_lines_is_read_with_defaults() {
    let train = read(TRAIN);
    assert_eq!(train.id, "train");
    assert_eq!(train.title, "A download on the train");
    assert_eq!(
        (train.repeats, train.quick_repeats, train.seed),
        (30, 10, 1)
    );
    assert_eq!(train.metrics, ["completion_s"]);
    assert_eq!(train.points.len(), 3);
    assert_eq!(train.cells.len(), 6);
    let losses: Vec<_> = train
        .points
        .iter()
        .map(|point| &point["link.loss"])
        .collect();
    assert_eq!(losses, ["0%", "1%", "3%"]);
    let bbr = &train.cells[5];
    assert_eq!(&*bbr.variant, "bbr");
    assert_eq!(train.point_of(5), 2);
    assert_eq!(
        spec(&train, 5),
        "rate=12mbps, rtt=80ms, loss=3%, buffer=200kB"
    );
    assert_eq!(cc(&bbr.settings.client), "bbr");
    assert_eq!(bbr.settings.server, bbr.settings.client);
    let Workload::Objects {
        objects,
        order,
        warm,
    } = &bbr.settings.workload
    else {
        panic!("{:?}", bbr.settings.workload);
    };
    assert_eq!(
        (objects.as_slice(), *order, *warm),
        (&[500_000, 2_400_000][..], Order::AtOnce, false)
    );
}

#[test]
fn every_key_is_read() {
    let experiment = read(
        r#"
title = "All keys"
id = "train"
paper = "000"
section = "table 6"
shows = "nothing"
backend = "emu"
seed = 7
repeats = 200
quick_repeats = 20
metrics = ["page_load_s", "completion_s"]
hosts = ["other"]
routers = ["r"]
ecmp = "xor"
time_limit = "1min"
profile = "published"
cc = "newreno"
ack = "every 10"
[links.access]
between = ["client", "r"]
spec = "lte-a, loss=1%"
down.rate = "65mbps"
[links.backhaul]
between = ["server", "other", "r"]
rtt = "25ms"
outage = ["1s..2s", "3s..4s"]
mtu = "1400B"
[client]
ack = "decimation"
[server]
cc = "bbr"
initial_window = 60
slow_start_exit = "none"
loss_detection = "patient"
pacing = false
ecn = false
mtu = 1200
backoff = 0.7
bundle = "published"
[http]
version = "2-parallel"
connections = 2
split = "1MB"
ranges = "handed"
bundle = true
[[workload.streams]]
id = 1
size = "5kB"
weight = 255
[[workload.streams]]
id = 2
size = "128kB"
parent = 1
urgency = 7
start = "50ms"
[[background]]
kind = "flows"
count = 4
start = "1s"
spread = "500ms"
direction = "up"
profile = "published"
cc = "newreno"
backoff = 0.7
[[background]]
kind = "on-off"
from = "other"
rate = "5mbps"
on = "100ms"
off = "300ms"
size = "600B"
[[background]]
kind = "poisson"
rate = "1mbps"
"#,
    );
    assert_eq!(experiment.backend, BackendKind::Emu);
    assert_eq!(experiment.paper.as_deref(), Some("000"));
    assert_eq!((experiment.repeats, experiment.quick_repeats), (200, 20));
    assert_eq!(&*experiment.cells[0].variant, "base");
    assert!(experiment.points[0].is_empty());
    let settings = &experiment.cells[0].settings;
    let topology = &settings.topology;
    assert_eq!(topology.hosts, ["client", "server", "other"]);
    assert_eq!(topology.ecmp, Ecmp::Xor);
    assert_eq!(topology.links[0].spec, "lte-a, loss=1%, down.rate=65mbps");
    assert_eq!(topology.links[1].between, ["server", "other", "r"]);
    assert_eq!(
        topology.links[1].spec,
        "rtt=25ms, outage=1s..2s+3s..4s, mtu=1400B"
    );
    let client = settings.client.transport();
    assert_eq!((client.ack_policy)().spec().to_string(), "decimation");
    assert_eq!(client.controller.spec().name(), "newreno");
    let server = settings.server.transport();
    assert_eq!(server.controller.spec().name(), "bbr");
    let ack = (server.ack_policy)().spec();
    assert_eq!(ack.to_string(), "as_asked(packets=10)");
    assert_eq!((server.loss_detector)().spec().name(), "patient");
    assert_eq!((server.slow_start_exit)().spec().name(), "none");
    assert_eq!(settings.time_limit, Duration::from_secs(60));
    assert_eq!(settings.http.version, HttpVersion::Http2Parallel);
    assert_eq!(settings.http.split, Some(1_000_000));
    assert_eq!(settings.http.ranges, RangeKind::Handed);
    assert!(settings.http.bundle);
    let published = BundleConfig::published();
    assert_eq!(server.bundle.as_deref(), Some(&published));
    assert!(client.bundle.is_none());
    let Workload::Streams { streams, .. } = &settings.workload else {
        panic!("{:?}", settings.workload);
    };
    assert_eq!((streams[0].weight, streams[1].weight), (255, 110));
    assert_eq!((streams[1].parent, streams[1].urgency), (Some(1), 7));
    assert_eq!(settings.background[0].from, "client");
    assert_eq!(settings.background[1].from, "other");
    assert_eq!(settings.background[1].to, "client");
    let json = serde_json::to_value(&**settings).unwrap();
    assert_eq!(json["server"]["cc"], "bbr");
    assert_eq!(json["server"]["initial_window_packets"], 60);
    assert_eq!(json["client"]["initial_window_packets"], 32);
    assert_eq!(json["client"]["slow_start_exit"], "hybrid");
    assert_eq!(json["http"]["version"], "2-parallel");
    let flows = &json["background"][0]["traffic"]["flows"];
    assert_eq!(flows["spread"], 0.5);
    assert_eq!(flows["ends"]["initial_window_packets"], 32);
    assert_eq!(flows["ends"]["cc"], "newreno");
    assert_eq!(flows["ends"]["backoff"], 0.7);
    assert_eq!(json["background"][1]["traffic"]["on-off"]["on"], 0.1);
}

#[test]
fn a_measurement_needs_a_start_and_a_later_end() {
    let with = |measure| {
        let head = "title = 'x'\nlink = 'rate=1mbps'\n[workload]";
        read_with(&format!("{head}\nmeasure = {measure}\n"), &[])
    };
    let experiment = with("{ after = '10s', until = '1min' }").unwrap();
    let [after, until] = [10, 60].map(Duration::from_secs);
    let workload = &experiment.cells[0].settings.workload;
    assert_eq!(*workload, Workload::Measure { after, until });
    for (measure, problem) in [
        ("{ after = '10s' }", "until is missing; add until = \"70s\""),
        (
            "{ after = '2s', until = '2s' }",
            "nothing is left to measure",
        ),
        ("'70s'", "text is no table"),
    ] {
        let error = with(measure).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn settings_reach_the_transport() {
    let text = with("cc = 'newreno'\nmtu = 1200\nbackoff = 0.8\npacing = false");
    let experiment = read(&text);
    let config = experiment.cells[0].settings.server.transport();
    assert!(!config.pacing && !config.mtu.discover);
    assert_eq!(config.backoff, Some(0.8));
    assert_eq!(format!("{:?}", config.controller), "NewReno");
}

#[test]
fn links_form_a_chain() {
    let experiment = read(
        "title = 'x'\nlinks = ['lte-a', 'rtt=25ms', 'rate=1gbps, rtt=1ms']\nworkload.page = 'small'\n\
         [sweep]\n'links.2.rtt' = ['25ms', '150ms']",
    );
    let topology = &experiment.cells[1].settings.topology;
    assert_eq!(topology.routers, ["r1", "r2"]);
    let specs: Vec<_> = topology
        .links
        .iter()
        .map(|link| link.spec.as_str())
        .collect();
    assert_eq!(specs, ["lte-a", "rtt=150ms", "rate=1gbps, rtt=1ms"]);
    assert_eq!(topology.links[0].between, ["client", "r1"]);
    assert_eq!(topology.links[2].between, ["r2", "server"]);
    assert_eq!(topology.links[1].name, "link2");
}

#[test]
fn overrides_replace_single_values() {
    let text = with(
        "[variant.a]\nlink.delay = '5ms'\n[variant.b]\nlink.preset = 'wifi-7'\n[variant.c]\nlink = 'lte-a'\nserver.cc = 'bbr'\nworkload.transfer = '2MB'\n",
    );
    let experiment = read(&text);
    assert_eq!(spec(&experiment, 0), "rate=1mbps, delay=5ms");
    assert_eq!(spec(&experiment, 1), "wifi-7, rate=1mbps, rtt=20ms");
    assert_eq!(spec(&experiment, 2), "lte-a");
    let settings = &experiment.cells[2].settings;
    assert_eq!(
        (cc(&settings.client), cc(&settings.server)),
        ("cubic", "bbr")
    );
    assert!(matches!(
        settings.workload,
        Workload::Transfer {
            bytes: 2_000_000,
            ..
        }
    ));
}

#[test]
fn overrides_come_from_the_command_line() {
    let experiment = read_with(
        TRAIN,
        &[
            "repeats=5",
            "link.rate=5mbps",
            "server.ecn=false",
            "http.version=2",
            "workload.objects=['1kB']",
        ],
    )
    .unwrap();
    assert_eq!(experiment.repeats, 5);
    assert_eq!(
        spec(&experiment, 0),
        "rate=5mbps, rtt=80ms, loss=0%, buffer=200kB"
    );
    let settings = &experiment.cells[0].settings;
    assert_eq!(
        (
            settings.server.transport().ecn,
            settings.client.transport().ecn
        ),
        (false, true)
    );
    assert_eq!(settings.http.version, HttpVersion::Http2);
    let both = read_with(&with("server.cc = 'bbr'"), &["cc=newreno"]).unwrap();
    assert_eq!(cc(&both.cells[0].settings.server), "newreno");
    for (set, words) in [
        (
            "link.loss=2%",
            "--set link.loss=2%: variants or the sweep set link.loss; change it there",
        ),
        (
            "lnk.rate=2mbps",
            "--set lnk.rate=2mbps: unknown key \"lnk\"; did you mean link?",
        ),
        ("repeats", "write KEY=VALUE"),
        (
            "repeats=none",
            "--set repeats=none: this must be an integer",
        ),
        ("links.1.rate=1mbps", "there is no such link"),
        ("title.x=1", "there is nothing in \"title\" to set"),
        (
            "background.1.count=3",
            "background is a list; begin each member with [[background]]",
        ),
    ] {
        let error = read_with(TRAIN, &[set]).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn members_of_lists_are_counted_from_one() {
    let text = with("[[background]]\nkind = 'flows'\n[sweep]\n'background.1.count' = [1, 2, 4]");
    let experiment = read(&text);
    let counts: Vec<_> = experiment
        .cells
        .iter()
        .map(|cell| &cell.settings.background[0].traffic)
        .collect();
    assert!(matches!(counts[2], Traffic::Flows { count: 4, .. }));
    let missing = with("[[background]]\nkind = 'flows'\n[sweep]\n'background.2.count' = [1]");
    assert!(
        error(&missing).contains("\"background\" has no member \"2\"; they are counted from 1")
    );
}

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

/// Each error names the file, the line, the key, what is wrong and what to do.
#[test]
fn mistakes_are_explained() {
    for (text, expected) in [
        (
            "cc = 'bbrr'",
            "train.toml:4: cc: unknown controller \"bbrr\"; did you mean bbr? known: newreno, cubic, bbr, olia",
        ),
        (
            "[variant.bbr]\ncc = 'bbrr'",
            "train.toml:5: [variant.bbr] cc: unknown controller \"bbrr\"",
        ),
        (
            "[variant.a]\nlink.loss = '1%'\nrepeets = 3",
            "train.toml:6: [variant.a] repeets: unknown key \"repeets\"; did you mean repeats?",
        ),
        (
            "[http]\nconections = 3",
            "train.toml:5: [http] conections: unknown key \"conections\"; did you mean connections?",
        ),
        (
            "[variant.a]\n[variant.b]\n[variant.a]",
            "train.toml:6: a: duplicate key: a variant, table or key is there twice",
        ),
        ("repeats = ", "train.toml:4:"),
        (
            "repeats = 0",
            "train.toml:4: repeats: this must be an integer from 1 to 100000",
        ),
        (
            "time_limit = '30'",
            "train.toml:4: time_limit: \"30\" has no unit; append one of ns, us, ms, s, min",
        ),
        ("time_limit = 30", "\"30\" has no unit"),
        (
            "pacing = 'on'",
            "pacing: this must be true or false, not \"on\"",
        ),
        (
            "backoff = 1.5",
            "backoff: this must be a number above 0 and below 1",
        ),
        (
            "ack = 'every'",
            "unknown policy of acknowledgment \"every\"; did you mean every_n?",
        ),
        ("initial_window = 1", "this must be an integer from 2"),
        (
            "mtu = 1100",
            "this must be a size from 1200B to 9kB, not 1100",
        ),
        (
            "profile = 'tody'",
            "unknown profile \"tody\"; did you mean today?",
        ),
        ("http = 3", "http: an integer is no table"),
        (
            "http.ranges = 'even'",
            "train.toml:4: [http] ranges: unknown kind of ranges \"even\"; known: auto, equal, handed",
        ),
        (
            "http.bundle = 3",
            "[http] bundle: an integer is not true or false",
        ),
        (
            "bundle = 'publishd'",
            "train.toml:4: bundle: unknown bundle \"publishd\"; did you mean published?",
        ),
        (
            "bundle = 3",
            "bundle: this must be true, false, \"default\", \"published\", \"published-every-event\" or a table, not 3",
        ),
        (
            "[server.bundle]\nsync_stat = true",
            "train.toml:5: [server.bundle] sync_stat: unknown key \"sync_stat\"; did you mean sync_state?",
        ),
        (
            "bundle.backoff = 'measurd'",
            "[bundle] backoff: this must be a number above 0 and below 1, or \"measured\", not \"measurd\"",
        ),
        (
            "bundle.slow_start_growth = 0.5",
            "this must be a number from 1 to 100",
        ),
        (
            "bundle.scope = 'some'",
            "unknown scope \"some\"; known: all, active",
        ),
        (
            "bundle.connections = 17",
            "this must be an integer from 1 to 16",
        ),
        (
            "[variant.a]\nbundle.fair = 1",
            "train.toml:5: [variant.a.bundle] fair: this must be true or false, not 1",
        ),
        (
            "id = 'other'",
            "the file's name makes this experiment \"train\"",
        ),
        ("[sweep]", "train.toml:4: sweep: the sweep is empty; add"),
        (
            "[sweep]\ncc = []",
            "train.toml:5: [sweep] cc: the sweep is empty",
        ),
        (
            "[sweep]\ncc = 'bbr'",
            "text is one value; a sweep has a list of them",
        ),
        (
            "[sweep]\ncc = ['bbr', 'cubi']",
            "train.toml:5: [sweep] cc: unknown controller \"cubi\"",
        ),
        (
            "[variant.a]\ncc = 'bbr'\n[sweep]\ncc = ['bbr']",
            "train.toml:7: [sweep] cc: variant a sets cc too",
        ),
        ("variant = {}", "there are no variants"),
        ("links = []", "there is `link` already"),
        (
            "hosts = ['x']",
            "train.toml:4: hosts: only links with names have hosts",
        ),
        (
            "[[background]]\nrate = '1mbps'",
            "kind is missing; add kind = \"flows\"",
        ),
        (
            "[[background]]\nkind = 'flow'",
            "unknown kind of background \"flow\"; did you mean flows?",
        ),
        (
            "[[background]]\nkind = 'flows'\nfrom = 'serve'",
            "unknown host \"serve\"; did you mean server?",
        ),
        (
            "[[background]]\nkind = 'flows'\nfrom = 'server'",
            "from and to are both \"server\"",
        ),
        (
            "[[background]]\nkind = 'flows'\ncc = 'cubi'",
            "train.toml:6: [background] cc: unknown controller \"cubi\"; did you mean cubic?",
        ),
        (
            "[[background]]\nkind = 'poisson'\nrate = '1mbps'\nsize = '2kB'",
            "a packet carries 1 to 1472 bytes",
        ),
        ("[[comparison]]\na = 'base'", "b is missing; add"),
        (
            "[[comparison]]\na = 'base'\nb = 'bass'",
            "unknown variant \"bass\"; did you mean base?",
        ),
        (
            "[[comparison]]\na = 'base'\nb = 'base'\nstatistic = 'std'",
            "unknown statistic \"std\"",
        ),
        (
            "[[published]]\nfile = 'no.csv'\nvalue = 'x'",
            "there is no table \"no.csv\"",
        ),
        (
            "workload.page = 'small'",
            "train.toml:4: [workload] page: there is objects and page",
        ),
    ] {
        let error = error(&with(text));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    for (text, expected) in [
        (
            "link = 'rtt=1ms'\nworkload.page = 'x'",
            "train.toml: title is missing; add title =",
        ),
        (
            "title = 'x'\nworkload.page = 'x'",
            "train.toml: link is missing; add link =",
        ),
        (
            "title = 'x'\nlink = ''\nworkload.page = 'x'",
            "train.toml:2: link: the link is empty",
        ),
        (
            "title = 'x'\nlink = 3\nworkload.page = 'x'",
            "train.toml:2: link: an integer is no link",
        ),
        (
            "title = 'x'\nlinks = []\nworkload.page = 'x'",
            "train.toml:2: links: there are no links",
        ),
        (
            "title = 'x'\nlink = 'rtt=1ms'",
            "train.toml: workload is missing; add [workload]",
        ),
        (
            "title = 'x'\nlink = 'rtt=1ms'\n[workload]",
            "train.toml:3: workload: what to do is missing",
        ),
        (
            "title = 'x'\nlink = 'rtt=1ms'\nworkload.objects = []",
            "the list is empty",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn invalid_topologies_are_rejected() {
    let text = |links: &str| {
        format!("title = 'x'\nhosts = ['a', 'b']\nrouters = ['r']\nworkload.page = 'x'\n{links}")
    };
    let good = "[links]\none = { between = ['client', 'r', 'a', 'b'], rtt = '1ms' }\ntwo = { between = ['r', 'server'], rtt = '1ms' }";
    assert_eq!(read(&text(good)).cells.len(), 1);
    for (links, expected) in [
        (
            good.replace("'client', ", ""),
            "train.toml:6: [links] one: host \"client\" has no link",
        ),
        (
            good.replace(", 'b'", ""),
            "train.toml:2: hosts: host \"b\" has no link",
        ),
        (
            good.replace("'r', 'server'", "'b', 'server'"),
            "no route from host \"client\" to \"server\"",
        ),
        (
            good.replace("'r', 'server'", "'q', 'server'"),
            "unknown node \"q\"; known: client, server, a, b, r",
        ),
        (
            good.replace("'r', 'server'", "'server', 'server'"),
            "a link joins two different nodes",
        ),
        (
            good.replace("between = ['r', 'server'], ", ""),
            "train.toml:7: [links] two: between is missing",
        ),
    ] {
        let error = error(&text(&links));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    let twice = text(good).replace("['r']", "['a']");
    assert!(error(&twice).contains("train.toml:3: routers: \"a\" is there twice"));
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
        ("where = { cca = 'bbr' }", "", "several rows match"),
        (
            "value = 'gain_percent'",
            "value = 'location'",
            "\"near\" is not a number",
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

/// An error in a link names the place of the invalid setting.
#[test]
fn errors_in_links_name_the_setting() {
    for (more, expected) in [
        (
            "[variant.a]\nlink.los = '1%'",
            "train.toml:5: [variant.a.link] los: los: unknown key; did you mean `loss`?",
        ),
        (
            "[sweep]\n'link.loss' = ['1%', '101%']",
            "train.toml:5: [sweep] link.loss: loss: 101% is above 100%",
        ),
        (
            "[sweep]\n'link.rtt' = ['5']",
            "train.toml:5: [sweep] link.rtt: rtt: `5` has no unit; write",
        ),
        (
            "[sweep]\nlink = ['lte-a', 'lte-b']",
            "train.toml:5: [sweep] link: preset: unknown preset; did you mean `lte-a`?",
        ),
        (
            "[variant.a]\nlink = 'loss=1%, loss=2%'",
            "train.toml:5: [variant.a] link: loss is there twice; keep one",
        ),
        (
            "[variant.a]\nlink.up.delay = '5ms'",
            "cannot be combined with",
        ),
        (
            "[variant.a]\nlink.trace.x = 1",
            "[variant.a.link.trace] x: trace.x: unknown key",
        ),
    ] {
        let error = error(&with(more));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
        assert!(
            error.contains("(in the link \"") || error.contains("twice"),
            "{error}"
        );
    }
    let both = with(
        "[variant.a]\nlink = 'rate=1mbps, up.rate=2mbps, up.delay=5ms'\n[sweep]\nlink.rate = ['3mbps']\nlink.rtt = ['4ms']",
    );
    assert_eq!(spec(&read(&both), 0), "rate=3mbps, rtt=4ms");
}

/// `lab/agreement` compares the backends.
#[test]
fn a_chosen_backend_leaves_variants_their_own() {
    let backends = |text: &str| {
        let mut experiment = read(&with(text));
        experiment.run_in(BackendKind::Emu);
        let cells = experiment.cells.iter();
        cells.map(|cell| cell.settings.backend).collect::<Vec<_>>()
    };
    let (sim, emu) = (BackendKind::Sim, BackendKind::Emu);
    let variants = "[variant.a]\n[variant.b]\nbackend = 'sim'\n[variant.c]\nbackend = 'emu'";
    assert_eq!(backends(variants), [emu, sim, emu]);
    assert_eq!(backends("[sweep]\nbackend = ['sim', 'emu']"), [sim, emu]);
    assert_eq!(backends(""), [emu]);
}

#[test]
fn the_library_contains_the_experiments_and_their_tables() {
    let known = super::embedded();
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let listed = list(&directory).unwrap();
    let listed: Vec<_> = listed.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(known, listed);
    for id in known {
        Experiment::load_embedded(id, &[]).unwrap();
    }
    assert!(Experiment::load_embedded("no/such", &[]).is_err());
}

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
        "where = {{ content_kb = 2400 }}\nx = 'a'\ny = 'b'\n{lookup}"
    ))
    .unwrap();
    assert_eq!(large.len(), 2);
    assert_eq!((large[0].point, large[0].published), (1, Some(-0.85)));
    assert_eq!(large[0].source.as_deref(), Some("figure 2"));
    assert_eq!((large[1].published, &large[1].source), (None, &None));

    for (wrong, words) in [
        (
            "y = 'b'",
            "fits.toml:11: correlation: x is missing; add x = ",
        ),
        (
            "x = 'a'\nwhere = { kb = 1 }",
            "unknown parameter \"kb\"; known: content_kb",
        ),
        (
            "x = 'a'\nwhere = { content_kb = 1 }",
            "[correlation] where: no point of the sweep has these values",
        ),
        ("x = 'a'\nvariant = 'cubic'", "unknown variant \"cubic\""),
        ("x = 'a'\nz = 'b'", "unknown key \"z\""),
        (
            &format!("variant = 'bbr'\nx = 'a'\n{lookup}"),
            "no row of \"r.csv\" matches",
        ),
    ] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(error.contains("fits.toml:1"), "{error}");
    }
    let error = error(&with("[[correlation]]\nx = 'a'\nwhere = { b = 1 }\n"));
    assert!(
        error.contains("there is no sweep to choose points from"),
        "{error}"
    );
}

#[test]
fn truncated_scenarios_do_not_panic() {
    for cut in 0..TRAIN.len() {
        if TRAIN.is_char_boundary(cut) {
            read_with(&TRAIN[..cut], &[]).ok();
        }
    }
    assert!(error("\u{0}").starts_with("train.toml:1:"));
}

#[test]
fn keys_with_too_many_parts_are_refused() {
    let deep = format!("{}x=1", "a.".repeat(12_000));
    let refused = read_with(TRAIN, &[&deep]).unwrap_err();
    assert!(refused.contains("more than 32 parts"));
    let variant = format!("{TRAIN}\n[variant.deep]\n\"{}x\" = 1\n", "a.".repeat(300));
    let refused = read_with(&variant, &[]).unwrap_err();
    assert!(refused.contains("more than 32 parts"));
}
