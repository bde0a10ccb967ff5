//! Packets of all members as those of one sender, and the part of each.

use std::collections::VecDeque;
use std::time::Duration;

use super::Joins;
use crate::congestion::DeliveryRate;
use crate::samples::{AckSample, LossSample, PacketLoss, RateSample, RateSnapshot, SentSample};
use crate::time::Instant;

/// Names a member; no other ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberId(u64);

/// The most packets of a member that are remembered; rates are not measured with older ones.
const MAX_PACKETS: usize = 1 << 16;

/// The smallest part of a window, in datagrams.
const MIN_PACKETS: u64 = 2;

/// Round-trip times without an answer after which a member holds nothing of the window.
const SILENT_RTTS: u32 = 4;

/// A member that took less than an equal part divided by this took little.
const LITTLE: u64 = 4;

/// All members together.
#[derive(Debug, Default)]
pub(super) struct Sending {
    members: Vec<Member>,
    /// Members that ever joined.
    joined: u64,
    /// Packets are numbered in the order in which the members sent them, so that those that were lost in a row are
    /// consecutive; `None` before the first.
    latest_number: Option<u64>,
    rate: DeliveryRate,
    /// Since when nothing is in flight.
    idle_since: Option<Instant>,
    /// Sent by all recently, in bytes: halved every round-trip time.
    recent: u64,
    halved_at: Option<Instant>,
    /// When a member last sent, or was answered.
    latest: Instant,
    /// The smoothed round-trip time of the member that was answered last.
    rtt: Duration,
}

#[derive(Debug)]
struct Member {
    id: MemberId,
    in_flight: u64,
    datagram: u64,
    /// Whether only a lack of data keeps it from sending more.
    app_limited: bool,
    acked_at: Option<Instant>,
    /// Since when what it sent was not answered.
    unanswered_since: Option<Instant>,
    /// Its part of `recent`.
    recent: u64,
    /// Whether packets that it sent before it joined measure the rate of all: it was alone then.
    is_first: bool,
    packets: VecDeque<SentPacket>,
}

/// A packet of a member that may be in flight.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    at: Instant,
    /// Its packet number, and its number among the packets of all.
    own_number: u64,
    number: u64,
    snapshot: RateSnapshot,
    /// The member's part of what all sent lately: above 0, at most 1.
    share: f64,
    /// Whether another member had more to send than it was let.
    others_wait: bool,
}

impl SentPacket {
    /// The rate of all members that the acknowledgment of this packet `measured`, but no more than the member's `own`
    /// makes likely: acknowledgments of the others come in between at irregular intervals, of which the shortest would
    /// count as the fastest.
    fn bounded(&self, measured: RateSample, own: &RateSample) -> RateSample {
        let likely = own.bytes_per_second() as f64 / self.share;
        let interval = Duration::try_from_secs_f64(measured.delivered as f64 / likely.max(1.0));
        RateSample {
            interval: measured.interval.max(interval.unwrap_or_default()),
            app_limited: own.app_limited && !self.others_wait,
            ..measured
        }
    }
}

impl Member {
    /// The newest packet that was sent by `at`.
    fn packet(&self, at: Instant) -> Option<&SentPacket> {
        let after = self.packets.partition_point(|packet| packet.at <= at);
        self.packets.get(after.checked_sub(1)?)
    }

    /// The packet that is `lost`, if it is remembered.
    fn sent_packet(&self, lost: &PacketLoss) -> Option<&SentPacket> {
        let from = self
            .packets
            .partition_point(|packet| packet.at < lost.sent_at);
        self.packets
            .range(from..)
            .take_while(|packet| packet.at == lost.sent_at)
            .find(|packet| packet.own_number == lost.packet_number)
    }

    /// All members had `delivered` bytes delivered at `now`: of acknowledgments that arrive together, those of the others may
    /// be processed after this member has answered its own.
    fn recount_delivered(&mut self, now: Instant, delivered: u64) {
        let packets = self.packets.iter_mut().rev();
        for packet in packets.take_while(|packet| packet.at == now) {
            packet.snapshot.delivered = delivered;
            packet.snapshot.delivered_at = now;
        }
    }

    /// Whether it takes all that it is let.
    fn is_greedy(&self) -> bool {
        self.in_flight > 0 && !self.app_limited
    }

    /// Whether it has not been answered since `before`.
    fn is_silent(&self, before: Instant) -> bool {
        self.unanswered_since.is_some_and(|since| since < before)
    }
}

impl Sending {
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn join(&mut self, joins: &Joins, is_first: bool) -> MemberId {
        if is_first {
            self.rate = joins.rate;
        }
        self.rtt = joins.rtt;
        let id = MemberId(self.joined);
        self.joined += 1;
        self.members.push(Member {
            id,
            in_flight: joins.in_flight,
            datagram: joins.datagram,
            app_limited: true,
            acked_at: None,
            unanswered_since: None,
            recent: 0,
            is_first,
            packets: VecDeque::new(),
        });
        id
    }

    pub(super) fn leave(&mut self, id: MemberId) {
        if let Some(place) = self.members.iter().position(|member| member.id == id) {
            let left = self.members.swap_remove(place);
            self.recent = self.recent.saturating_sub(left.recent);
        }
    }

    /// Whether no second member ever joined: what the first sees is what all see.
    fn is_alone(&self) -> bool {
        self.joined == 1
    }

    fn in_flight(&self) -> u64 {
        self.members.iter().map(|member| member.in_flight).sum()
    }

    fn member(&mut self, id: MemberId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }

    fn others(&self, id: MemberId) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| member.id != id)
    }

    pub(super) fn on_sent(&mut self, now: Instant, id: MemberId, sent: &SentSample) -> SentSample {
        self.latest = now;
        self.age_recent(now);
        let others_in_flight: u64 = self.others(id).map(|member| member.in_flight).sum();
        let others_wait = self.others(id).any(Member::is_greedy);
        let before = others_in_flight + (sent.bytes_in_flight.saturating_sub(sent.bytes));
        let snapshot = self.rate.on_sent(now, before, sent.bytes);
        let number = match self.latest_number.filter(|_| !self.is_alone()) {
            Some(latest) => latest.saturating_add(1),
            None => sent.packet_number,
        };
        self.latest_number = self.latest_number.max(Some(number));
        self.idle_since = None;
        self.recent = self.recent.saturating_add(sent.bytes);
        let all = self.recent;
        if let Some(member) = self.member(id) {
            member.in_flight = sent.bytes_in_flight;
            member.app_limited = sent.app_limited;
            member.unanswered_since.get_or_insert(now);
            member.recent = member.recent.saturating_add(sent.bytes);
            if member.packets.len() == MAX_PACKETS {
                member.packets.pop_front();
            }
            member.packets.push_back(SentPacket {
                at: now,
                own_number: sent.packet_number,
                number,
                snapshot,
                share: member.recent.max(1) as f64 / all.max(1) as f64,
                others_wait,
            });
        }
        if self.is_alone() {
            return *sent;
        }
        SentSample {
            packet_number: number,
            bytes_in_flight: others_in_flight + sent.bytes_in_flight,
            app_limited: sent.app_limited && !others_wait,
            ..*sent
        }
    }

    pub(super) fn on_ack(&mut self, now: Instant, id: MemberId, ack: &AckSample) -> AckSample {
        self.latest = now;
        self.rtt = ack.rtt.smoothed;
        let others_in_flight: u64 = self.others(id).map(|member| member.in_flight).sum();
        let others_wait = self.others(id).any(Member::is_greedy);
        let sent_at = ack.largest_acked_sent_at;
        let (mut packet, mut number) = (None, None);
        if let Some(member) = self.member(id) {
            member.in_flight = ack.bytes_in_flight;
            member.app_limited = ack.app_limited;
            member.acked_at = Some(now);
            member.unanswered_since = (ack.bytes_in_flight > 0).then_some(now);
            packet = Some(member.packet(sent_at).copied())
                .filter(|packet| packet.is_some() || !member.is_first);
            number = packet.flatten().map(|packet| packet.number);
            // Those before may be declared lost yet.
            let horizon = sent_at - ack.rtt.smoothed.max(ack.rtt.latest);
            let old = member.packets.partition_point(|packet| packet.at < horizon);
            member.packets.drain(..old);
        }
        let rate = match packet {
            Some(Some(packet)) => {
                self.rate
                    .on_packet_acked(now, &packet.snapshot, sent_at, ack.bytes);
                let measured = self.rate.finish(ack.rtt.min);
                measured
                    .zip(ack.rate)
                    .map(|(measured, own)| packet.bounded(measured, &own))
            }
            // Of packets before it joined others, what it had seen delivered says nothing of what all had.
            Some(None) => {
                self.rate.on_delivered(now, ack.bytes);
                None
            }
            None => {
                self.rate.on_delivered(now, ack.bytes);
                ack.rate.map(|own| RateSample {
                    delivered_total: self.rate.delivered(),
                    ..own
                })
            }
        };
        self.note_idle(now);
        let delivered = self.rate.delivered();
        for member in &mut self.members {
            member.recount_delivered(now, delivered);
        }
        if self.is_alone() {
            return *ack;
        }
        AckSample {
            bytes_in_flight: others_in_flight + ack.bytes_in_flight,
            prior_in_flight: others_in_flight + ack.prior_in_flight,
            largest_acked: number.unwrap_or_default(),
            largest_sent: self.latest_number.unwrap_or_default(),
            rate,
            app_limited: ack.app_limited && !others_wait,
            ..*ack
        }
    }

    pub(super) fn on_packet_lost(&mut self, id: MemberId, lost: &PacketLoss) -> PacketLoss {
        let known = self
            .members
            .iter()
            .find(|member| member.id == id)
            .and_then(|member| member.sent_packet(lost))
            .copied();
        let packet_number = known.map_or(0, |packet| packet.number);
        let snapshot = known.map_or_else(RateSnapshot::default, |packet| packet.snapshot);
        let of_all = self
            .rate
            .on_packet_lost(packet_number, &snapshot, lost.sent_at, lost.bytes);
        if self.is_alone() {
            return *lost;
        }
        match known {
            Some(packet) => PacketLoss {
                app_limited: lost.app_limited && !packet.others_wait,
                ..of_all
            },
            None => PacketLoss {
                packet_number,
                delivered_total: self.rate.delivered(),
                ..*lost
            },
        }
    }

    pub(super) fn on_loss(&mut self, now: Instant, id: MemberId, loss: &LossSample) -> LossSample {
        let others_in_flight: u64 = self.others(id).map(|member| member.in_flight).sum();
        let is_answered = self
            .others(id)
            .any(|member| member.acked_at.is_some_and(|at| at > loss.latest_sent_at));
        let mut largest_lost = None;
        if let Some(member) = self.member(id) {
            member.in_flight = loss.bytes_in_flight;
            largest_lost = member.packet(loss.latest_sent_at).map(|it| it.number);
        }
        self.note_idle(now);
        if self.is_alone() {
            return *loss;
        }
        LossSample {
            largest_lost: largest_lost.unwrap_or_default(),
            largest_sent: self.latest_number.unwrap_or_default(),
            bytes_in_flight: others_in_flight + loss.bytes_in_flight,
            // The path is not congested persistently if it delivers packets of another member.
            persistent: loss.persistent && !is_answered,
            ..*loss
        }
    }

    /// How long nothing was in flight when a member that was idle for `own` sends again; `None` if something was.
    pub(super) fn idle(&self, now: Instant, own: Duration) -> Option<Duration> {
        let idle_since = self.idle_since?;
        Some(own.min(now.saturating_since(idle_since)))
    }

    /// A member's datagrams may be `mtu` bytes long: returns the largest of all members.
    pub(super) fn on_mtu(&mut self, id: MemberId, mtu: u64) -> u64 {
        if let Some(member) = self.member(id) {
            member.datagram = mtu;
        }
        self.members
            .iter()
            .map(|member| member.datagram)
            .max()
            .unwrap_or(mtu)
    }

    /// The part of `window` that a member may have in flight: an equal one, and what the others leave.
    pub(super) fn part_of_window(&self, id: MemberId, window: u64) -> u64 {
        let (mut sending, mut others, mut least) = (1, 0, 0);
        let silent = self.latest - self.rtt * SILENT_RTTS;
        for member in &self.members {
            if member.id == id {
                least = MIN_PACKETS * member.datagram;
            } else if !member.is_silent(silent) {
                sending += u64::from(member.in_flight > 0);
                others += member.in_flight;
            }
        }
        window
            .saturating_sub(others)
            .max(window / sending)
            .max(least)
    }

    /// The part of the pacing rate that a member gets: an equal one, or what it took lately. Members that took little leave
    /// theirs to the others.
    pub(super) fn part_of_rate(&self, id: MemberId, rate: u64) -> u64 {
        let least = self.recent / (LITTLE * self.members.len().max(1) as u64);
        let silent = self.latest - self.rtt * SILENT_RTTS;
        let (mut sending, mut own) = (1, 0);
        for member in &self.members {
            if member.id == id {
                own = member.recent;
            } else {
                let takes_part = member.in_flight > 0 && member.recent > least;
                sending += u64::from(takes_part && !member.is_silent(silent));
            }
        }
        if sending == 1 {
            return rate;
        }
        let taken = u128::from(rate) * u128::from(own) / u128::from(self.recent.max(1));
        let taken = u64::try_from(taken).unwrap_or(rate);
        taken.max(rate / sending).max(1)
    }

    fn note_idle(&mut self, now: Instant) {
        if self.in_flight() == 0 {
            self.idle_since.get_or_insert(now);
        }
    }

    /// Bytes sent a round-trip time ago count half.
    fn age_recent(&mut self, now: Instant) {
        let halved_at = *self.halved_at.get_or_insert(now);
        if now < halved_at + self.rtt {
            return;
        }
        self.halved_at = Some(now);
        self.recent = 0;
        for member in &mut self.members {
            member.recent /= 2;
            self.recent += member.recent;
        }
    }
}
