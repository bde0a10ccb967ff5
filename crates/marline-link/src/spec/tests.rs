use std::num::NonZeroU64;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::Schedule;
use crate::queue::Isolation;

#[test]
fn every_key_of_a_wire_is_parsed() {
    let text = "rate=20mbps, rate-std=1.5mbps, rate-tau=200ms, buffer=100p, queue=codel, ecn=on, mark=1ms, \
                policer=10mbps, policer-burst=64kB, shaper=8mbps, shaper-burst=20kB, shaper-peak=16mbps, \
                shaper-buffer=70ms, \
                delay=10ms, jitter=2ms, jitter-law=pareto, jitter-corr=50ms, jitter-batch=1ms, \
                overhead=38B, mpu=84B, atm=on, blockage=5s/300ms, blockage-rate=10%, handover=15s, \
                handover-delay=1ms..6ms, handover-rate=20%..90%, handover-gap=30ms, ack-thin=4, ack-thin-time=5ms, \
                delay-trace=walk.txt, \
                reorder=on, loss=0.05%, loss-burst=3p, loss-every=100, loss-at=3+7, duplicate=1%, \
                corrupt=0.0001%, mtu=1400B, outage=2s..2.5s+7s..8s, suspend=100ms..250ms/3s";
    let link: LinkSpec = text.parse().unwrap();
    let millis = Duration::from_millis;
    let share = Share::from_billionths;
    let expected = DirectionSpec {
        rate: Some(20_000_000),
        rate_std: 1_500_000,
        rate_tau: millis(200),
        trace: None,
        trace_start: Some(Duration::ZERO),
        once: false,
        buffer: Some(Buffer::Packets(100)),
        queue: QueueKind::CoDel,
        cake_isolation: Isolation::Triple,
        cake_ack_filter: false,
        overhead: 38,
        mpu: 84,
        atm: true,
        blockage: Some(Alternation {
            clear: millis(5000),
            blocked: millis(300),
        }),
        blockage_rate: share(100_000_000),
        handover: Some(millis(15_000)),
        handover_delay: DelayRange {
            least: millis(1),
            most: millis(6),
        },
        handover_rate: ShareRange {
            least: share(200_000_000),
            most: share(900_000_000),
        },
        handover_gap: millis(30),
        ack_thin: NonZeroU64::new(4),
        ack_thin_time: millis(5),
        delay_trace: Some("walk.txt".to_owned()),
        ecn: true,
        mark: Some(millis(1)),
        policer: Some(10_000_000),
        policer_burst: Some(64_000),
        shaper: Some(8_000_000),
        shaper_burst: Some(20_000),
        shaper_peak: Some(16_000_000),
        shaper_buffer: Some(Buffer::Time(millis(70))),
        custom: None,
        delay: millis(10),
        jitter: millis(2),
        jitter_distribution: DistributionName::Pareto,
        jitter_corr: millis(50),
        jitter_batch: millis(1),
        reorder: true,
        overtake: Share::NONE,
        overtake_corr: Share::NONE,
        loss: share(500_000),
        loss_burst: Some(Burst::Packets(3.0)),
        loss_row: None,
        loss_every: NonZeroU64::new(100),
        loss_at: vec![3, 7],
        duplicate: share(10_000_000),
        corrupt: share(1000),
        mtu: Some(1400),
        outage: vec![
            Window {
                from: millis(2000),
                to: millis(2500),
            },
            Window {
                from: millis(7000),
                to: millis(8000),
            },
        ],
        suspend: Some(Schedule {
            every: millis(3000),
            shortest: millis(100),
            longest: millis(250),
        }),
    };
    assert_eq!(link.up, expected);
    assert_eq!(link.down, expected);
    assert_eq!(link.to_string().parse(), Ok(link));
    let link: LinkSpec = "trace=verizon.down,once=on,loss=1%,loss-burst=20ms"
        .parse()
        .unwrap();
    assert_eq!(link.up.trace.as_deref(), Some("verizon.down"));
    assert_eq!(link.down.loss_burst, Some(Burst::Time(millis(20))));
}

#[test]
fn overtaking_is_written_as_netem_writes_it_and_needs_a_constant_delay() {
    let link: LinkSpec = "delay=5ms,overtake=25%,overtake-corr=50%".parse().unwrap();
    assert_eq!(link.down.overtake, Share::from_billionths(250_000_000));
    assert_eq!(link.down.overtake_corr, Share::from_billionths(500_000_000));
    assert_eq!(link.to_string().parse(), Ok(link));
    for (text, message) in [
        ("overtake=25%", "overtake"),
        ("delay=5ms,jitter=1ms,overtake=25%", "jitter"),
        ("delay=5ms,overtake-corr=50%", "overtake"),
    ] {
        let error = text.parse::<LinkSpec>().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn buffers_are_bytes_packets_time_or_bdp() {
    for (text, expected) in [
        ("45kB", Buffer::Bytes(45_000)),
        ("2KiB", Buffer::Bytes(2048)),
        ("1.5MiB", Buffer::Bytes(1_572_864)),
        ("1GB", Buffer::Bytes(1_000_000_000)),
        ("1_000P", Buffer::Packets(1000)),
        ("0.5min", Buffer::Time(Duration::from_secs(30))),
        ("50ms", Buffer::Time(Duration::from_millis(50))),
        ("1.5bdp", Buffer::Bdp(1.5)),
    ] {
        let link: LinkSpec = format!("rate=1mbps,buffer={text}").parse().unwrap();
        assert_eq!(link.up.buffer, Some(expected));
    }
}

#[test]
fn switches_and_keys_have_the_spellings_of_settings() {
    let link = |text: &str| text.parse::<LinkSpec>().unwrap();
    for text in ["reorder=on", "reorder=true"] {
        assert!(link(text).up.reorder, "{text}");
    }
    for text in ["reorder=off", "reorder=false"] {
        assert_eq!(link(text), LinkSpec::default(), "{text}");
    }
    assert_eq!(
        link("rate=1Gbps,rate_std=2mbps"),
        link("rate=1000mbps,rate-std=2mbps")
    );
    assert_eq!(link("mtu=1400"), link("mtu=1400B"));
    assert_eq!(
        link("trace=1.50,loss-at=none").up.trace.as_deref(),
        Some("1.50")
    );
    let twice = "rate=1mbps,rate_std=2kbps,rate-std=2kbps".parse::<LinkSpec>();
    assert_eq!(
        twice.unwrap_err().to_string(),
        "rate-std: is set more than once"
    );
}

#[test]
fn keys_for_one_direction_override_both_in_any_order() {
    let link: LinkSpec = "up.loss=1%,loss=2%,down.delay=3ms".parse().unwrap();
    assert_eq!(link.up.loss.to_string(), "1%");
    assert_eq!(link.down.loss.to_string(), "2%");
    assert_eq!(link.up.delay, Duration::ZERO);
    assert_eq!(link.to_string(), "down.delay=3ms,up.loss=1%,down.loss=2%");
    let odd: LinkSpec = "rtt=5ns".parse().unwrap();
    assert_eq!(odd.up.delay + odd.down.delay, Duration::from_nanos(5));
}

#[test]
fn display_uses_the_shortest_common_notation() {
    for text in [
        "",
        "rate=7mbps,buffer=45kB,rtt=50ms,loss=2%",
        "rate=65.9mbps,rtt=21.2ms,loss=0.09%",
        "rate=1.000001gbps,rtt=50us",
        "model=lte,lte.rate=10mbps,loss=1%",
        "model=wifi,wifi.phy=ht40,wifi.acks=8",
        "up.rate=1mbps,down.rate=8mbps,up.buffer=10p",
    ] {
        assert_eq!(text.parse::<LinkSpec>().unwrap().to_string(), text);
    }
}

#[test]
fn errors_name_the_key_and_the_permitted_values() {
    for (text, error) in [
        ("los=2%", "los: unknown key; did you mean loss?"),
        ("up.los=2%", "up.los: unknown key; did you mean up.loss?"),
        (
            "wifi-8",
            "preset: unknown preset \"wifi-8\"; did you mean wifi-7?",
        ),
        (
            "rate=7mbps,rtt",
            "rtt: no value; keys are written `key=value`, a preset's name comes first",
        ),
        (
            "rate=",
            "rate: no value; keys are written `key=value`, a preset's name comes first",
        ),
        ("loss=1%,loss=2%", "loss: is set more than once"),
        (
            "rtt=50",
            "rtt: \"50\" has no unit; write 50ns, 50us, 50ms, 50s, 50min, 50h or 50d",
        ),
        (
            "loss=0.02",
            "loss: this must be a share in percent, not 0.02: \"0.02\" has no unit; write 0.02%",
        ),
        (
            "rate=7mbp",
            "rate: this must be a rate up to 1000gbps, or \"none\", not \"7mbp\": \"7mbp\" has an unknown unit \"mbp\"; did you mean mbps? known: bps, kbps, mbps, gbps",
        ),
        (
            "rate=1mbps,buffer=45",
            "buffer: \"45\" has no unit; write 45B, 45kB, 45MB, 45GB, 45KiB, 45MiB, 45GiB, 45p, 45ns, 45us, 45ms, \
             45s, 45min, 45h, 45d or 45bdp",
        ),
        (
            "loss=120%",
            "loss: this must be a share in percent, not \"120%\": \"120%\" is above 100%",
        ),
        (
            "loss=-1%",
            "loss: this must be a share in percent, not \"-1%\": \"-1%\" is out of range for a share",
        ),
        (
            "rate=fast",
            "rate: this must be a rate up to 1000gbps, or \"none\", not \"fast\": \"fast\" is not a rate; write a number and one of bps, kbps, mbps, gbps",
        ),
        (
            "rate=1.2.3mbps",
            "rate: this must be a rate up to 1000gbps, or \"none\", not \"1.2.3mbps\": \"1.2.3mbps\" is not a rate; write a number and one of bps, kbps, mbps, gbps",
        ),
        ("delay=5ms,rtt=10ms", "rtt: cannot be combined with `delay`"),
        (
            "up.delay=5ms,rtt=10ms",
            "rtt: cannot be combined with `delay`",
        ),
        (
            "rate=1mbps,queue=cdel",
            "queue: unknown queue \"cdel\"; did you mean codel? known: droptail, drophead, codel, fq-codel, red, cake, dualpi2",
        ),
        ("buffer=45kB", "buffer: requires `rate`"),
        ("rate=1mbps,ecn=on", "ecn: requires `queue=codel`"),
        ("mark=1ms", "mark: requires `rate`"),
        ("policer-burst=9kB", "policer-burst: requires `policer`"),
        (
            "policer=0bps",
            "policer: 0bps is out of range: above 0; use `outage` for a link that is down",
        ),
        (
            "rate=1mbps,cake-ack-filter=on",
            "cake-ack-filter: requires `queue=cake`",
        ),
        ("queue=cake,trace=a", "queue=cake: requires `rate`"),
        ("blockage=5s/300ms", "blockage: requires `rate`"),
        (
            "rate=1mbps,blockage=5s",
            "blockage: \"5s\" is not written 5s/300ms: mean clear and mean blocked, 1us or more each",
        ),
        ("handover-gap=5ms", "handover-gap: requires `handover`"),
        (
            "handover=5s,handover-delay=5ms..2ms",
            "handover-delay: \"5ms..2ms\" is not written 2ms..8ms, with the larger delay last",
        ),
        ("ack-thin-time=5ms", "ack-thin-time: requires `ack-thin`"),
        ("shaper-burst=9kB", "shaper-burst: requires `shaper`"),
        (
            "shaper=5mbps,shaper-peak=5mbps",
            "shaper-peak: 5mbps is out of range: above `shaper`",
        ),
        (
            "rate=1mbps,trace=a",
            "trace: cannot be combined with `rate`",
        ),
        (
            "rate=2000gbps",
            "rate: this must be a rate up to 1000gbps, or \"none\", not \"2000gbps\"",
        ),
        (
            "loss=1%,loss-burst=0.5p",
            "loss-burst: \"0.5p\" is out of range; write 1p or more",
        ),
        (
            "loss=1%,loss-burst=3p,loss-row=5",
            "loss-row: cannot be combined with `loss-burst`",
        ),
        ("lte.rate=1mbps", "lte.rate: requires `model=lte`"),
        (
            "model=lte,up.lte.rate=1mbps",
            "up.lte.rate: cannot be set per direction",
        ),
        (
            "outage=3s..2s",
            "outage: \"3s..2s\" is not written 2s..2.5s, with the end after the start",
        ),
    ] {
        let actual = text.parse::<LinkSpec>().unwrap_err();
        assert_eq!(actual.to_string(), error, "{text}");
    }
    let error = "colour=red".parse::<LinkSpec>().unwrap_err().to_string();
    assert!(
        error.starts_with("colour: unknown key; the nearest of "),
        "{error}"
    );
}

#[test]
fn every_key_has_help_and_is_known_to_the_parser() {
    for (key, help) in keys() {
        assert!(!help.is_empty(), "{key}");
        let model = key
            .split_once('.')
            .map(|(model, _)| format!("model={model},"));
        let text = format!("{}{key}=?", model.unwrap_or_default());
        let Err(error) = text.parse::<LinkSpec>() else {
            continue;
        };
        assert_eq!(error.key, key);
        assert!(!error.problem.starts_with("unknown key"), "{error}");
    }
}

fn share() -> impl Strategy<Value = Share> {
    (0..1_000_000_000_u32).prop_map(Share::from_billionths)
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 0..5_000_u64, 0..100_000_000_000_u64].prop_map(Duration::from_nanos)
}

prop_compose! {
    fn direction()(
        rate in option::of(1..1_000_000_000_000_u64),
        delay in duration(),
        jitter in duration(),
        reorder in any::<bool>(),
        loss in share(),
        corrupt in share(),
        bursts in option::of(1.0..1e6_f64),
        row in 0..i64::MAX as u64,
        buffer in prop_oneof![
            (0..100_000_000_000_000_000_u64).prop_map(Buffer::Bytes),
            (0..u64::MAX).prop_map(Buffer::Packets),
            duration().prop_map(Buffer::Time),
            (0.0..1e6_f64).prop_map(Buffer::Bdp),
        ],
        queue in select(vec![QueueKind::DropTail, QueueKind::FqCoDel]),
        law in select(vec![DistributionName::Normal, DistributionName::Table("a/b c".to_owned())]),
        mtu in option::of(any::<u32>()),
        loss_at in vec(any::<u64>(), 0..4),
        window in option::of((duration(), 1..1_000_000_u64)),
    ) -> DirectionSpec {
        DirectionSpec {
            rate,
            delay,
            jitter,
            reorder,
            loss,
            corrupt,
            loss_burst: bursts.map(Burst::Packets),
            loss_row: NonZeroU64::new(row).filter(|_| bursts.is_none()),
            buffer: rate.map(|_| buffer),
            queue: if rate.is_some() { queue } else { QueueKind::DropTail },
            jitter_distribution: law,
            mtu,
            loss_at,
            outage: window
                .map(|(from, length)| Window { from, to: from + Duration::from_nanos(length) })
                .into_iter()
                .collect(),
            ..DirectionSpec::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_inverts_display(up in direction(), down in direction(), same in any::<bool>(), nat in option::of(duration())) {
        let link = LinkSpec {
            radio: Radio::Lte(LteSpec { rate: up.rate.unwrap_or(1), ..LteSpec::default() }),
            down: if same { up.clone() } else { down },
            up,
            nat,
        };
        prop_assert_eq!(link.to_string().parse(), Ok(link));
    }

    #[test]
    fn arbitrary_text_parses_to_a_link_or_an_error(text in "[a-z.]{0,8}=?[0-9.a-zA-Z%,=]{0,20}") {
        if let Ok(link) = text.parse::<LinkSpec>() {
            prop_assert_eq!(link.to_string().parse(), Ok(link));
        }
    }
}
