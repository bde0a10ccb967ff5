use std::io;
use std::time::Duration;

use crate::lte::{Direction, LteConfig};
use crate::preset::PRESETS;
use crate::spec::{LinkSpec, LteSpec, Radio};
use crate::testing::{Moments, moments};
use crate::{Carried, DropReason, Ecn, Medium, Packet, Seed, Time, conformance, wifi};

/// A wire with every impairment.
const EVERYTHING: &str = "rate=10mbps,rate-std=2mbps,buffer=20p,rtt=30ms,jitter=4ms,\
    jitter-corr=20ms,reorder=on,loss=2%,loss-burst=3p,loss-every=50,loss-at=0+1,duplicate=2%,\
    corrupt=1%,mtu=1400B,outage=200ms..300ms,suspend=20ms..50ms/400ms";

fn build(text: &str, seed: u64) -> Vec<Box<dyn Medium<u64>>> {
    let link: LinkSpec = text.parse().unwrap();
    link.build(Seed::new(seed)).unwrap()
}

/// Outcomes of 1000 packets of 1200 bytes, one per millisecond, sent by `from`.
fn carried(medium: &mut dyn Medium<u64>, from: usize) -> Vec<Carried<u64>> {
    for index in 0..1000 {
        let now = Time::from_nanos(index * 1_000_000);
        medium.push(now, from, 1 - from, Packet::new(1200, index));
    }
    std::iter::from_fn(|| medium.pop(Time::from_nanos(1_000_000_000_000))).collect()
}

fn dropped_packets(exits: &[Carried<u64>]) -> Vec<u64> {
    let dropped_packets = exits
        .iter()
        .filter(|carried| carried.exit.dropped.is_some());
    dropped_packets
        .map(|carried| carried.exit.packet.body)
        .collect()
}

#[test]
fn every_preset_satisfies_the_medium_contract() {
    for preset in PRESETS {
        let arrivals = conformance::arrivals(7, 100);
        for index in 0..build(preset.text, 1).len() {
            let medium = || build(preset.text, 1).swap_remove(index);
            let checked = conformance::check_medium(medium, &arrivals);
            assert_eq!(checked, Ok(()), "{}, medium {index}", preset.name);
        }
    }
}

#[test]
fn all_impairments_together_satisfy_the_medium_contract() {
    let medium = || build(EVERYTHING, 1).remove(0);
    for seed in 0..4 {
        conformance::check_medium(medium, &conformance::arrivals(seed, 400)).unwrap();
    }
}

#[test]
fn every_queue_satisfies_the_medium_contract() {
    for queue in [
        "droptail",
        "drophead",
        "codel",
        "codel,ecn=on",
        "fq-codel",
        "red",
        "red,ecn=on",
        "dualpi2",
        "dualpi2,mark=1ms",
        "droptail,mark=1ms",
        "fq-codel,mark=500us",
    ] {
        for rate in ["rate=2mbps", "rate=2mbps,rate-std=1mbps,rate-tau=50ms"] {
            let text = format!("{rate},buffer=30kB,rtt=20ms,queue={queue}");
            let medium = || build(&text, 1).remove(0);
            let checked = conformance::check_medium(medium, &conformance::arrivals(2, 300));
            assert_eq!(checked, Ok(()), "{text}");
        }
    }
}

#[test]
fn managed_queues_drop_or_mark_before_they_are_full() {
    for (queue, dropped, marked) in [
        ("codel", true, false),
        ("codel,ecn=on", false, true),
        ("fq-codel", true, false),
        ("fq-codel,ecn=on", false, true),
        ("red", true, false),
        ("red,ecn=on", false, true),
        ("dualpi2", false, true),
    ] {
        let text = format!("rate=9.4mbps,buffer=200kB,queue={queue}");
        let medium = &mut *build(&text, 1).remove(0);
        for index in 0..2000 {
            let mut packet = Packet::new(1200, index);
            packet.ecn = Ecn::Ect0;
            medium.push(Time::from_nanos(index * 1_000_000), 0, 1, packet);
        }
        let exits: Vec<_> = std::iter::from_fn(|| medium.pop(Time::MAX)).collect();
        let reason = Some(DropReason::QueueManagement);
        let some = |hit: &dyn Fn(&Carried<u64>) -> bool| exits.iter().any(hit);
        assert_eq!(
            some(&|carried| carried.exit.dropped == reason),
            dropped,
            "{queue}"
        );
        assert_eq!(
            some(&|carried| carried.exit.packet.ecn == Ecn::Ce),
            marked,
            "{queue}"
        );
    }
}

#[test]
fn wire_and_radio_are_separate_media() {
    for (text, media) in [
        ("", 1),
        ("rtt=50ms", 1),
        ("model=wifi", 1),
        ("model=wifi,rtt=50ms", 2),
        ("model=wifi,wifi.hops=3,rtt=50ms", 2),
        ("model=wifi,wifi.hops=3,wifi.shared=off,rtt=50ms", 4),
        ("model=wifi,wifi.cable=100mbps,rtt=50ms", 3),
    ] {
        let built = build(text, 1);
        assert_eq!(built.len(), media, "{text}");
        assert!(built.iter().all(|medium| medium.stations() == 2));
    }
}

#[test]
fn directions_are_independent_and_up_is_from_the_client() {
    let text = "up.delay=5ms,down.delay=20ms,loss=10%";
    let run = |from, seed| carried(&mut *build(text, seed).remove(0), from);
    let (up, down) = (run(0, 1), run(1, 1));
    let delay = |exits: &[Carried<u64>]| {
        let arrived = exits.iter().find(|carried| carried.exit.dropped.is_none());
        let exit = arrived.unwrap().exit;
        exit.at.as_nanos() / 1_000_000 - exit.packet.body
    };
    assert_eq!((delay(&up), delay(&down)), (5, 20));
    assert_ne!(dropped_packets(&up), dropped_packets(&down));
    assert_ne!(dropped_packets(&up), dropped_packets(&run(0, 2)));
}

#[test]
fn losses_are_independent_of_other_settings() {
    let dropped_packets = |text: &str| {
        let medium = &mut *build(text, 3).remove(0);
        let mut indices = dropped_packets(&carried(medium, 0));
        indices.sort_unstable();
        indices
    };
    let plain = dropped_packets("loss=3%");
    assert!((15..50).contains(&plain.len()), "{}", plain.len());
    assert_eq!(
        dropped_packets("loss=3%,rate=50mbps,rtt=80ms,jitter=2ms,reorder=on,corrupt=5%"),
        plain
    );
}

#[test]
fn buffers_have_the_configured_size_in_every_unit() {
    for (buffer, packets) in [
        ("", 25),
        (",buffer=1bdp", 25),
        (",buffer=2bdp", 50),
        (",buffer=30ms", 25),
        (",buffer=12kB", 10),
        (",buffer=7p", 7),
    ] {
        let medium = &mut *build(&format!("rate=8mbps,rtt=30ms{buffer}"), 1).remove(0);
        for index in 0..200 {
            medium.push(Time::ZERO, 0, 1, Packet::new(1200, index));
        }
        let exits: Vec<_> = std::iter::from_fn(|| medium.pop(Time::MAX)).collect();
        // The packet in transmission is not in the queue.
        assert_eq!(200 - dropped_packets(&exits).len(), packets + 1, "{buffer}");
        let last = exits.last().unwrap().exit.at;
        let expected = Duration::from_micros(15_000 + 1200 * (packets as u64 + 1));
        assert_eq!(last, Time::ZERO + expected);
    }
}

#[test]
fn radio_presets_match_those_of_the_wifi_module() {
    let config = |name: &str| {
        let link: LinkSpec = name.parse().unwrap();
        match link.radio {
            Radio::Wifi(spec) => spec.config(),
            radio => panic!("no Wi-Fi: {radio:?}"),
        }
    };
    assert_eq!(config("wifi-n-190"), wifi::wifi_n_190());
    assert_eq!(config("mesh-2"), wifi::mesh_ht40(2, 8));
    assert_eq!(config("mesh-3-slow"), wifi::mesh_ht20(3, 2));
}

#[test]
fn lte_uplink_deviation_is_proportional_to_its_rate() {
    let link: LinkSpec = "lte-a,lte.std=6mbps,lte.rate=60mbps".parse().unwrap();
    let Radio::Lte(spec) = link.radio else {
        panic!("no LTE: {link:?}");
    };
    let default = LteConfig::default();
    let [down, up] =
        [Direction::Downlink, Direction::Uplink].map(|direction| spec.config(direction));
    assert_eq!(
        (down.bits_per_second, down.std_bits_per_second),
        (60_000_000, 6_000_000)
    );
    assert_eq!(
        (up.bits_per_second, up.std_bits_per_second),
        (20_000_000, 2_000_000)
    );
    assert_eq!(LteSpec::default().config(Direction::Downlink), default);
}

#[test]
fn files_are_read_by_name_and_errors_name_key_and_file() {
    let link: LinkSpec = "delay=10ms,jitter=1ms,jitter-law=table:my.dist"
        .parse()
        .unwrap();
    let build = |text: io::Result<String>| {
        let text = std::cell::RefCell::new(Some(text));
        let read = |file: &str| {
            assert_eq!(file, "my.dist");
            text.borrow_mut()
                .take()
                .unwrap_or_else(|| Ok("8192".to_owned()))
        };
        link.build_with::<u64>(Seed::new(1), &read).map(|_| ())
    };
    assert_eq!(build(Ok("8192".to_owned())), Ok(()));
    for (text, expected) in [
        (
            Ok("x".to_owned()),
            "jitter-law: my.dist: line 1: `x` is not an integer from -32768 to 32767",
        ),
        (
            Err(io::Error::other("not there")),
            "jitter-law: my.dist: not there",
        ),
    ] {
        assert_eq!(build(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_trace_repeats_unless_once_is_set() {
    // One full packet per millisecond, for 3 ms.
    let read = |_: &str| Ok("1\n2\n3\n".to_owned());
    let arrivals = |text: &str| {
        let link: LinkSpec = text.parse().unwrap();
        let mut media = link.build_with::<u64>(Seed::new(1), &read).unwrap();
        for index in 0..6 {
            media[0].push(Time::ZERO, 0, 1, Packet::new(1504, index));
        }
        let end = Time::from_nanos(1_000_000_000);
        let exits = std::iter::from_fn(|| media[0].pop(end));
        let arrived = exits.filter(|carried| carried.exit.dropped.is_none());
        arrived
            .map(|carried| carried.exit.at.as_nanos() / 1_000_000)
            .collect::<Vec<_>>()
    };
    assert_eq!(arrivals("trace=t,buffer=10p"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        arrivals("trace=t,buffer=10p,once=on,delay=10ms"),
        [11, 12, 13]
    );
    // At a mean of 12 Mb/s, 3 ms are three packets.
    assert_eq!(arrivals("trace=t,buffer=3ms"), [1, 2, 3]);
    // The next opportunity is half a millisecond away, and the others follow.
    let later = "trace=t,buffer=10p,trace-start=2.5ms";
    assert_eq!(arrivals(later), [0, 1, 2, 3, 4, 5]);
    assert!("rate=1mbps,trace-start=2ms".parse::<LinkSpec>().is_err());
    let link: LinkSpec = "trace=t,trace-start=random".parse().unwrap();
    assert_eq!(link.up.trace_start, None);
    assert_eq!(link.to_string().parse(), Ok(link));
    let link: LinkSpec = "trace=t".parse().unwrap();
    let error = link
        .build_with::<u64>(Seed::new(1), &|_| Ok("1\nx\n".to_owned()))
        .map(|_| ());
    assert_eq!(
        error.unwrap_err().to_string(),
        "trace: t: line 2: not an integer number of milliseconds below 2^32"
    );
}

#[test]
fn a_varying_rate_has_the_configured_mean() {
    let medium = &mut *build("rate=12mbps,rate-std=3mbps,rate-tau=100ms,buffer=100MB", 1).remove(0);
    for index in 0..50_000 {
        medium.push(Time::ZERO, 0, 1, Packet::new(1500, index));
    }
    let exits: Vec<_> = std::iter::from_fn(|| medium.pop(Time::MAX)).collect();
    let end = exits.last().unwrap().exit.at.as_nanos() as f64 / 1e9;
    assert!((end - 50.0).abs() < 2.0, "{end}");
    let gaps = exits
        .windows(2)
        .map(|pair| pair[1].exit.at.since(pair[0].exit.at));
    assert!(gaps.max() > Some(Duration::from_millis(2)));
}

/// Sorted round-trip times in ms of single pings over the link.
fn pings(text: &str, count: u64) -> Vec<f64> {
    let mut media = build(text, 5);
    let mut trips = Vec::new();
    for index in 0..count {
        // Not a multiple of the TTI.
        let sent = Time::from_nanos(index * 150_123_457);
        let last = media.len() - 1;
        let there = (0..=last).map(|medium| (medium, 0));
        let back = (0..=last).rev().map(|medium| (medium, 1));
        let arrived = there.chain(back).try_fold(sent, |now, (medium, from)| {
            media[medium].push(now, from, 1 - from, Packet::new(84, index));
            let carried = std::iter::from_fn(|| {
                let due = media[medium].next_event()?;
                Some(media[medium].pop(due))
            });
            let carried = carried
                .flatten()
                .find(|carried| carried.exit.packet.body == index)?;
            carried.exit.dropped.is_none().then_some(carried.exit.at)
        });
        trips.extend(arrived.map(|arrived| arrived.since(sent).as_nanos() as f64 / 1e6));
    }
    trips.sort_by(f64::total_cmp);
    trips
}

#[test]
fn pings_over_presets_take_as_long_as_measured() {
    for (preset, backhaul) in [("lte-a", 25.0), ("lte-a-international", 150.0)] {
        let trips = pings(preset, 4000);
        let (median, deviation) = (trips[trips.len() / 2], moments(&trips).deviation);
        println!("{preset}: median {median:.2} ms, deviation {deviation:.2} ms");
        assert!((median - backhaul - 21.2).abs() < 0.3, "{preset}: {median}");
        assert!((deviation - 3.5).abs() < 0.3, "{preset}: {deviation}");
    }
    let Moments { mean, deviation } = moments(&pings("wifi-n-190", 40_000));
    println!("wifi-n-190: mean {mean:.2} ms, deviation {deviation:.2} ms");
    assert!((mean - 10.5).abs() < 0.3, "{mean}");
    assert!((deviation - 6.1).abs() < 0.4, "{deviation}");
    assert_eq!(pings("wifi-7,loss=0%,rate=none,buffer=none", 3), [50.0; 3]);
}

/// Digests computed on a different machine.
#[test]
fn results_are_identical_on_every_platform() {
    for (text, expected) in [
        (EVERYTHING, 10_837_714_415_272_969_667),
        (
            "lte-a,loss-burst=20ms,jitter=2ms,jitter-law=paretonormal",
            17_330_121_022_161_887_091,
        ),
        (
            "mesh-2,wifi.busy=10%,wifi.error=5%,jitter=2ms,jitter-law=exponential",
            10_046_798_578_549_397_695,
        ),
        (
            "rate=4mbps,queue=fq-codel,rtt=30ms,jitter=9ms,jitter-law=picoquic-wifi",
            2_372_821_908_629_398_766,
        ),
    ] {
        let digest = build(text, 1)
            .into_iter()
            .fold(Seed::new(0), |digest, mut medium| {
                let exits = carried(&mut *medium, 0).into_iter();
                exits.fold(digest, |digest, carried| {
                    let dropped_packets = u64::from(carried.exit.dropped.is_some());
                    let digest = digest.nth(carried.exit.at.as_nanos()).nth(dropped_packets);
                    digest.nth(carried.exit.packet.body)
                })
            });
        assert_eq!(digest.value(), expected, "{text}");
    }
}
