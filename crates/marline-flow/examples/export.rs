//! Exports the flows of a capture: `cargo run --release -p marline-flow --example export -- day.pcap day.csv`.

use std::error::Error;
use std::path::Path;

use marline_flow::output::OutputFile;
use marline_flow::{Capture, Exporter, Options, Sources};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [input, output] = &arguments[..] else {
        return Err("give a capture and the file to write".into());
    };
    let mut capture = Capture::open(Path::new(input))?;
    let sink = OutputFile::create(Path::new(output), None)?;
    let mut exporter = Exporter::new(Options::default(), Sources::default(), sink);
    while let Some(item) = capture.next()? {
        exporter.item(&item)?;
    }
    let finished = exporter.finish()?;
    finished.sink.finish()?;
    let statistics = finished.statistics;
    println!(
        "{} flows of {} packets",
        statistics.flows, statistics.packets
    );
    Ok(())
}
