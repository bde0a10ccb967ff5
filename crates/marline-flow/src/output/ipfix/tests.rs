use std::fs;
use std::process::Command;

use super::*;
use crate::output::{OutputFile, Sink};
use crate::testing::*;

/// Connections over IPv4 and IPv6, in turn.
fn records(count: u16) -> Vec<Record> {
    let mut run = Run::new();
    for i in 0..count {
        let (client, server) = match i % 2 {
            0 => (format!("10.0.0.1:{}", 40_000 + i), "192.0.2.1:443"),
            _ => (format!("[2001:db8::1]:{}", 40_000 + i), "[2001:db8::2]:443"),
        };
        let mut connection = Connection::new(&client, server);
        connection.open(&mut run);
        connection.send(&mut run, true, &[1; 300], 1000);
        connection.send(&mut run, false, &[2; 1500], 1000);
        run.after(SECOND / 3);
        connection.close(&mut run);
    }
    let mut records = run.records();
    // Whatever shows it.
    for record in &mut records {
        record.http_version = Some("h2");
    }
    records
}

/// The messages of records, in a session of their own.
fn messages(max_len: usize, records: &[Record]) -> Vec<Vec<u8>> {
    let mut encoder = IpfixEncoder::new(max_len, None);
    let mut messages: Vec<_> = records.iter().filter_map(|r| encoder.add(r)).collect();
    messages.extend(encoder.flush());
    assert!(encoder.flush().is_none());
    let mut session = IpfixSession::default();
    messages
        .into_iter()
        .map(|m| session.next(m, None))
        .collect()
}

fn u16_of(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

#[test]
fn messages_have_their_lengths_and_count_records() {
    let records = records(100);
    for max_len in [512, 1232, 30_000] {
        let messages = messages(max_len, &records);
        let mut count = 0;
        for message in &messages {
            assert!(message.len() <= max_len);
            assert_eq!(u16_of(message, 0), 10);
            assert_eq!(u16_of(message, 2), message.len());
            let sequence = u32::from_be_bytes(message[8..12].try_into().unwrap());
            assert_eq!(sequence, count);
            let mut at = 16;
            while at < message.len() {
                let [template, length] = [u16_of(message, at), u16_of(message, at + 2)];
                let fixed: u16 = elements(template as u16).map(|e| e.length % VARIABLE).sum();
                // The name of the version, and its length.
                let record = usize::from(fixed) + 3;
                assert_eq!((length - SET_HEADER) % record, 0);
                count += ((length - SET_HEADER) / record) as u32;
                at += length;
            }
            assert_eq!(at, message.len());
        }
        assert_eq!(count, 100);
    }
}

#[test]
fn templates_fit_into_the_smallest_message() {
    let encoder = IpfixEncoder::new(0, None);
    let message = IpfixSession::default().next(encoder.templates(), Some(7));
    assert_eq!(message[4..8], 7u32.to_be_bytes());
    assert!(message.len() <= 512, "{}", message.len());
    assert_eq!(u16_of(&message, 2), message.len());
    assert_eq!(u16_of(&message, 16), usize::from(TEMPLATE_SET));
    assert_eq!(u16_of(&message, 18), message.len() - HEADER);
}

#[test]
fn a_message_belongs_to_the_session_that_sends_it() {
    let mut encoder = IpfixEncoder::new(1232, None);
    let mut next = || {
        encoder.add(&records(1)[0]);
        encoder.flush().unwrap()
    };
    let sequence = |message: Vec<u8>| message[11];
    let mut session = IpfixSession::default();
    assert_eq!(sequence(session.next(next(), None)), 0);
    assert_eq!(sequence(session.next(next(), None)), 1);
    // It was made while the session before was open.
    let late = next();
    session = IpfixSession::default();
    assert_eq!(sequence(session.next(late, None)), 0);
    assert_eq!(sequence(session.next(next(), None)), 1);
}

#[test]
fn times_are_those_of_ntp() {
    // RFC 868: the difference of 1900 and 1970; and half a second.
    assert_eq!(ntp(0) >> 32, 2_208_988_800);
    assert_eq!(ntp(1_500_000_000), (2_208_988_801 << 32) + (1 << 31));
    for ns in [1, 333_333_333, 999_999_999] {
        assert_eq!(((ntp(ns) & 0xffff_ffff) * 1_000_000_000) >> 32, ns);
    }
}

#[test]
fn numbers_that_do_not_fit_are_the_largest() {
    let mut out = Vec::new();
    write_number(&mut out, 1, 300);
    write_number(&mut out, 4, u64::MAX);
    write_number(&mut out, 8, 1);
    assert_eq!(out, [255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn tshark_reads_the_values_of_a_file() {
    let records = records(4);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.ipfix");
    let mut file = OutputFile::create(&path, None).unwrap();
    for record in &records {
        file.write(record).unwrap();
    }
    let size = file.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
    let fields = "cflow.srcaddr cflow.srcaddrv6 cflow.dstaddr cflow.dstaddrv6 cflow.srcport cflow.dstport cflow.protocol \
        cflow.packets cflow.octets cflow.flow_end_reason cflow.biflow_direction cflow.appl_name";
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-n", "-T", "fields"]);
    tshark.args(["-E", "aggregator=;", "-E", "separator=|"]);
    for field in fields.split_whitespace() {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let data = text.lines().nth(1).unwrap_or_else(|| panic!("{text}"));
    let columns: Vec<Vec<_>> = data
        .split('|')
        .map(|cell| cell.split(';').collect())
        .collect();
    let texts = |value: fn(&Record) -> String| records.iter().map(value).collect::<Vec<_>>();
    let of = |family: fn(&IpAddr) -> bool, end: fn(&Record) -> IpAddr| {
        let addresses = records.iter().map(end).filter(family);
        addresses.map(|a| a.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(columns[0], of(IpAddr::is_ipv4, |r| r.client.ip));
    assert_eq!(columns[1], of(IpAddr::is_ipv6, |r| r.client.ip));
    assert_eq!(columns[2], of(IpAddr::is_ipv4, |r| r.server.ip));
    assert_eq!(columns[3], of(IpAddr::is_ipv6, |r| r.server.ip));
    assert_eq!(columns[4], texts(|r| r.client.port.to_string()));
    assert_eq!(columns[5], texts(|r| r.server.port.to_string()));
    assert_eq!(columns[6], ["6"; 4]);
    let both = |value: fn(&Side) -> u64| {
        let sides = records.iter().flat_map(|r| [r.client, r.server]);
        sides
            .map(|side| value(&side).to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(columns[7], both(|side| side.packets));
    assert_eq!(columns[8], both(|side| side.bytes));
    assert_eq!(columns[9], ["3"; 4]);
    assert_eq!(columns[10], ["1"; 4]);
    assert_eq!(columns[11], ["h2"; 4]);
}
