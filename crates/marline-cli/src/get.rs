//! `marline get`.

mod arguments;
pub(crate) mod curl;
mod data;
pub(crate) mod file;
mod glob;
pub(crate) mod hints;
mod netrc;
mod network;
mod private;
mod proxies;
mod request;
mod settings;
mod size;
mod targets;
mod transfer;
mod verbose;
mod write_out;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use marline::{Runtime, TokioRuntime};
use marline_http::client::{Client, ClientError, HttpVersion, Progress, Report};
use marline_http::har::Har;

pub(crate) use self::arguments::Arguments;
use self::write_out::WriteOut;
use crate::failure::{Failure, WRITE_ERROR, advice, print_message, unwritten};
use crate::progress;
use crate::server::interrupted;

/// The headings of the help.
const REQUESTS: &str = "Requests";
const TRANSFERS: &str = "Transfers";
const NETWORK: &str = "Network";
const OWN: &str = "Only in marline";

/// The argument that stands for standard output where a file is expected.
const STANDARD_OUTPUT: &str = "-";

/// The present directory.
const HERE: &str = "./";

/// The default number of connections with `--http 2-parallel` (Manzoor, doctoral thesis, 2019, section 5.2.1).
const PARALLEL: usize = 2;

/// The default number of connections of a bundle.
const BUNDLE: usize = 3;

/// The default size from which a bundle splits an object if its connections may take several paths. Smaller objects arrive within
/// the first round trips of slow start, where a second request costs as much time as it saves.
const BUNDLE_SPLIT: u64 = 256 << 10;

/// The same over one path, where the connections have the share of one: only the flow control credit of a connection can limit it,
/// and up to this size an object fits into that.
const BUNDLE_SPLIT_ON_ONE_PATH: u64 = 16 << 20;

/// Fetches what each of `lines`, which `--next` separates, asks for.
pub(crate) async fn run(mut lines: Vec<Arguments>) -> Result<(), Failure> {
    Arguments::share(&mut lines);
    if let Some(path) = lines.iter().rev().find_map(|one| one.stderr.as_deref()) {
        redirect_messages(path)?;
    }
    let mut failed = Ok(());
    for arguments in lines {
        let fails_early = arguments.transfer.fail_early;
        match fetch(arguments).await {
            Ok(()) => {}
            Err(Failure::Status(status)) if !fails_early => failed = Err(Failure::Status(status)),
            Err(failure) => return Err(failure),
        }
    }
    failed
}

/// Sends all that is written to standard error to a file, - is standard output.
#[cfg(unix)]
fn redirect_messages(path: &Path) -> Result<(), Failure> {
    let redirected = match arguments::is_standard_output(path) {
        true => nix::unistd::dup2_stderr(std::io::stdout()).map_err(Into::into),
        false => std::fs::File::create(path)
            .and_then(|file| nix::unistd::dup2_stderr(file).map_err(Into::into)),
    };
    redirected.map_err(|error: std::io::Error| {
        let path = path.display();
        Failure::Failed(format!("cannot write messages to {path}: {error}"))
    })
}

#[cfg(not(unix))]
fn redirect_messages(_path: &Path) -> Result<(), Failure> {
    let message = "--stderr needs a system of Unix; redirect standard error with 2> instead";
    Err(Failure::Usage(message.to_owned()))
}

async fn fetch(arguments: Arguments) -> Result<(), Failure> {
    let requests = arguments.request.requests()?;
    let targets = targets::targets(&arguments, &requests)?;
    let count = targets.len();
    let options = settings::options(&arguments, count)?;
    settings::check_paths(&arguments)?;
    let caches = arguments.network.caches();
    let mut config = settings::config(&arguments, &targets)?;
    config.hsts = caches.hsts.clone();
    config.alt_services = caches.services.clone();
    let jar = config.cookies.clone();
    let proxy = config.proxies.https.clone();
    let wants_paths =
        config.quic.transport.multipath.is_some() && config.version == HttpVersion::Http3;
    let client = Client::new(config).map_err(|error| explain(&error))?;
    let client = Arc::new(client);
    let progress = Arc::new(Progress::default());
    let started = TokioRuntime::current().map_or(Duration::ZERO, |runtime| runtime.unix_time());
    // One for all waits, so that no signal in between is lost.
    let mut interruption = pin!(interrupted());
    let report = tokio::select! {
        report = client.fetch(targets, options, &progress) => report,
        () = progress::show(Arc::clone(&progress), count, arguments.prints_progress()) => return Err(Failure::Reported),
        () = &mut interruption => {
            let kept = if arguments.resumes() { "kept for -C -" } else { "removed" };
            return Err(Failure::Failed(format!("interrupted; partial files are {kept}")));
        }
    };
    for rule in client.path_manager().iter().flat_map(|m| m.spent_rules()) {
        let (source, cap) = (&rule.source, rule.cap_bytes.unwrap_or_default());
        print_message(&format!(
            "path {source} has reached its cap of {cap} bytes and is no longer used"
        ));
    }
    if let Some(client) = Arc::into_inner(client) {
        client.close().await;
    }
    if arguments.verbose {
        verbose::print(&report);
    }
    if arguments.prints_errors() {
        print_failures(&report);
    }
    if arguments.prints_notes() {
        print_notes(&arguments, &report, wants_paths, proxy.as_ref());
    }
    if let Some(path) = &arguments.dump_header {
        dump_headers(path, &report)?;
    }
    caches.write();
    arguments.request.write_jar(jar.as_deref())?;
    if let Some(path) = &arguments.har {
        write_archive(path, &report, started)?;
    }
    if arguments.json {
        print_json(&report)?;
    }
    if let Some(format) = &arguments.write_out {
        tokio::select! {
            written = write_out(format, &report) => written?,
            () = &mut interruption => return Err(Failure::Failed("interrupted".to_owned())),
        }
    }
    match curl::status_of(&report) {
        0 => Ok(()),
        status => Err(Failure::Status(status)),
    }
}

/// Writes what was fetched as an archive to a file, or into a directory.
fn write_archive(path: &Path, report: &Report, started: Duration) -> Result<(), Failure> {
    let path = match path.is_dir() {
        true => path.join("get.har"),
        false => path.to_owned(),
    };
    let text = serde_json::to_vec_pretty(&Har::of_fetch(report, started));
    let written = text
        .map_err(std::io::Error::other)
        .and_then(|text| std::fs::write(&path, text));
    written.map_err(|error| {
        let path = path.display();
        Failure::Failed(format!(
            "cannot write {path}: {error}; choose another file with --har"
        ))
    })
}

/// Prints which of the things that were asked for a server does not have.
fn print_notes(
    arguments: &Arguments,
    report: &Report,
    wants_paths: bool,
    proxy: Option<&marline_http::client::HttpProxy>,
) {
    if wants_paths && !report.multipath && !report.connections.is_empty() {
        print_message("the server does not support multipath: each connection uses one path");
    }
    if arguments.may_fall_back() && report.connections.iter().any(|one| one.http_version == "2") {
        print_message(&match proxy {
            None => "there is no connection over HTTP/3: HTTP/2 was used".to_owned(),
            Some(proxy) => {
                format!("HTTP/3 does not go through the proxy {proxy}: HTTP/2 was used")
            }
        });
    }
    if arguments.bundle && !report.bundle && !report.connections.is_empty() {
        print_message("the server does not coordinate the connections");
    }
}

/// Writes the headers of all responses to a file, - is standard output.
fn dump_headers(path: &Path, report: &Report) -> Result<(), Failure> {
    let all = report.objects.iter().flat_map(|object| &object.exchanges);
    let heads: Vec<_> = all.flat_map(|exchange| exchange.head()).collect();
    if arguments::is_standard_output(path) {
        return crate::output::write(&heads);
    }
    std::fs::write(path, heads).map_err(|error| {
        print_message(&format!("cannot write {}: {error}", path.display()));
        Failure::Status(WRITE_ERROR)
    })
}

/// Prints what `-w` asks for.
async fn write_out(format: &str, report: &Report) -> Result<(), Failure> {
    let template = match format.strip_prefix('@') {
        None => format.to_owned(),
        Some(name) => {
            // A pipe may stay silent.
            let path = PathBuf::from(name);
            let read = move || file::read_input_text(&path, file::MAX_SMALL);
            let read = tokio::task::spawn_blocking(read).await;
            let read = read.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            read.map_err(|error| {
                print_message(&format!("cannot read {name}: {error}"));
                Failure::Status(curl::READ_ERROR)
            })?
        }
    };
    let write_out = WriteOut {
        template: &template,
        report,
    };
    for index in 0..report.objects.len() {
        let text = write_out.of(index);
        crate::output::write(text.out.as_bytes())?;
        eprint!("{}", text.err);
    }
    Ok(())
}

fn print_json(report: &Report) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::Failed(format!("cannot write the report: {error}")))?;
    outln!("{text}");
    Ok(())
}

/// Prints why objects are not complete; a failure to write to standard output only once for all objects.
fn print_failures(report: &Report) {
    let mut is_output_known = false;
    for object in &report.objects {
        match (object.failure.as_deref(), &object.error) {
            (Some(ClientError::Output(error)), _) => {
                if !std::mem::replace(&mut is_output_known, true) {
                    print_message(&unwritten(error));
                }
            }
            (Some(failure), _) => {
                let text = failure.to_string();
                // Errors of the URL begin with it.
                let text = text
                    .strip_prefix(&format!("{}: ", object.url))
                    .unwrap_or(&text);
                print_message(&format!("{}: {text}; {}", object.url, advice(failure)));
            }
            (None, Some(error)) => print_message(&format!("{}: {error}", object.url)),
            (None, None) => {}
        }
    }
}

/// Prints an error that concerns no object.
fn explain(error: &ClientError) -> Failure {
    print_message(&format!("{error}; {}", advice(error)));
    Failure::Status(curl::status(error))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn what_is_asked_of_quic_allows_no_other_transport() {
        let may_fall_back = |flags: &[&str]| {
            let line = ["get", "https://localhost/"].iter().chain(flags);
            Line::parse_from(line).arguments.may_fall_back()
        };
        assert!(may_fall_back(&[]));
        assert!(may_fall_back(&["--insecure"]));
        for flags in [
            ["--http", "3"],
            ["--quic-version", "v2"],
            ["--profile", "rfc"],
            ["--cc", "cubic"],
            ["--scheduler", "rr"],
            ["--set", "ecn=false"],
            ["--qlog", "logs"],
        ] {
            assert!(!may_fall_back(&flags), "{flags:?}");
        }
    }
}
