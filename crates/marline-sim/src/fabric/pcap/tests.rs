use std::net::IpAddr;

use marline_link::{DropReason, Packet, Time};

use super::*;
use crate::fabric::tests::{Letter, Wire, wires};
use crate::fabric::{MediumId, Node, Plan};

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// Type and body of each block, lengths checked.
fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let [kind, len] = words(&file[..8])[..] else {
            unreachable!()
        };
        let (block, rest) = file.split_at(len as usize);
        let (body, trailer) = block[8..].split_at(block.len() - 12);
        assert_eq!(words(trailer), [len]);
        blocks.push((kind, body.to_vec()));
        file = rest;
    }
    blocks
}

#[test]
fn blocks_follow_the_format() {
    let mut plan = Plan::new();
    let nodes = [plan.host("a"), plan.host("b")];
    plan.join("radio", wires(Wire::default(), Wire::default()), &nodes)
        .unwrap();
    let fabric = plan.build().unwrap();
    let mut capture = Capture::new(Vec::new(), &fabric).unwrap();
    let ip: IpAddr = [10, 0, 0, 1].into();
    let packet = Packet::new(5, Letter::new(ip, ip, 0));
    let mut passage = PacketEvent {
        at: Time::from_nanos((3 << 32) + 7),
        medium: Some(MediumId(0)),
        from: Node(0),
        to: Some(Node(1)),
        packet: &packet,
        verdict: Verdict::Entered,
    };
    for verdict in [
        Verdict::Entered,
        Verdict::Left,
        Verdict::Dropped(DropReason::QueueFull),
    ] {
        passage.verdict = verdict;
        capture.passage(&passage, &[b"abc", b"de"]).unwrap();
    }
    passage.medium = None;
    capture.passage(&passage, &[b"f"]).unwrap();
    let blocks = blocks(&capture.into_inner());
    let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 6, 6]);
    assert_eq!(blocks[1].1[..2], [101, 0]);
    assert_eq!(&blocks[1].1[12..17], b"radio");
    let (header, rest) = blocks[3].1.split_at(20);
    assert_eq!(words(header), [0, 3, 7, 5, 5]);
    assert_eq!(rest, b"abcde\0\0\0");
    let comment = &blocks[4].1[28..];
    assert_eq!(comment[..4], [1, 0, 19, 0]);
    assert_eq!(&comment[4..24], b"dropped: queue full\0");
    assert_eq!(comment[24..], [0; 4]);
    assert_eq!(words(&blocks[5].1[..4]), [1]);
}
