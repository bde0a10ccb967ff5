use std::time::Duration;

use super::{error, read, read_with, with};
use crate::scenario::{Change, Visit, When, Workload};

const VISITS: &str = "title = 'x'\nlink = 'rate=10mbps, rtt=20ms'\n\
                      workload.visits = [{ size = '1MB', times = 10 }, { size = '10MB', pause = '5s' }]\n";

fn changes(text: &str) -> Vec<Change> {
    let experiment = read(&format!("{VISITS}{text}"));
    experiment.cells[0].settings.changes.clone()
}

#[test]
fn visits_are_listed() {
    let experiment = read(&format!("{VISITS}workload.afterwards = '10s'"));
    let Workload::Visits { visits, afterwards } = &experiment.cells[0].settings.workload else {
        panic!("other work");
    };
    let visit = |size, times, seconds| Visit {
        size,
        times,
        pause: Duration::from_secs(seconds),
        open: false,
        early: false,
    };
    assert_eq!(
        visits[..],
        [visit(1_000_000, 10, 1), visit(10_000_000, 1, 5)]
    );
    assert_eq!(*afterwards, Duration::from_secs(10));
    let sweep =
        "[sweep.mb]\n2 = { 'workload.visits.1.size' = '2MB', 'workload.visits.2.size' = '2MB' }";
    let experiment = read(&format!("{VISITS}{sweep}"));
    let json = serde_json::to_value(&*experiment.cells[0].settings).unwrap();
    let visits = &json["workload"]["visits"]["visits"];
    assert_eq!(
        (&visits[0]["size"], &visits[1]["size"]),
        (&2_000_000.into(), &2_000_000.into())
    );
    assert!(
        json.get("changes").is_none(),
        "settings of others stay what they were"
    );
}

#[test]
fn connections_of_visits_may_stay_open_and_begin_with_0_rtt() {
    let sweep = "[sweep.before]\nclosed = {}\nopen = { 'workload.visits.1.open' = true }\n\
                 [variant.early]\nworkload.visits.2.early = true";
    let experiment = read(&format!("{VISITS}{sweep}"));
    let found = experiment.cells.iter().map(|cell| {
        let Workload::Visits { visits, .. } = &cell.settings.workload else {
            panic!("other work");
        };
        [
            visits[0].open,
            visits[0].early,
            visits[1].open,
            visits[1].early,
        ]
    });
    let found: Vec<_> = found.collect();
    assert_eq!(
        found,
        [[false, false, false, true], [true, false, false, true]]
    );
}

#[test]
fn links_change_in_turn() {
    let two = changes(
        "[[change]]\nbefore_visit = 2\nlink.rate = '1mbps'\n[[change]]\nbefore_visit = 2\nlink = 'rtt=200ms'",
    );
    let specs: Vec<_> = two.iter().map(|change| &*change.links[0].spec).collect();
    assert_eq!(specs, ["rate=1mbps, rtt=20ms", "rate=1mbps, rtt=200ms"]);
    assert_eq!(two[0].when, When::BeforeVisit(2));
    let varied =
        "[[change]]\nat = '3s'\nlink.rate = '1mbps'\n[sweep]\n'change.1.link.rate' = ['2mbps']";
    let varied = changes(varied);
    assert_eq!(varied[0].when, When::At(Duration::from_secs(3)));
    assert_eq!(varied[0].links[0].spec, "rate=2mbps, rtt=20ms");
    let chain = "title = 'x'\nlinks = ['rtt=10ms', 'rtt=20ms']\nworkload.transfer = '1MB'\n\
                 [[change]]\nat = '1s'\nlinks.link2.rtt = '40ms'";
    let chain = read_with(chain, &[]).unwrap();
    let links = &chain.cells[0].settings.changes[0].links;
    assert_eq!((links.len(), &*links[0].spec), (1, "rtt=40ms"));
}

#[test]
fn errors_in_changes_name_line_and_key() {
    for (text, expected) in [
        ("[[change]]\nat = '3s'", "nothing changes; add link.rate"),
        (
            "[[change]]\nlink.rate = '1mbps'",
            "train.toml:4: change: the time is missing or given twice",
        ),
        (
            "[[change]]\nbefore_visit = 3\nlink.rate = '1mbps'",
            "train.toml:5: [change] before_visit: this must be an integer from 1 to 2",
        ),
        (
            "[[change]]\nat = '1s'\nlink.rate = '1mbsp'",
            "train.toml:6: [change.link] rate:",
        ),
        (
            "[[change]]\nat = '2s'\nlink.rate = '1mbps'\n[[change]]\nat = '1s'\nlink.rate = '2mbps'",
            "changes come in their order",
        ),
        (
            "[[change]]\nat = '2s'\nlinks.link2.rate = '1mbps'",
            "unknown link \"link2\"",
        ),
    ] {
        let error = error(&format!("{VISITS}{text}"));
        assert!(error.contains(expected), "{text}: {error}");
    }
    let nobody = error(&with("[[change]]\nbefore_visit = 1\nlink.rate = '1mbps'"));
    assert!(nobody.contains("there are no visits"), "{nobody}");
    let empty = error("title = 'x'\nlink = 'rtt=1ms'\nworkload.visits = [{ times = 2 }]");
    assert!(empty.contains("size is missing"), "{empty}");
}
