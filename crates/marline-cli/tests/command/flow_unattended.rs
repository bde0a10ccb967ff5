//! `marline flow` as it runs for months: files in turn, a collector, metrics, anonymized addresses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use super::*;

/// The time at which the captures begin.
const START_S: u32 = 1_700_000_000;

/// The header of a capture in the format of libpcap, with raw IP.
fn header() -> Vec<u8> {
    let fields = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101];
    fields.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// A datagram to port 53 from this port, so many seconds after the start.
fn packet(port: u16, after_s: u32) -> Vec<u8> {
    let packet = [
        &[
            0x45, 0, 0, 33, 0, 1, 0, 0, 64, 17, 0, 0, 10, 11, 12, 13, 198, 51, 100, 7,
        ][..],
        &port.to_be_bytes(),
        &[0, 53, 0, 13, 0, 0],
        b"query",
    ]
    .concat();
    let len = packet.len() as u32;
    let fields = [START_S + after_s, 0, len, len];
    let mut bytes: Vec<u8> = fields.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend(packet);
    bytes
}

/// A capture of `count` flows, a second apart.
fn capture(count: u16) -> Vec<u8> {
    let packets = (0..count).flat_map(|i| packet(10_000 + i, i.into()));
    header().into_iter().chain(packets).collect()
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A running export of standard input.
struct Stream {
    child: Child,
    input: ChildStdin,
}

impl Stream {
    fn start(flags: &[&str]) -> Self {
        let mut command = marline(&[&["flow", "-"], flags].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        Self { child, input }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits until `is_so`, as a result of the packets written.
    fn wait_until(&mut self, mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args([name, &pid]).status();
        assert!(kill.unwrap().success());
    }
}

#[cfg(unix)]
#[test]
fn files_are_complete_one_by_one_and_the_open_one_at_a_signal() {
    for (signal, format) in [("-TERM", "csv"), ("-INT", "parquet"), ("-INT", "ipfix")] {
        let directory = tempfile::tempdir().unwrap();
        let output = path(&directory, &format!("flows.{format}"));
        let mut stream = Stream::start(&["-o", &output, "--rotate-interval", "60"]);
        stream.write(&capture(130));
        let complete = |directory: &TempDir| {
            let names = names(directory).into_iter();
            names
                .filter(|name| name.ends_with(&format!("Z.{format}")))
                .count()
        };
        // The packets are of 20, 60 and 50 seconds of three minutes.
        stream.wait_until(|| complete(&directory) == 2);
        assert_eq!(names(&directory)[0], format!(".flows.{format}.part"));
        stream.signal(signal);
        let ended = stream.child.wait_with_output().unwrap();
        drop(stream.input);
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{printed}");
        assert!(printed.contains("130 records of 130 flows"), "{printed}");
        assert!(printed.contains("3 files"), "{printed}");
        assert_eq!(
            names(&directory),
            ["221320", "221400", "221500"].map(|t| format!("flows-20231114T{t}Z.{format}"))
        );
    }
}

#[cfg(unix)]
#[test]
fn a_hang_up_completes_the_open_file_and_the_export_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let output = path(&directory, "flows.csv");
    let mut stream = Stream::start(&["-o", &output, "--rotate-interval", "1h"]);
    stream.write(&capture(30));
    stream.wait_until(|| !names(&directory).is_empty());
    let mut sent = 30;
    for files in 1..4u16 {
        stream.signal("-HUP");
        // It is looked at with the packets, of which each ends the flows before.
        while names(&directory).len() <= usize::from(files) {
            sent += 1;
            stream.write(&packet(sent, 11 * u32::from(sent)));
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(stream.child.try_wait().unwrap(), None, "it has ended");
        }
    }
    stream.signal("-TERM");
    let ended = stream.child.wait_with_output().unwrap();
    drop(stream.input);
    assert!(ended.status.success());
    assert_eq!(records(&directory), usize::from(sent));
}

#[cfg(unix)]
#[test]
fn a_hang_up_of_a_capture_that_is_read_into_one_file_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = path(&directory, "flows.csv");
    let fifo = path(&directory, "day.pcap");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let child = marline(&["flow", &fifo, "-o", &output])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut writer = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    writer.write_all(&capture(130)).unwrap();
    while names(&directory).len() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    let kill = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(kill.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(names(&directory), ["day.pcap"]);
}

#[test]
fn an_output_that_another_process_writes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let output = path(&directory, "flows.csv");
    for flags in [&["--rotate-interval", "60"][..], &[]] {
        let mut first = Stream::start(&[&["-o", &output], flags].concat());
        first.write(&header());
        first.wait_until(|| names(&directory).iter().any(|name| name.ends_with("part")));
        let input = path(&directory, "day.pcap");
        fs::write(&input, capture(3)).unwrap();
        fails(
            &["flow", &input, "-o", &output],
            1,
            &["flows.csv: another process writes it"],
        );
        first.write(&capture(2)[24..]);
        drop(first.input);
        let ended = first.child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&ended.stdout).contains("2 records"));
    }
    let lines = |text: String| text.lines().count();
    assert_eq!(lines(fs::read_to_string(&output).unwrap()), 3);
}

#[test]
fn times_and_sizes_without_sense_are_refused() {
    for (flag, value, message) in [
        ("--active-timeout", "0", "more than 0"),
        ("--idle-timeout", "0s", "more than 0"),
        ("--opening-timeout", "0", "more than 0"),
        ("--opening-timeout", "-1", "'-1'"),
        ("--active-timeout", "2000000000", "30 years"),
        ("--rotate-interval", "0", "a second or more"),
        ("--rotate-interval", "10ms", "a second or more"),
        ("--rotate-size", "0B", "10kB or more"),
        ("--rotate-size", "1B", "10kB or more"),
        ("--max-flows", "0", "0 is not in"),
        ("--max-flows", "99999999999", "is not in"),
    ] {
        let flag_and_value = format!("{flag}={value}");
        fails(
            &["flow", "x.pcap", "-o", "x.csv", &flag_and_value],
            2,
            &[message],
        );
    }
    #[cfg(target_os = "linux")]
    fails(
        &[
            "flow",
            "--interface",
            "lo",
            "-o",
            "x.csv",
            "--duration",
            "0",
        ],
        2,
        &["more than 0"],
    );
}

/// The first bytes of a packet.
fn cut_packet() -> Vec<u8> {
    packet(20_000, 130)[..30].to_vec()
}

/// The number of records in all files.
fn records(directory: &TempDir) -> usize {
    let names = names(directory);
    assert!(
        names.iter().all(|name| name.ends_with("Z.csv")),
        "{names:?}"
    );
    let lines = names.iter().map(|name| {
        let text = fs::read_to_string(path(directory, name)).unwrap();
        text.lines().count() - 1
    });
    lines.sum()
}

#[cfg(unix)]
#[test]
fn a_signal_that_ends_the_writer_within_a_packet_completes_the_open_file() {
    for signal in ["-TERM", "-INT"].repeat(4) {
        let directory = tempfile::tempdir().unwrap();
        let output = path(&directory, "flows.csv");
        let mut stream = Stream::start(&["-o", &output, "--rotate-interval", "60"]);
        stream.write(&capture(130));
        stream.wait_until(|| names(&directory).len() == 3);
        // The end of the pipe and the signal are there at once.
        stream.signal("-STOP");
        stream.write(&cut_packet());
        stream.signal(signal);
        drop(stream.input);
        let pid = stream.child.id().to_string();
        let resumed = Command::new("kill").args(["-CONT", &pid]).status();
        assert!(resumed.unwrap().success());
        let ended = stream.child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{printed}");
        assert_eq!(records(&directory), 130);
    }
}

#[test]
fn a_stream_that_is_cut_leaves_what_came_before_and_fails() {
    let damaged = [&[0xff; 16][..], &[0; 100]].concat();
    for (end, message) in [
        (cut_packet(), "ends within the packet"),
        (damaged, "standard input: "),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let output = path(&directory, "flows.csv");
        let mut stream = Stream::start(&["-o", &output, "--rotate-interval", "60"]);
        stream.write(&capture(130));
        stream.write(&end);
        drop(stream.input);
        let ended = stream.child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{printed}");
        assert!(printed.contains(message), "{printed}");
        assert_eq!(records(&directory), 130);
    }
}

#[cfg(unix)]
#[test]
fn what_is_open_when_it_is_killed_has_no_final_name() {
    let directory = tempfile::tempdir().unwrap();
    let output = path(&directory, "flows.csv");
    let flags = ["-o", &output, "--rotate-interval", "60"];
    let mut stream = Stream::start(&flags);
    stream.write(&capture(130));
    stream.wait_until(|| names(&directory).len() == 3);
    stream.signal("-KILL");
    stream.child.wait().unwrap();
    let left = names(&directory);
    assert_eq!(
        left,
        [
            ".flows.csv.part",
            "flows-20231114T221320Z.csv",
            "flows-20231114T221400Z.csv",
        ]
    );
    for name in &left[1..] {
        let text = fs::read_to_string(path(&directory, name)).unwrap();
        let cells = |line: &str| line.matches(',').count();
        let columns = cells(text.lines().next().unwrap());
        assert!(text.ends_with('\n'));
        assert!(text.lines().all(|line| cells(line) == columns));
    }
    // The next run takes its place, and replaces no complete file.
    let mut again = Stream::start(&flags);
    again.write(&capture(1));
    drop(again.input);
    assert!(again.child.wait_with_output().unwrap().status.success());
    assert_eq!(
        names(&directory),
        [
            "flows-20231114T221320Z.csv",
            "flows-20231114T221320Z_2.csv",
            "flows-20231114T221400Z.csv",
        ]
    );
}

#[cfg(unix)]
#[test]
fn a_capture_that_is_interrupted_leaves_complete_files_only() {
    let directory = tempfile::tempdir().unwrap();
    let output = path(&directory, "flows.csv");
    // A named pipe stands for a capture that is still read.
    let fifo = path(&directory, "day.pcap");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let mut command = marline(&["flow", &fifo, "-o", &output, "--rotate-interval", "60"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut writer = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    writer.write_all(&capture(130)).unwrap();
    while names(&directory).len() < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(kill.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    drop(writer);
    assert_eq!(ended.status.code(), Some(1));
    let message = String::from_utf8_lossy(&ended.stderr);
    assert!(
        message.contains("interrupted; flows under way were not written"),
        "{message}"
    );
    assert_eq!(
        names(&directory),
        [
            "day.pcap",
            "flows-20231114T221320Z.csv",
            "flows-20231114T221400Z.csv"
        ]
    );
}

/// The lengths of messages of IPFIX, whose headers are checked; `bytes` has whole ones. The first one has the templates.
fn messages(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [a, b, c, d, ..] = bytes {
        assert_eq!([*a, *b], [0, 10], "the version");
        let length = usize::from(u16::from_be_bytes([*c, *d]));
        if lengths.is_empty() {
            assert_eq!(bytes[16..18], [0, 2], "the templates");
        }
        lengths.push(length);
        bytes = &bytes[length..];
    }
    lengths
}

#[test]
fn a_collector_gets_messages_over_udp_that_fit_into_datagrams() {
    let directory = tempfile::tempdir().unwrap();
    let input = path(&directory, "day.pcap");
    fs::write(&input, capture(100)).unwrap();
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let url = format!("udp://{}", collector.local_addr().unwrap());
    let run = run(&["flow", &input, "--collector", &url, "--json"]);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let document: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(document["output"], url);
    let mut bytes = Vec::new();
    for _ in 0..document["ipfix_messages"].as_u64().unwrap() {
        let mut buffer = [0; 2000];
        let length = collector.recv(&mut buffer).unwrap();
        assert_eq!(
            messages(&[&bytes[..], &buffer[..length]].concat()).last(),
            Some(&length)
        );
        assert!(length <= 1232);
        bytes.extend(&buffer[..length]);
    }
    // Without templates, by the sequence number of a message that would follow.
    assert!(messages(&bytes).len() > 10);
}

#[test]
fn a_collector_gets_messages_over_tcp_beside_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let input = path(&directory, "day.pcap");
    let output = path(&directory, "day.csv");
    fs::write(&input, capture(100)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    });
    let run = run(&["flow", &input, "--collector", &url, "-o", &output]);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let bytes = reader.join().unwrap();
    assert!(messages(&bytes).len() > 1);
    assert_eq!(fs::read_to_string(output).unwrap().lines().count(), 101);
}

#[cfg(unix)]
#[test]
fn a_hang_up_begins_another_session_with_the_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    let mut stream = Stream::start(&["--collector", &url]);
    stream.write(&capture(1));
    let (mut first, _) = listener.accept().unwrap();
    stream.signal("-HUP");
    listener.set_nonblocking(true).unwrap();
    let mut sent = 1;
    let mut second = loop {
        if let Ok((second, _)) = listener.accept() {
            break second;
        }
        sent += 1;
        stream.write(&packet(sent, 20 * u32::from(sent)));
        std::thread::sleep(Duration::from_millis(20));
    };
    stream.signal("-TERM");
    let ended = stream.child.wait_with_output().unwrap();
    drop(stream.input);
    assert!(ended.status.success());
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(printed.contains(&format!("{sent} record")), "{printed}");
    second.set_nonblocking(false).unwrap();
    // Each session begins with the templates.
    for session in [&mut first, &mut second] {
        let mut bytes = Vec::new();
        session.read_to_end(&mut bytes).unwrap();
        assert!(!messages(&bytes).is_empty());
    }
}

#[test]
fn a_collector_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let input = path(&directory, "day.pcap");
    fs::write(&input, capture(1)).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("tcp://{closed}");
    fails(
        &["flow", &input, "--collector", &url],
        1,
        &[&url, "listens there"],
    );
    let udp = format!("udp://{closed}");
    // ICMP reports it.
    let run = run(&["flow", &input, "--collector", &udp]);
    assert_eq!(run.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(
        printed.contains(&format!("{udp}: ")) && printed.contains("1 record did not reach"),
        "{printed}"
    );
    fails(
        &["flow", &input, "--collector", "127.0.0.1:1"],
        2,
        &["udp://HOST:PORT"],
    );
    fails(&["flow", &input], 2, &["--output"]);
    let rotated = ["flow", &input, "--collector", &udp, "--rotate-size", "1MB"];
    fails(&rotated, 2, &["--output"]);
}

/// The metrics at an address.
fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[cfg(unix)]
#[test]
fn metrics_count_packets_flows_and_files_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let output = path(&directory, "flows.csv");
    let flags = [
        "-o",
        &output,
        "--rotate-interval",
        "60",
        "--metrics",
        "127.0.0.1:0",
    ];
    let mut stream = Stream::start(&flags);
    // A packet that is not of IP goes first.
    let arp = [START_S, 0, 4, 4].map(u32::to_le_bytes).concat();
    stream.write(&[&header()[..], &arp, &[0; 4]].concat());
    stream.write(&capture(127)[24..]);
    let mut stderr = BufReader::new(stream.child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics on http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    let mut text = String::new();
    stream.wait_until(|| {
        text = scrape(&address);
        text.contains("marline_flow_packets_total 128\n")
    });
    for line in [
        "marline_flow_dropped_packets_total 0",
        "marline_flow_malformed_packets_total{reason=\"cut_header\"} 0",
        "marline_flow_flows_total{transport=\"udp\"} 127",
        "marline_flow_records_total{end_reason=\"idle\"} 116",
        "marline_flow_active_flows 11",
        "marline_flow_files_total 2",
        "marline_flow_last_rotation_timestamp_seconds 1700000100",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
    }
    let skipped = text.lines().filter(|line| {
        line.starts_with("marline_flow_skipped_packets_total{")
            || line.starts_with("marline_flow_malformed_packets_total{")
    });
    let skipped: u64 = skipped
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(skipped, 1, "{text}");
    for name in [
        "marline_flow_written_bytes_total",
        "process_resident_memory_bytes",
        "marline_build_info",
    ] {
        assert!(text.contains(&format!("\n{name}")), "{name} in {text}");
    }
    stream.signal("-TERM");
    assert!(stream.child.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn anonymous_records_need_a_key_that_others_cannot_read() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let [input, output, key] = ["day.pcap", "day.csv", "key"].map(|name| path(&directory, name));
    fs::write(&input, capture(3)).unwrap();
    fs::write(&key, [7; 32]).unwrap();
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    let flags = ["flow", &input, "-o", &output, "--anonymize", &key];
    mode(0o644);
    fails(&flags, 1, &["key: others can read", "chmod 600"]);
    assert!(!Path::new(&output).exists());
    mode(0o600);
    let run = run(&flags);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let text = fs::read_to_string(&output).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(
        !text.contains("10.11.12.13") && !text.contains("198.51.100.7"),
        "{text}"
    );
    fs::write(&key, "short").unwrap();
    fails(&flags, 1, &["32 bytes or 64 hexadecimal digits"]);
    let absent = path(&directory, "absent");
    fails(
        &["flow", &input, "-o", &output, "--anonymize", &absent],
        1,
        &["absent: "],
    );
}
