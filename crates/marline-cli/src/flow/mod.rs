//! `marline flow`.

mod collector;
#[cfg(target_os = "linux")]
mod live;
mod metrics;
mod output;
mod progress;
mod stop;
mod summary;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use marline_flow::capture::Problem;
use marline_flow::output::OutputError;
use marline_flow::{
    Capture, CaptureError, DEFAULT_MAX_FLOWS, Exporter, Finished, KeyLog, KeyLogError, Options,
    ServerLog, ServerLogError, Sources, Timeouts,
};

#[cfg(test)]
pub(crate) use self::metrics::of_an_export;
use self::metrics::{FlowMetrics, Snapshot};
use self::output::{OutputFlags, Outputs};
use self::progress::Bar;
use self::stop::{Stop, Stoppable};
use crate::duration::duration;
use crate::failure::{Failure, print_message};
use crate::listen::MetricsListen;

/// The argument that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Export flows from captured packets
///
/// Each flow becomes one record, client to server: times, packets, bytes, flags, the name in TLS, and the version of
/// HTTP where it is visible: in handshakes up to TLS 1.2, in QUIC and in cleartext; in TLS 1.3 only with a key log,
/// which a pcapng capture may contain, or with the server's access log. `python -m marline` analyses the records.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tcpdump -i wlan0 -w day.pcap 'tcp port 443 or udp port 443'\n  \
    marline flow day.pcap -o day.parquet\n  \
    marline flow day.pcap -o day.csv --keylog keys.log --server-log access.log\n  \
    marline flow --interface wlan0 --duration 600 -o now.parquet\n  \
    marline flow --interface wlan0 -o flows.parquet --rotate-interval 5min --metrics 127.0.0.1:9100\n  \
    marline flow --interface wlan0 --collector udp://collector.example:4739 --active-timeout 60\n  \
    marline flow old.pcap.gz -o old.parquet --active-timeout 1800\n  \
    marline flow day.pcap -o day.parquet --json | jq .http_versions")]
pub(crate) struct Arguments {
    /// Captures (pcap, pcapng, also compressed by gzip), in the order of their times; `-` is standard input
    #[cfg_attr(target_os = "linux", arg(required_unless_present = "interface"))]
    #[cfg_attr(not(target_os = "linux"), arg(required = true))]
    #[arg(value_name = "CAPTURE")]
    captures: Vec<PathBuf>,

    #[cfg(target_os = "linux")]
    #[command(flatten)]
    live: live::LiveFlags,

    #[command(flatten)]
    output: OutputFlags,

    /// Decrypt handshakes with the secrets in FILE, as programs write it that are started with SSLKEYLOGFILE=FILE, in
    /// addition to those in captures; repeatable
    #[arg(long, value_name = "FILE")]
    keylog: Vec<PathBuf>,

    /// Take versions of HTTP from an access log of `marline serve`, where client and time match; repeatable
    #[arg(long, value_name = "FILE")]
    server_log: Vec<PathBuf>,

    /// End the record of a flow after this long, and begin its next one, as exporters of NetFlow do [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    active_timeout: Option<Duration>,

    /// End a flow that had no packets for this long [default: 300 for TCP, 200 for UDP]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    idle_timeout: Option<Duration>,

    /// The same for TCP connections that are not established or are closed, and for single datagrams
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "10")]
    opening_timeout: Duration,

    /// Keep at most this many flows; when another begins, the oldest ends
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_FLOWS as u32, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    max_flows: u32,

    /// Accept a capture that ends within a packet, and ignore that packet
    #[arg(long, requires = "captures")]
    truncated: bool,

    /// Serve metrics for Prometheus as http://ADDR:PORT/metrics; a port alone, as :9100, is that of this host alone
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<MetricsListen>,

    /// Print the counters as a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    let sources = Sources {
        keys: keys(&arguments.keylog)?,
        server_log: server_log(&arguments.server_log)?,
    };
    let stop = Stop::on_signals(arguments.is_unattended());
    // Captures that cannot be opened are refused before anything is written.
    let mut captures = Vec::new();
    for path in &arguments.captures {
        captures.push(open(path, &stop, arguments)?);
    }
    #[cfg(target_os = "linux")]
    let interface = arguments.live.open()?;
    let outputs = arguments.output.open()?;
    let metrics = arguments
        .metrics
        .map(|metrics| FlowMetrics::serve(metrics.addresses().first))
        .transpose()?;
    let mut export = Export {
        exporter: Exporter::new(options(arguments), sources, outputs),
        stop,
        bar: Bar::new(total(&arguments.captures)),
        metrics,
    };
    let mut failure = None;
    for (mut capture, path) in captures.into_iter().zip(&arguments.captures) {
        let is_stream = is_standard(path);
        failure = match export.read(&mut capture, arguments, is_stream) {
            // A stream cannot be read again: the packets before the error are kept.
            Err(Interruption::Capture(error)) if is_stream => Some(unreadable(&error)),
            Err(Interruption::Capture(error)) => return Err(unreadable(&error)),
            Err(Interruption::Output(error)) => return Err(unwritable(&error)),
            Err(Interruption::Stopped) => return Err(interrupted(arguments)),
            Ok(()) => None,
        };
        if failure.is_some() {
            break;
        }
    }
    #[cfg(target_os = "linux")]
    if let Some(interface) = interface {
        arguments.live.read(interface, &mut export)?;
    }
    export.bar.finish();
    let finished = export.exporter.finish();
    let Finished { sink, statistics } = finished.map_err(|error| unwritable(&error))?;
    let left = sink.finish()?;
    if statistics.back_in_time > 0 {
        print_message(
            "some packets are of an earlier time than those before: connections that continue there have two records; give captures in the order of their times",
        );
    }
    let name = arguments.output.name();
    if arguments.json {
        outln!("{}", summary::json(&name, &statistics, left));
    } else {
        out!("{}", summary::text(&name, &statistics, left));
    }
    failure.map_or_else(|| left.check(), Err)
}

/// An export in progress.
struct Export {
    exporter: Exporter<Outputs>,
    stop: Stop,
    bar: Bar,
    metrics: Option<Arc<FlowMetrics>>,
}

impl Arguments {
    /// Whether packets are read until the end is requested, or records leave before it, so that the output can be divided.
    fn is_unattended(&self) -> bool {
        #[cfg(target_os = "linux")]
        if self.live.is_wanted() {
            return true;
        }
        self.output.is_continuous()
    }
}

impl Export {
    /// Divides the output, if requested.
    #[inline]
    fn divide_if_asked(&mut self) -> Result<(), OutputError> {
        match self.stop.take_division() {
            true => self.exporter.sink_mut().divide(),
            false => Ok(()),
        }
    }

    /// Reads a capture to its end, or a stream until the end is requested.
    fn read(
        &mut self,
        source: &mut Source,
        arguments: &Arguments,
        is_stream: bool,
    ) -> Result<(), Interruption> {
        match self.packets(source) {
            Err(Interruption::Capture(error)) if error.is_truncation() && arguments.truncated => {
                print_message(&format!("{error}; that packet is ignored"));
                Ok(())
            }
            // A signal to both ends of a pipe may end the writer, within a packet, before it is seen here.
            Err(Interruption::Capture(error))
                if is_stream && error.is_truncation() && self.stop.is_asked_for_soon() =>
            {
                Ok(())
            }
            // A stream has no end of its own.
            Err(Interruption::Stopped)
                if arguments.captures.iter().any(|path| is_standard(path)) =>
            {
                Ok(())
            }
            ended => ended,
        }
    }

    fn packets(&mut self, capture: &mut Source) -> Result<(), Interruption> {
        let between_looks = match &self.metrics {
            Some(_) => BETWEEN_SNAPSHOTS,
            None => PACKETS_PER_POLL,
        };
        let mut number = 0u64;
        loop {
            // Not by `map_err`, which would copy the item.
            let item = match capture.next() {
                Ok(Some(item)) => item,
                Ok(None) => break,
                Err(_) if self.stop.is_asked_for() => return Err(Interruption::Stopped),
                Err(error) => return Err(Interruption::Capture(error)),
            };
            self.exporter.item(&item).map_err(Interruption::Output)?;
            self.divide_if_asked().map_err(Interruption::Output)?;
            number += 1;
            if number.is_multiple_of(between_looks) {
                if self.stop.is_asked_for() {
                    return Err(Interruption::Stopped);
                }
                self.look(capture.position(), 0);
            }
        }
        self.look(capture.position(), 0);
        self.bar.end_file(capture.position());
        if capture.interfaces() > 1 {
            let (name, interfaces) = (capture.name(), capture.interfaces());
            print_message(&format!(
                "{name}: packets of {interfaces} interfaces; one that passed several counts at each: keep one interface with \
                 `tshark -r FILE -Y 'frame.interface_id == 0' -w ONE`"
            ));
        }
        Ok(())
    }

    /// Updates the progress: `position` bytes were read, and the kernel dropped this many packets.
    fn look(&mut self, position: u64, dropped: u64) {
        let statistics = self.exporter.statistics();
        self.bar.show(position, statistics.packets);
        if let Some(metrics) = &self.metrics {
            metrics.set(Snapshot {
                statistics: statistics.clone(),
                active_flows: self.exporter.active_flows(),
                dropped,
                left: self.exporter.sink().left(),
            });
        }
    }
}

/// Refuses arguments that would read from or write to one place twice.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let inputs = || arguments.captures.iter().filter(|path| is_standard(path));
    if inputs().count() > 1 {
        return Err(Failure::Usage(
            "standard input can be read only once; give `-` once".into(),
        ));
    }
    let output = arguments.output.output.as_ref();
    let output = output.and_then(|path| std::fs::canonicalize(path).ok());
    let read = [
        &arguments.captures,
        &arguments.keylog,
        &arguments.server_log,
    ];
    let read = read.into_iter().flatten();
    for path in read.chain(&arguments.output.anonymize) {
        if output.is_some() && std::fs::canonicalize(path).ok() == output {
            let path = path.display();
            let message =
                format!("{path}: is an input and would be replaced; choose another file with -o");
            return Err(Failure::Usage(message));
        }
    }
    Ok(())
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

fn options(arguments: &Arguments) -> Options {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let default = Timeouts::default();
    let idle = arguments.idle_timeout.map(ns);
    Options {
        timeouts: Timeouts {
            active_ns: arguments.active_timeout.map(ns),
            tcp_idle_ns: idle.unwrap_or(default.tcp_idle_ns),
            udp_idle_ns: idle.unwrap_or(default.udp_idle_ns),
            opening_ns: ns(arguments.opening_timeout),
        },
        max_flows: arguments.max_flows as usize,
    }
}

fn keys(paths: &[PathBuf]) -> Result<Option<KeyLog>, Failure> {
    let mut log = KeyLog::default();
    for path in paths {
        log.add(path).map_err(|error| {
            let advice = match &error {
                KeyLogError::Io { error, .. } => file_advice(error),
                KeyLogError::Line { .. } => {
                    "give a file that a program started with SSLKEYLOGFILE wrote"
                }
                _ => "split it, with its captures",
            };
            Failure::Failed(format!("{error}; {advice}"))
        })?;
    }
    if !paths.is_empty() && log.is_empty() {
        print_message("the key log has no secrets of TLS 1.3 handshakes: it decrypts nothing");
    }
    Ok((!paths.is_empty()).then_some(log))
}

fn server_log(paths: &[PathBuf]) -> Result<Option<ServerLog>, Failure> {
    let mut log = ServerLog::default();
    for path in paths {
        log.add(path).map_err(|error| {
            let advice = match &error {
                ServerLogError::Io { error, .. } => file_advice(error),
                ServerLogError::Line { .. } => "give what `marline serve --access-log FILE` wrote",
                _ => "split it, with its captures",
            };
            Failure::Failed(format!("{error}; {advice}"))
        })?;
    }
    Ok((!paths.is_empty()).then_some(log))
}

/// A capture, of a file or of standard input.
type Source = Capture<Stoppable<File>>;

fn open(path: &Path, stop: &Stop, arguments: &Arguments) -> Result<Source, Failure> {
    let name = match is_standard(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let file = match is_standard(path) {
        true => standard_input(),
        false => File::open(path),
    };
    let file = file.map_err(|error| {
        let advice = file_advice(&error);
        Failure::Failed(format!("{name}: {error}; {advice}"))
    })?;
    let opened = Capture::new(Stoppable::new(file, stop), name);
    opened.map_err(|error| match stop.is_asked_for() {
        true => interrupted(arguments),
        false => unreadable(&error),
    })
}

/// Standard input without the buffer of [`io::stdin`], whose content a poll of the descriptor does
/// not see.
fn standard_input() -> io::Result<File> {
    #[cfg(unix)]
    let input = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned();
    #[cfg(windows)]
    let input = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned();
    input.map(File::from)
}

fn interrupted(arguments: &Arguments) -> Failure {
    let written = match arguments.output.is_continuous() {
        true => "flows under way were not written",
        false => "nothing was written",
    };
    Failure::Failed(format!("interrupted; {written}"))
}

/// The reason why not all packets were read.
enum Interruption {
    Capture(CaptureError),
    Output(OutputError),
    Stopped,
}

/// Packets, and lines of key logs, between two checks of the clock and of signals.
const PACKETS_PER_POLL: u64 = 1 << 14;

/// The same while metrics are served: few packets arrive through a pipe from a quiet network.
const BETWEEN_SNAPSHOTS: u64 = 1 << 6;

/// Bytes of all captures, if none is standard input.
fn total(paths: &[PathBuf]) -> Option<u64> {
    let sizes = paths.iter().map(|path| match is_standard(path) {
        true => None,
        false => std::fs::metadata(path)
            .ok()
            .filter(std::fs::Metadata::is_file),
    });
    sizes.map(|file| file.map(|file| file.len())).sum()
}

fn unreadable(error: &CaptureError) -> Failure {
    let advice = match error.problem() {
        Problem::Io(error) => file_advice(error),
        Problem::Empty | Problem::NoCapture => "give what tcpdump -w, dumpcap or Wireshark wrote",
        Problem::Compressed => {
            "decompress it into a pipe, with zstdcat, bzcat, xzcat or another: `zstdcat FILE | marline flow - -o FLOWS`"
        }
        Problem::LinkType(_) => {
            "capture on an interface of IP, such as `tcpdump -i any`; if each packet has the same N bytes before IP, `editcap -T rawip -C N FILE OUT` removes them"
        }
        Problem::Truncated(0) => "it has no whole header, so capture again",
        Problem::Truncated(_) => "--truncated ignores that packet",
        _ => "`capinfos FILE` describes it, and `editcap` may mend it",
    };
    Failure::Failed(format!("{error}; {advice}"))
}

fn unwritable(error: &OutputError) -> Failure {
    match error {
        OutputError::Format { .. } => Failure::Usage(error.to_string()),
        OutputError::Io { error: cause, .. } => {
            let advice = match cause.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space",
                ErrorKind::NotFound => "create its directory first",
                _ => "choose another file with -o",
            };
            Failure::Failed(format!("cannot write {error}; {advice}"))
        }
        _ => Failure::Failed(error.to_string()),
    }
}

fn file_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "check the path",
        ErrorKind::IsADirectory => "name the files in it",
        _ => "give a file that can be read",
    }
}

/// A timeout, which is not 0.
fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be more than 0".into()),
        time => Ok(time),
    }
}
