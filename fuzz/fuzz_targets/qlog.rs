//! Arbitrary qlog files. Checks that reading, summaries and time lines do not panic, that there are no more events than bytes,
//! that times are finite, and that an event survives being written and read again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use marline_report::qlog::{Event, Events};
use marline_report::{Summary, Timeline};
use serde_json::json;

fuzz_target!(|input: &[u8]| {
    let file = Path::new("fuzz.qlog");
    let mut timeline = Timeline::default();
    let mut read = 0;
    for event in Events::new(input, file) {
        read += 1;
        let Ok(event) = event else { continue };
        assert!(event.time_s.is_finite());
        timeline.add(&event);
        check_again(&event);
    }
    assert!(read <= input.len() + 1);
    assert!(timeline.duration_s.is_finite() && timeline.duration_s >= 0.0);
    if let Ok(summary) = Summary::of(file, Events::new(input, file)) {
        let text = summary.to_json().to_string();
        assert!(!text.is_empty() && !summary.to_string().is_empty());
    }
});

/// An event survives being written in the newest version and read again.
fn check_again(event: &Event) {
    let written = json!({
        "time": event.time_s * 1000.0,
        "name": event.name,
        "data": event.data,
        "tuple": event.tuple,
        "group_id": event.group,
    });
    let line = written.to_string();
    let mut events = Events::new(line.as_bytes(), Path::new("again.qlog"));
    let again = events.next().expect("an event").expect("a valid event");
    assert_eq!((&again.name, &again.data), (&event.name, &event.data));
    assert_eq!((&again.tuple, &again.group), (&event.tuple, &event.group));
    assert!(events.next().is_none());
}
