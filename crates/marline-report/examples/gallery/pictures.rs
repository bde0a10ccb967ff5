//! The charts of the gallery.

use marline_report::chart::{
    Axis, Bars, Boxes, Chart, Fetch, Heat, Interval, Stack, Style, Unit, Waterfall,
};

use super::noise::Noise;

pub(super) const LOCATIONS: [&str; 4] = ["near, clean", "near, lossy", "far, clean", "far, lossy"];
const VARIANTS: [&str; 3] = ["1c", "3c", "bundle"];
const PROTOCOLS: [&str; 8] = [
    "H1C",
    "H1",
    "H2",
    "H2-Parallel",
    "H2-MP",
    "H3",
    "H3 x 2",
    "bundle",
];
const PAGES: [&str; 15] = [
    "encyclopedia",
    "news, national",
    "news, local",
    "search",
    "video portal",
    "shop",
    "auction house",
    "social network",
    "blog with a very long name",
    "weather",
    "maps",
    "travel",
    "bank",
    "government",
    "university",
];

const fn around(value: f64, half: f64) -> Option<Interval> {
    Some(Interval {
        low: value - half,
        high: value + half,
    })
}

pub(super) fn boxes(noise: &mut Noise) -> Boxes {
    let sizes = [("500 kB", 0.35), ("2.4 MB", 0.9), ("6 MB", 1.8)];
    let factors = [("1c", 1.0, 1.04), ("3c", 0.86, 0.9), ("bundle", 0.72, 0.69)];
    let axis = Axis::new("completion time", Unit::Seconds);
    let mut boxes =
        Boxes::new("Completion time by size", "object size", axis).note("200 runs a box.");
    for (size, base) in sizes {
        for (variant, factor, published) in factors {
            let samples = noise.many(200, base * factor, 0.16);
            boxes =
                boxes
                    .samples(size, variant, samples)
                    .published(size, variant, base * published);
        }
    }
    boxes
}

pub(super) fn page_boxes(noise: &mut Noise) -> Boxes {
    let axis = Axis::new("page load time", Unit::Seconds).logarithmic();
    let mut boxes = Boxes::new("Page load time, many pages and protocols", "page", axis);
    for page in PAGES {
        let base = noise.skewed(3.0, 0.5).abs() + 0.4;
        for protocol in PROTOCOLS {
            let factor = noise.normal(1.0, 0.2).abs() + 0.2;
            boxes = boxes.samples(page, protocol, noise.many(40, base * factor, 0.15));
        }
    }
    boxes
}

pub(super) fn bars(noise: &mut Noise) -> Bars {
    let axis = Axis::new("gain over 1c at the median", Unit::Percent);
    let mut bars = Bars::new("Gain by location", "location", axis)
        .note("Gain: 100 (1 \u{2212} a/b). Intervals: 95 %, bootstrap.");
    for (location, base) in LOCATIONS.into_iter().zip([2.0, 18.0, 9.0, 34.0]) {
        for (variant, shift) in [("3c", -6.0), ("bundle", 3.0)] {
            let value = noise.normal(base + shift, 1.0);
            let half = 1.0 + 4.0 * noise.uniform();
            bars = bars
                .bar(location, variant, value, around(value, half))
                .published(location, variant, base + shift * 1.6);
        }
    }
    bars
}

pub(super) fn page_bars(noise: &mut Noise) -> Bars {
    let axis = Axis::new("gain over H2", Unit::Percent);
    let bars = Bars::new("Gain by page", "page", axis);
    PAGES.into_iter().fold(bars, |bars, page| {
        let gain = noise.normal(9.0, 11.0);
        bars.bar(page, "H2-Parallel", gain, around(gain, 3.0))
    })
}

pub(super) fn single_bars() -> Bars {
    ["plain", "pacing", "ACK ratio", "early exit", "all three"]
        .into_iter()
        .zip([21.4e6, 22.0e6, 24.1e6, 23.0e6, 25.9e6])
        .fold(
            Bars::new(
                "Throughput, one change at a time",
                "",
                Axis::new("throughput", Unit::BitsPerSecond),
            ),
            |bars, (variant, rate)| {
                bars.bar(
                    variant,
                    "10 MB",
                    rate,
                    Some(Interval {
                        low: rate * 0.97,
                        high: rate * 1.02,
                    }),
                )
            },
        )
}

pub(super) fn ecdf(noise: &mut Noise) -> Chart {
    let chart = Chart::new(
        "Completion time of 2.4 MB",
        Axis::new("completion time", Unit::Seconds),
        Axis::new("share of runs", Unit::Share).spanning(0.0, 1.0),
    )
    .note("Marks: 10, 25, 50, 75 and 90 % of the runs.");
    VARIANTS
        .into_iter()
        .zip([0.9, 0.8, 0.65])
        .fold(chart, |chart, (variant, median)| {
            chart.ecdf(variant, noise.many(200, median, 0.2))
        })
}

pub(super) fn ecdf_logarithmic(noise: &mut Noise) -> Chart {
    let chart = Chart::new(
        "Bytes of a flow",
        Axis::new("bytes", Unit::Bytes).logarithmic(),
        Axis::new("share of flows", Unit::Share).spanning(0.0, 1.0),
    );
    PROTOCOLS
        .into_iter()
        .enumerate()
        .fold(chart, |chart, (at, protocol)| {
            let samples = (0..400).map(|_| {
                let doublings = (noise.uniform() + noise.uniform()) * 9.0;
                200.0 * (1.0 + at as f64) * doublings.exp2()
            });
            chart.ecdf(protocol, samples.collect())
        })
}

pub(super) fn scatter(noise: &mut Noise) -> Chart {
    let mut chart = Chart::new(
        "The earlier the first loss, the longer the transfer",
        Axis::new("first loss", Unit::Seconds),
        Axis::new("completion time", Unit::Seconds),
    )
    .note("Lines: least squares; r: Pearson's.");
    for (name, fit, slope, intercept) in [
        ("newreno", "newreno, r = \u{2212}0.78", -0.9, 1.9),
        ("cubic", "cubic, r = \u{2212}0.61", -0.5, 1.5),
        ("bbr", "bbr, r = 0.04", 0.02, 0.8),
    ] {
        let points = (0..120).map(|_| {
            let first = noise.uniform() * 0.95;
            (first, noise.normal(slope * first + intercept, 0.09))
        });
        chart = chart
            .scatter(name, points.collect())
            .fit(name, fit, slope, intercept);
    }
    chart
}

pub(super) fn heat(noise: &mut Noise) -> Heat {
    let axis = Axis::new("median completion time", Unit::Seconds);
    let mut heat = Heat::new("Loss and round-trip time", "RTT", "loss", axis);
    for (loss, factor) in [
        ("0 %", 1.0),
        ("0.1 %", 1.2),
        ("1 %", 2.1),
        ("2 %", 3.0),
        ("5 %", 5.2),
    ] {
        for (rtt, base) in [
            ("10 ms", 0.2),
            ("25 ms", 0.31),
            ("50 ms", 0.5),
            ("100 ms", 0.9),
            ("200 ms", 1.7),
        ] {
            let value = noise.normal(base * factor, 0.02);
            let is_missing = loss == "5 %" && rtt == "200 ms";
            heat = heat.cell(rtt, loss, if is_missing { f64::NAN } else { value });
        }
    }
    heat
}

pub(super) fn heat_signed() -> Heat {
    let axis = Axis::new("gain over default", Unit::Percent);
    let mut heat = Heat::new("Gain, and where there is none", "network", "size", axis)
        .note("Below zero is worse than the default.");
    for (size, gains) in [("1 MB", [31.0, 38.0, -2.6]), ("10 MB", [13.0, 9.0, -11.8])] {
        for (network, gain) in ["good", "average", "bad"].into_iter().zip(gains) {
            heat = heat.cell(network, size, gain);
        }
    }
    heat
}

pub(super) fn waterfall(noise: &mut Noise) -> Waterfall {
    let mut page = Waterfall::new("The shop's front page over 7 Mbit/s")
        .note("A browser asks for what it sees first.");
    let names = [
        "index.html",
        "style.css",
        "app.js",
        "font.woff2",
        "hero-image-of-the-season-2400x1200.webp",
        "logo.svg",
        "thumb-1.jpg",
        "thumb-2.jpg",
        "thumb-3.jpg",
        "thumb-4.jpg",
        "recommendations.json",
        "beacon",
    ];
    let mut link_free = 0.0_f64;
    for (at, name) in names.into_iter().enumerate() {
        let discovered_s = match at {
            0 => 0.0,
            1..=5 => 0.18,
            _ => 0.42,
        };
        let requested_s = discovered_s
            + if at > 5 {
                0.03 * (at - 5) as f64
            } else {
                0.004
            };
        let first_byte_s = link_free.max(requested_s + 0.05 + 0.03 * noise.uniform());
        let finished_s = first_byte_s + 0.02 + 0.2 * noise.uniform();
        link_free = finished_s - 0.01;
        page = page.fetch(Fetch {
            name: name.to_owned(),
            discovered_s,
            requested_s,
            connected_s: (at < 3).then_some(requested_s + 0.04),
            first_byte_s: Some(first_byte_s),
            finished_s: (name != "beacon").then_some(finished_s),
        });
    }
    page.event("parsed", 0.42).event("loaded", link_free)
}

pub(super) fn stack(noise: &mut Noise) -> Stack {
    let (mut window, mut flight, mut rtt, mut queue, mut rate) =
        (vec![], vec![], vec![], vec![], vec![]);
    let mut losses = Vec::new();
    let mut bytes = 40_000.0_f64;
    for step in 0..1500 {
        let time = f64::from(step) * 0.01;
        bytes += if time < 0.4 { 9_000.0 } else { 420.0 };
        if bytes > 400_000.0 || noise.uniform() < 0.002 {
            losses.push(time);
            bytes *= 0.7;
        }
        let queued = (bytes - 250_000.0).max(0.0) + 4_000.0 * noise.uniform();
        window.push((time, bytes));
        flight.push((time, bytes * (0.7 + 0.3 * noise.uniform())));
        rtt.push((time, 0.05 + queued / 5e6 + 0.002 * noise.uniform()));
        queue.push((time, queued));
        rate.push((
            time,
            (bytes / 0.05).min(5e6) * 8.0 * (0.95 + 0.05 * noise.uniform()),
        ));
    }
    let time = || Axis::new("time", Unit::Seconds);
    let panel = |title, label, unit| Chart::new(title, time(), Axis::new(label, unit));
    Stack::new("Window, delay, queue and goodput", time())
        .chart(
            panel("Window", "window", Unit::Bytes)
                .series("congestion window", Style::Steps, window)
                .series("bytes in flight", Style::Area, flight),
        )
        .chart(panel("Delay", "RTT", Unit::Seconds).series("samples", Style::Points, rtt))
        .chart(panel("Queue", "queued", Unit::Bytes).series("bottleneck", Style::Area, queue))
        .chart(
            panel("Goodput", "rate", Unit::BitsPerSecond)
                .series("goodput", Style::Steps, rate)
                .states(
                    "link",
                    &[
                        (0.0, "good".into()),
                        (6.0, "handover".into()),
                        (7.0, "good".into()),
                    ],
                    15.0,
                ),
        )
        .events("lost", losses)
        .note("Lines across: losses.")
}

pub(super) fn lines() -> Chart {
    let chart = Chart::new(
        "Throughput against loss",
        Axis::new("loss", Unit::Share).logarithmic(),
        Axis::new("throughput", Unit::BitsPerSecond).logarithmic(),
    );
    PROTOCOLS
        .into_iter()
        .zip(1..)
        .fold(chart, |chart, (protocol, n)| {
            let points = (0..8).map(|step| {
                let loss = 0.0005 * f64::from(1 << step);
                (
                    loss,
                    4e6 / f64::from(n) / (1.0 + 30.0 * loss).sqrt() / loss.sqrt(),
                )
            });
            chart.series(protocol, Style::Line, points.collect())
        })
}
