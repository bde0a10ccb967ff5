use super::*;
use proptest::prelude::*;

/// The first part of `range` that is in flight once.
fn once(buffer: &SendBuffer, range: Range<u64>) -> Option<Range<u64>> {
    buffer.in_flight_once(range).next()
}

fn contents(buffer: &SendBuffer, range: Range<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    buffer.read_into(range, &mut out);
    out
}

#[test]
fn lost_bytes_are_sent_before_unsent_ones() {
    let mut buffer = SendBuffer::new();
    buffer.write_slice(b"hello, world");
    assert_eq!(buffer.take(5), Some(0..5));
    assert_eq!(buffer.take(2), Some(5..7));
    buffer.on_lost(0..5);
    assert_eq!(buffer.take(3), Some(0..3));
    assert_eq!(buffer.take(30), Some(3..5));
    assert_eq!(buffer.take(30), Some(7..12));
    assert_eq!(buffer.take(30), None);
    assert_eq!(contents(&buffer, 3..9), b"lo, wo");
}

#[test]
fn acknowledged_bytes_are_not_due_again() {
    let mut buffer = SendBuffer::new();
    buffer.write(Bytes::from(vec![7; 1000]));
    buffer.take(1000);
    buffer.on_acked(100..200);
    buffer.on_lost(0..300);
    assert_eq!(buffer.take(1000), Some(0..100));
    assert_eq!(buffer.take(1000), Some(200..300));
    buffer.on_lost(0..300);
    buffer.on_acked(0..300);
    assert_eq!(buffer.take(1000), None);
    assert_eq!(buffer.unacked(), 700);
    buffer.on_acked(300..1000);
    assert!(buffer.is_fully_acked());
}

#[test]
fn bytes_sent_twice_are_due_again_after_both_copies_are_lost() {
    let mut buffer = SendBuffer::new();
    buffer.write(Bytes::from(vec![7; 1000]));
    buffer.take(600);
    buffer.on_acked(100..200);
    assert_eq!(once(&buffer, 100..700), Some(200..600));
    assert_eq!(once(&buffer, 600..700), None, "it was never sent");
    buffer.on_copied(200..400);
    assert_eq!(once(&buffer, 200..500), Some(400..500));
    buffer.on_lost(200..500);
    assert_eq!(buffer.take_lost(1000), Some(400..500));
    buffer.on_lost(200..400);
    assert_eq!(buffer.take_lost(1000), Some(200..400));

    buffer.on_copied(200..400);
    buffer.on_acked(200..400);
    buffer.on_lost(200..400);
    assert!(!buffer.has_lost());
}

#[test]
fn bytes_behind_a_piece_that_was_copied_or_acknowledged_are_in_flight_once() {
    let mut buffer = SendBuffer::new();
    buffer.write(Bytes::from(vec![7; 1000]));
    buffer.take(600);
    buffer.on_acked(200..300);
    buffer.on_copied(0..200);
    assert_eq!(once(&buffer, 0..600), Some(300..600));
    buffer.on_copied(350..400);
    assert!(buffer.in_flight_once(0..600).eq([300..350, 400..600]));
    buffer.on_copied(300..350);
    assert_eq!(once(&buffer, 0..600), Some(400..600));
}

#[test]
fn large_writes_are_not_copied() {
    let bytes = Bytes::from(vec![1; 4096]);
    let mut buffer = SendBuffer::new();
    buffer.write(bytes.clone());
    assert_eq!(buffer.chunks[0].bytes.as_ptr(), bytes.as_ptr());
}

#[test]
fn reads_skip_bytes_that_were_freed() {
    let mut buffer = SendBuffer::new();
    buffer.write_slice(b"abcdef");
    buffer.take(6);
    buffer.on_acked(0..4);
    assert_eq!(buffer.held(2..6), 4..6);
    assert_eq!(contents(&buffer, 2..6), b"ef");
    assert_eq!(contents(&buffer, 0..3), b"");
    buffer.discard();
    assert_eq!(contents(&buffer, 2..6), b"");
}

#[derive(Clone, Debug)]
enum Op {
    Write(usize, bool),
    Take(usize),
    Ack(usize),
    Lose(usize),
    RetransmitAll,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0usize..700, any::<bool>()).prop_map(|(n, copy)| Op::Write(n, copy)),
        8 => (0usize..300).prop_map(Op::Take),
        5 => any::<usize>().prop_map(Op::Ack),
        3 => any::<usize>().prop_map(Op::Lose),
        1 => Just(Op::RetransmitAll),
    ]
}

proptest! {
    /// The model is a plain copy of all bytes: the data read equals the data written, all due data is sent, and
    /// finally all data is acknowledged.
    #[test]
    fn a_send_buffer_behaves_like_a_plain_vector(ops in prop::collection::vec(op(), 0..120)) {
        let mut buffer = SendBuffer::new();
        let mut written: Vec<u8> = Vec::new();
        let mut acked: Vec<bool> = Vec::new();
        let mut flying: Vec<Range<u64>> = Vec::new();
        for op in ops {
            match op {
                Op::Write(n, copy) => {
                    let data: Vec<u8> = (0..n).map(|i| (written.len() + i) as u8).collect();
                    written.extend_from_slice(&data);
                    acked.resize(written.len(), false);
                    if copy { buffer.write_slice(&data) } else { buffer.write(data.into()) }
                }
                Op::Take(max) => if let Some(range) = buffer.take(max) {
                    prop_assert!(range.end - range.start <= max as u64);
                    let held = buffer.held(range.clone());
                    let expected = &written[held.start as usize..held.end as usize];
                    prop_assert_eq!(contents(&buffer, range.clone()), expected);
                    flying.push(range);
                },
                Op::Ack(i) if !flying.is_empty() => {
                    let range = flying.swap_remove(i % flying.len());
                    acked[range.start as usize..range.end as usize].fill(true);
                    buffer.on_acked(range);
                }
                Op::Lose(i) if !flying.is_empty() => {
                    let range = flying.swap_remove(i % flying.len());
                    buffer.on_lost(range);
                }
                Op::RetransmitAll => buffer.retransmit_all(),
                Op::Ack(_) | Op::Lose(_) => {}
            }
            let base = acked.iter().take_while(|&&a| a).count();
            prop_assert_eq!(buffer.unacked() as usize, written.len() - base);
            prop_assert_eq!(buffer.offset_end() as usize, written.len());
        }
        flying.drain(..).for_each(|range| buffer.on_lost(range));
        while let Some(range) = buffer.take(100) {
            buffer.on_acked(range);
        }
        prop_assert!(buffer.is_fully_acked());
        prop_assert!(buffer.chunks.is_empty());
    }
}
