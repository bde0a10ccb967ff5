//! A bundle as its members' owner drives it: signals and views in, directives out.
//!
//! RFC 9040 calls this ensemble sharing.

mod admit;

use std::sync::Arc;
use std::time::Duration;

use super::decision::{BundleDecision, DecisionAction, DecisionCause, EnginePhase, MemberDecision};
use super::loss_based::{Fluctuation, LossBasedConfig, LossBasedEngine};
use super::member::{Directive, MemberDirective, MemberView, Signal};
use super::{BundleConfig, BundleScope, Coalesce, JoiningMember, MAX_MEMBERS, SharedController};
use super::{equalize_rates, split_initial_window};
use crate::time::Instant;

/// The part of the window that a fluctuation event leaves, until one was measured.
const USUAL_BACKOFF: f64 = 0.7;

/// Growth of the window in a round of slow start, until one was measured.
const USUAL_GROWTH: f64 = 2.0;

/// A packet of an initial window, in bytes: the size that every path carries (RFC 9000, section 14).
const DATAGRAM: u64 = crate::limits::MIN_DATAGRAM_SIZE as u64;

/// Bounds that measurements are clamped to.
const BACKOFFS: (f64, f64) = (0.3, 0.95);
const GROWTHS: (f64, f64) = (1.1, 2.0);

/// Members that are coordinated; `M` is the key by which their owner knows them.
#[derive(Debug)]
pub struct Bundle<M> {
    number: u64,
    config: Arc<BundleConfig>,
    members: Vec<Member<M>>,
    /// Members that ever joined.
    joined: u64,
    engine: LossBasedEngine,
    /// The controller of the rate-based members, if they share one.
    shared: SharedController,
    /// When an event of any member last counted.
    counted_at: Option<Instant>,
    backoff: f64,
    growth: f64,
}

#[derive(Debug)]
struct Member<M> {
    key: M,
    /// When an event of this member last counted.
    counted_at: Option<Instant>,
    /// When its round-trip time last rose so that slow start ended.
    delayed_at: Option<Instant>,
    /// Whether it has completed a round trip since the latest common round.
    reported: bool,
    /// The window at the latest common round, if it was in slow start.
    window: Option<u64>,
    /// The part of one connection's growth that it takes.
    share: f64,
    /// Whether persistent congestion has collapsed its window, and it is still in the slow start that
    /// followed.
    collapsed: bool,
}

impl<M> Member<M> {
    const fn new(key: M) -> Self {
        Self {
            key,
            counted_at: None,
            delayed_at: None,
            reported: false,
            window: None,
            share: 1.0,
            collapsed: false,
        }
    }
}

/// Members that take part in a decision; both lists have one entry for each.
struct Participants {
    /// Their indices in the bundle.
    members: Vec<usize>,
    views: Vec<MemberView>,
}

impl Participants {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            members: Vec::with_capacity(capacity),
            views: Vec::with_capacity(capacity),
        }
    }

    fn push(&mut self, member: usize, view: MemberView) {
        self.members.push(member);
        self.views.push(view);
    }

    fn windows(&self) -> Vec<u64> {
        self.views.iter().map(|view| view.window).collect()
    }

    fn fractional_windows(&self) -> Vec<f64> {
        self.views.iter().map(|view| view.window as f64).collect()
    }

    fn longest_rtt(&self) -> Duration {
        let rtts = self.views.iter().map(|view| view.smoothed_rtt);
        rtts.max().unwrap_or_default()
    }

    fn is_rate_based(&self) -> bool {
        self.views.iter().any(|view| view.rate_based)
    }
}

/// A fluctuation event as its member reports it; see [`Signal::Fluctuation`].
struct FluctuationReport {
    /// Index of the member in the bundle.
    member: usize,
    loss: bool,
    before: u64,
    after: u64,
}

/// Why the members get directives.
#[derive(Clone, Copy)]
struct Reason {
    cause: DecisionCause,
    action: DecisionAction,
    /// Index among the participants of the member to which the event happened.
    affected: Option<usize>,
}

impl Reason {
    /// A member joined.
    const fn of_joining(joining: &JoiningMember, action: DecisionAction) -> Self {
        Self {
            cause: match joining.moved {
                true => DecisionCause::Moved,
                false => DecisionCause::Joined,
            },
            action,
            affected: None,
        }
    }
}

impl<M: Copy + PartialEq> Bundle<M> {
    /// An empty bundle, which events and statistics call `number`.
    pub fn new(number: u64, config: Arc<BundleConfig>) -> Self {
        Self {
            number,
            members: Vec::new(),
            joined: 0,
            engine: engine(&config),
            shared: SharedController::default(),
            counted_at: None,
            backoff: config.backoff.unwrap_or(USUAL_BACKOFF),
            growth: config.slow_start_growth.unwrap_or(USUAL_GROWTH),
            config,
        }
    }

    /// How many members there are (N).
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a member, which gets its part of the initial window; `None` if the bundle is full or has it
    /// already.
    pub fn join(&mut self, key: M, joining: &JoiningMember) -> Option<Directive> {
        if !self.accepts(key) {
            return None;
        }
        if joining.rate_based && self.config.shares_controller() {
            return Some(self.join_shared(key, joining));
        }
        let most = MAX_MEMBERS as u64;
        let sharers = joining
            .announced
            .unwrap_or(self.config.connections)
            .clamp(1, most)
            .max(self.members.len() as u64 + 1);
        let packets = joining.initial_window / DATAGRAM;
        let part = self.joined % sharers;
        self.joined += 1;
        let window = match self.config.split_initial_window {
            true => split_initial_window(packets, sharers)
                .nth(part as usize)
                .map(|packets| packets.max(self.config.floor_packets) * DATAGRAM),
            false => None,
        };
        let window = window.unwrap_or(joining.window);
        self.members.push(Member::new(key));
        let reason = Reason::of_joining(joining, DecisionAction::Split);
        let decision = self.decision(reason, vec![joining.window], vec![window]);
        let mut directive = Directive {
            window: Some(window),
            decision: Some(MemberDecision {
                decision: Arc::new(decision),
                own: 0,
            }),
            ..Directive::default()
        };
        if self.config.fair {
            directive.share = Some(self.set_share(self.members.len() - 1, self.members.len()));
        }
        Some(directive)
    }

    /// Adds a member that uses the controller of the others, or brings it if it is the first.
    fn join_shared(&mut self, key: M, joining: &JoiningMember) -> Directive {
        self.joined += 1;
        self.members.push(Member::new(key));
        let reason = Reason::of_joining(joining, DecisionAction::Shared);
        let before = joining.window;
        let after = self.shared.window().unwrap_or(before);
        let decision = self.decision(reason, vec![before], vec![after]);
        Directive {
            shared: Some(self.shared.clone()),
            decision: Some(MemberDecision {
                decision: Arc::new(decision),
                own: 0,
            }),
            ..Directive::default()
        }
    }

    fn accepts(&self, key: M) -> bool {
        self.members.len() < MAX_MEMBERS && self.members.iter().all(|member| member.key != key)
    }

    /// Removes a member.
    pub fn leave(&mut self, key: M) {
        self.members.retain(|member| member.key != key);
    }

    /// Acts on a signal of member `key`. `view` returns the state of a member, or `None` if it no longer
    /// exists.
    pub fn on_signal(
        &mut self,
        now: Instant,
        key: M,
        signal: Signal,
        view: &mut dyn FnMut(M) -> Option<MemberView>,
    ) -> Vec<MemberDirective<M>> {
        let Some(own) = self.members.iter().position(|member| member.key == key) else {
            return Vec::new();
        };
        let Some(own_view) = view(key) else {
            return Vec::new();
        };
        match signal {
            Signal::Fluctuation {
                loss,
                persistent,
                before,
                after,
            } => {
                self.members[own].collapsed |= persistent;
                if persistent || own_view.rate_based {
                    return Vec::new();
                }
                let participants = self.participants(own, &own_view, view);
                let report = FluctuationReport {
                    member: own,
                    loss,
                    before,
                    after,
                };
                self.on_fluctuation(now, &report, &participants)
            }
            Signal::Round => {
                self.members[own].reported = true;
                let participants = self.participants(own, &own_view, view);
                self.on_round(&participants)
            }
        }
    }

    /// The members that take part in a decision about member `own`.
    fn participants(
        &mut self,
        own: usize,
        own_view: &MemberView,
        view: &mut dyn FnMut(M) -> Option<MemberView>,
    ) -> Participants {
        let mut participants = Participants::with_capacity(self.members.len());
        for (index, member) in self.members.iter_mut().enumerate() {
            let seen = if index == own {
                Some(*own_view)
            } else {
                view(member.key).filter(|view| self.config.scope == BundleScope::All || view.active)
            };
            let Some(seen) = seen else { continue };
            // A window that persistent congestion collapsed shows nothing about the path to the other
            // members until slow start has ended again.
            member.collapsed &= seen.in_slow_start;
            if member.collapsed {
                member.reported = false;
                member.window = None;
            } else {
                participants.push(index, seen);
            }
        }
        participants
    }

    fn on_fluctuation(
        &mut self,
        now: Instant,
        report: &FluctuationReport,
        participants: &Participants,
    ) -> Vec<MemberDirective<M>> {
        let FluctuationReport {
            member: own,
            loss,
            before,
            after,
        } = *report;
        let cause = match loss {
            true => DecisionCause::Loss,
            false => DecisionCause::SlowStartExit,
        };
        let Some(affected) = participants.members.iter().position(|&index| index == own) else {
            return Vec::new();
        };
        let backs_off = loss || self.config.backoff_on_delay;
        if loss && before > 0 && self.config.backoff.is_none() {
            self.backoff = (after as f64 / before as f64).clamp(BACKOFFS.0, BACKOFFS.1);
        }
        let rtt = participants.longest_rtt();
        let recent = |at: Option<Instant>, within: Duration| at.is_some_and(|at| now < at + within);
        let coalesces = self.config.fair && recent(self.counted_at, rtt)
            || match self.config.coalesce {
                Coalesce::Never => false,
                Coalesce::Member => {
                    let own_rtt = participants.views[affected].smoothed_rtt;
                    recent(self.members[own].counted_at, own_rtt)
                }
                Coalesce::Bundle => recent(self.counted_at, rtt),
            };
        if !loss {
            self.members[own].delayed_at = Some(now);
        }
        let delayed = participants.members.iter().filter(|&&index| {
            let member = &self.members[index];
            recent(member.delayed_at, rtt)
        });
        let is_corroborated = !loss
            && self.config.sync_state
            && self
                .config
                .corroborated_by
                .is_some_and(|members| delayed.count() >= members.min(participants.members.len()));
        // An event after which a fair bundle does not back off must not make it ignore a loss that follows.
        if !coalesces && (backs_off || !self.config.fair) {
            self.counted_at = Some(now);
            self.members[own].counted_at = Some(now);
        }

        let mut windows = participants.fractional_windows();
        let phase_before = self.engine.phase();
        let leaves_unchanged = self.leaves_unchanged();
        if !loss && backs_off && !leaves_unchanged && phase_before == EnginePhase::SlowStart {
            windows[affected] *= self.backoff;
        }
        let action = if self.config.fair {
            // Skipped if a later event of another member already set this window.
            if participants.views[affected].window == after {
                windows[affected] = before as f64;
            }
            self.engine.exit();
            if !coalesces && backs_off {
                let each = windows.iter().sum::<f64>() * self.backoff / windows.len() as f64;
                windows.fill(each);
                DecisionAction::BackedOff
            } else {
                DecisionAction::Coalesced
            }
        } else if leaves_unchanged {
            DecisionAction::None
        } else if is_corroborated {
            self.engine.exit();
            DecisionAction::Exited
        } else if coalesces {
            DecisionAction::Coalesced
        } else {
            let event = Fluctuation {
                affected,
                members: self.members.len(),
                backoff: self.backoff,
                slow_start_growth: self.growth,
            };
            self.engine
                .set_floor(self.floor(&participants.views[affected]));
            self.engine.on_fluctuation(&event, &mut windows)
        };
        self.exit_with_last_member(participants);
        let slow_start = match self.engine.phase() {
            EnginePhase::CongestionAvoidance => Some(false),
            EnginePhase::SlowStart if self.config.sync_state => Some(true),
            EnginePhase::SlowStart => None,
        };
        let reason = Reason {
            cause,
            action,
            affected: Some(affected),
        };
        self.directives(participants, reason, &windows, |index, out| {
            if leaves_unchanged {
                out.window = None;
                return;
            }
            let seen = &participants.views[index];
            out.slow_start = match slow_start {
                Some(enters) => (enters != seen.in_slow_start).then_some(enters),
                // Setting a window must not begin slow start again where its state is not synchronized.
                None => (!seen.in_slow_start).then_some(false),
            };
        })
    }

    /// Whether events leave windows and slow start as they are: members are independent in congestion
    /// avoidance, and always if nothing is to be synchronized.
    fn leaves_unchanged(&self) -> bool {
        let BundleConfig {
            sync_windows,
            sync_state,
            fair,
            ..
        } = *self.config;
        let avoids = self.engine.phase() == EnginePhase::CongestionAvoidance;
        !fair && (avoids || !sync_windows && !sync_state)
    }

    /// Where slow start is not synchronized, the bundle is in slow start as long as any member is.
    fn exit_with_last_member(&mut self, participants: &Participants) {
        let searches = participants.views.iter().any(|view| view.in_slow_start);
        if !self.config.sync_state && !searches && !participants.views.is_empty() {
            self.engine.exit();
        }
    }

    /// If all participants have reported a round trip: makes windows or rates that have drifted apart
    /// equal.
    fn on_round(&mut self, participants: &Participants) -> Vec<MemberDirective<M>> {
        if participants
            .members
            .iter()
            .any(|&index| !self.members[index].reported)
        {
            return Vec::new();
        }
        self.measure_growth(participants);
        self.exit_with_last_member(participants);
        let mut directives = Vec::new();
        if self.config.fair {
            for &index in &participants.members {
                let old = self.members[index].share;
                let share = self.set_share(index, participants.members.len());
                if share != old {
                    directives.push(MemberDirective {
                        member: self.members[index].key,
                        directive: Directive {
                            share: Some(share),
                            ..Directive::default()
                        },
                    });
                }
            }
        }
        directives.extend(if participants.is_rate_based() {
            self.equalize_rates(participants)
        } else {
            self.equalize_windows(participants)
        });
        directives
    }

    fn equalize_windows(&mut self, participants: &Participants) -> Vec<MemberDirective<M>> {
        let mut windows = participants.fractional_windows();
        let floor = participants
            .views
            .first()
            .map_or(0.0, |view| self.floor(view));
        self.engine.set_floor(floor);
        let action = self.engine.on_round(&mut windows);
        if action == DecisionAction::None {
            return Vec::new();
        }
        let reason = Reason {
            cause: DecisionCause::Round,
            action,
            affected: None,
        };
        let ends = self.config.sync_state || self.config.fair;
        self.directives(participants, reason, &windows, |index, out| {
            // A member that joined late ends its slow start: the others have measured the capacity.
            let in_slow_start = participants.views[index].in_slow_start;
            out.slow_start = (ends && in_slow_start).then_some(false);
        })
    }

    fn equalize_rates(&mut self, participants: &Participants) -> Vec<MemberDirective<M>> {
        let mut rates: Vec<_> = participants
            .views
            .iter()
            .map(|v| v.rate.map(|r| r as f64))
            .collect();
        if !self.config.sync_windows || !equalize_rates(&mut rates, self.config.rate_imbalance) {
            return Vec::new();
        }
        let before = participants
            .views
            .iter()
            .filter_map(|view| view.rate)
            .collect();
        let after: Vec<_> = rates
            .iter()
            .flatten()
            .map(|&rate| rate.round() as u64)
            .collect();
        let reason = Reason {
            cause: DecisionCause::Round,
            action: DecisionAction::EqualizedRates,
            affected: None,
        };
        let decision = Arc::new(self.decision(reason, before, after.clone()));
        let each = participants.members.iter().zip(&after).enumerate();
        each.map(|(own, (&member, &rate))| MemberDirective {
            member: self.members[member].key,
            directive: Directive {
                rate: Some(rate),
                decision: Some(MemberDecision {
                    decision: Arc::clone(&decision),
                    own,
                }),
                ..Directive::default()
            },
        })
        .collect()
    }

    /// Measures the growth of windows in a round of slow start that no directive has changed.
    fn measure_growth(&mut self, participants: &Participants) {
        let (mut earlier, mut later) = (0, 0);
        for (&index, view) in participants.members.iter().zip(&participants.views) {
            let member = &mut self.members[index];
            member.reported = false;
            let window = view.in_slow_start.then_some(view.window);
            if let (Some(before), Some(now)) = (member.window, window) {
                earlier += before;
                later += now;
            }
            member.window = window;
        }
        if self.config.slow_start_growth.is_none() && earlier > 0 && later > earlier {
            self.growth = (later as f64 / earlier as f64).clamp(GROWTHS.0, GROWTHS.1);
        }
    }

    /// A directive for each participant; `adjust` changes the one of the participant with an index.
    fn directives(
        &mut self,
        participants: &Participants,
        reason: Reason,
        windows: &[f64],
        adjust: impl Fn(usize, &mut Directive),
    ) -> Vec<MemberDirective<M>> {
        let bounded = |(&window, view): (&f64, &MemberView)| {
            let least = self.floor(view) as u64;
            // Rounded down, so that the sum does not grow.
            (window as u64).max(least.min(view.window))
        };
        let after: Vec<u64> = windows
            .iter()
            .zip(&participants.views)
            .map(bounded)
            .collect();
        let decision = Arc::new(self.decision(reason, participants.windows(), after.clone()));
        let mut directives = Vec::with_capacity(participants.members.len());
        for (own, &member) in participants.members.iter().enumerate() {
            let member = &mut self.members[member];
            let window = after[own];
            // Its growth since the latest common round is not that of slow start alone.
            member.window = None;
            let mut directive = Directive {
                window: (window != participants.views[own].window).then_some(window),
                decision: Some(MemberDecision {
                    decision: Arc::clone(&decision),
                    own,
                }),
                ..Directive::default()
            };
            adjust(own, &mut directive);
            directives.push(MemberDirective {
                member: member.key,
                directive,
            });
        }
        directives
    }

    fn decision(&self, reason: Reason, before: Vec<u64>, after: Vec<u64>) -> BundleDecision {
        BundleDecision {
            bundle: self.number,
            cause: reason.cause,
            action: reason.action,
            phase: self.engine.phase(),
            affected: reason.affected,
            gamma: self.engine.gamma().unwrap_or(self.growth),
            fluctuations: self.engine.events(),
            before,
            after,
        }
    }

    /// Gives a member its share of the growth among `sharers`, and returns it.
    fn set_share(&mut self, member: usize, sharers: usize) -> f64 {
        let share = 1.0 / sharers.max(1) as f64;
        self.members[member].share = share;
        share
    }

    fn floor(&self, view: &MemberView) -> f64 {
        (self.config.floor_packets * view.datagram) as f64
    }
}

fn engine(config: &BundleConfig) -> LossBasedEngine {
    LossBasedEngine::new(LossBasedConfig {
        affected_growth: config.affected_growth,
        avoidance_growth: config.avoidance_growth,
        imbalance: config.imbalance,
        floor: 0.0,
        sync_windows: config.sync_windows,
        sync_state: config.sync_state,
    })
}
