//! Draws a qlog file: `cargo run -p marline-report --example report FILE.sqlog OUT.html`.

use std::process::ExitCode;

use marline_report::html::Table;
use marline_report::{Report, Summary, Timeline, units};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(log), Some(page)) = (args.next(), args.next()) else {
        eprintln!("usage: report FILE.sqlog OUT.html");
        return ExitCode::from(2);
    };
    match draw(&log, &page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn draw(log: &str, page: &str) -> Result<(), Box<dyn std::error::Error>> {
    let summary = Summary::read(log)?;
    println!("{summary}");
    let timeline = Timeline::read(log)?;
    let mut report = Report::new("A connection").lead(log);
    for connection in &summary.connections {
        let total = &connection.total;
        report = report.facts([
            ("duration", units::seconds(total.duration_s)),
            ("sent", units::bytes(total.bytes_sent as f64)),
            ("packets lost", units::count(total.packets_lost())),
            ("lost spuriously", units::count(total.spurious_losses)),
            (
                "median RTT",
                total
                    .rtt_s
                    .map_or("none".into(), |rtt| units::seconds(rtt.median)),
            ),
        ]);
        let mut table = Table::new()
            .column("path")
            .number_column("sent")
            .number_column("received")
            .number_column("lost")
            .number_column("throughput");
        for (tuple, path) in &connection.paths {
            let rate = path.throughput_sent().unwrap_or_default();
            table.row([
                tuple.clone(),
                units::count(path.packets_sent),
                units::count(path.packets_received),
                units::count(path.packets_lost()),
                units::bit_rate(rate),
            ]);
        }
        report = report.table(&table);
    }
    report
        .section("Over time")
        .timeline(&timeline)
        .write(page)?;
    Ok(())
}
