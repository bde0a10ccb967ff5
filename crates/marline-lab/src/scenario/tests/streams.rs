//! Streams with weights and dependencies.

use super::*;

const HEAD: &str = "title = 'x'\nlink = 'rtt=1ms'\n[workload]\n";

fn streams(text: &str) -> Vec<StreamDef> {
    let experiment = read(&format!("{HEAD}streams = [{text}]"));
    let Workload::Streams { streams, .. } = &experiment.cells[0].settings.workload else {
        panic!("{:?}", experiment.cells[0].settings.workload);
    };
    streams.clone()
}

#[test]
fn streams_have_parents_weights_and_urgencies() {
    let streams = streams(
        "{ id = 1, size = '10kB' }, { id = 2, size = '5kB', parent = 1, weight = 110, urgency = 1, \
         incremental = true, after = 1, start = '1s', group = 'low' }, { id = 3, size = '1kB', urgency = 1 }",
    );
    let plain = StreamDef {
        id: 1,
        size: 10_000,
        parent: None,
        weight: 183,
        urgency: 3,
        incremental: false,
        after: None,
        start: Duration::ZERO,
        group: None,
    };
    assert_eq!(streams[0], plain);
    let child = StreamDef {
        id: 2,
        size: 5_000,
        parent: Some(1),
        weight: 110,
        urgency: 1,
        incremental: true,
        after: Some(1),
        start: Duration::from_secs(1),
        group: Some("low".to_owned()),
    };
    assert_eq!(streams[1], child);
    assert_eq!(streams[2].weight, 256, "as its urgency");
}

#[test]
fn errors_in_streams_name_line_and_key() {
    for (text, expected) in [
        (
            "{ id = 1, size = '1kB' }",
            "train.toml:5: [workload] streams: stream 1 is there twice",
        ),
        (
            "{ id = 2, size = '1kB', parent = 3 }",
            "train.toml:5: [workload.streams] parent: there is no stream 3 to depend on",
        ),
        (
            "{ id = 2, size = '1kB', parent = 2 }",
            "train.toml:5: [workload.streams] parent: stream 2 depends on itself; change its parent",
        ),
        (
            "{ id = 2, size = '1kB', parent = 3 }, { id = 3, size = '1kB', parent = 2 }",
            "train.toml:5: [workload.streams] parent: stream 2 depends on itself",
        ),
        (
            "{ id = 2, size = '1kB', after = 3 }",
            "train.toml:5: [workload.streams] after: there is no stream 3 to come after",
        ),
        (
            "{ id = 2, size = '1kB', after = 2 }",
            "train.toml:5: [workload.streams] after: stream 2 comes after itself",
        ),
        (
            "{ id = 2, size = '1kB', weight = 0 }",
            "train.toml:5: [workload.streams] weight: this must be an integer from 1 to 256",
        ),
        (
            "{ id = 2, size = '1kB', weight = 257 }",
            "this must be an integer from 1 to 256",
        ),
        (
            "{ id = 2, size = '1kB', urgency = 8 }",
            "this must be an integer from 0 to 7",
        ),
        (
            "{ id = 2, size = '1kB', group = 'The small one' }",
            "a group is a word of small letters",
        ),
        (
            "{ id = 2, size = '1kB', wight = 1 }",
            "unknown key \"wight\"; did you mean weight?",
        ),
    ] {
        let text = format!("{HEAD}streams = [{{ id = 1, size = '1kB' }},\n{text}]");
        let error = error(&text);
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn stream_schedulers_are_set_for_each_end() {
    let text = with(
        "[variant.a]\nstream_scheduler = 'scattered_wrr'\n[variant.b]\nserver.stream_scheduler = 'fifo'",
    );
    let experiment = read(&text);
    let names = experiment.cells.iter().map(|cell| {
        let json = serde_json::to_value(&*cell.settings).unwrap();
        let of = |side: &str| json[side]["stream_scheduler"].as_str().map(str::to_owned);
        [of("client").unwrap(), of("server").unwrap()]
    });
    let names: Vec<_> = names.collect();
    assert_eq!(
        names,
        [["scattered_wrr", "scattered_wrr"], ["rfc9218", "fifo"]]
    );
    for name in marline::scheduling::stream::SCHEDULERS.names() {
        let settings = EndpointSettings::default();
        let settings = settings.with("stream_scheduler", name).unwrap();
        assert_eq!((settings.transport().stream_scheduler)().name(), name);
    }
    let error = error(&with("stream_scheduler = 'wfq'"));
    assert!(
        error.contains("train.toml:4: stream_scheduler: unknown stream scheduler \"wfq\""),
        "{error}"
    );
}
