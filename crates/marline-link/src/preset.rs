//! Named links.

use crate::spec::LinkSpec;

#[cfg(test)]
mod tests;

/// A named link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// The link in the syntax of [`LinkSpec`].
    pub text: &'static str,
    /// Description.
    pub about: &'static str,
    /// Source of its parameters.
    pub source: &'static str,
}

impl Preset {
    /// The preset named `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The link.
    pub fn link(&self) -> LinkSpec {
        // A test parses the text of every preset.
        self.text.parse().unwrap_or_default()
    }
}

const LTE: &str = "Measured LTE-Advanced cell, good reception: 65.9 Mb/s (standard deviation 5.1 over 1 s), round trip \
of the radio 21.2 ms (3.5), loss 0.09 % after HARQ, then a backhaul; uplink rate (20 Mb/s) and queue (1 MB) are \
chosen, not measured";
const WAN: &str = "Wide-area paths of the slow-start history study; buffer of one bandwidth-delay product, drop-tail";
const MESH: &str = "802.11n mesh of the Wi-Fi study (WCNC 2019), two streams of 40 MHz or one of 20 MHz; how many \
acknowledgments stations join is calibrated to the published gain, not measured";

const MESH_CLIENT: &str = "Client of the QMPSU mesh in the Wi-Fi study (J. Manzoor, thesis, 2019, tables 6.1 and 6.3). From it: \
the wireless hops, the round trip of RP1 (36 ms), RP3 (44 ms) and RP4 (90 ms), and TCP's throughput, to which the share of other \
traffic is fitted (docs/wifi-results.md). Chosen: a channel for each hop, the slowest modulation of two streams on 20 MHz that has \
twice TCP's throughput, a tenth of the MPDUs failing, other traffic 4 ms at a time, queues of 1000 packets, a cable of \
100 Mb/s to the client";

const MMWAVE: &str = "Fitted to 121 published traces of a walk with Verizon's mmWave 5G (20 h at 1 s; Lumos5G, IMC 2020, in the artifact of \
\"A Variegated Look at 5G in the Wild\", SIGCOMM 2021): of seconds above 150 Mb/s, mean and standard deviation (806 and 381 Mb/s) and correlation \
time; mean lengths of runs above and below (15.5 and 9.8 s), the mean rate below (81 Mb/s). Chosen: round trip, uplink, buffer; the traces have no delays, \
and at a second's resolution no single blockages (about 0.3 s: MacCartney et al., GLOBECOM 2017)";
const STARLINK: &str = "Fitted to published measurements of a Starlink terminal for vehicles (NUWiNS, trip through Maine, May 2024): UDP at more than the \
capacity, 62 runs down (227 Mb/s, standard deviation 111, uncorrelated after 15 s) and up (30.5, 14.1), pings (median 44 ms, spread of 15 s). Periods of 15 s: \
Mohan et al., WWW 2024. Chosen: jitter's distribution, 40 ms of loss at hand-overs, buffer";

/// All presets. Uplink is from the client to the server.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "lte-a",
        text: "model=lte,rtt=25ms,loss=0.05%",
        about: "LTE-Advanced, a server in the same country",
        source: LTE,
    },
    Preset {
        name: "lte-a-lossy",
        text: "model=lte,rtt=25ms,loss=1%",
        about: "LTE-Advanced, a server in the same country behind a lossy backhaul",
        source: LTE,
    },
    Preset {
        name: "lte-a-international",
        text: "model=lte,rtt=150ms,loss=0.05%",
        about: "LTE-Advanced, a server on another continent",
        source: LTE,
    },
    Preset {
        name: "lte-a-international-lossy",
        text: "model=lte,rtt=150ms,loss=1%",
        about: "LTE-Advanced, a server on another continent behind a lossy backhaul",
        source: LTE,
    },
    Preset {
        name: "lte-a-poor",
        text: "model=lte,lte.rate=35.4mbps,rtt=25ms,loss=0.05%",
        about: "LTE-Advanced with poor reception",
        source: LTE,
    },
    Preset {
        name: "lte-a-very-good",
        text: "model=lte,lte.rate=94.1mbps,rtt=25ms,loss=0.05%",
        about: "LTE-Advanced with very good reception",
        source: LTE,
    },
    Preset {
        name: "5g-mmwave",
        text: "down.rate=806mbps,down.rate-std=381mbps,down.rate-tau=15s,down.buffer=5MB,up.rate=50mbps,up.buffer=1MB,\
               blockage=15.5s/9.8s,blockage-rate=10%,rtt=28ms",
        about: "5G in millimeter waves, on foot in a city, with blockages",
        source: MMWAVE,
    },
    Preset {
        name: "leo-starlink",
        text: "down.rate=381mbps,down.rate-std=106mbps,down.rate-tau=2s,down.buffer=3MB,\
               up.rate=51mbps,up.rate-std=14mbps,up.rate-tau=2s,up.buffer=500kB,handover=15s,handover-delay=0ms..6.4ms,\
               handover-rate=19%..100%,handover-gap=40ms,jitter=4ms,jitter-law=exponential,rtt=31ms",
        about: "satellites in low orbits, with a hand-over every 15 s",
        source: STARLINK,
    },
    Preset {
        name: "wifi-n-190",
        text: "model=wifi,wifi.phy=ht40,wifi.mcs=15,wifi.short-guard=on,wifi.busy=15.5%,wifi.busy-time=9.6ms,wifi.delay=4.2ms",
        about: "802.11n, 300 Mb/s of two streams, others on the channel for 15.5 % of the time",
        source: "Fitted to a measured 802.11n link: 190 Mb/s, round trip 10.5 ms (standard deviation 6.1)",
    },
    Preset {
        name: "wan-100-good",
        text: "rate=100mbps,rtt=38ms,loss=1%,buffer=1bdp",
        about: "a wide-area path of 100 Mb/s, near",
        source: WAN,
    },
    Preset {
        name: "wan-100-average",
        text: "rate=100mbps,rtt=50ms,loss=2%,buffer=1bdp",
        about: "a wide-area path of 100 Mb/s, further",
        source: WAN,
    },
    Preset {
        name: "wan-100-bad",
        text: "rate=100mbps,rtt=188ms,loss=8%,buffer=1bdp",
        about: "a wide-area path of 100 Mb/s, far and lossy",
        source: WAN,
    },
    Preset {
        name: "wifi-7",
        text: "rate=7mbps,rtt=50ms,loss=2%,buffer=45kB",
        about: "a slow and lossy access, as of public Wi-Fi; its buffer holds 51 ms",
        source: "The page-load study: 7 Mb/s, 50 ms, 2 %, 45 kB; whether the 50 ms are both ways is not said, taken as such",
    },
    Preset {
        name: "ecmp",
        text: "rate=10mbps,rtt=50ms,buffer=1bdp",
        about: "one of several paths of equal cost",
        source: "The page-load study: 10 Mb/s; round trip as of its other link, buffer chosen",
    },
    Preset {
        name: "mesh-2",
        text: "model=wifi,wifi.phy=ht40,wifi.mcs=15,wifi.short-guard=on,wifi.acks=8,wifi.hops=2,rtt=10ms",
        about: "a mesh of two hops, 300 Mb/s each",
        source: MESH,
    },
    Preset {
        name: "mesh-3",
        text: "model=wifi,wifi.phy=ht40,wifi.mcs=15,wifi.short-guard=on,wifi.acks=8,wifi.hops=3,rtt=10ms",
        about: "a mesh of three hops, 300 Mb/s each",
        source: MESH,
    },
    Preset {
        name: "mesh-2-slow",
        text: "model=wifi,wifi.acks=2,wifi.hops=2,rtt=10ms",
        about: "a mesh of two hops, 65 Mb/s each",
        source: MESH,
    },
    Preset {
        name: "mesh-3-slow",
        text: "model=wifi,wifi.acks=2,wifi.hops=3,rtt=10ms",
        about: "a mesh of three hops, 65 Mb/s each",
        source: MESH,
    },
    Preset {
        name: "mp-2-first",
        text: "rate=10mbps,rtt=20ms,buffer=200ms",
        about: "the better of two paths",
        source: "The multipath scheduling study: 10 Mb/s, 20 ms, a deep buffer, whose depth is chosen",
    },
    Preset {
        name: "mp-2-second",
        text: "rate=5mbps,rtt=80ms,buffer=400ms",
        about: "the worse of two paths",
        source: "The multipath scheduling study: 5 Mb/s, of 20 to 160 ms the middle, a deep buffer, whose depth is chosen",
    },
    Preset {
        name: "thesis-rp1",
        text: "rate=85mbps,rtt=36ms,buffer=1bdp",
        about: "client RP1 of the Wi-Fi study, on a cable",
        source: "The Wi-Fi study (J. Manzoor, thesis, 2019, tables 6.1 and 6.3): round trip, and TCP's throughput, to which the \
                 rate is fitted; the buffer is chosen",
    },
    Preset {
        name: "thesis-rp2",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=15,wifi.busy=24%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,rate=1gbps,rtt=36ms",
        about: "client RP2 of the Wi-Fi study, one wireless hop",
        source: MESH_CLIENT,
    },
    Preset {
        name: "thesis-rp3",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=15,wifi.hops=2,wifi.shared=off,wifi.busy=12%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,wifi.delay=2.6ms,rate=1gbps,rtt=36ms",
        about: "client RP3 of the Wi-Fi study, two wireless hops",
        source: MESH_CLIENT,
    },
    Preset {
        name: "thesis-rp4",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=8,wifi.hops=5,wifi.shared=off,wifi.busy=50%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,wifi.delay=15ms,rate=1gbps,rtt=36ms",
        about: "client RP4 of the Wi-Fi study, five wireless hops",
        source: MESH_CLIENT,
    },
    Preset {
        name: "thesis-rp5",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=9,wifi.hops=3,wifi.shared=off,wifi.busy=50%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,rate=1gbps,rtt=36ms",
        about: "client RP5 of the Wi-Fi study, three wireless hops",
        source: MESH_CLIENT,
    },
    Preset {
        name: "thesis-rp6",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=13,wifi.busy=22%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,rate=1gbps,rtt=36ms",
        about: "client RP6 of the Wi-Fi study, one wireless hop",
        source: MESH_CLIENT,
    },
    Preset {
        name: "thesis-rp7",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=12,wifi.hops=5,wifi.shared=off,wifi.busy=11%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,rate=1gbps,rtt=36ms",
        about: "client RP7 of the Wi-Fi study, five wireless hops",
        source: MESH_CLIENT,
    },
    Preset {
        name: "thesis-rp8",
        text: "model=wifi,wifi.cable=100mbps,wifi.mcs=8,wifi.hops=5,wifi.shared=off,wifi.busy=82%,wifi.busy-time=4ms,wifi.error=10%,wifi.queue=1500kB,rate=1gbps,rtt=36ms",
        about: "client RP8 of the Wi-Fi study, five wireless hops",
        source: MESH_CLIENT,
    },
];
