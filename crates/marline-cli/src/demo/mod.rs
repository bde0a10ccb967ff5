//! `marline demo`: a directory, a bad link, and what came through it.

mod link;
mod page;
mod site;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use marline_http::client::{
    Client, ClientConfig, Destination, FetchOptions, Progress, Report, Target, Trust,
};
use marline_http::server::{Identity, Server, ServerConfig, directory};

use crate::failure::Failure;
use crate::progress;
use crate::transport::TransportFlags;
use link::{Link, LinkConfig};
use site::{Object, Site};

/// Serve a directory over a bad link, fetch it, and draw what happened
///
/// Serves the documents found in DIR and generated objects from 1 KB to 50 MB on this machine, fetches
/// all of them over HTTP/3 through a link that delays and loses packets, compares every checksum, and
/// writes a page with the congestion window over time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline demo\n  \
    marline demo --loss 2 --delay-ms 50 --cc bbr\n  \
    marline demo --rate-mbps 10 --largest-mb 5 --out /tmp/demo")]
pub(crate) struct Arguments {
    /// A directory whose documents (*.md, docs/) are served, too
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Where to write the page, the logs and what was served and fetched
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    out: PathBuf,

    /// Rate of the link in megabits a second
    #[arg(long, value_name = "RATE", default_value_t = 40.0, value_parser = positive)]
    rate_mbps: f64,

    /// Time that a packet takes one way, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(..=10_000))]
    delay_ms: u64,

    /// Packets lost at random, in percent of those sent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, value_parser = percent)]
    loss: f64,

    /// What the link holds back while it is busy, in kilobytes; more is lost
    #[arg(long, value_name = "KB", default_value_t = 150)]
    queue_kb: u64,

    /// The largest generated object in megabytes
    #[arg(long, value_name = "MB", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1000))]
    largest_mb: u64,

    /// Which packets are lost: equal seeds, equal draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    transport: TransportFlags,
}

/// What the page shows.
struct Outcome {
    objects: Vec<Object>,
    report: Report,
    link: LinkConfig,
    lost: u64,
    carried: u64,
    server_log: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let out = &arguments.out;
    let site = Site::build(&arguments.dir, out, arguments.largest_mb << 20)
        .map_err(|error| failed("cannot make the site", out, &error))?;
    let logs = out.join("qlog");
    std::fs::create_dir_all(&logs)
        .map_err(|error| failed("cannot make a directory", &logs, &error))?;

    let server = serve(&arguments, &site, &logs).await?;
    let handle = server.handle();
    let address = server.local_addr();
    let serving = tokio::spawn(server.run());

    let config = LinkConfig {
        rate: (arguments.rate_mbps * 1e6 / 8.0) as u64,
        delay: Duration::from_millis(arguments.delay_ms),
        loss: arguments.loss / 100.0,
        queue: arguments.queue_kb * 1000,
        seed: arguments.seed,
    };
    let link = Link::start(config, address)
        .await
        .map_err(|error| Failure::Failed(format!("cannot start the link: {error}")))?;

    eprintln!(
        "{} objects, {:.1} MB, over {} Mbit/s with {} ms each way and {} % loss",
        site.objects.len(),
        site.bytes() as f64 / 1e6,
        arguments.rate_mbps,
        arguments.delay_ms,
        arguments.loss,
    );
    let fetched = out.join("fetched");
    let report = fetch(&arguments, &site, link.address(), &fetched).await?;
    handle.shut_down();
    let _ = serving.await;

    let objects = site
        .compare(&fetched, &report)
        .map_err(|error| failed("cannot read", &fetched, &error))?;
    let (carried, lost) = link.counts();
    let outcome = Outcome {
        objects,
        report,
        link: config,
        lost,
        carried,
        server_log: newest(&logs),
    };
    page::print(&outcome);
    let file = out.join("report.html");
    page::write(&outcome, &file)?;
    eprintln!("\nthe page: {}", file.display());
    if outcome.objects.iter().all(Object::is_whole) {
        Ok(())
    } else {
        Err(Failure::Failed(
            "not every object arrived as it was sent".to_owned(),
        ))
    }
}

async fn serve(arguments: &Arguments, site: &Site, logs: &Path) -> Result<Server, Failure> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let identity =
        Identity::self_signed(names).map_err(|error| Failure::Failed(error.to_string()))?;
    let files =
        directory(&site.root, false).map_err(|error| failed("cannot serve", &site.root, &error))?;
    let mut config = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), identity, files);
    config.quic.transport = arguments.transport.config();
    config.qlog = Some(logs.to_owned());
    Server::bind(config)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))
}

async fn fetch(
    arguments: &Arguments,
    site: &Site,
    link: SocketAddr,
    fetched: &Path,
) -> Result<Report, Failure> {
    let mut config = ClientConfig {
        trust: Trust::Anybody,
        ..ClientConfig::default()
    };
    config.quic.transport = arguments.transport.config();
    let client = Client::new(config).map_err(|error| Failure::Failed(error.to_string()))?;
    let client = Arc::new(client);
    let mut targets = Vec::new();
    for object in &site.objects {
        let file = fetched.join(&object.name);
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)
                .map_err(|error| failed("cannot make a directory", directory, &error))?;
        }
        targets.push(Target {
            url: format!("https://{link}/{}", object.name),
            destination: Destination::File(file),
        });
    }
    let count = targets.len();
    let progress = Arc::new(Progress::default());
    let report = tokio::select! {
        report = client.fetch(targets, FetchOptions::default(), &progress) => report,
        () = progress::show(Arc::clone(&progress), count) => return Err(Failure::Told),
        () = crate::serve::interrupted() => {
            return Err(Failure::Failed("interrupted".to_owned()));
        }
    };
    if let Some(client) = Arc::into_inner(client) {
        client.close().await;
    }
    Ok(report)
}

/// The newest log of a server in `directory`.
fn newest(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let dated =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())));
    dated
        .max_by_key(|(modified, _)| *modified)
        .map(|(_, path)| path)
}

fn failed(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what} {}: {error}", path.display()))
}

fn positive(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number")?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err("must be above 0".to_owned())
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number")?;
    if (0.0..100.0).contains(&value) {
        Ok(value)
    } else {
        Err("must be at least 0 and below 100".to_owned())
    }
}
