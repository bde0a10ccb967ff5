//! Links that share a Wi-Fi channel, in the simulator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod medians;

use self::medians::medians;

/// A client two hops from the wire, and a neighbor at the gateway.
const MESH: &str = r#"
title = "a mesh"
hosts = ["neighbor"]
routers = ["gateway", "roof"]
repeats = 5
cc = "cubic"
[workload]
transfer = "4MB"
[channels.36]
wifi.phy = "ht40"
wifi.mcs = 3
[links.wire]
between = ["gateway", "server"]
spec = "rate=1gbps, rtt=10ms"
[links.first]
between = ["gateway", "roof"]
channel = "36"
[links.second]
between = ["roof", "client"]
channel = "36"
[links.next-door]
between = ["gateway", "neighbor"]
channel = "36"
wifi.mcs = 0
"#;

#[test]
fn hops_on_one_channel_take_longer_than_hops_on_two() {
    let shared = medians(MESH);
    // The second hop moves to another channel.
    let second = "between = [\"roof\", \"client\"]\nchannel = \"36\"";
    let moved = MESH.replace(second, &second.replace("36", "40"));
    let other = "\n[channels.40]\nwifi.phy = \"ht40\"\nwifi.mcs = 3\n";
    let apart = medians(&format!("{moved}{other}"));
    let [shared, apart] = [&shared, &apart].map(|metrics| metrics["completion_s"]);
    assert!(
        apart < 0.9 * shared,
        "{apart} s on two channels, {shared} s on one"
    );
}

#[test]
fn channels_and_their_links_change_during_a_run() {
    let change = |text: &str| medians(&format!("{MESH}\n[[change]]\nat = \"100ms\"\n{text}\n"));
    let before = medians(MESH)["completion_s"];
    let link = change("links.second.wifi.mcs = 0")["completion_s"];
    assert!(
        link > 1.5 * before,
        "{link} s with a slow link, {before} s without"
    );
    let channel = change("channels.36.wifi.busy = \"50%\"")["completion_s"];
    assert!(
        channel > 1.3 * before,
        "{channel} s on a busy channel, {before} s before"
    );
}

#[test]
fn a_slow_neighbor_takes_airtime_from_the_client() {
    // The shorter the client's own frames, the more those of the neighbor weigh.
    let fast = MESH.replace("wifi.mcs = 3", "wifi.mcs = 7");
    let alone = medians(&fast);
    let flow = "[[background]]\nkind = \"flows\"\nfrom = \"neighbor\"\nto = \"server\"\ndirection = \"up\"\n";
    let beside = medians(&format!("{fast}{flow}"));
    let [alone, beside] = [&alone, &beside].map(|metrics| metrics["completion_s"]);
    assert!(
        beside > 1.5 * alone,
        "{beside} s beside the neighbor, {alone} s alone"
    );
}
