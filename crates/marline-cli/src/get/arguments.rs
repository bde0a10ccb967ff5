//! The flags of `get`.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use marline::PathRule;
use marline_http::client::{HttpVersion, Ranges};

use super::network::NetworkFlags;
use super::proxies::ProxyFlags;
use super::request::RequestFlags;
use super::size::size;
use super::transfer::TransferFlags;
use super::{OWN, PARALLEL, STANDARD_OUTPUT};
use crate::duration::duration;
use crate::key_log::KeyLogFlags;
use crate::pipes::PipeFlags;
use crate::tls::TlsFlags;
use crate::transport::{QuicVersion, RESEARCH, TransportFlags};

/// The end of the short help.
const SHORT: &str = "Examples:\n  \
    marline get example.org/file -o file\n  \
    marline get -L https://example.org/{a.css,b.js} -o page/\n  \
    marline get https://example.org/image.iso -O -C -\n  \
    marline get https://example.org/api -d name=value -u me:secret\n\n\
    Flags that curl has mean what curl's mean; `marline get --help` lists all, and those that only marline has.";

/// Fetch objects over HTTP/3, 2 or 1.1
///
/// A file appears under its name only when it is complete; until then it is `.NAME.part` beside it. The next `get`
/// takes over a file that a killed one left there. The exit status is 0 only if every object arrived completely with a
/// 2xx status, and otherwise curl's for the same failure: without --fail, too. Flags of curl mean what curl's mean. A file with
/// flags, $XDG_CONFIG_HOME/marline/get.conf, is read first.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = "Examples:\n  \
    marline get https://example.org/file -o file\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --connections 3\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --http 2-parallel\n  \
    marline get https://localhost:4433/big -k --report-json > report.json\n  \
    marline get https://localhost:4433/big -k --mptcp --report-json\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --har page.har\n  \
    marline get https://example.org/image.iso -o image.iso --resume\n  \
    marline get https://example.org/image.iso -o image.iso --connections 3 --split 1000000\n  \
    marline get https://example.org/image.iso -o image.iso --bundle\n  \
    marline get https://example.org/image.iso -o image.iso --bundle --connections 4 --ranges handed\n  \
    marline get https://example.org/a.css https://example.org/b.js -o page/ --pipes cba --report-json\n  \
    marline get https://example.org/image.iso -o image.iso --path wlan0 --path wwan0,backup,cap=10MB")]
pub(crate) struct Arguments {
    /// The URLs to fetch, https:// unless they say otherwise; {a,b} and [1-10] expand to several
    #[arg(required_unless_present = "url", value_name = "URL")]
    pub(super) urls: Vec<String>,

    /// A URL to fetch; repeatable
    #[arg(long, value_name = "URL", hide_short_help = true)]
    url: Vec<String>,

    /// Begin a new group of URLs, with flags of its own
    // The arguments are divided before they are parsed.
    #[arg(short = ':', long, hide_short_help = true)]
    next: bool,

    /// Brackets and braces in URLs have no meaning
    #[arg(short = 'g', long, hide_short_help = true)]
    pub(super) globoff: bool,

    /// Read flags from FILE, one a line, - is standard input; repeatable
    // It is taken out before arguments are parsed.
    #[arg(short = 'K', long, value_name = "FILE", hide_short_help = true)]
    config: Vec<PathBuf>,

    /// Do not read get.conf; the first flag
    #[arg(short = 'q', long, hide_short_help = true)]
    disable: bool,

    /// Write to FILE, or into DIR under the last name of each URL; without it, or with `-`, to standard output, one object
    /// after another. Given once for each URL, they belong together; #1 is the first list of a URL. A FILE that exists keeps its
    /// permissions, owner and names; links are followed
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(super) output: Vec<PathBuf>,

    /// Write into the present directory, each object under the last name of its URL
    #[arg(
        short = 'O',
        long,
        visible_alias = "remote-name-all",
        conflicts_with = "output"
    )]
    pub(super) remote_name: bool,

    /// With -O, use the name in Content-Disposition, if it is safe and no such file exists
    #[arg(short = 'J', long, requires = "remote_name", hide_short_help = true)]
    pub(super) remote_header_name: bool,

    /// Write files into this directory
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(super) output_dir: Option<PathBuf>,

    /// Create directories that are missing
    #[arg(long, hide_short_help = true)]
    pub(super) create_dirs: bool,

    /// Set the times of files to Last-Modified
    #[arg(short = 'R', long, hide_short_help = true)]
    pub(super) remote_time: bool,

    /// Print the headers of responses before the content
    #[arg(short = 'i', long, visible_alias = "show-headers")]
    pub(super) include: bool,

    /// Write the headers of responses to FILE
    #[arg(short = 'D', long, value_name = "FILE", hide_short_help = true)]
    pub(super) dump_header: Option<PathBuf>,

    /// Print this about each object at the end, with variables as %{http_code}; @FILE for that of a file
    #[arg(short = 'w', long, value_name = "FORMAT")]
    pub(super) write_out: Option<String>,

    /// No effect; accepted because curl has it
    #[arg(short = 'N', long, hide_short_help = true)]
    no_buffer: bool,

    /// Write messages to FILE, - is standard output
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) stderr: Option<PathBuf>,

    /// Print neither progress nor messages
    #[arg(short = 's', long)]
    silent: bool,

    /// With -s, still print errors
    #[arg(short = 'S', long, hide_short_help = true)]
    show_error: bool,

    /// Print no progress
    #[arg(long, visible_alias = "no-silent", hide_short_help = true)]
    no_progress_meter: bool,

    /// Print progress as a bar (the default)
    #[arg(short = '#', long, hide_short_help = true)]
    progress_bar: bool,

    /// Write nothing of a response whose status is not 2xx
    #[arg(short = 'f', long, conflicts_with = "fail_with_body")]
    pub(super) fail: bool,

    /// Write the content of every response, as without --fail
    #[arg(long, hide_short_help = true)]
    fail_with_body: bool,

    /// Print connections, and the headers of requests and responses
    #[arg(short = 'v', long)]
    pub(super) verbose: bool,

    #[command(flatten)]
    pub(super) request: RequestFlags,

    #[command(flatten)]
    pub(super) transfer: TransferFlags,

    #[command(flatten)]
    pub(super) network: NetworkFlags,

    /// Trust only the certificates in FILE (PEM) and those that they have signed; a server's own certificate
    /// can be one of them
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        hide_short_help = true
    )]
    pub(super) cacert: Option<PathBuf>,

    /// Trust every certificate, for tests
    #[arg(short = 'k', long)]
    pub(super) insecure: bool,

    /// Use HTTP/1.1, for http:// and https://
    #[arg(long = "http1.1", conflicts_with_all = ["version", "http2", "http3", "http3_only"], hide_short_help = true)]
    http1_1: bool,

    /// Use HTTP/2, or HTTP/1.1 with servers that do not have it
    #[arg(long = "http2", conflicts_with_all = ["version", "http3", "http3_only"], hide_short_help = true)]
    http2: bool,

    /// Use HTTP/3, or HTTP/2 where that does not connect (the default)
    #[arg(long = "http3", conflicts_with_all = ["version", "http3_only"], hide_short_help = true)]
    http3: bool,

    /// Use HTTP/3 only
    #[arg(long, conflicts_with = "version", hide_short_help = true)]
    http3_only: bool,

    #[command(flatten)]
    pub(super) tls: TlsFlags,

    /// Use only this version of HTTP [default: 3, or 2 where 3 does not connect]
    ///
    /// 1.1c is HTTP/1.1 without encryption, 2-parallel is HTTP/2 over several connections that get the requests in turn. With
    /// --bundle, --path, --quic-version or a flag about the transport, it is 3 only.
    #[arg(long = "http", value_name = "VERSION", value_enum)]
    pub(super) version: Option<Version>,

    /// Use Multipath TCP (RFC 8684), and fail where the server or this machine does not have it; over HTTP/2 unless --http
    /// names a version over TCP. The system decides about paths (`ip mptcp`)
    #[arg(long, help_heading = OWN, hide_short_help = true)]
    pub(super) mptcp: bool,

    /// The version of QUIC to begin with [default: v1]; the server may change to the other one, or ask for it
    #[arg(long, value_name = "VERSION", value_enum, help_heading = RESEARCH, hide_short_help = true)]
    pub(super) quic_version: Option<QuicVersion>,

    /// Open up to N connections to a server [default: 1, or 6 with HTTP/1.1, 2 with 2-parallel, 3 with --bundle]
    #[arg(long, help_heading = OWN, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), hide_short_help = true)]
    pub(super) connections: Option<u16>,

    /// Fetch a file larger than BYTES in ranges over all connections; needs --connections and -o
    /// [default: 16777216 with --bundle, 262144 with --own-sockets too]
    #[arg(
        long,
        value_name = "BYTES",
        requires = "output",
        conflicts_with = "pipes", help_heading = OWN, hide_short_help = true)]
    pub(super) split: Option<NonZeroU64>,

    /// The method of splitting a file into ranges
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value_t,
        conflicts_with = "pipes", help_heading = OWN, hide_short_help = true)]
    pub(super) ranges: RangesArgument,

    /// Ask the server to coordinate the connections, and split large files over them; HTTP/3 only
    #[arg(long, help_heading = OWN, hide_short_help = true)]
    pub(super) bundle: bool,

    /// Open a socket for each connection: networks that balance flows by port may route each differently; HTTP/3 only
    #[arg(long, help_heading = OWN, hide_short_help = true)]
    pub(super) own_sockets: bool,

    /// Use this network interface or address of this machine, and no others; repeatable; switches multipath
    /// on. All are used at the same time. `backup`: only while no other path works. `cap=10MB`: at
    /// least this many bytes in both directions together, counted ten times a second and more often near the end; then the path is
    /// abandoned, or the transfer ends if there is no other. HTTP/3 only. An interface needs a route of its own, an address needs a routing
    /// rule
    #[arg(long, value_name = "IFACE|ADDR[,backup][,cap=SIZE]", help_heading = OWN, hide_short_help = true)]
    pub(super) path: Vec<PathRule>,

    #[command(flatten)]
    pub(super) proxies: ProxyFlags,

    #[command(flatten)]
    pub(super) pipes: PipeFlags,

    #[command(flatten)]
    pub(super) transport: TransportFlags,

    #[command(flatten)]
    pub(super) key_log: KeyLogFlags,

    #[cfg(feature = "tracing")]
    #[command(flatten)]
    pub(super) log: crate::log::LogFlags,

    /// End after this long, in seconds or with a unit, as 90, 0.2 or 500ms; what is not complete by then fails. 0 means no limit
    #[arg(short = 'm', long, value_name = "TIME", value_parser = duration)]
    pub(super) max_time: Option<Duration>,

    /// Refuse objects larger than BYTES, or with K, M, G and T, that many times 1024, 1024², 1024³ and 1024⁴ bytes; 0 means no limit
    #[arg(long, value_name = "BYTES", value_parser = size, hide_short_help = true, default_value = "0", hide_default_value = true)]
    pub(super) max_filesize: u64,

    /// Give up a request if nothing of a response arrives on its connection for this long; 0 waits for as long as the
    /// connection lasts [default: 60s]
    #[arg(long, help_heading = OWN, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    pub(super) stall_timeout: Option<Duration>,

    /// Keep the incomplete part of a file, and continue there; needs -o
    #[arg(long, help_heading = OWN, hide_short_help = true)]
    resume: bool,

    /// Continue an incomplete file: `-C -`, which is the same as --resume
    #[arg(short = 'C', long, value_name = "-", value_parser = ["-"], allow_hyphen_values = true)]
    continue_at: Option<String>,

    /// Write what was fetched, and when, as an HTTP Archive (HAR 1.2), which the tools of browsers read; in a directory it is
    /// get.har
    #[arg(long, value_name = "FILE|DIR", help_heading = OWN, hide_short_help = true)]
    pub(super) har: Option<PathBuf>,

    /// Print a report of objects and connections instead of the content; without DATA after it, --json is the same
    #[arg(long = "report-json", alias = "json", help_heading = OWN, hide_short_help = true)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum RangesArgument {
    /// `equal` if the server coordinates the connections, otherwise `handed`
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
pub(super) enum Version {
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
    /// All URLs that are given, as they are written.
    pub(super) fn all_urls(&self) -> impl Iterator<Item = &String> {
        self.url.iter().chain(&self.urls)
    }

    /// The version that is asked for, if one is.
    pub(super) fn only_version(&self) -> Option<Version> {
        match (self.http1_1, self.http2, self.http3_only) {
            (true, _, _) => Some(Version::Http11),
            (_, true, _) => Some(Version::Http2),
            (_, _, true) => Some(Version::Http3),
            _ => self.version,
        }
    }

    /// Whether HTTP/1.1 is used where a server does not have HTTP/2.
    pub(super) fn or_http11(&self) -> bool {
        self.version.is_none()
    }

    /// Gives all of `lines` the flags that are of the whole command.
    pub(super) fn share(lines: &mut [Self]) {
        let any = |flag: fn(&Self) -> bool| lines.iter().any(flag);
        let silent = any(|one| one.silent);
        let show_error = any(|one| one.show_error);
        let no_progress_meter = any(|one| one.no_progress_meter);
        let verbose = any(|one| one.verbose);
        let fail_early = any(|one| one.transfer.fail_early);
        for line in lines {
            line.silent = silent;
            line.show_error = show_error;
            line.no_progress_meter = no_progress_meter;
            line.verbose = verbose;
            line.transfer.fail_early = fail_early;
        }
    }

    /// Whether a file is continued.
    pub(super) fn resumes(&self) -> bool {
        self.resume || self.continue_at.is_some()
    }

    /// Whether errors are printed.
    pub(super) fn prints_errors(&self) -> bool {
        !self.silent || self.show_error
    }

    /// Whether progress and notes are printed.
    pub(super) fn prints_notes(&self) -> bool {
        !self.silent
    }

    /// Whether progress is printed.
    pub(super) fn prints_progress(&self) -> bool {
        !self.silent && !self.no_progress_meter
    }

    /// Whether a flag requires a version over TCP.
    fn needs_tcp(&self) -> bool {
        self.mptcp || !self.tls.allow_quic() || self.network.unix_socket.is_some()
    }

    /// Whether HTTP/2 may be used in place of HTTP/3: not if a flag requires QUIC.
    pub(super) fn may_fall_back(&self) -> bool {
        self.only_version().is_none()
            && !self.needs_tcp()
            && self.quic_version.is_none()
            && !self.pipes.are_given()
            && !self.transport.any_is_given()
    }

    /// The number of connections to a server that may be opened without a bundle.
    pub(super) fn connections(&self) -> usize {
        match (self.connections, self.only_version()) {
            (Some(connections), _) => connections.into(),
            // They follow each other.
            (None, _) if !self.writes_files() && !self.json => 1,
            (None, Some(Version::Http2Parallel)) => PARALLEL,
            (None, _) => self.version().connections_of_browsers(),
        }
    }

    /// The version of HTTP that is tried first.
    pub(super) fn version(&self) -> HttpVersion {
        let default = match self.needs_tcp() {
            true => HttpVersion::Http2,
            false => HttpVersion::Http3,
        };
        self.only_version().map_or(default, HttpVersion::from)
    }

    /// Whether a flag requires QUIC, because TCP does not support it.
    pub(super) fn needs_quic(&self) -> bool {
        matches!(self.only_version(), Some(Version::Http3))
            || self.bundle
            || self.own_sockets
            || self.quic_version.is_some()
            || self.pipes.are_given()
            || !self.path.is_empty()
    }

    /// Whether content goes to files, at least in part.
    pub(super) fn writes_files(&self) -> bool {
        self.remote_name || self.output.iter().any(|path| !is_standard_output(path))
    }
}

/// Whether a path stands for standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    *path.as_os_str() == *STANDARD_OUTPUT
}
