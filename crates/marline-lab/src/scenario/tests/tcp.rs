use std::time::Duration;

use super::{cc, error, read, read_with, with};
use crate::scenario::{
    BackendKind, Direction, Experiment, TcpController, TcpFlows, TcpRunner, Traffic,
};

const FLOWS: &str = "[[background]]\nkind = 'tcp'\ncount = 4\ncc = 'reno'\nspread = '1s'\n\
                     direction = 'up'\nstart = '2s'\n";

fn flows(experiment: &Experiment) -> &TcpFlows {
    match &experiment.cells[0].settings.background[0].traffic {
        Traffic::Tcp(flows) => flows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn backend_decides_who_runs_tcp() {
    let mut experiment = read(&with(FLOWS));
    let expected = TcpFlows {
        count: 4,
        cc: TcpController::Reno,
        direction: Direction::Up,
        spread: Duration::from_secs(1),
        rate: None,
        run_by: TcpRunner::StandIn,
    };
    assert_eq!(*flows(&experiment), expected);
    let background = &experiment.cells[0].settings.background[0];
    assert_eq!((&*background.from, &*background.to), ("client", "server"));
    let json = |experiment: &Experiment| {
        let json = serde_json::to_value(&*experiment.cells[0].settings).unwrap();
        json["background"][0]["traffic"]["tcp"].clone()
    };
    let written = json(&experiment);
    assert_eq!(
        (&written["cc"], &written["run_by"]),
        (&"reno".into(), &"quic stand-in".into())
    );
    experiment.run_in(BackendKind::Emu);
    assert_eq!(json(&experiment)["run_by"], "iperf3");
    experiment.run_in(BackendKind::Sim);
    assert_eq!(*flows(&experiment), expected);
    let real = read_with(&with(FLOWS), &["backend=emu"]).unwrap();
    assert_eq!(flows(&real).run_by, TcpRunner::Iperf3);
}

#[test]
fn one_flow_of_cubic_is_the_default() {
    let experiment = read(&with("[[background]]\nkind = 'tcp'"));
    let flows = flows(&experiment);
    assert_eq!((flows.count, flows.cc), (1, TcpController::Cubic));
    assert_eq!(flows.direction, Direction::Down);
    assert_eq!(cc(&flows.stand_in()), "cubic");
    assert_eq!(flows.stand_in().profile.name(), "rfc");
}

#[test]
fn errors_in_tcp_flows_name_line_and_key() {
    for (text, expected) in [
        (
            "cc = 'newreno'",
            "train.toml:6: [background] cc: unknown controller of TCP \"newreno\"; known: cubic, reno, bbr",
        ),
        (
            "profile = 'rfc'",
            "train.toml:6: [background] profile: unknown key \"profile\"",
        ),
        (
            "count = 101",
            "train.toml:6: [background] count: this must be an integer from 0 to 100",
        ),
        ("spread = '1'", "train.toml:6: [background] spread:"),
        ("to = 'client'", "from and to are both \"client\""),
    ] {
        let error = error(&with(&format!("[[background]]\nkind = 'tcp'\n{text}")));
        assert!(error.contains(expected), "{text}: {error}");
    }
}
