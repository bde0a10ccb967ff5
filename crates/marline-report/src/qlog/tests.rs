//! Layouts and versions of qlog, and malformed input.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn events(text: impl AsRef<[u8]>) -> Vec<Result<Event, String>> {
    Events::new(text.as_ref(), Path::new("a.qlog"))
        .map(|event| event.map_err(|error| error.to_string()))
        .collect()
}

fn good(text: impl AsRef<[u8]>) -> Vec<Event> {
    events(text).into_iter().map(Result::unwrap).collect()
}

const HEADER: &str = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","title":"T",
"trace":{"common_fields":{"group_id":"ab","tuple":"7"},"vantage_point":{"name":"x","type":"client"}}}"#;

#[test]
fn json_text_sequences_are_read() {
    let log = format!(
        "\u{1e}{HEADER}\n\u{1e}{}\n\u{1e}{}\n",
        r#"{"time":1.5,"name":"quic:packet_sent","data":{"header":{"packet_number":"3"}}}"#,
        r#"{"time":2,"tuple":"1","group_id":"cd","name":"quic:recovery_metrics_updated","data":{}}"#
    );
    let events = good(log);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].time_s, 0.0015);
    assert_eq!(events[0].kind(), "packet_sent");
    assert_eq!(events[0].number(&["header", "packet_number"]), Some(3.0));
    assert_eq!((&*events[0].tuple, &*events[0].group), ("7", "ab"));
    assert_eq!((&*events[1].tuple, &*events[1].group), ("1", "cd"));
    assert_eq!(events[1].kind(), "metrics_updated");
    assert_eq!(
        *events[0].source,
        Source {
            index: 0,
            title: "T".into(),
            name: "x".into(),
            vantage_point: "client".into(),
            reference: String::new(),
        }
    );
}

#[test]
fn one_value_per_line_is_read() {
    let header = HEADER.replace('\n', "");
    let log = format!(
        "{header}\r\n{}\n\n{}",
        r#"{"time":1,"name":"recovery:metrics_updated","data":{}}"#,
        r#"{"time":2,"name":"transport:packet_sent","data":{}}"#
    );
    let events = good(log);
    assert_eq!(events[0].kind(), "metrics_updated");
    assert_eq!(events[1].kind(), "packet_sent");
    assert_eq!(events[1].group, "ab");
}

#[test]
fn documents_with_several_traces_are_read() {
    let document = json!({
        "qlog_version": "0.3",
        "title": "both",
        "traces": [
            {
                "vantage_point": { "type": "client" },
                "common_fields": { "ODCID": "ab", "time_format": "delta" },
                "events": [
                    { "time": 10, "name": "transport:packet_sent", "data": {} },
                    { "time": 5, "name": "transport:packet_sent", "data": {} },
                ],
            },
            { "error_description": "lost" },
            {
                "title": "own",
                "configuration": { "time_units": "us" },
                "event_fields": ["relative_time", "category", "event", "data"],
                "events": [["2000", "recovery", "packet_lost", { "a": 1 }], ["x"]],
            },
        ],
    });
    for text in [
        document.to_string(),
        serde_json::to_string_pretty(&document).unwrap(),
    ] {
        let events = events(text);
        let times: Vec<_> = events.iter().flatten().map(|e| e.time_s).collect();
        assert_eq!(times, [0.01, 0.015, 0.002]);
        let last = events[3].as_ref().unwrap();
        assert_eq!(
            (last.kind(), &*last.name),
            ("packet_lost", "recovery:packet_lost")
        );
        assert_eq!((last.source.index, &*last.source.title), (2, "own"));
        assert_eq!(events[0].as_ref().unwrap().source.title, "both");
        assert_eq!(
            events[2],
            Err("a.qlog: record 1: trace 2 holds an error: lost".to_owned())
        );
        assert!(events[4].is_err());
    }
}

#[test]
fn malformed_records_are_reported_and_skipped() {
    let log = format!(
        "\u{1e}{HEADER}\n\u{1e}{{oops}}\n\u{1e}{}\n\u{1e}[1]\n\u{1e}{}\n\u{1e}{}",
        r#"{"time":1,"name":"a:b","data":{}}"#,
        r#"{"name":"a:b"}"#,
        r#"{"time":2,"name":"a:b","da"#
    );
    let events = events(log);
    assert_eq!(events.iter().flatten().count(), 1);
    let errors: Vec<_> = events.into_iter().filter_map(Result::err).collect();
    assert!(errors[0].starts_with("a.qlog: record 2: not JSON: "));
    assert_eq!(
        errors[1..],
        [
            "a.qlog: record 4: a list without `event_fields`",
            "a.qlog: record 5: it has no `time`",
            "a.qlog: record 6: it ends within a value",
        ]
    );
}

#[test]
fn other_files_give_errors() {
    assert!(events("").is_empty() && events(" \n\u{1e}\n \u{1e}").is_empty());
    assert!(events("hello\nworld\n").iter().all(Result::is_err));
    assert!(events("{\n\"traces\": 7}")[0].is_err());
    assert_eq!(events("{\"traces\": [").len(), 1);
    let missing = read("/nowhere/at.all").unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/at.all: "), "{missing}");
}

#[test]
fn the_size_of_a_record_is_limited() {
    use std::io::Read;
    let endless = std::io::repeat(b'[').take(40 << 20);
    let input = BufReader::new(b"\x1e".chain(endless));
    let results: Vec<_> = Events::new(input, Path::new("a")).collect();
    assert_eq!(results.len(), 1);
    let reason = results[0].as_ref().unwrap_err().to_string();
    assert!(reason.ends_with("longer than 16 MiB"), "{reason}");
}

#[test]
fn the_size_of_a_document_is_limited() {
    use std::io::Read;
    let endless = std::io::repeat(b' ').take(1 << 40);
    let input = BufReader::new(b"{\n".chain(endless));
    let mut events = Events::new(input, Path::new("a"));
    let reason = events.next().unwrap().unwrap_err().to_string();
    assert!(reason.ends_with("longer than 128 MiB"), "{reason}");
    assert!(events.next().is_none());
}

#[test]
fn input_that_is_no_json_is_given_up_at_its_first_byte() {
    let mut events = Events::new(BufReader::new(std::io::repeat(0)), Path::new("a"));
    let reason = events.next().unwrap().unwrap_err().to_string();
    assert!(reason.contains("neither an object"), "{reason}");
    assert!(events.next().is_none());
}

proptest! {
    #[test]
    fn arbitrary_bytes_terminate(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(events(&bytes).len() <= bytes.len());
    }

    #[test]
    fn arbitrary_json_never_panics(
        text in r#"[\x1e\n{}\[\],:"\\ a0-9.eE-]{0,200}"#,
        at in 0..100_usize,
    ) {
        let log = format!(
            "\u{1e}{HEADER}\n\u{1e}{}\n",
            r#"{"time":1,"name":"quic:packet_lost","data":{"frames":[{"acked_ranges":[[1,2]]}]}}"#
        );
        let at = log.floor_char_boundary(at * log.len() / 100);
        let log = format!("{}{text}{}", &log[..at], &log[at..]);
        let file = Path::new("a");
        let summary = crate::Summary::of(file, Events::new(log.as_bytes(), file)).unwrap();
        let _ = (summary.to_string(), summary.to_json());
        let mut timeline = crate::Timeline::default();
        for event in Events::new(log.as_bytes(), file).flatten() {
            timeline.add(&event);
        }
        let _ = crate::Report::new("t").timeline(&timeline).render();
    }
}

#[test]
fn times_that_do_not_add_up_to_a_number_are_malformed() {
    let log = r#"{"trace":{"common_fields":{"time_format":"relative_to_previous_event"}}}
{"time":1e308,"name":"quic:a"}
{"time":1e12,"name":"quic:b"}
{"time":1e15,"name":"quic:c"}
{"time":1,"name":"quic:d"}"#;
    let read = events(log);
    let [first, second, third, fourth] = &read[..] else {
        panic!("{read:?}");
    };
    for (refused, record) in [(first, 2), (third, 4)] {
        let error = refused.as_ref().unwrap_err();
        assert!(
            error.contains(&format!("record {record}: its `time` is too large")),
            "{error}"
        );
    }
    assert_eq!(second.as_ref().unwrap().time_s, 1e9);
    assert_eq!(fourth.as_ref().unwrap().time_s, 1e9 + 0.001);
}
