//! Every kind of chart and page element, with synthetic data:
//! `cargo run -p marline-report --example gallery OUT.html`.

mod noise;
mod pictures;

use std::process::ExitCode;

use marline_report::Report;
use marline_report::html::{Table, Verdict};

use noise::Noise;

const SEED: u64 = 7;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: gallery OUT.html");
        return ExitCode::from(2);
    };
    match page().write(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gallery: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn page() -> Report {
    let noise = &mut Noise::new(SEED);
    Report::new("Gallery of pictures")
        .lead("All elements of a page. The numbers are synthetic, and the same in every run.")
        .facts([
            ("median gain", "21.4 %".to_owned()),
            ("cells that gain", "11 of 12".to_owned()),
            ("runs", "2\u{202f}400".to_owned()),
            ("virtual time", "3.1 h".to_owned()),
        ])
        .section("Spread: box plots")
        .chart(&pictures::boxes(noise))
        .chart(&pictures::page_boxes(noise))
        .section("Differences: bars with intervals")
        .chart(&pictures::bars(noise))
        .chart(&pictures::page_bars(noise))
        .chart(&pictures::single_bars())
        .section("Distributions")
        .chart(&pictures::ecdf(noise))
        .chart(&pictures::ecdf_logarithmic(noise))
        .section("Two numbers of each run: scatter")
        .chart(&pictures::scatter(noise))
        .section("Two factors: heat maps")
        .chart(&pictures::heat(noise))
        .chart(&pictures::heat_signed())
        .section("A page, object by object")
        .chart(&pictures::waterfall(noise))
        .section("One transfer over time")
        .chart(&pictures::stack(noise))
        .section("Lines against a factor")
        .chart(&pictures::lines())
        .section("Tables, verdicts, small print")
        .text(
            "Published numbers have their own column and their own mark, apart from measured ones.",
        )
        .table(&results(noise))
        .verdict(
            Verdict::Pass,
            "The bundle beats one connection at the median in every cell where the paper reports it.",
        )
        .verdict(
            Verdict::Differs,
            "At the 95th percentile two of six cells gain less than the paper's.",
        )
        .verdict(
            Verdict::NotComparable,
            "The paper's server read from a disk; the measured one serves from memory.",
        )
        .details("Settings", |page| page.table(&settings()))
        .note("Intervals: 95 %, bootstrap over 200 runs.")
        .footer(
            SEED,
            "5f1d7c0a9be24e6f",
            "marline lab run bundle/locations --seed 7 --repeats 200",
            concat!("marline ", env!("CARGO_PKG_VERSION")),
        )
}

fn results(noise: &mut Noise) -> Table {
    let mut table = Table::new()
        .column("location")
        .column("variant")
        .number_column("median (s)")
        .number_column("p95 (s)")
        .number_column("gain (%)")
        .published_column("published (%)")
        .column("verdict");
    for location in pictures::LOCATIONS {
        for (variant, published) in [("3c", "12.0"), ("bundle", "31.5")] {
            let gain = noise.normal(24.0, 8.0);
            let verdict = if gain > 20.0 {
                Verdict::Pass
            } else {
                Verdict::Differs
            };
            table.row([
                location.to_owned(),
                variant.to_owned(),
                format!("{:.3}", noise.normal(1.2, 0.1)),
                format!("{:.3}", noise.normal(2.1, 0.2)),
                format!("{gain:.1}"),
                published.to_owned(),
                verdict.words().to_lowercase(),
            ]);
        }
    }
    table
}

fn settings() -> Table {
    let mut table = Table::new().column("setting").code_column("value");
    table.row(["link", "rate=65.9mbps,rtt=21.2ms,loss=0.09%,buffer=1bdp"]);
    table.row(["initial window", "32 packets"]);
    table.row(["slow start", "hystart, delay factor 1/8"]);
    table
}
