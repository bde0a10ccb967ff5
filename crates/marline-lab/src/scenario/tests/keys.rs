//! The keys of a scenario, and their defaults.

use super::*;

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
metrics = ["goodput_mbps", "completion_s"]
hosts = ["other"]
routers = ["r"]
ecmp = "xor"
time_limit = "1min"
profile = "gquic"
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
version = "3"
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
profile = "gquic"
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
[stress]
other = 3
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
    assert_eq!(ack.to_string(), "peer_requested(packets=10)");
    assert_eq!((server.loss_detector)().spec().name(), "patient");
    assert_eq!((server.slow_start_exit)().spec().name(), "none");
    assert_eq!(settings.time_limit, Duration::from_secs(60));
    let (host, threads) = ("other".to_owned(), 3);
    assert_eq!(settings.stress, [Stress { host, threads }]);
    assert_eq!(settings.http.version, HttpVersion::Http3);
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
    assert_eq!(json["http"]["version"], "3");
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
    let direction = Direction::Down;
    let measure = Workload::Measure {
        after,
        until,
        direction,
    };
    assert_eq!(*workload, measure);
    for (measure, problem) in [
        ("{ after = '10s' }", "until is missing; add until = \"70s\""),
        (
            "{ after = '2s', until = '2s' }",
            "nothing is left to measure",
        ),
        ("'70s'", "text is not a table"),
    ] {
        let error = with(measure).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn devices_load_a_page_and_are_at_least_two() {
    let with = |devices| {
        let head = "title = 'x'\nlink = 'rate=1mbps'\n[workload]";
        read_with(&format!("{head}\ndevices = {devices}\n"), &[])
    };
    let experiment = with("{ page = 'images', count = 3, apart = '5s' }").unwrap();
    let expected = Workload::Devices {
        page: "images".to_owned(),
        seed: 1,
        count: 3,
        apart: Duration::from_secs(5),
    };
    assert_eq!(experiment.cells[0].settings.workload, expected);
    for (devices, problem) in [
        ("{ count = 3 }", "page is missing; add page ="),
        ("{ page = 'images' }", "count is missing; add count = 3"),
        ("{ page = 'images', count = 1 }", "count: "),
    ] {
        let error = with(devices).unwrap_err();
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
fn an_experiment_that_measures_for_a_time_shows_throughput() {
    let text =
        "title = 'x'\nlink = 'lte-a'\n[workload]\nmeasure = { after = '1s', until = '2s' }\n";
    assert_eq!(read(text).metrics, ["goodput_mbps"]);
    let beside = format!("{text}[http]\nconnections = 0\n[[background]]\nkind = 'tcp'\n");
    assert_eq!(read(&beside).metrics, ["background_goodput_mbps"]);
}

#[test]
fn versions_of_http_have_as_many_connections_as_browsers_open() {
    for (version, expected) in [
        ("1.1", 6),
        ("1.1c", 6),
        ("2", 1),
        ("2-parallel", 2),
        ("2-mptcp", 1),
        ("3", 1),
    ] {
        let http = |more: &str| {
            let text = with(&format!("http.version = '{version}'\n{more}"));
            read(&text).cells[0].settings.http.clone()
        };
        let by_default = http("");
        assert_eq!(by_default.connections, expected);
        assert_eq!(by_default.version.is_over_tcp(), version != "3");
        assert_eq!(http("http.connections = 4").connections, 4);
    }
}

#[test]
fn connections_have_sockets_of_their_own_if_a_scenario_says_so() {
    for (text, expected) in [("", false), ("http.own_sockets = true", true)] {
        let experiment = read(&with(text));
        let settings = &experiment.cells[0].settings;
        assert_eq!(settings.http.own_sockets, expected, "{text}");
    }
}

#[test]
fn whole_objects_go_over_the_first_connection_if_a_scenario_says_so() {
    for (text, expected) in [("", false), ("http.whole_on_first = true", true)] {
        let experiment = read(&with(text));
        let settings = &experiment.cells[0].settings;
        assert_eq!(settings.http.whole_on_first, expected, "{text}");
    }
}
