//! Links that share a Wi-Fi channel.

use super::*;

const MESH: &str = r#"title = 'x'
hosts = ['neighbor']
routers = ['gateway', 'roof']
workload.transfer = '1MB'
[channels.36]
wifi.phy = 'ht40'
wifi.mcs = 15
stations.client.wifi.acks = 2
[links.first]
between = ['gateway', 'roof']
channel = '36'
[links.second]
between = ['roof', 'client']
channel = '36'
wifi.mcs = 4
wifi.error = '5%'
[links.next-door]
between = ['gateway', 'neighbor']
channel = '36'
wifi.mcs = 1
[links.wire]
between = ['gateway', 'server']
spec = 'rate=1gbps, rtt=36ms'
"#;

#[test]
fn links_on_a_channel_share_it() {
    let experiment = read(MESH);
    let topology = &experiment.cells[0].settings.topology;
    let [def] = &topology.channels[..] else {
        panic!("{topology:?}");
    };
    assert_eq!(def.spec, "wifi.phy=ht40, wifi.mcs=15");
    let channel = def.read(topology).unwrap();
    assert_eq!(channel.stations, ["gateway", "roof", "client", "neighbor"]);
    let names: Vec<_> = channel.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["first", "second", "next-door"]);
    assert_eq!(topology.links[1].spec, "wifi.mcs=4, wifi.error=5%");
    let config = channel.spec.config();
    let acks: Vec<_> = config
        .stations
        .iter()
        .map(|one| one.ack_aggregation)
        .collect();
    assert_eq!(acks, [None, None, Some(2), None]);
    let rates = config.hops.iter().map(|hop| hop.phy.bits_per_second());
    assert!(rates.eq([270e6, 81e6, 27e6]));
}

#[test]
fn sweeps_and_variants_replace_settings_of_channels_stations_and_their_links() {
    let more = "[channels.40]\nwifi.mcs = 7\n\
                [links.over-there]\nbetween = ['roof', 'neighbor']\nchannel = '40'\n\
                [variant.quiet]\nchannels.36.wifi.busy = '10%'\nlinks.next-door.channel = '40'\n\
                [sweep]\n'channels.36.stations.roof.wifi.aggregation' = ['off', 'on']\n\
                'links.next-door.wifi.mcs' = [1, 8]\n";
    let set = "channels.36.stations.client.wifi.acks=4";
    let experiment = read_with(&format!("{MESH}{more}"), &[set]).unwrap();
    let topology = &experiment.cells[1].settings.topology;
    let [one, other] = &topology.channels[..] else {
        panic!("{topology:?}");
    };
    assert_eq!(one.spec, "wifi.phy=ht40, wifi.mcs=15, wifi.busy=10%");
    let stations = one.stations.iter();
    let stations: Vec<_> = stations.map(|own| (&*own.node, &*own.spec)).collect();
    assert_eq!(
        stations,
        [("client", "wifi.acks=4"), ("roof", "wifi.aggregation=off")]
    );
    let channel = other.read(topology).unwrap();
    assert_eq!(channel.stations, ["gateway", "neighbor", "roof"]);
    assert_eq!(channel.links[0].spec, "wifi.mcs=8");
}

#[test]
fn errors_in_channels_name_the_line_and_the_key() {
    assert!(read_with(MESH, &[]).is_ok());
    for (from, to, expected) in [
        (
            "[channels.36]\nwifi.phy = 'ht40'",
            "[channels.36]\nrate = '1mbps'\nwifi.phy = 'ht40'",
            "train.toml:6: [channels.36] rate: rate: not a key of a channel; did you mean wifi.rate-control?",
        ),
        (
            "stations.client.wifi.acks = 2",
            "stations.clint.wifi.acks = 2",
            "unknown station \"clint\"; did you mean client?",
        ),
        (
            "stations.client.wifi.acks = 2",
            "stations.client.wifi.mcs = 2",
            "wifi.mcs: not a key of a station; known: wifi.aggregation,",
        ),
        (
            "stations.client.wifi.acks = 2",
            "stations.client.acks = 2",
            "a station has keys as stations.NODE.wifi.acks = 2",
        ),
        (
            "wifi.mcs = 4",
            "wifi.phy = 'ht20'",
            "train.toml:15: [links.second.wifi] phy: wifi.phy: not a key of a link of a channel",
        ),
        (
            "wifi.mcs = 4",
            "rtt = '4ms'",
            "train.toml:15: [links.second] rtt: rtt: not a key of a link of a channel; known: wifi.mcs,",
        ),
        (
            "channel = '36'\nwifi.mcs = 4",
            "channel = '40'\nwifi.mcs = 4",
            "train.toml:14: [links.second] channel: unknown channel \"40\"; known: 36",
        ),
        (
            "['gateway', 'neighbor']",
            "['gateway', 'neighbor', 'client']",
            "train.toml:18: [links.next-door] between: a link of a channel joins two nodes",
        ),
        (
            "['gateway', 'neighbor']",
            "['roof', 'gateway']",
            "link \"first\" joins these on this channel already",
        ),
        (
            "[links.wire]",
            "[channels.40]\nwifi.mcs = 1\n[links.wire]",
            "no link is on this channel; add channel = \"40\"",
        ),
        (
            "[links.wire]",
            "[[change]]\nat = '1s'\nlinks.second.rtt = '1ms'\n[links.wire]",
            "rtt: not a key of a link of a channel",
        ),
        (
            "[links.wire]",
            "[[change]]\nat = '1s'\nchannels.40.wifi.mcs = 1\n[links.wire]",
            "unknown channel \"40\"; known: 36",
        ),
    ] {
        let text = MESH.replace(from, to);
        assert_ne!(text, MESH, "{from}");
        let error = error(&text);
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    let alone = with("[channels.36]\nwifi.mcs = 1\n");
    assert!(error(&alone).contains("only links with names have channels"));
}
