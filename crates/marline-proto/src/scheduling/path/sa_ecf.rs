//! Stream-aware ECF (Rabitsch, Hurtig and Brunstrom, EPIQ 2018).

use std::sync::Arc;

use marline_wire::StreamId;
use rustc_hash::FxHashSet;

use super::ecf::{ABOUT_BETA, ABOUT_VARIANT, BETA, Offer};
use super::{EcfConfig, EcfVariant, PathScheduler, PathView, Plan, StreamView, Work};
use crate::settings::{Domain, Entry, Field, Make, Settings, Spec};

/// Its name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, SaEcfConfig> = Entry {
    name: "sa_ecf",
    about: "The same as ecf, for each stream on its own",
    parameters: SaEcfConfig::SETTINGS,
    default: SaEcfConfig::default,
    make: |config| Arc::new(move || Box::new(SaEcf::new(config))),
};

/// Waiting streams that are remembered beyond twice the number of present streams.
const SLACK: usize = 64;

/// The configuration of SA-ECF.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SaEcfConfig {
    /// How each stream decides.
    pub ecf: EcfConfig,
    /// Whether other streams are assumed to send no more than they have left; takes time quadratic in the number of streams.
    pub cap: bool,
    /// The bytes that a stream of weight 1 sends in its turn; `None` is a full packet of the path that is
    /// considered.
    pub unit: Option<u64>,
}

impl SaEcfConfig {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new("beta", BETA, ABOUT_BETA, |c: &mut Self| &mut c.ecf.beta),
        &Field::new(
            "variant",
            Domain::words::<EcfVariant>(),
            ABOUT_VARIANT,
            |c: &mut Self| &mut c.ecf.variant,
        ),
        &Field::new(
            "cap",
            Domain::SWITCH,
            "Whether other streams are assumed to send no more than they have left",
            |c: &mut Self| &mut c.cap,
        ),
        &Field::new(
            "unit",
            Domain::bytes(1, 1 << 20).or("packet"),
            "What a stream of weight 1 sends in its turn",
            |c: &mut Self| &mut c.unit,
        ),
    ];
}

/// ECF for each stream: the first stream that would not complete earlier by waiting uses the slower path.
///
/// The bytes that count for a stream are all that are sent until it is complete, including those of its
/// siblings' turns.
#[derive(Clone, Debug, Default)]
pub struct SaEcf {
    config: SaEcfConfig,
    /// Streams that wait for the fastest path.
    waiting: FxHashSet<StreamId>,
}

impl SaEcf {
    /// A scheduler without waiting streams.
    pub fn new(config: SaEcfConfig) -> Self {
        Self::resume(config, [])
    }

    /// A scheduler whose waiting streams are `waiting`.
    pub fn resume(config: SaEcfConfig, waiting: impl IntoIterator<Item = StreamId>) -> Self {
        Self {
            config,
            waiting: waiting.into_iter().collect(),
        }
    }

    /// Whether `stream` waits for the fastest path.
    pub fn is_waiting(&self, stream: StreamId) -> bool {
        self.waiting.contains(&stream)
    }

    fn set_waiting(&mut self, stream: StreamId, waits: bool, streams: &[StreamView]) {
        if !waits {
            self.waiting.remove(&stream);
            return;
        }
        // Streams that have ended are not reported: removes them from time to time.
        if self.waiting.len() > 2 * streams.len() + SLACK {
            let is_there = |id: &StreamId| streams.iter().any(|stream| stream.id == *id);
            self.waiting.retain(is_there);
        }
        self.waiting.insert(stream);
    }
}

impl PathScheduler for SaEcf {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let streams = work.streams;
        let with_data = || streams.iter().filter(|stream| stream.remaining > 0);
        let (fast, slow) = match Offer::of(paths) {
            Offer::Nothing => return Plan::Wait,
            Offer::Fastest(path) => {
                let next = with_data().next();
                return next.map_or(Plan::Wait, |next| Plan::send(next.id, Some(path)));
            }
            Offer::Slower(fast, slow) => (fast, slow),
        };
        let turns = Turns::new(streams, self.config.unit.unwrap_or(slow.mtu));
        for stream in with_data() {
            let bytes = turns.bytes_until_complete(stream, self.config.cap);
            let mut waiting = self.is_waiting(stream.id);
            let waits = self.config.ecf.waits(fast, slow, bytes, &mut waiting);
            self.set_waiting(stream.id, waiting, streams);
            if !waits {
                return Plan::send(stream.id, Some(slow));
            }
        }
        Plan::Wait
    }

    fn compares_streams(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.config)
    }
}

/// Streams that take weighted turns, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a> {
    streams: &'a [StreamView],
    /// Sum of the weights of streams that have something to send.
    weights: u64,
    unit: f64,
}

impl<'a> Turns<'a> {
    /// Turns of `unit` bytes for each unit of weight.
    pub fn new(streams: &'a [StreamView], unit: u64) -> Self {
        let sending = streams.iter().filter(|stream| stream.remaining > 0);
        Self {
            streams,
            weights: sending.map(|stream| u64::from(stream.weight)).sum(),
            unit: unit.max(1) as f64,
        }
    }

    /// Bytes of all streams that are sent until `stream`, one of them, is complete, if its turn is first. With
    /// `cap`, no sibling sends more than it has.
    pub fn bytes_until_complete(&self, stream: &StreamView, cap: bool) -> f64 {
        let own = stream.remaining as f64;
        let turn = f64::from(stream.weight.max(1)) * self.unit;
        if own <= turn {
            return own;
        }
        let others = own / turn - 1.0;
        let theirs = |weight: f64| others * self.unit * weight;
        if !cap {
            let weights = self.weights.saturating_sub(u64::from(stream.weight));
            return own + theirs(weights as f64);
        }
        let siblings = self.streams.iter().filter(|other| other.id != stream.id);
        siblings.fold(own, |sum, other| {
            sum + theirs(f64::from(other.weight)).min(other.remaining as f64)
        })
    }
}
