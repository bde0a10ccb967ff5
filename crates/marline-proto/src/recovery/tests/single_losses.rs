//! Reports of each lost packet to the controller.

use std::sync::{Arc, Mutex};

use super::*;
use crate::congestion::{Coordinated, Phase};
use crate::samples::{AckSample, CeSample, LossSample, PacketLoss, RttView, SentSample};

/// The calls that report losses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Packet(PacketLoss),
    All { packets: u64 },
}

/// A controller that records them.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Call>>>);

impl Recorder {
    fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap().clone()
    }
}

impl Controller for Recorder {
    fn on_sent(&mut self, _: Instant, _: &SentSample) {}

    fn on_ack(&mut self, _: Instant, _: &AckSample) {}

    fn on_packet_lost(&mut self, _: Instant, lost: &PacketLoss) {
        self.0.lock().unwrap().push(Call::Packet(*lost));
    }

    fn on_loss(&mut self, _: Instant, loss: &LossSample) {
        let packets = loss.packets;
        self.0.lock().unwrap().push(Call::All { packets });
    }

    fn on_ce(&mut self, _: Instant, _: &CeSample) {}

    fn on_mtu(&mut self, _: u64) {}

    fn window(&self) -> u64 {
        1_000_000
    }

    fn pacing_rate(&self, _: &RttView) -> u64 {
        u64::MAX
    }

    fn phase(&self) -> Phase {
        Phase::SlowStart
    }

    fn in_slow_start(&self) -> bool {
        true
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn name(&self) -> &'static str {
        "recorder"
    }
}

impl Coordinated for Recorder {
    fn set_window(&mut self, _: u64) {}

    fn enter_slow_start(&mut self) {}

    fn exit_slow_start(&mut self) {}
}

fn lost(packet_number: u64, lost: u64) -> Call {
    Call::Packet(PacketLoss {
        packet_number,
        bytes: 1_200,
        sent_at: at(100),
        in_flight_at_send: (packet_number + 1) * 1_200,
        lost,
        delivered_total: 1_200,
        app_limited: false,
    })
}

#[test]
fn each_lost_packet_is_reported_before_all_of_them() {
    let recorder = Recorder::default();
    let mut bench = Bench::with_controller(Box::new(recorder.clone()), None);
    bench.send_many(at(100), 5);
    bench.ack(at(150), 4..=4);
    let all = Call::All { packets: 2 };
    assert_eq!(recorder.calls(), [lost(0, 1_200), lost(1, 2_400), all]);
}

/// RFC 9000, section 14.4.
#[test]
fn lost_probes_for_larger_datagrams_are_not_reported() {
    let recorder = Recorder::default();
    let mut bench = Bench::with_controller(Box::new(recorder.clone()), None);
    let probe = OutgoingPacket {
        mtu_probe: true,
        ..outgoing(SpaceId::Data)
    };
    bench.send_as(at(100), probe);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 4..=4);
    let all = Call::All { packets: 1 };
    assert_eq!(recorder.calls(), [lost(1, 1_200), all]);
}
