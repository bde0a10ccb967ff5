//! What the demo shows: a table here, a page there.

use std::path::Path;

use marline_report::html::Table;
use marline_report::{Report as Page, Summary, Timeline, units};

use super::Outcome;
use crate::failure::Failure;

/// Prints a table of the objects and the connection's figures.
pub(super) fn print(outcome: &Outcome) {
    let widest = outcome
        .objects
        .iter()
        .map(|object| object.name.len())
        .max()
        .unwrap_or(0);
    println!(
        "{:widest$}  {:>10}  {:>8}  checksum",
        "object", "bytes", "seconds"
    );
    for object in &outcome.objects {
        let verdict = match (&object.error, object.is_whole()) {
            (Some(error), _) => error.clone(),
            (None, true) => format!("{}  equal", &object.served[..16]),
            (None, false) => format!("{}  DIFFERS", &object.served[..16]),
        };
        println!(
            "{:widest$}  {:>10}  {:>8.3}  {verdict}",
            object.name, object.bytes, object.seconds
        );
    }
    println!();
    let total: u64 = outcome.objects.iter().map(|object| object.bytes).sum();
    let rate = total as f64 * 8.0 / outcome.report.page_load_s.max(1e-9);
    println!(
        "all objects   {:.2} s, {}",
        outcome.report.page_load_s,
        units::bit_rate(rate)
    );
    println!(
        "the link      carried {} datagrams, lost {}",
        outcome.carried, outcome.lost
    );
    if let Some(summary) = summary(outcome) {
        for connection in &summary.connections {
            let total = &connection.total;
            let rtt = total.rtt_s.map_or("none".to_owned(), |rtt| {
                let [min, median] = [rtt.min, rtt.median].map(units::seconds);
                format!("{min} at least, {median} at the median")
            });
            println!(
                "the server    declared {} packets lost, {} of them wrongly",
                total.packets_lost(),
                total.spurious_losses
            );
            println!("round trip    {rtt}");
        }
    }
}

/// Writes the page.
pub(super) fn write(outcome: &Outcome, file: &Path) -> Result<(), Failure> {
    let total: u64 = outcome.objects.iter().map(|object| object.bytes).sum();
    let rate = total as f64 * 8.0 / outcome.report.page_load_s.max(1e-9);
    let link = &outcome.link;
    let mut page = Page::new("A directory over a bad link").lead(&format!(
        "{} objects over HTTP/3, through a link of {} with {} each way, {} % random loss and a queue \
         of {}. Loss seed {}.",
        outcome.objects.len(),
        units::bit_rate(link.rate as f64 * 8.0),
        units::seconds(link.delay.as_secs_f64()),
        link.loss * 100.0,
        units::bytes(link.queue as f64),
        link.seed,
    ));
    let mut facts = vec![
        ("fetched", units::bytes(total as f64)),
        ("in", units::seconds(outcome.report.page_load_s)),
        ("throughput", units::bit_rate(rate)),
        ("datagrams lost by the link", units::count(outcome.lost)),
    ];
    if let Some(connection) =
        summary(outcome).and_then(|summary| summary.connections.into_iter().next())
    {
        let total = &connection.total;
        facts.push(("packets declared lost", units::count(total.packets_lost())));
        if let Some(rtt) = total.rtt_s {
            facts.push(("median round trip", units::seconds(rtt.median)));
        }
    }
    page = page
        .facts(facts)
        .section("The connection over time, as the server saw it");
    if let Some(timeline) = outcome
        .server_log
        .as_ref()
        .and_then(|log| Timeline::read(log).ok())
    {
        page = page.timeline(&timeline);
    }
    let mut table = Table::new()
        .column("object")
        .number_column("bytes")
        .number_column("time")
        .code_column("SHA-256 served")
        .column("fetched");
    for object in &outcome.objects {
        let verdict = match (&object.error, object.is_whole()) {
            (Some(error), _) => error.clone(),
            (None, true) => "equal".to_owned(),
            (None, false) => "differs".to_owned(),
        };
        table.row([
            object.name.clone(),
            units::count(object.bytes),
            units::seconds(object.seconds),
            object.served[..16].to_owned(),
            verdict,
        ]);
    }
    page.section("The objects")
        .table(&table)
        .write(file)
        .map_err(|error| super::failed("cannot write", file, &error))
}

fn summary(outcome: &Outcome) -> Option<Summary> {
    Summary::read(outcome.server_log.as_ref()?).ok()
}
