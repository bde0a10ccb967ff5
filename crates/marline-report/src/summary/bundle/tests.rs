//! Logs of the members of a bundle with a few decisions.

use std::path::Path;

use serde_json::{Value, json};

use crate::qlog;
use crate::summary::{BundleHistory, Summary};

/// A decision: ms, trigger, action, affected, gamma, events, before, after.
type Row = (
    f64,
    &'static str,
    &'static str,
    Option<u64>,
    f64,
    u64,
    &'static [u64],
    &'static [u64],
);

const COURSE: [Row; 5] = [
    (100.0, "joined", "split", None, 1.5, 0, &[12_000], &[6_000]),
    (
        350.5,
        "loss",
        "synchronized",
        Some(1),
        1.29,
        1,
        &[30_000, 21_000],
        &[22_000, 22_000],
    ),
    (
        350.5,
        "loss",
        "coalesced",
        Some(0),
        1.29,
        1,
        &[15_000, 22_000],
        &[22_000, 22_000],
    ),
    (
        400.0,
        "round",
        "none",
        None,
        1.29,
        1,
        &[22_000, 22_000],
        &[22_000, 22_000],
    ),
    (
        1350.0,
        "slow_start_exit",
        "exited",
        Some(0),
        1.04,
        5,
        &[40_000, 50_000],
        &[40_000, 50_000],
    ),
];

/// A decision that only the second member logs.
const JOINED: Row = (100.0, "joined", "split", None, 1.5, 0, &[12_000], &[6_000]);

/// The log of member `own` of bundle `bundle`.
fn log(id: &str, side: &str, bundle: u64, own: u64, rows: &[Row]) -> Summary {
    let header = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "trace": {
            "common_fields": { "group_id": id },
            "vantage_point": { "name": "marline", "type": side },
        },
    });
    let sent = |time: f64| json!({ "time": time, "name": "quic:packet_sent", "data": {} });
    let events = rows.iter().map(|row| {
        let (time, trigger, action, affected, gamma, fluctuations, before, after) = *row;
        let mut data = json!({
            "bundle": bundle, "trigger": trigger, "action": action,
            "phase": if action == "exited" { "congestion_avoidance" } else { "slow_start" },
            "own": own, "gamma": gamma, "fluctuations": fluctuations,
            "before": before, "after": after,
        });
        if let Some(affected) = affected {
            data["affected"] = json!(affected);
        }
        json!({ "time": time, "name": "marline:bundle_updated", "data": data })
    });
    let records: Vec<Value> = [header, sent(50.0)]
        .into_iter()
        .chain(events)
        .chain([sent(2050.0)])
        .collect();
    let text: String = records
        .iter()
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    let file = Path::new("x.sqlog");
    Summary::of(file, qlog::Events::new(text.as_bytes(), file)).unwrap()
}

#[test]
fn the_summary_shows_the_decisions_of_the_bundle() {
    let text = log("c0ffee", "server", 7, 1, &COURSE).to_string();
    let expected = "  bundle          7: 5 decisions, 5 fluctuation events, gamma 1.04 at the end
  decided         joined: split 1
  decided         loss: coalesced 1, synchronized 1
  decided         round: none 1
  decided         slow_start_exit: exited 1
  slow start      ended after 1.3 s
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn json_contains_the_decisions() {
    let summary = log("c0ffee", "server", 7, 1, &COURSE).to_json();
    let connection = &summary["connections"][0];
    assert_eq!(connection["start_s"], 0.05);
    let bundle = &connection["bundles"][0];
    assert_eq!(bundle["bundle"], 7);
    assert_eq!(bundle["fluctuations"], 5);
    assert_eq!(bundle["gamma"], 1.04);
    assert_eq!(bundle["left_slow_start_s"], 1.35);
    assert_eq!(
        bundle["decisions_by_trigger"]["loss"],
        json!({ "coalesced": 1, "synchronized": 1 })
    );
    assert_eq!(
        bundle["decisions"][1],
        json!({
            "time_s": 0.3505, "trigger": "loss", "action": "synchronized", "phase": "slow_start",
            "affected": 1, "own": 1, "gamma": 1.29, "fluctuations": 1,
            "before": [30_000, 21_000], "after": [22_000, 22_000],
        })
    );
    assert_eq!(bundle["decisions"][0]["affected"], Value::Null);
}

#[test]
fn the_end_of_slow_start_is_derived_from_phases() {
    let phases = |phases: &[&str]| {
        let mut rows = vec![COURSE[1]; phases.len()];
        for (row, ms) in rows.iter_mut().zip(1..) {
            row.0 = f64::from(ms) * 1000.0;
        }
        let mut summary = log("1a7e", "server", 7, 1, &rows);
        let mut bundle = summary.connections.remove(0).bundles.remove(0);
        for (decision, phase) in bundle.decisions.iter_mut().zip(phases) {
            decision.phase = (*phase).to_owned();
        }
        bundle.slow_start(0.0)
    };
    let (search, avoid) = ("slow_start", "congestion_avoidance");
    assert_eq!(phases(&[search, search]), "not ended");
    assert_eq!(phases(&[search, avoid, avoid]), "ended after 2 s");
    assert_eq!(phases(&[avoid, avoid]), "ended before the log");
    assert_eq!(phases(&[search, avoid, search]), "not ended");
    assert_eq!(phases(&[search, avoid, search, avoid]), "ended after 4 s");
}

#[test]
fn logs_of_several_members_are_merged_without_duplicates() {
    let first = log("aa", "server", 7, 0, &COURSE);
    let late = log("bb", "server", 7, 1, &[&[JOINED], &COURSE[1..]].concat());
    let courses = BundleHistory::all([&first, &late, &first]);
    let [course] = &courses[..] else {
        panic!("one bundle, not {courses:?}");
    };
    assert_eq!(
        course.to_string(),
        "\
bundle 7, server, as logged by 2 connections
  member          aa
  member          bb
  decided         joined: split 2
  decided         loss: coalesced 1, synchronized 1
  decided         round: none 1
  decided         slow_start_exit: exited 1
  slow start      ended after 1.25 s

       after  trigger         action           events   gamma  windows, * marks the trigger
         0 s  joined          split                 0     1.5  12 kB \u{2192} 6 kB
         0 s  joined          split                 0     1.5  12 kB \u{2192} 6 kB
      250 ms  loss            synchronized          1    1.29  30 kB, 21 kB* \u{2192} 22 kB, 22 kB
      250 ms  loss            coalesced             1    1.29  15 kB*, 22 kB \u{2192} 22 kB, 22 kB
      1.25 s  slow_start_exit exited                5    1.04  40 kB*, 50 kB
  1 decision changed nothing
"
    );
}

#[test]
fn logs_without_common_decisions_are_merged_through_a_third() {
    let logs = [
        log("early", "server", 0, 0, &COURSE[..2]),
        log("late", "server", 0, 0, &COURSE[3..]),
        log("long", "server", 0, 1, &COURSE[1..4]),
    ];
    assert_eq!(BundleHistory::all(&logs[..2]).len(), 2, "nothing in common");
    let courses = BundleHistory::all(&logs);
    assert_eq!(courses.len(), 1);
    assert_eq!(courses[0].bundle.decisions.len(), COURSE.len());
    let times: Vec<_> = courses[0]
        .bundle
        .decisions
        .iter()
        .map(|d| d.time_s)
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn equal_bundle_numbers_alone_do_not_merge_logs() {
    let mut elsewhere = COURSE;
    elsewhere.iter_mut().for_each(|row| row.0 += 0.25);
    let logs = [
        log("aa", "server", 7, 0, &COURSE),
        log("bb", "server", 8, 0, &COURSE),
        log("cc", "client", 7, 0, &COURSE),
        log("dd", "server", 7, 0, &elsewhere),
    ];
    let members: Vec<_> = BundleHistory::all(&logs)
        .into_iter()
        .map(|c| c.members)
        .collect();
    assert_eq!(members, [["aa"], ["cc"], ["dd"], ["bb"]]);
}

#[test]
fn equal_numbers_and_reference_times_merge_logs() {
    let mut logs = [
        log("aa", "server", 7, 0, &[JOINED]),
        log("bb", "server", 7, 0, &[JOINED]),
        log("cc", "server", 7, 0, &[JOINED]),
    ];
    assert_eq!(BundleHistory::all(&logs).len(), 3);
    let references = ["05:39:00.002Z", "05:39:00.003Z", "05:40:10.000Z"];
    for (log, reference) in logs.iter_mut().zip(references) {
        let source = std::sync::Arc::make_mut(&mut log.connections[0].source);
        source.reference = format!("2026-11-22T{reference}");
    }
    let members: Vec<_> = BundleHistory::all(&logs)
        .into_iter()
        .map(|c| c.members)
        .collect();
    assert_eq!(members, [vec!["aa", "bb"], vec!["cc"]]);
}
