use super::*;
use conformance::conformance;

#[test]
fn new_reno_conforms() {
    conformance(|config| Algorithm::NewReno.build(config));
}

#[test]
fn cubic_conforms() {
    conformance(|config| Algorithm::Cubic.build(config));
}

#[test]
fn bbr_conforms() {
    conformance(|config| Algorithm::Bbr.build(config));
}

#[test]
fn algorithms_have_names_and_kinds() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        let controller = algorithm.build(ControllerConfig::new(1200));
        assert_eq!(controller.name(), algorithm.name());
        assert_eq!(controller.is_rate_based(), algorithm == Algorithm::Bbr);
        let couples = algorithm.of_connection().is_some();
        assert_eq!(couples, algorithm == Algorithm::Olia);
    }
    assert!("vegas".parse::<Algorithm>().is_err());
}

#[test]
fn initial_windows_follow_the_rfc() {
    for (mds, window) in [
        (1200, 12_000),
        (1472, 14_720),
        (4000, 14_720),
        (9000, 18_000),
    ] {
        assert_eq!(initial_window::rfc9002(mds), window);
    }
    let kind = ConnectionKind {
        now: Instant::EPOCH,
        peer: std::net::SocketAddr::from(([192, 0, 2, 1], 443)),
        server_name: None,
        resumed: false,
        max_datagram_size: 1200,
    };
    assert_eq!(FixedWindow { packets: 32 }.window(&kind), 38_400);
    assert_eq!(FixedWindow { packets: 0 }.window(&kind), 2400);
    assert_eq!(
        FixedWindow { packets: u64::MAX }.window(&kind),
        MAXIMUM_WINDOW
    );
}
