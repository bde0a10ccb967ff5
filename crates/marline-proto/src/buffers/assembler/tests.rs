use super::*;
use proptest::prelude::*;

fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9) >> 7) as u8
}

fn bytes(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(byte).collect()
}

fn read_all(assembler: &mut Assembler) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(bytes) = assembler.read(usize::MAX) {
        out.extend_from_slice(&bytes);
    }
    out
}

#[test]
fn bytes_in_order_are_read_in_one_piece() {
    let mut assembler = Assembler::new();
    for i in 0..10 {
        assembler.insert(i * 20, &bytes(i * 20..i * 20 + 20));
    }
    assert_eq!(assembler.read(1000).as_deref(), Some(&bytes(0..200)[..]));
    assert_eq!(assembler.read(1000), None);
    assert_eq!(assembler.bytes_read(), 200);
}

#[test]
fn a_chunk_is_reused_after_it_was_read() {
    let mut assembler = Assembler::new();
    assembler.insert(0, &bytes(0..600));
    let first = assembler.read(1000).map(|b| b.as_ptr());
    assembler.insert(600, &bytes(600..1200));
    assert_eq!(assembler.read(1000).map(|b| b.as_ptr()), first);
}

#[test]
fn a_stream_in_one_frame_takes_as_much_memory_as_it_has_bytes() {
    let mut assembler = Assembler::new();
    assembler.set_total(100);
    assembler.insert(0, &bytes(0..100));
    assert_eq!(assembler.tail.capacity(), 100);
    assert_eq!(assembler.read(40), Some(bytes(0..40).into()));
    assert_eq!(assembler.read(1000), Some(bytes(40..100).into()));
    assert_eq!(assembler.tail.capacity(), 0);
}

#[test]
fn the_last_bytes_get_a_chunk_of_their_size() {
    let mut assembler = Assembler::new();
    assembler.insert(0, &bytes(0..FIRST_CHUNK as u64));
    let total = FIRST_CHUNK as u64 + 10;
    assembler.set_total(total);
    assembler.insert(FIRST_CHUNK as u64, &bytes(FIRST_CHUNK as u64..total));
    assert_eq!(assembler.tail.capacity(), 10);
    assert_eq!(read_all(&mut assembler), bytes(0..total));
}

#[test]
fn pages_are_read_without_copying() {
    let mut assembler = Assembler::new();
    let page = PAGE_SIZE as u64;
    assembler.insert(page, &bytes(page..2 * page));
    assert!(!assembler.is_readable());
    let held = assembler.pages[&1].address();
    assembler.insert(0, &bytes(0..page));
    assert_eq!(assembler.read(PAGE_SIZE), Some(bytes(0..page).into()));
    let second = assembler.read(PAGE_SIZE).expect("the gap is closed");
    assert_eq!(second.as_ptr(), held);
    assert_eq!(second, bytes(page..2 * page));
}

/// Every second byte: the worst case that a peer can cause within its window.
#[test]
fn memory_stays_near_the_span_of_received_offsets() {
    let mut assembler = Assembler::new();
    let span = 1 << 20;
    for offset in (1..span).step_by(2) {
        assembler.insert(offset, &[byte(offset)]);
    }
    assert_eq!(assembler.pages.len(), span as usize / PAGE_SIZE);
    assert_eq!(assembler.buffered(), span as usize / 2);
    for offset in (0..span).step_by(2) {
        assembler.insert(offset, &[byte(offset)]);
    }
    assert!(assembler.pages.is_empty());
    assert!(assembler.ready.len() <= 2 * span as usize / LARGEST_CHUNK);
    assert_eq!(read_all(&mut assembler), bytes(0..span));
}

#[test]
fn discarding_keeps_the_offsets() {
    let mut assembler = Assembler::new();
    assembler.insert(0, b"abc");
    assembler.insert(9000, b"xyz");
    assembler.discard();
    assert_eq!((assembler.buffered(), assembler.end()), (0, 9003));
    assert_eq!(assembler.read(9), None);
}

/// Frames of up to a few pages anywhere in `0..SPAN`, and reads in between.
const SPAN: u64 = 20_000;

proptest! {
    #[test]
    fn an_assembler_behaves_like_a_plain_vector(
        frames in prop::collection::vec(
            (0..SPAN, prop_oneof![3 => 0u64..1500, 1 => 0u64..9000], 0usize..6000),
            0..60,
        ),
    ) {
        let mut assembler = Assembler::new();
        let mut arrived = vec![false; SPAN as usize];
        let mut read = 0;
        let sweep = (0..SPAN).step_by(1000).map(|start| (start, 1000, 1500));
        for (start, len, max) in frames.into_iter().chain(sweep) {
            let end = (start + len).min(SPAN);
            assembler.insert(start, &bytes(start..end));
            arrived[start as usize..end as usize].fill(true);

            let prefix = arrived.iter().take_while(|&&a| a).count() as u64;
            prop_assert_eq!(assembler.received(), prefix);
            prop_assert_eq!(assembler.is_readable(), prefix > read);
            let fresh = arrived[read as usize..].iter().filter(|&&a| a).count();
            prop_assert_eq!(assembler.buffered(), fresh);
            prop_assert!(assembler.pages.len() <= SPAN as usize / PAGE_SIZE + 1);

            if let Some(piece) = assembler.read(max) {
                prop_assert!(!piece.is_empty() && piece.len() <= max);
                let end = read + piece.len() as u64;
                prop_assert!(end <= prefix);
                prop_assert_eq!(&piece[..], &bytes(read..end)[..]);
                read = end;
            } else {
                prop_assert!(max == 0 || read == prefix);
            }
            prop_assert_eq!(assembler.bytes_read(), read);
        }
        prop_assert_eq!(read_all(&mut assembler), bytes(read..SPAN));
        prop_assert!(assembler.pages.is_empty());
        prop_assert_eq!(assembler.end(), SPAN);
    }

    #[test]
    fn one_byte_frames_in_any_order_are_reassembled(
        order in Just((0u64..3000).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut assembler = Assembler::new();
        for offset in order {
            assembler.insert(offset, &[byte(offset)]);
        }
        prop_assert_eq!(read_all(&mut assembler), bytes(0..3000));
    }
}
