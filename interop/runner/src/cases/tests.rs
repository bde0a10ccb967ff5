use interop_relay::Flow;

use super::*;

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap()
}

fn verify(name: &str, report: &Report, subject_serves: bool) -> Result<Option<String>, String> {
    case(name).verify(&Evidence {
        report: report.clone(),
        subject_serves,
        ..Evidence::default()
    })
}

#[test]
fn names_of_cases_are_unique() {
    let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CASES.len());
}

#[test]
fn checks_fail_without_observations() {
    let nothing = Report::default();
    for name in [
        "versionnegotiation",
        "v2",
        "retry",
        "zerortt",
        "ecn",
        "blackhole",
        "handshakeloss",
        "transfercorruption",
        "rebind-port",
        "connectionmigration",
        "amplificationlimit",
        "multipath",
        "multipath-backup",
        "multipath-abandon",
        "multipath-dismiss",
        "multipath-replace",
        "multipath-client-only",
        "multipath-server-only",
        "pipes-rr",
        "pipes-cba",
    ] {
        assert!(verify(name, &nothing, true).is_err(), "{name}");
    }
}

#[test]
fn amplification_by_the_peer_is_only_noted() {
    let report = Report {
        amplification: 3.01,
        ..Report::default()
    };
    assert!(verify("amplificationlimit", &report, true).is_err());
    let noted = verify("amplificationlimit", &report, false);
    assert!(noted.unwrap().unwrap().contains("3.01 times"));
}

#[test]
fn ecn_marking_must_not_stop() {
    let marks = |ect0, datagrams| Traffic {
        ect0,
        datagrams,
        ..Traffic::default()
    };
    let report = Report {
        to_client: marks(10, 800),
        to_server: marks(200, 200),
        ..Report::default()
    };
    assert!(verify("ecn", &report, true).is_err());
    let noted = verify("ecn", &report, false).unwrap();
    assert_eq!(noted.unwrap(), "the server marked 10 of 800 datagrams");
}

#[test]
fn pools_have_as_many_connections_as_they_may() {
    let verify = |name, connections| {
        let mut report = Report {
            connections,
            ..Report::default()
        };
        report.to_client.lost = 1;
        verify(name, &report, false)
    };
    for (name, connections, holds) in [
        ("pipes-rr", 3, false),
        ("pipes-rr", 4, true),
        ("pipes-rr", 5, false),
        ("pipes-cba", 0, false),
        ("pipes-cba", 1, true),
        ("pipes-cba", 3, true),
        ("pipes-cba", 4, false),
    ] {
        assert_eq!(
            verify(name, connections).is_ok(),
            holds,
            "{name} {connections}"
        );
    }
}

#[test]
fn only_the_command_has_pools() {
    for name in ["pipes-rr", "pipes-cba"] {
        assert!(case(name).is_about("command", false));
        assert!(!case(name).is_about("command", true));
        assert!(!case(name).is_about("marline", false));
    }
    assert!(case("transfer").is_about("command", true));
}

#[test]
fn migration_requires_a_new_connection_id() {
    let flow = |port, fresh_connection_id| Flow {
        client: ([127, 0, 0, 1], port).into(),
        to_server_bytes: 1_000,
        to_client_bytes: 1_000_000,
        fresh_connection_id,
    };
    let report = |fresh| Report {
        flows: vec![flow(1, None), flow(2, fresh)],
        ..Report::default()
    };
    assert!(verify("connectionmigration", &report(Some(true)), true).is_ok());
    assert!(verify("connectionmigration", &report(None), true).is_ok());
    assert!(verify("connectionmigration", &report(Some(false)), true).is_err());
}

#[test]
fn a_backup_link_must_carry_little_traffic() {
    let verify = |first, second| {
        let traffic = |bytes| LinkTraffic {
            to_server: bytes,
            to_client: 10 * bytes,
        };
        case("multipath-backup").verify(&Evidence {
            links: [traffic(first), traffic(second)],
            server_log: "listening\npath 1 opened\n".to_owned(),
            ..Evidence::default()
        })
    };
    assert_eq!(verify(150, 850), Ok(None));
    let why = verify(300, 700).unwrap_err();
    assert!(why.contains("30% of the bytes to the server"), "{why}");
}
