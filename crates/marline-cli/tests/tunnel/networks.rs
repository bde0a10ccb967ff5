//! Networks that are found, and that come and go.

use std::fs;

use super::namespaces::ip;
use super::network::{HOST, Network, PATHS};
use super::programs::{run, text};
use super::{Setting, UP, traffic, until};

/// Bytes that a path carries that is only kept open.
const LITTLE: u64 = 300_000;

/// Bytes of a network that has no path: questions for addresses of its link.
const NOTHING: u64 = 2000;

/// The client's message about a network whose cap is spent.
const SPENT: &str = "of 2 MB this month; it is not used before the next";

/// The client's message about the networks of [`PATHS`].
const BOTH: &str = "2 networks lead to the server: path0, path1";

#[test]
fn networks_that_lead_to_the_server_are_found_and_followed() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    // It leads nowhere.
    for command in [
        "link add idle type veth peer name idle-peer",
        "address add 10.9.0.2/24 dev idle",
        "link set idle up",
        "link set idle-peer up",
    ] {
        ip(&network.client, command).unwrap();
    }
    let _server = setting.serve();
    let before = PATHS.map(|path| network.received(path));
    let mut client = setting.start("tun-found", &[]);
    assert_eq!(client.count(BOTH), 1, "{client:?}");
    until("both networks are paths", || {
        traffic::ping(&network.client);
        let after = PATHS.map(|path| network.received(path));
        (0..2).all(|path| after[path] > before[path] + 5000)
    });

    // It loses its carrier, and gets it back.
    network.set_path(0, "down");
    client.wait_for("1 network leads to the server: path1", 1);
    traffic::ping(&network.client);
    network.set_path(0, "up");
    client.wait_for(BOTH, 2);

    // Its router is gone, and another comes.
    ip(&network.client, "route del default dev path1").unwrap();
    client.wait_for("1 network leads to the server: path0", 1);
    ip(
        &network.client,
        "route add default via 10.2.0.1 dev path1 metric 50",
    )
    .unwrap();
    client.wait_for(BOTH, 3);
    traffic::ping(&network.client);
    assert_eq!(client.count("the tunnel is up"), 1, "{client:?}");
    assert_eq!(client.count("idle"), 0, "{client:?}");
    assert_eq!(client.count("server: tun"), 0, "{client:?}");
    client.signal("TERM");
    assert!(client.ended().success());
}

/// Makes the second network of the client a mobile one, which is preferred.
fn make_mobile(network: &Network) {
    for command in [
        "link set path1 down",
        "link set path1 name wwan0",
        "link set wwan0 up",
        "route add default via 10.2.0.1 dev wwan0 metric 50",
    ] {
        ip(&network.client, command).unwrap();
    }
}

#[test]
fn a_network_whose_cap_is_spent_is_not_used_before_the_next_month() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    make_mobile(network);
    (0..2).for_each(|path| network.shape(path, "20mbit"));
    let _server = setting.serve();
    let usage = setting.path("tunnel-usage.json");
    let state = setting.directory.path().to_owned();
    let more = ["--cap", "wwan0=2MB", "--state", text(&state)];
    let transfer = || traffic::transfer(&network.client, HOST[0], || ());
    let carried = || {
        let before = network.received("wwan0");
        transfer();
        network.received("wwan0") - before
    };

    let mut client = setting.start("tun-capped", &more);
    assert_eq!(client.count("wwan0: 0 of 2 MB this month"), 1, "{client:?}");
    until("the cap is spent", || {
        transfer();
        client.count(SPENT) == 1
    });
    until("the path is closed", || carried() < NOTHING);
    assert_eq!(client.count(UP), 1, "{client:?}");
    client.signal("TERM");
    assert!(client.ended().success());

    let mut client = setting.start("tun-capped", &more);
    assert_eq!(client.count(SPENT), 1, "{client:?}");
    assert!(carried() < NOTHING);
    client.signal("TERM");
    assert!(client.ended().success());
    // Nor when it is the only one.
    ip(&network.client, "link set path0 down").unwrap();
    let arguments = setting.up("tun-capped", "anna.token", &more);
    let (status, messages) = run(&network.client, &arguments);
    assert_eq!(status.code(), Some(1), "{messages}");
    assert!(messages.contains(SPENT), "{messages}");
    assert!(messages.contains("no path to 192.0.2.1"), "{messages}");

    let text = fs::read_to_string(&usage).unwrap();
    let (_, rest) = text.split_once("\"bytes\"").unwrap();
    fs::write(&usage, format!("{{\"month\":\"2020-01\",\"bytes\"{rest}")).unwrap();
    // A month later, it is.
    let mut client = setting.start("tun-capped", &more);
    assert_eq!(client.count("wwan0: 0 of 2 MB this month"), 1, "{client:?}");
    traffic::ping(&network.client);
    client.signal("TERM");
    assert!(client.ended().success());
}

#[test]
fn a_mobile_network_is_saved_while_another_works() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    make_mobile(network);
    let _server = setting.serve();
    let mut client = setting.start("tun-saved", &["--mode", "save"]);
    assert_eq!(
        client.count("2 networks lead to the server: path0, wwan0"),
        1,
        "{client:?}"
    );
    (0..2).for_each(|path| network.shape(path, "40mbit"));
    // A probe timeout, spurious on a busy machine, sends what is in flight by the other.
    let saves = |_: &u32| {
        let before = network.received("wwan0");
        traffic::transfer(&network.client, HOST[0], || ());
        network.received("wwan0") - before < LITTLE
    };
    let saved = (0..5).filter(saves).count();
    assert!(saved >= 3, "{saved} of 5 transfers");
    let before = network.received("wwan0");

    // The other is switched off in the middle of a download, and on again.
    traffic::transfer(&network.client, HOST[0], || {
        ip(&network.client, "link set path0 down").unwrap();
        client.wait_for("1 network leads to the server: wwan0", 1);
    });
    assert!(network.received("wwan0") - before > LITTLE);
    for command in [
        "link set path0 up",
        "route add default via 10.1.0.1 dev path0 metric 40",
    ] {
        ip(&network.client, command).unwrap();
    }
    client.wait_for("2 networks lead to the server: ", 2);
    until("the mobile network is saved again", || {
        let before = network.received("wwan0");
        traffic::transfer(&network.client, HOST[0], || ());
        network.received("wwan0") - before < LITTLE
    });
    assert_eq!(client.count("the tunnel is up"), 1, "{client:?}");
    client.signal("TERM");
    assert!(client.ended().success());
}
