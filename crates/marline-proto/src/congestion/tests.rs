use super::*;
use conformance::conformance;

/// The example of docs/policies.md.
mod scalable;

#[test]
fn every_controller_conforms() {
    CONTROLLERS.check_each(|factory| conformance(|config| factory.build(config)));
}

#[test]
fn every_controller_conforms_with_emulated_flows() {
    for emulated_flows in [2, 4] {
        CONTROLLERS.check_each(|factory| {
            conformance(|config| {
                factory.build(ControllerConfig {
                    emulated_flows,
                    ..config
                })
            });
        });
    }
}

#[test]
fn algorithms_have_names_and_kinds() {
    for algorithm in Algorithm::ALL {
        let controller = algorithm.build(ControllerConfig::new(1200));
        assert_eq!(controller.name(), algorithm.name());
        assert_eq!(algorithm.to_string(), algorithm.name());
        assert_eq!(controller.bandwidth(), None, "nothing is measured yet");
        let is_rate_based = matches!(algorithm, Algorithm::Bbr | Algorithm::Bbr3);
        assert_eq!(controller.is_rate_based(), is_rate_based);
        let couples = algorithm.of_connection().is_some();
        assert_eq!(couples, algorithm == Algorithm::Olia);
    }
    for algorithm in Algorithm::ALL {
        let made = CONTROLLERS.make(algorithm.name()).unwrap();
        assert_eq!(made.spec(), algorithm.spec());
    }
    assert!(CONTROLLERS.make("vegas").is_err());
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
    assert_eq!(Rfc9002Window.window(&kind), 12_000);
    let fixed = FixedWindow { packets: 32 };
    assert_eq!(fixed.window(&kind), 38_400);
    assert_eq!(fixed.window_before_handshake(&kind), 38_400);
    assert_eq!(FixedWindow { packets: 0 }.window(&kind), 2400);
    assert_eq!(
        FixedWindow { packets: u64::MAX }.window(&kind),
        MAXIMUM_WINDOW
    );
}

#[test]
fn the_controller_of_the_documentation_conforms() {
    use crate::settings::Policy;
    let factory = scalable::ENTRY.make(&[]).unwrap();
    assert_eq!(factory.spec().name(), scalable::ENTRY.name);
    conformance(|config| factory.build(config));
}

/// The page shows a diff that adds a controller: its new file is the one above, and the rest is about
/// existing lines.
#[test]
fn the_diff_of_the_documentation_fits() {
    let page = include_str!("../../../../docs/policies.md");
    let (_, diff) = page.split_once("```diff\n").unwrap();
    let (diff, _) = diff.split_once("```").unwrap();
    let files: Vec<_> = diff.split("diff --git ").skip(1).collect();
    let [module, new] = files[..] else {
        panic!("{files:?}");
    };
    let lines = |text: &str, of: &str| -> String {
        let (_, hunks) = text.split_once("\n@@").unwrap();
        let lines = hunks.lines().skip(1);
        let lines = lines.filter_map(|line| line.strip_prefix(of));
        lines.map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(lines(new, "+"), include_str!("tests/scalable.rs"));
    let source = include_str!("mod.rs");
    for line in lines(module, " ").lines() {
        assert!(source.contains(&format!("{line}\n")), "{line}");
    }
}
