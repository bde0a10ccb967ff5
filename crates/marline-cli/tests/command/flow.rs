//! `marline flow`.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use super::*;

/// A capture of one datagram, in the format of libpcap, with raw IP.
fn capture() -> Vec<u8> {
    let mut file = Vec::new();
    for field in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101] {
        file.extend(field.to_le_bytes());
    }
    let packet = [
        &[
            0x45, 0, 0, 33, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ][..],
        &[0x13, 0x88, 0, 53, 0, 13, 0, 0],
        b"query",
    ]
    .concat();
    let len = packet.len() as u32;
    for field in [1_700_000_000, 5, len, len] {
        file.extend(field.to_le_bytes());
    }
    file.extend(packet);
    file
}

fn directory_with(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_capture_becomes_records_and_a_summary() {
    let directory = directory_with(&[("day.pcap", &capture())]);
    let (input, output) = (path(&directory, "day.pcap"), path(&directory, "day.csv"));
    let run = run(&["flow", &input, "-o", &output]);
    let printed = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{printed}");
    assert!(
        printed.contains("1 record of 1 flow (0 over TCP, 1 over UDP) from 1 packet"),
        "{printed}"
    );
    let table = fs::read_to_string(&output).unwrap();
    let row = table.lines().nth(1).unwrap();
    assert!(
        row.contains(",10.0.0.1,5000,10.0.0.2,53,udp,1,0,33,0,5,0,"),
        "{row}"
    );
    for output in [
        path(&directory, "again.csv"),
        path(&directory, "day.parquet"),
    ] {
        let run = super::run(&["flow", &input, "-o", &output, "--json"]);
        let document: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(document["records"], 1);
        assert_eq!(document["skipped"]["tunnel"], 0);
        assert!(Path::new(&output).exists());
    }
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let directory = directory_with(&[("day.pcap", &capture())]);
    let output = path(&directory, "day.csv");
    let mut command = marline(&["flow", "-", "-o", &output]);
    let input = fs::File::open(path(&directory, "day.pcap")).unwrap();
    let status = command.stdin(input).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    assert_eq!(fs::read_to_string(output).unwrap().lines().count(), 2);
}

#[cfg(unix)]
#[test]
fn an_interrupt_completes_the_file_while_it_waits_for_a_pipe() {
    let directory = directory_with(&[]);
    let output = path(&directory, "day.csv");
    let mut command = marline(&["flow", "-", "-o", &output]);
    let mut flow = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = flow.stdin.take().unwrap();
    input.write_all(&capture()).unwrap();
    // The file is there once it listens for signals.
    while fs::read_dir(directory.path()).unwrap().count() == 0 {
        assert_eq!(flow.try_wait().unwrap(), None, "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = flow.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.unwrap().success());
    let ended = flow.wait_with_output().unwrap();
    drop(input);
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{message}");
    assert!(fs::read_to_string(output).unwrap().starts_with("flow_id"));
}

#[test]
fn wrong_input_is_named_with_what_to_do_and_nothing_is_written() {
    let whole = capture();
    let mut usb = capture();
    usb[20..24].copy_from_slice(&189u32.to_le_bytes());
    let directory = directory_with(&[
        ("empty.pcap", b""),
        ("cut.pcap", &whole[..whole.len() - 1]),
        ("usb.pcap", &usb),
        ("day.pcap.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("text.pcap", b"no capture"),
        ("begun.pcap", &whole[..10]),
        ("day.pcap", &whole),
        ("keys.log", b"not a key log"),
    ]);
    let file = |name| path(&directory, name);
    let output = file("flows.csv");
    for (name, words) in [
        ("absent.pcap", &["absent.pcap: ", "check the path"][..]),
        ("empty.pcap", &["is empty", "tcpdump"]),
        ("cut.pcap", &["ends within the packet", "--truncated"]),
        ("usb.pcap", &["link type 189 (USB_LINUX)", "tcpdump -i any"]),
        ("day.pcap.zst", &["is compressed", "zstdcat"]),
        ("text.pcap", &["is neither pcap nor pcapng"]),
        ("begun.pcap", &["byte 0", "no whole header"]),
    ] {
        // Files that were read before do not matter.
        fails(
            &["flow", &file("day.pcap"), &file(name), "-o", &output],
            1,
            words,
        );
    }
    let (day, keys) = (file("day.pcap"), file("keys.log"));
    fails(
        &["flow", &day, "-o", &output, "--keylog", &keys],
        1,
        &["keys.log:1: is not a key log line", "SSLKEYLOGFILE"],
    );
    fails(
        &["flow", &day, "-o", &file("flows.txt")],
        2,
        &[".parquet, .csv or .ipfix"],
    );
    fails(
        &["flow", &day, "-o", &file("absent/flows.csv")],
        1,
        &["create its directory first"],
    );
    fails(&["flow", "-o", &output], 2, &["CAPTURE", "--help"]);
    let never = ["flow", &day, "-o", &output, "--idle-timeout", "0"];
    fails(&never, 2, &["--idle-timeout", "more than 0"]);
    fails(
        &["flow", &keys, "-o", &output],
        1,
        &["is neither pcap nor pcapng"],
    );
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        8,
        "nothing was written"
    );
    let cut = run(&["flow", &file("cut.pcap"), "-o", &output, "--truncated"]);
    assert!(cut.status.success());
    assert_eq!(fs::read_to_string(&output).unwrap().lines().count(), 1);
}

#[test]
fn a_capture_is_not_replaced_by_its_flows() {
    let directory = directory_with(&[("day.csv", &capture())]);
    let day = path(&directory, "day.csv");
    fails(&["flow", &day, "-o", &day], 2, &["would be replaced"]);
    assert_eq!(fs::read(&day).unwrap(), capture());
}

/// A datagram that shows when a capture has all packets before it.
struct Marker(UdpSocket);

impl Marker {
    const TEXT: &[u8] = b"the end of the capture";

    fn new() -> Self {
        Self(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Sends it to itself until the file `capture` has it.
    fn send_until_in(&self, capture: &str) {
        for _ in 0..300 {
            self.0
                .send_to(Self::TEXT, self.0.local_addr().unwrap())
                .unwrap();
            std::thread::sleep(Duration::from_millis(100));
            let content = fs::read(capture).unwrap();
            if content
                .windows(Self::TEXT.len())
                .any(|part| part == Self::TEXT)
            {
                return;
            }
        }
        panic!("tcpdump does not write its packets");
    }
}

/// The rows of a CSV file by the names of their columns.
fn rows(path: &str) -> Vec<std::collections::HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(','));
    let names: Vec<_> = lines.next().unwrap().collect();
    lines
        .map(|cells| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(cells.map(str::to_owned))
                .collect()
        })
        .collect()
}

/// Starts a program that captures, and waits for `word` on its standard error; the output if the
/// program ends before.
#[cfg(target_os = "linux")]
fn capturing(command: &mut Command, word: &str) -> Result<Child, String> {
    let command = command.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains(word) {
        if stderr.read_line(&mut text).unwrap() == 0 {
            child.wait().unwrap();
            return Err(text);
        }
    }
    // The program must not fail because its standard error is not read.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    Ok(child)
}

#[cfg(target_os = "linux")]
fn interrupt(mut child: Child) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(child.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn versions_of_real_connections_are_known_by_handshake_key_log_and_access_log() {
    let directory = directory_with(&[]);
    let file = |name| path(&directory, name);
    let site = file("site");
    fs::create_dir(&site).unwrap();
    fs::write(format!("{site}/a.bin"), vec![7; 100_000]).unwrap();
    let (live, pcap, log, keys) = (
        file("live.csv"),
        file("lo.pcap"),
        file("access.log"),
        file("keys.log"),
    );
    let server = Server::start(&["--access-log", &log, "--cleartext", &site]);
    let port = server.address.rsplit(':').next().unwrap();
    let flow = capturing(
        &mut marline(&["flow", "--interface", "lo", "-o", &live]),
        "capturing on lo",
    );
    let marker = Marker::new();
    let filter = format!("port {port} or port {}", marker.port());
    let mut tcpdump = Command::new("tcpdump");
    let tcpdump = capturing(
        tcpdump.args(["-i", "lo", "-U", "-w", &pcap, &filter]),
        "listening on",
    );
    let (flow, tcpdump) = match (flow, tcpdump) {
        (Ok(flow), Ok(tcpdump)) => (flow, tcpdump),
        (flow, tcpdump) => {
            for child in [flow, tcpdump] {
                match child {
                    Ok(child) => interrupt(child),
                    Err(why) => println!("skipped: {}", why.trim()),
                }
            }
            return;
        }
    };
    let url = format!("https://localhost:{port}/a.bin");
    let versions = [
        &["--http", "3"][..],
        &["--http", "3", "--quic-version", "v2"],
        &["--http", "2"],
        &["--http", "1.1"],
    ];
    let output = file("a.bin");
    for flags in versions {
        let get = ["get", &url, "--insecure", "-o", &output, "--keylog", &keys];
        let get = run(&[&get, flags].concat());
        let printed = String::from_utf8_lossy(&get.stderr);
        assert!(get.status.success(), "{printed}");
        assert!(
            printed.contains("whoever reads it can decrypt them"),
            "{printed}"
        );
    }
    let cleartext = format!("http://localhost:{port}/a.bin");
    assert!(
        run(&["get", &cleartext, "--http", "1.1c", "-o", &output])
            .status
            .success()
    );
    marker.send_until_in(&pcap);
    interrupt(flow);
    interrupt(tcpdump);

    let labels = |csv: &str| -> Vec<[String; 4]> {
        let rows = rows(csv)
            .into_iter()
            .filter(|row| row["server_port"] == port);
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| row["flow_id"].parse::<u64>().unwrap());
        for row in &rows {
            assert!(
                row["server_payload_bytes"].parse::<u64>().unwrap() > 100_000,
                "{row:?}"
            );
        }
        let column =
            |row: &std::collections::HashMap<String, String>, name: &str| row[name].clone();
        let names = ["transport", "sni", "http_version", "label_source"];
        rows.iter()
            .map(|row| names.map(|name| column(row, name)))
            .collect()
    };
    let quic = ["udp", "localhost", "h3", "handshake"];
    let (hidden, clear) = (["tcp", "localhost", "", ""], ["tcp", "", "h1", "handshake"]);
    assert_eq!(labels(&live), [quic, quic, hidden, hidden, clear]);

    let csv = file("flows.csv");
    assert!(run(&["flow", &pcap, "-o", &csv]).status.success());
    assert_eq!(labels(&csv), [quic, quic, hidden, hidden, clear]);
    assert!(
        run(&["flow", &pcap, "-o", &csv, "--keylog", &keys])
            .status
            .success()
    );
    let opened = |transport, version| [transport, "localhost", version, "keylog"];
    let h3 = opened("udp", "h3");
    assert_eq!(
        labels(&csv),
        [h3, h3, opened("tcp", "h2"), opened("tcp", "h1"), clear]
    );
    assert!(
        run(&["flow", &pcap, "-o", &csv, "--server-log", &log])
            .status
            .success()
    );
    let logged = |version| ["tcp", "localhost", version, "server_log"];
    assert_eq!(
        labels(&csv),
        [quic, quic, logged("h2"), logged("h1"), clear]
    );
}
