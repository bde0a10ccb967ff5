//! Runs of the emulator, compared with runs of the simulator.

use std::sync::Arc;
use std::time::Duration;

use marline_lab::emu::Emulator;
use marline_lab::scenario::{
    Backend, BackendKind, Direction, Ecmp, EndpointSettings, HttpSettings, Job, LinkDef, RunError,
    Settings, Topology, Workload,
};
use marline_lab::sim::Simulator;

use crate::setup;

fn job() -> Job {
    let settings = Settings {
        backend: BackendKind::Emu,
        topology: Topology {
            hosts: vec!["client".into(), "server".into()],
            routers: Vec::new(),
            links: vec![LinkDef {
                name: "link".into(),
                between: vec!["client".into(), "server".into()],
                spec: "rate=10mbps,rtt=40ms,buffer=100kB".into(),
                channel: None,
            }],
            channels: Vec::new(),
            ecmp: Ecmp::default(),
        },
        path: None,
        client: EndpointSettings::default(),
        server: EndpointSettings::default(),
        http: HttpSettings::default(),
        workload: Workload::Transfer {
            features: false,
            bytes: 1_000_000,
            direction: Direction::Down,
            warm: false,
        },
        background: Vec::new(),
        changes: Vec::new(),
        stress: Vec::new(),
        time_limit: Duration::from_secs(30),
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

#[test]
fn real_time_takes_as_long_as_virtual_time() {
    let _alone = setup::exclusive();
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("new/link.pcapng");
    let captured = Job {
        pcap: Some(capture.clone()),
        ..job()
    };
    let real = match Emulator::default().run(&captured) {
        Ok(outcome) => outcome,
        Err(RunError::Unsupported(why)) => {
            println!("skipped: {why}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(std::fs::metadata(capture).unwrap().len() > 1_000_000);
    let simulated = Simulator.run(&job()).unwrap();
    let [real_s, virtual_s] = [&real, &simulated].map(|outcome| outcome.metrics["completion_s"]);
    println!(
        "completion: real {real_s}, virtual {virtual_s}; {:?}",
        real.invalid
    );
    if real.invalid.is_some() {
        println!("note: this machine is too busy to compare with virtual time");
        return;
    }
    let ratio = real_s / virtual_s;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn a_run_over_its_time_limit_is_cancelled_in_real_time() {
    let _alone = setup::exclusive();
    let mut job = job();
    Arc::make_mut(&mut job.settings).time_limit = Duration::from_millis(300);
    match Emulator::default().run(&job) {
        Err(RunError::Unsupported(why)) => println!("skipped: {why}"),
        outcome => assert_eq!(outcome, Err(RunError::TimeLimit { seconds: 0.3 })),
    }
}
