//! A peer that sends arbitrary frames: no panic, and no more memory than the limits permit.

use super::*;
use frame::Frame;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0u64..20, 4 => 0u64..4000, 1 => 0u64..1 << 60]
}

fn frame(payload: &'static [u8]) -> impl Strategy<Value = Frame<'static>> {
    let any_dir = prop_oneof![Just(Dir::Bi), Just(Dir::Uni)];
    (
        0u8..12,
        value(),
        value(),
        0usize..1200,
        any::<bool>(),
        any_dir,
    )
        .prop_map(move |(kind, id, value, len, fin, dir)| {
            let (id, error_code) = (StreamId::from(id), 9);
            match kind {
                0 => Frame::ResetStream(frame::ResetStream {
                    id,
                    error_code,
                    final_size: value,
                }),
                1 => Frame::StopSending(frame::StopSending { id, error_code }),
                2 => Frame::MaxData(frame::MaxData { maximum: value }),
                3 => Frame::MaxStreamData(frame::MaxStreamData { id, maximum: value }),
                4 => Frame::MaxStreams(frame::MaxStreams {
                    dir,
                    maximum: value,
                }),
                5 => Frame::StreamDataBlocked(frame::StreamDataBlocked { id, limit: value }),
                _ => Frame::Stream(data(id, value, &payload[..len], fin)),
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn arbitrary_frames_cause_no_panic_and_stay_within_limits(
        frames in prop::collection::vec((frame(&[7; 1200]), any::<bool>()), 0..100),
    ) {
        let mut server = streams(Side::Server);
        let own = server.open(Dir::Bi).expect("within the limit");
        server.write(own, &[1; 800]).expect("room");
        for (frame, act) in frames {
            let before = server.stats();
            let result = match &frame {
                Frame::ResetStream(frame) => server.on_reset_stream(frame),
                Frame::StopSending(frame) => server.on_stop_sending(frame),
                Frame::MaxData(frame) => server.on_max_data(frame),
                Frame::MaxStreamData(frame) => server.on_max_stream_data(frame),
                Frame::MaxStreams(frame) => server.on_max_streams(frame),
                Frame::StreamDataBlocked(frame) => server.on_stream_data_blocked(frame),
                Frame::Stream(frame) => server.on_stream(frame),
                _ => Ok(()),
            };
            if result.is_err() {
                prop_assert_eq!(server.stats().bytes_received, before.bytes_received);
            }
            if act {
                for event in events(&mut server) {
                    if let StreamEvent::Readable(id) = event {
                        while let Ok(Some(_)) = server.read(id, 100, || NOW) {}
                    }
                }
                while let Some(ReadyChange { id, ready }) = server.poll_ready_change() {
                    if ready.is_some() {
                        server.take_segment(id, 300);
                    }
                }
                control_frames(&mut server);
            }
            let parts = server.table.values().filter_map(|stream| stream.recv.as_ref());
            let buffered: usize = parts.map(RecvPart::buffered).sum();
            prop_assert!(buffered as u64 <= server.window.size());
            prop_assert!(server.received <= server.window.advertised());
            prop_assert!(server.table.len() <= 8);
            prop_assert!(server.credit.sent <= server.credit.max_data);
        }
    }
}
