//! `marline get`.

pub(crate) mod curl;
pub(crate) mod hints;
mod proxies;
mod targets;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::{HeaderMap, HeaderName, HeaderValue};
use marline::coordination::bundle::MAX_MEMBERS;
use marline::{PathPolicy, PathRule, PathSource, Runtime, TokioRuntime};
use marline_http::client::{
    Assignment, Client, ClientConfig, ClientError, FetchOptions, HttpVersion, Progress, Ranges,
    Report, Trust,
};
use marline_http::har::Har;
use marline_http::tcp::TcpProtocol;

use self::proxies::ProxyFlags;
use crate::duration::duration;
use crate::failure::{Failure, advice, print_message, unwritten};
use crate::key_log::KeyLogFlags;
use crate::pipes::PipeFlags;
use crate::progress;
use crate::server::interrupted;
use crate::tls::TlsFlags;
use crate::transport::{QuicVersion, RESEARCH, TransportFlags};

/// The argument that stands for standard output where a file is expected.
const STANDARD_OUTPUT: &str = "-";

/// The present directory.
const HERE: &str = "./";

/// The default number of connections with `--http 2-parallel` (Manzoor, doctoral thesis, 2019, section 5.2.1).
const PARALLEL: usize = 2;

/// The default number of connections of a bundle.
const BUNDLE: usize = 3;

/// The default size from which a bundle splits an object. Smaller objects arrive within the first round
/// trips of slow start, where a second request costs as much time as it saves.
const BUNDLE_SPLIT: u64 = 256 << 10;

/// The end of the short help.
const SHORT: &str = "Examples:\n  \
    marline get https://example.org/file -o file\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/\n  \
    marline get https://example.org/image.iso -o image.iso --resume\n\n\
    `marline get --help` has more: several connections, bundles, pools, paths, and other flags for transport research.";

/// Fetch objects over HTTP/3, 2 or 1.1
///
/// A file appears under its name only when it is complete; until then it is `.NAME.part` beside it. The next `get`
/// takes over a file that a killed one left there. The exit status is 0 only if every object arrived completely with a
/// 2xx status, and otherwise curl's for the same failure. Redirects are reported, not followed.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = "Examples:\n  \
    marline get https://example.org/file -o file\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --connections 3\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --http 2-parallel\n  \
    marline get https://localhost:4433/big --insecure --json > report.json\n  \
    marline get https://localhost:4433/big --insecure --mptcp --json\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --har page.har\n  \
    marline get https://example.org/image.iso -o image.iso --resume\n  \
    marline get https://example.org/image.iso -o image.iso --connections 3 --split 1000000\n  \
    marline get https://example.org/image.iso -o image.iso --bundle\n  \
    marline get https://example.org/image.iso -o image.iso --bundle --connections 4 --ranges handed\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --pipes cba --json\n  \
    marline get https://example.org/image.iso -o image.iso --path wlan0 --path wwan0,backup,cap=10MB")]
pub(crate) struct Arguments {
    /// The URLs to fetch
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Write to FILE, or into DIR under the last name of each URL; without it, or with `-`, to standard output, one object
    /// after another. A FILE that exists keeps its permissions, owner and names; links are followed
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,

    /// Write into the present directory, each object under the last name of its URL
    #[arg(short = 'O', long, conflicts_with = "output")]
    remote_name: bool,

    /// Trust only the certificates in FILE (PEM) and those that they have signed; a server's own certificate
    /// can be one of them
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Trust every certificate, for tests
    #[arg(long)]
    insecure: bool,

    #[command(flatten)]
    tls: TlsFlags,

    /// Use only this version of HTTP [default: 3, or 2 where 3 does not connect]
    ///
    /// 1.1c is HTTP/1.1 without encryption, 2-parallel is HTTP/2 over several connections that get the requests in turn. With
    /// --bundle, --path, --quic-version or a flag about the transport, it is 3 only.
    #[arg(long = "http", value_name = "VERSION", value_enum)]
    version: Option<Version>,

    /// Use Multipath TCP (RFC 8684), and fail where the server or this machine does not have it; over HTTP/2 unless --http
    /// names a version over TCP. The system decides about paths (`ip mptcp`)
    #[arg(long, help_heading = RESEARCH, hide_short_help = true)]
    mptcp: bool,

    /// The version of QUIC to begin with [default: v1]; the server may change to the other one, or ask for it
    #[arg(long, value_name = "VERSION", value_enum, help_heading = RESEARCH, hide_short_help = true)]
    quic_version: Option<QuicVersion>,

    /// Open up to N connections to a server [default: 1, or 6 with HTTP/1.1, 2 with 2-parallel, 3 with --bundle]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: Option<u16>,

    /// Fetch a file larger than BYTES in ranges over all connections; needs --connections and -o
    /// [default: 262144 with --bundle]
    #[arg(
        long,
        value_name = "BYTES",
        requires = "output",
        conflicts_with = "pipes", help_heading = RESEARCH, hide_short_help = true)]
    split: Option<NonZeroU64>,

    /// The method of splitting a file into ranges
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value_t,
        conflicts_with = "pipes", help_heading = RESEARCH, hide_short_help = true)]
    ranges: RangesArgument,

    /// Ask the server to coordinate the connections, and split large files over them; HTTP/3 only
    #[arg(long, help_heading = RESEARCH, hide_short_help = true)]
    bundle: bool,

    /// Open a socket for each connection: networks that spread flows by their ports may send each another way; HTTP/3 only
    #[arg(long, help_heading = RESEARCH, hide_short_help = true)]
    own_sockets: bool,

    /// Use this network interface or address of this machine, and no others; repeatable; switches multipath
    /// on. All are used at the same time. `backup`: only while no other path works. `cap=10MB`: at
    /// least this many bytes in both directions together, counted ten times a second and more often near the end; then the path is
    /// abandoned, or the transfer ends if there is no other. HTTP/3 only. An interface needs a route of its own, an address needs a routing
    /// rule
    #[arg(long, value_name = "IFACE|ADDR[,backup][,cap=SIZE]", help_heading = RESEARCH, hide_short_help = true)]
    path: Vec<PathRule>,

    #[command(flatten)]
    proxies: ProxyFlags,

    #[command(flatten)]
    pipes: PipeFlags,

    #[command(flatten)]
    transport: TransportFlags,

    #[command(flatten)]
    key_log: KeyLogFlags,

    #[cfg(feature = "tracing")]
    #[command(flatten)]
    log: crate::log::LogFlags,

    /// Send this header field; repeatable. `Host` names the host of the request, not the server
    #[arg(long, value_name = "K: V", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,

    /// End after this long, in seconds or with a unit, as 90, 0.2 or 500ms; what is not complete by then fails. 0 is no limit
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,

    /// Refuse objects larger than BYTES, or with K, M, G and T, that many times 1024, 1024², 1024³ and 1024⁴ bytes; 0 is no limit
    #[arg(long, value_name = "BYTES", value_parser = file_size, default_value = "0", hide_default_value = true)]
    max_filesize: u64,

    /// Give up a request if nothing of a response arrives on its connection for this long; 0 waits for as long as the
    /// connection lasts [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    stall_timeout: Option<Duration>,

    /// Keep the incomplete part of a file, and continue there; needs -o
    #[arg(long)]
    resume: bool,

    /// Write what was fetched, and when, as an HTTP Archive (HAR 1.2), which the tools of browsers read; in a directory it is
    /// get.har
    #[arg(long, value_name = "FILE|DIR", hide_short_help = true)]
    har: Option<PathBuf>,

    /// Print a report of objects and connections instead of the content
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RangesArgument {
    /// Equal if the server coordinates the connections, handed if it does not
    #[default]
    Auto,
    /// One range for each connection, all of the same size
    Equal,
    /// Equal at first; a connection that finishes early takes over a part of the range that would end last
    Handed,
}

impl From<RangesArgument> for Ranges {
    fn from(ranges: RangesArgument) -> Self {
        match ranges {
            RangesArgument::Auto => Self::Auto,
            RangesArgument::Equal => Self::Equal,
            RangesArgument::Handed => Self::Handed,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Version {
    #[value(name = "1.1")]
    Http11,
    #[value(name = "1.1c")]
    Http11Cleartext,
    #[value(name = "2")]
    Http2,
    #[value(name = "2-parallel")]
    Http2Parallel,
    #[value(name = "3")]
    Http3,
}

impl From<Version> for HttpVersion {
    fn from(version: Version) -> Self {
        match version {
            Version::Http11 => Self::Http11,
            Version::Http11Cleartext => Self::Http11Cleartext,
            Version::Http2 | Version::Http2Parallel => Self::Http2,
            Version::Http3 => Self::Http3,
        }
    }
}

impl Arguments {
    /// Whether HTTP/2 may be used in place of HTTP/3: not if a flag requires QUIC.
    fn may_fall_back(&self) -> bool {
        self.version.is_none()
            && !self.mptcp
            && self.tls.allow_quic()
            && self.quic_version.is_none()
            && !self.pipes.are_given()
            && !self.transport.any_is_given()
    }

    /// The number of connections to a server that may be opened without a bundle.
    fn connections(&self) -> usize {
        match (self.connections, self.version) {
            (Some(connections), _) => connections.into(),
            // They follow each other.
            (None, _) if self.output().is_none() && !self.json => 1,
            (None, Some(Version::Http2Parallel)) => PARALLEL,
            (None, _) => self.version().connections_of_browsers(),
        }
    }

    /// The version of HTTP that is tried first.
    fn version(&self) -> HttpVersion {
        let default = match self.mptcp || !self.tls.allow_quic() {
            true => HttpVersion::Http2,
            false => HttpVersion::Http3,
        };
        self.version.map_or(default, HttpVersion::from)
    }

    /// Whether a flag requires QUIC, because TCP does not support it.
    fn needs_quic(&self) -> bool {
        matches!(self.version, Some(Version::Http3))
            || self.bundle
            || self.own_sockets
            || self.quic_version.is_some()
            || self.pipes.are_given()
            || !self.path.is_empty()
    }

    /// The file or directory to write to, unless that is standard output.
    fn output(&self) -> Option<&Path> {
        if self.remote_name {
            return Some(Path::new(HERE));
        }
        self.output
            .as_deref()
            .filter(|path| *path.as_os_str() != *STANDARD_OUTPUT)
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let targets = targets::targets(&arguments)?;
    let options = options(&arguments)?;
    check_paths(&arguments)?;
    let config = config(&arguments)?;
    let proxy = config.proxies.https.clone();
    let wants_paths =
        config.quic.transport.multipath.is_some() && config.version == HttpVersion::Http3;
    let client = Client::new(config).map_err(|error| explain(&error))?;
    let client = Arc::new(client);
    let progress = Arc::new(Progress::default());
    let started = TokioRuntime::current().map_or(Duration::ZERO, |runtime| runtime.unix_time());
    let report = tokio::select! {
        report = client.fetch(targets, options, &progress) => report,
        () = progress::show(Arc::clone(&progress), arguments.urls.len()) => return Err(Failure::Reported),
        () = interrupted() => {
            let kept = if arguments.resume { "kept for --resume" } else { "removed" };
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
    print_failures(&report);
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
    if let Some(path) = &arguments.har {
        write_archive(path, &report, started)?;
    }
    if arguments.json {
        print_json(&report)?;
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

/// The options of the fetch, if the flags are consistent.
fn options(arguments: &Arguments) -> Result<FetchOptions, Failure> {
    let options = FetchOptions {
        connections: arguments.connections(),
        assignment: match arguments.version {
            Some(Version::Http2Parallel) => Assignment::Alternate,
            _ if arguments.bundle => Assignment::First,
            _ => Assignment::Free,
        },
        resume: arguments.resume,
        split: arguments.split,
        ranges: arguments.ranges.into(),
        time_limit: arguments.max_time.filter(|limit| !limit.is_zero()),
        max_size: Some(arguments.max_filesize).filter(|limit| *limit > 0),
    };
    if arguments.mptcp && arguments.version() == HttpVersion::Http3 {
        let message =
            "--mptcp is about TCP, and HTTP/3 is over QUIC; leave --http out, or use --path";
        return Err(Failure::Usage(message.to_owned()));
    }
    if !arguments.tls.allow_quic() && arguments.needs_quic() {
        let message = "--tls-max 1.2 excludes HTTP/3, whose QUIC has TLS 1.3; leave it out";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.resume && arguments.output().is_none() {
        let message = "--resume continues a file; name it with -o FILE";
        return Err(Failure::Usage(message.to_owned()));
    }
    if !arguments.bundle {
        if arguments.split.is_some() && arguments.output().is_none() {
            let message =
                "--split needs a file, because ranges arrive in any order; give one with -o FILE";
            return Err(Failure::Usage(message.to_owned()));
        }
        if arguments.split.is_some() && arguments.connections.is_none() {
            let message = "--split needs several connections; give their number with --connections";
            return Err(Failure::Usage(message.to_owned()));
        }
        return Ok(options);
    }
    let connections = arguments.connections.map_or(BUNDLE, usize::from);
    let version = arguments.version();
    let message = if version != HttpVersion::Http3 {
        format!(
            "--bundle needs HTTP/3, not {}; leave --http out, or --bundle",
            version.name()
        )
    } else if connections > MAX_MEMBERS {
        format!("--bundle coordinates up to {MAX_MEMBERS} connections, not {connections}")
    } else if arguments.urls.len() == 1 && arguments.output().is_none() {
        "--bundle splits an object over connections, which needs a file; give one with -o FILE"
            .to_owned()
    } else {
        return Ok(FetchOptions {
            connections,
            split: options.split.or(NonZeroU64::new(BUNDLE_SPLIT)),
            ..options
        });
    };
    Err(Failure::Usage(message))
}

/// Prints which interfaces have no address, and checks that the paths can be used.
fn check_paths(arguments: &Arguments) -> Result<(), Failure> {
    let version = arguments.version();
    if arguments.path.is_empty() {
        return Ok(());
    }
    if version != HttpVersion::Http3 {
        return Err(Failure::Usage(format!(
            "--path needs HTTP/3, not {}; leave --http out, or --path",
            version.name()
        )));
    }
    let known = TokioRuntime::current().and_then(|runtime| runtime.interfaces());
    let Ok(known) = known else { return Ok(()) };
    for rule in &arguments.path {
        let PathSource::Interface(name) = &rule.source else {
            continue;
        };
        if !known.iter().any(|one| one.name == *name) {
            print_message(&format!(
                "there is no interface {name} with an address; it will be used as soon as there is one"
            ));
        }
    }
    Ok(())
}

fn config(arguments: &Arguments) -> Result<ClientConfig, Failure> {
    let trust = match (&arguments.cacert, arguments.insecure) {
        (Some(file), _) => Trust::File(file.clone()),
        (None, true) => Trust::Insecure,
        (None, false) => Trust::System,
    };
    let mut config = ClientConfig {
        version: arguments.version(),
        fallback: arguments.may_fall_back(),
        or_http11: arguments.version.is_none(),
        trust,
        tls: arguments.tls.versions()?,
        tcp_protocol: match arguments.mptcp {
            true => TcpProtocol::Multipath,
            false => TcpProtocol::Tcp,
        },
        bundle: arguments.bundle,
        own_sockets: arguments.own_sockets,
        headers: arguments.header.iter().cloned().collect::<HeaderMap>(),
        qlog: arguments.transport.qlog_directory()?,
        ..ClientConfig::default()
    };
    if arguments.pipes.are_given() && arguments.version() != HttpVersion::Http3 {
        return Err(Failure::Usage(format!(
            "--pipes needs HTTP/3, not {}; leave --http out, or --pipes",
            arguments.version().name()
        )));
    }
    if arguments.own_sockets && arguments.version() != HttpVersion::Http3 {
        return Err(Failure::Usage(
            "--own-sockets is about QUIC: over TCP each connection has its own; leave it out"
                .to_owned(),
        ));
    }
    config.proxies = arguments.proxies.proxies(&arguments.urls)?;
    if config.version == HttpVersion::Http3 && !config.fallback {
        arguments.proxies.explain_without_tcp(&config.proxies)?;
    }
    config.pipes = arguments.pipes.config()?;
    let mut transport = arguments.transport.config()?;
    if !arguments.path.is_empty() {
        let paths = arguments.path.len() as u32;
        let multipath = transport.multipath.get_or_insert_default();
        // One ID for each path, and one for a replacement.
        multipath.max_paths = multipath.max_paths.max(paths + 1);
        config.paths = Some(PathPolicy {
            rules: arguments.path.clone(),
            ..PathPolicy::default()
        });
    }
    if let Some(limit) = arguments.stall_timeout {
        config.stall_timeout = Some(limit).filter(|limit| !limit.is_zero());
    }
    config.quic.transport = transport.into();
    config.quic.preferred_version = arguments.quic_version.map(Into::into);
    config.quic.key_log = arguments.key_log.open()?;
    #[cfg(feature = "tracing")]
    arguments.log.start(&mut config.quic);
    Ok(config)
}

/// A size as curl reads it: a number of bytes, or of those that a letter stands for.
fn file_size(text: &str) -> Result<u64, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let scale = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("write a number of bytes, or one with K, M, G or T".to_owned()),
    };
    let number = text[..text.len() - unit.len()].parse::<u64>();
    let size = number
        .ok()
        .and_then(|number| number.checked_mul(1 << scale));
    size.ok_or_else(|| "it is not a size in bytes".to_owned())
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'Name: value'")?;
    let name = name.trim().parse().map_err(|_| "the name is not valid")?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| "the value is not valid")?;
    Ok((name, value))
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
                print_message(&format!("{}: {failure}; {}", object.url, advice(failure)));
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
