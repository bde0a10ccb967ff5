//! Workloads in the simulator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use marline::settings::RawValue;
use marline_lab::scenario::{
    Backend, BackendKind, Background, Direction, Ecmp, EndpointSettings, HttpSettings, Job,
    LinkDef, Order, RangeKind, RunError, Settings, Topology, Traffic, Workload,
};
use marline_lab::sim::Simulator;

fn job(link: &str, workload: Workload) -> Job {
    let end = newreno();
    let settings = Settings {
        backend: BackendKind::Sim,
        topology: Topology {
            hosts: vec!["client".into(), "server".into()],
            routers: Vec::new(),
            links: vec![LinkDef {
                name: "link".into(),
                between: vec!["client".into(), "server".into()],
                spec: link.into(),
                channel: None,
            }],
            channels: Vec::new(),
            ecmp: Ecmp::default(),
        },
        path: None,
        client: end.clone(),
        server: end,
        http: HttpSettings::default(),
        workload,
        background: Vec::new(),
        changes: Vec::new(),
        stress: Vec::new(),
        time_limit: Duration::from_secs(60),
    };
    Job {
        experiment: "test".into(),
        variant: "base".into(),
        parameters: Arc::default(),
        repeat: 0,
        seed: 7,
        settings: Arc::new(settings),
        qlog: None,
        pcap: None,
        har: None,
        watch: false,
    }
}

fn newreno() -> EndpointSettings {
    let settings = EndpointSettings::default();
    settings.with("cc", "newreno").expect("it is a valid value")
}

fn objects(warm: bool) -> Workload {
    Workload::Objects {
        objects: vec![300_000, 200_000],
        order: Order::AtOnce,
        warm,
    }
}

const LINK: &str = "rate=10mbps,rtt=40ms,loss=1%,buffer=60kB";

#[test]
fn equal_jobs_have_equal_outcomes() {
    let job = job(LINK, objects(true));
    let first = Simulator.run(&job).unwrap();
    assert_eq!(Simulator.run(&job).unwrap(), first);
    let completion = first.metrics["completion_s"];
    assert!(
        (0.44..5.0).contains(&completion),
        "{completion}: 500 kB at 10 Mb/s take 0.4 s and a round trip"
    );
    assert!(first.metrics["packets_lost"] >= 1.0, "{:?}", first.metrics);
    assert!(first.metrics["fluctuations"] >= 1.0, "{:?}", first.metrics);
    let other = Job { seed: 8, ..job };
    assert_ne!(Simulator.run(&other).unwrap(), first);
}

#[test]
fn a_warm_connection_saves_the_handshake() {
    let clean = "rate=100mbps,rtt=40ms";
    let cold = Simulator.run(&job(clean, objects(false))).unwrap();
    let warm = Simulator.run(&job(clean, objects(true))).unwrap();
    let saved = cold.metrics["completion_s"] - warm.metrics["completion_s"];
    assert!((0.039..0.1).contains(&saved), "{saved}");
}

#[test]
fn transfers_run_in_both_directions() {
    for direction in [Direction::Down, Direction::Up] {
        let workload = Workload::Transfer {
            features: false,
            bytes: 500_000,
            direction,
            warm: true,
        };
        let outcome = Simulator
            .run(&job("rate=10mbps,rtt=40ms", workload))
            .unwrap();
        let completion = outcome.metrics["completion_s"];
        assert!(
            (0.44..1.0).contains(&completion),
            "{direction:?}: {completion}"
        );
        assert!(outcome.metrics["packets_sent"] > 300.0, "the sender counts");
    }
}

#[test]
fn watching_a_run_does_not_change_its_metrics() {
    let plain = Simulator.run(&job(LINK, objects(true))).unwrap();
    let watched = Job {
        watch: true,
        ..job(LINK, objects(true))
    };
    let watched = Simulator.run(&watched).unwrap();
    assert_eq!(watched.metrics, plain.metrics);
    let series = watched.series.unwrap();
    assert!(series.series["window_bytes"].len() > 10);
    assert!(series.series["queue_bytes link from server"].len() > 10);
    let lost = series.moments["lost"].len() as f64;
    assert_eq!(lost, watched.metrics["packets_lost"]);
}

#[test]
fn a_run_over_its_time_limit_is_an_error() {
    let mut job = job("rate=10mbps,rtt=40ms,loss=100%", objects(false));
    let error = Simulator.run(&job).unwrap_err();
    assert!(
        matches!(error, RunError::Failed(_)),
        "no handshake: {error}"
    );
    let mut settings = (*job.settings).clone();
    settings.time_limit = Duration::from_secs(2);
    job.settings = Arc::new(settings);
    let error = Simulator.run(&job).unwrap_err();
    assert_eq!(error, RunError::TimeLimit { seconds: 2.0 });
}

#[test]
fn page_loads_record_their_objects() {
    let workload = Workload::Page {
        page: "today/small".into(),
        seed: 1,
        readable: false,
        loads: 1,
        pause: Duration::ZERO,
        start: Duration::ZERO,
        windows: None,
    };
    let job = Job {
        watch: true,
        ..job(LINK, workload)
    };
    let first = Simulator.run(&job).unwrap();
    assert_eq!(Simulator.run(&job).unwrap(), first);
    let load = first.metrics["page_load_s"];
    assert!(load > first.metrics["ideal_s"], "{:?}", first.metrics);
    assert!(first.metrics["first_render_s"] <= load);
    assert_eq!(first.series.unwrap().objects.len(), 15);
}

#[test]
fn background_traffic_takes_its_share() {
    let transfer = Workload::Transfer {
        features: false,
        bytes: 2_000_000,
        direction: Direction::Down,
        warm: false,
    };
    let with = |traffic: Option<Traffic>| {
        let mut job = job("rate=10mbps,rtt=40ms,buffer=60kB", transfer.clone());
        let mut settings = (*job.settings).clone();
        settings.background = traffic
            .map(|traffic| Background {
                from: "server".into(),
                to: "client".into(),
                start: Duration::ZERO,
                measured: false,
                traffic,
            })
            .into_iter()
            .collect();
        job.settings = Arc::new(settings);
        let outcome = Simulator.run(&job).unwrap();
        outcome.metrics["completion_s"]
    };
    let alone = with(None);
    let flows = with(Some(Traffic::Flows {
        count: 1,
        ends: Box::new(newreno()),
        direction: Direction::Up,
        spread: Duration::ZERO,
    }));
    assert!(
        flows > 1.4 * alone,
        "{flows} with a background flow, {alone} alone"
    );
    let packets = with(Some(Traffic::Poisson {
        rate: 5_000_000,
        size: 1000,
    }));
    assert!(
        packets > 1.6 * alone,
        "{packets} with half of the rate left, {alone} alone"
    );
}

/// Three devices with two pipes each that load a page of 3.7 MB.
fn devices(apart: Duration) -> Job {
    let workload = Workload::Devices {
        page: "multipipe/medium".into(),
        seed: 1,
        count: 3,
        apart,
    };
    let mut job = job("rate=5mbps,rtt=40ms,buffer=25kB,jitter=1ms", workload);
    Arc::make_mut(&mut job.settings).http.pipes = Some("rr(pipes=2)".into());
    job
}

#[test]
fn devices_share_a_link_once_all_have_begun() {
    let job = Job {
        watch: true,
        ..devices(Duration::from_secs(1))
    };
    let outcome = Simulator.run(&job).unwrap();
    assert_eq!(Simulator.run(&job).unwrap(), outcome);
    let metrics = outcome.metrics;
    let goodput = |name: &str| metrics[&format!("device_{name}_goodput_mbps")];
    assert!(goodput("1_of_1") > goodput("1_of_2"), "{metrics:?}");
    let shares = ["1_of_3", "2_of_3", "3_of_3"].map(goodput);
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.map(|x| x * x));
    let jain = sum * sum / (3.0 * squares.iter().sum::<f64>());
    assert!((metrics["jain_index"] - jain).abs() < 1e-12, "{metrics:?}");
    assert!(jain > 0.5 && sum < 5.0, "{metrics:?}");
    assert!(metrics["utilization_ratio"] > 0.7, "{metrics:?}");
    assert_eq!(metrics["connections"], 6.0);
    // All of them carry 11.1 MB over 5 Mb/s.
    let last = metrics["page_load_max_s"] + 2.0;
    assert!(last > 3.0 * 3.7 * 8.0 / 5.0, "{metrics:?}");
    assert!(metrics["page_load_mean_s"] <= metrics["page_load_max_s"]);
    let series = outcome.series.unwrap().series;
    assert!(series.contains_key("goodput_mbps device 3"));
}

#[test]
fn devices_that_never_meet_are_an_error() {
    let error = Simulator.run(&devices(Duration::from_secs(9))).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("was done before the last began"), "{text}");
}

/// `connections` and as many `flows` in the background as given, measured from second 5 to second 25.
fn beside(connections: usize, flows: usize) -> Job {
    let measure = Workload::Measure {
        after: Duration::from_secs(5),
        until: Duration::from_secs(25),
        direction: Direction::Down,
    };
    let mut job = job("rate=10mbps,rtt=40ms,buffer=60kB,jitter=1ms", measure);
    let settings = Arc::make_mut(&mut job.settings);
    settings.http.connections = connections;
    settings.background = vec![Background {
        from: "client".into(),
        to: "server".into(),
        start: Duration::ZERO,
        measured: false,
        traffic: Traffic::Flows {
            count: flows,
            ends: Box::new(newreno()),
            direction: Direction::Down,
            spread: Duration::from_millis(500),
        },
    }];
    job
}

#[test]
fn bulk_connections_share_the_link_with_flows() {
    let one = Simulator.run(&beside(1, 1)).unwrap();
    assert_eq!(Simulator.run(&beside(1, 1)).unwrap(), one);
    assert_eq!(one.virtual_s, 25.0);
    let one = one.metrics;
    assert!(one["jain_index"] > 0.8, "{one:?}");
    assert_eq!(one["jain_index"], one["jain_index_connections"]);
    assert!(one["utilization_ratio"] > 0.8, "{one:?}");
    assert!(!one.contains_key("completion_s"), "{one:?}");

    let three = Simulator.run(&beside(3, 1)).unwrap().metrics;
    assert!((0.6..0.9).contains(&three["share"]), "{three:?}");
    assert!(three["jain_index"] < one["jain_index"], "{three:?}");
    assert!(
        three["background_goodput_mbps"] < 0.8 * one["background_goodput_mbps"],
        "three of four leave less than one of two: {three:?}"
    );
    assert!(three["background_share_of_fair"] < 0.8, "{three:?}");
}

/// An end that coordinates the connections of bundles, with the published settings.
fn coordinated() -> EndpointSettings {
    newreno()
        .with("bundle", "published")
        .expect("it is a valid value")
}

#[test]
fn a_fair_bundle_leaves_more_to_background_flows() {
    let bundle = |fair| {
        let mut job = beside(3, 1);
        let settings = Arc::make_mut(&mut job.settings);
        settings.http.bundle = true;
        let fair = ("fair".to_owned(), RawValue::Switch(fair));
        let server = coordinated().with("bundle", RawValue::Table(vec![fair]));
        settings.server = server.unwrap();
        Simulator.run(&job).unwrap().metrics
    };
    let plain = Simulator.run(&beside(3, 1)).unwrap().metrics;
    let (bundle, fair) = (bundle(false), bundle(true));
    assert_ne!(bundle["goodput_mbps"], plain["goodput_mbps"]);
    assert!(
        fair["background_goodput_mbps"] > bundle["background_goodput_mbps"],
        "{fair:?} {bundle:?}"
    );
}

#[test]
fn measured_throughput_has_time_series() {
    let plain = Simulator.run(&beside(2, 1)).unwrap();
    let watched = Job {
        watch: true,
        ..beside(2, 1)
    };
    let watched = Simulator.run(&watched).unwrap();
    assert_eq!(watched.metrics, plain.metrics);
    let series = watched.series.unwrap().series;
    for name in ["goodput_mbps 0", "goodput_mbps 1", "goodput_mbps flow 1"] {
        assert!((45..=55).contains(&series[name].len()), "{name}");
    }
    assert!(series.values().all(|points| points.len() <= 4000));
}

#[test]
fn files_arrive_unaltered() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("below")).unwrap();
    std::fs::write(directory.path().join("a page.html"), b"<p>hello").unwrap();
    std::fs::write(directory.path().join("below/large"), vec![7; 200_000]).unwrap();
    std::fs::write(directory.path().join(".hidden"), b"no").unwrap();
    let workload = Workload::Files {
        directory: directory.path().display().to_string(),
        warm: false,
    };
    let outcome = Simulator.run(&job(LINK, workload)).unwrap();
    assert_eq!(outcome.metrics["files"], 2.0);
    assert!(
        outcome.metrics["completion_s"] > 0.16,
        "{:?}",
        outcome.metrics
    );

    let workload = Workload::Files {
        directory: directory.path().join("missing").display().to_string(),
        warm: false,
    };
    let error = Simulator.run(&job(LINK, workload)).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

/// 600 kB over three connections.
fn in_ranges(ranges: RangeKind, is_bundle: bool) -> Job {
    let workload = Workload::Objects {
        objects: vec![600_000],
        order: Order::AtOnce,
        warm: true,
    };
    let mut job = job(LINK, workload);
    let settings = Arc::make_mut(&mut job.settings);
    settings.http = HttpSettings {
        connections: 3,
        split: Some(10_000),
        ranges,
        bundle: is_bundle,
        ..HttpSettings::default()
    };
    if is_bundle {
        settings.server = coordinated();
    }
    job
}

#[test]
fn connections_of_a_client_are_coordinated_if_both_ends_say_so() {
    for ranges in [RangeKind::Equal, RangeKind::Handed] {
        let job = in_ranges(ranges, true);
        let first = Simulator.run(&job).unwrap();
        assert_eq!(Simulator.run(&job).unwrap(), first);
        let metrics = &first.metrics;
        assert!(metrics["bundle_decisions"] >= 1.0, "{metrics:?}");
        assert!(metrics["completion_s"] > 0.48, "600 kB at 10 Mb/s");
        assert!(metrics["completion_s"] < 5.0, "{metrics:?}");
    }
    for (asked, coordinates) in [(true, false), (false, true)] {
        let mut job = in_ranges(RangeKind::Equal, true);
        let settings = Arc::make_mut(&mut job.settings);
        settings.http.bundle = asked;
        if !coordinates {
            settings.server = newreno();
        }
        let metrics = Simulator.run(&job).unwrap().metrics;
        assert!(!metrics.contains_key("bundle_decisions"), "{metrics:?}");
    }
}

#[test]
fn ranges_are_requested_on_all_connections_at_once() {
    let link = "rate=100mbps,rtt=100ms,buffer=1MB";
    let run = |connections| {
        let mut job = in_ranges(RangeKind::Equal, false);
        let settings = Arc::make_mut(&mut job.settings);
        settings.topology.links[0].spec = link.into();
        settings.http.connections = connections;
        Simulator.run(&job).unwrap().metrics["completion_s"]
    };
    let (one, three) = (run(1), run(3));
    assert!(
        three < one - 0.09,
        "{three} s with thrice the initial window, {one} s: a round trip less"
    );
}

#[test]
fn the_metrics_of_several_loads_are_of_the_last_and_each_has_an_archive() {
    let directory = tempfile::tempdir().unwrap();
    let load = |loads, pause_s| {
        let workload = Workload::Page {
            page: "today/small".into(),
            seed: 1,
            readable: false,
            loads,
            pause: Duration::from_secs(pause_s),
            start: Duration::ZERO,
            windows: None,
        };
        // Connections that are open already fill a short buffer together.
        let mut job = job("rate=10mbps,rtt=40ms,buffer=500kB", workload);
        let mut settings = Settings::clone(&job.settings);
        settings.http.pipes = Some("rr(pipes=2)".into());
        job.settings = Arc::new(settings);
        job.har = Some(directory.path().join(format!("{loads}-{pause_s}.har")));
        Simulator.run(&job).unwrap().metrics
    };
    let counts = |metrics: &BTreeMap<String, f64>| {
        ["connections", "handshakes"].map(|name| metrics[name] as u32)
    };
    let [all, opened] = counts(&load(1, 0));
    assert_eq!(opened, all);
    let reused = load(3, 1);
    assert!(counts(&reused)[1] < all);
    assert!(reused["page_load_s"] < reused["page_load_s 001"]);
    // Idle pipes close after ten seconds.
    let [all, opened] = counts(&load(3, 14));
    assert_eq!(opened, all);
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let several = ["3-1", "3-14"].map(|name| [1, 2, 3].map(|load| format!("{name}.00{load}.har")));
    let mut expected = several.concat();
    expected.push("1-0.har".into());
    expected.sort();
    assert_eq!(names, expected);
}
