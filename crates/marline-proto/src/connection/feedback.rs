//! Passes recovery's reports about a path's packets to the modules that wrote the frames, to the path's
//! 4-tuple, to the coordinators of its controller, and to the observer.

use marline_wire::PathId;
use marline_wire::frame::EcnCounts;

use super::frame_owners::FrameOwners;
use super::tail_copies::TailCopies;
use crate::congestion::Controller;
use crate::coordination::bundle::LocalMember;
use crate::coordination::careful_resume::CarefulResumeDriver;
use crate::level::SpaceId;
use crate::observe::Observer;
use crate::observe::events::{self, LossTrigger, PacketLost, PacketsAcked, SpuriousLoss};
use crate::paths::{EcnLedger, Tuples};
use crate::recovery::loss::Cause;
use crate::recovery::{self, CongestionEvent, LostPacket, Recovery, ReportedMarks, SpuriouslyLost};
use crate::spaces::{Sent, SentPacket};
use crate::time::Instant;
use crate::token::Token;

/// A space and the path that sends its packets, borrowed separately.
pub(super) struct SpaceAccess<'a> {
    pub(super) recovery: &'a mut Recovery,
    pub(super) sent: &'a mut Sent<Token>,
    pub(super) feedback: Feedback<'a>,
}

/// The modules to which recovery reports acknowledged and lost packets of a path.
pub(super) struct Feedback<'a> {
    pub(super) path: PathId,
    pub(super) tuples: &'a mut Tuples,
    pub(super) ledger: &'a mut EcnLedger,
    pub(super) member: &'a mut LocalMember,
    pub(super) careful_resume: Option<&'a mut CarefulResumeDriver>,
    pub(super) owners: FrameOwners<'a>,
    /// Set if tail duplication is enabled.
    pub(super) tail_copies: Option<&'a mut TailCopies>,
    pub(super) observer: Option<&'a mut (dyn Observer + 'static)>,
    /// Packets that an ACK frame newly acknowledged; stays empty without an observer.
    pub(super) newly_acked: Vec<u64>,
    /// Send time from which on an acknowledged packet shows that the path works.
    pub(super) proven_from: Option<Instant>,
}

impl recovery::Context<Token> for Feedback<'_> {
    fn active_tuple(&self) -> u32 {
        self.tuples.active.generation
    }

    fn datagram_size(&self) -> u16 {
        self.tuples.active.mtu.current()
    }

    fn on_newly_acked(&mut self, number: u64) {
        if self.observer.is_some() {
            self.newly_acked.push(number);
        }
    }

    fn on_ack_processed(&mut self, now: Instant, space: SpaceId) {
        if let Some(observer) = &mut self.observer {
            let event = PacketsAcked {
                path: self.path,
                space: space.number_space(),
                numbers: &self.newly_acked,
            };
            observer.on_event(now, &events::Event::PacketsAcked(event));
            self.newly_acked.clear();
        }
    }

    fn on_packet_acked(&mut self, number: u64, packet: &SentPacket) -> Option<u16> {
        let mtu = &mut self.tuples.active.mtu;
        if packet.mtu_probe {
            return mtu.on_probe_acked(number);
        }
        mtu.on_acked(number, packet.size);
        None
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket<'_>) -> bool {
        let packet = lost.packet;
        if let Some(observer) = &mut self.observer {
            let event = PacketLost {
                path: self.path,
                kind: lost.space.packet_kind(),
                number: lost.number,
                size: packet.size.into(),
                is_mtu_probe: packet.mtu_probe,
                trigger: match lost.cause {
                    Cause::Packet => LossTrigger::ReorderingThreshold,
                    Cause::Time => LossTrigger::TimeThreshold,
                },
            };
            observer.on_event(now, &events::Event::PacketLost(event));
        }
        let active = &mut self.tuples.active;
        if packet.tuple != active.generation {
            return false;
        }
        if packet.mtu_probe {
            active.mtu.on_probe_lost(lost.number);
            return false;
        }
        if packet.ecn {
            active.ecn.on_lost();
        }
        active
            .mtu
            .on_lost(lost.number, packet.size, lost.largest_sent)
    }

    fn on_spuriously_lost(&mut self, now: Instant, lost: &SpuriouslyLost) {
        if let Some(observer) = &mut self.observer {
            let event = SpuriousLoss {
                path: self.path,
                kind: lost.space.packet_kind(),
                number: lost.number,
                reordering: lost.reordering,
                elapsed: lost.elapsed,
            };
            observer.on_event(now, &events::Event::SpuriousLoss(event));
        }
    }

    fn on_ecn_counts(&mut self, marked: u64, counts: Option<EcnCounts>) -> ReportedMarks {
        let ecn = &mut self.tuples.active.ecn;
        // Invalid counts end the use of ECN on the path, and are not a congestion signal.
        ReportedMarks {
            new_ce: ecn.on_ack(self.ledger, marked, counts).unwrap_or(0),
            l4s: ecn.is_l4s(),
        }
    }

    fn on_token_acked(&mut self, token: &Token) {
        self.owners.on_acked(token);
    }

    fn on_token_lost(&mut self, token: &Token) {
        if let Some(tail_copies) = &mut self.tail_copies {
            tail_copies.on_lost(token);
        }
        self.owners.on_lost(token);
    }

    fn on_token_due(&mut self, token: &Token) {
        self.owners.on_lost(token);
    }

    fn on_congestion(
        &mut self,
        now: Instant,
        event: &CongestionEvent,
        controller: &mut dyn Controller,
    ) {
        match event {
            CongestionEvent::Ce(reaction) | CongestionEvent::Lost(_, reaction) => {
                if let Some(reaction) = reaction {
                    self.member.on_reaction(true, reaction);
                }
            }
            CongestionEvent::Acked(_, _, reaction) => {
                if let Some(reaction) = reaction {
                    self.member.on_reaction(false, reaction);
                }
            }
        }
        let Some(careful_resume) = &mut self.careful_resume else {
            return;
        };
        match event {
            CongestionEvent::Ce(_) => careful_resume.drive(controller, |engine| engine.on_ce()),
            CongestionEvent::Lost(sample, _) => {
                careful_resume.drive(controller, |engine| engine.on_loss(sample));
            }
            CongestionEvent::Acked(SpaceId::Data, sample, _) => {
                careful_resume.drive(controller, |engine| engine.on_ack(now, sample));
            }
            CongestionEvent::Acked(..) => {}
        }
    }

    fn proves_path(&self, sent_at: Instant) -> bool {
        self.proven_from.is_none_or(|since| sent_at >= since)
    }
}
