//! The choice of a path's controller.

use std::fmt;
use std::sync::Arc;

use super::slow_start::{HybridSlowStart, SlowStartExit};
use super::{
    Bbr, Bbr3, Controller, Cubic, NewReno, OliaGroup, Prague, bbr, bbr3, cubic, new_reno, olia,
    prague,
};
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::settings::Spec;

/// The parameters of a new controller.
#[derive(Debug)]
pub struct ControllerConfig {
    /// The initial window, in bytes.
    pub initial_window: u64,
    /// Size of a full datagram, in bytes.
    pub max_datagram_size: u64,
    /// The policy that ends slow start before a loss does.
    pub slow_start_exit: Box<dyn SlowStartExit>,
    /// The part of the window kept after a loss, above 0 and below 1; `None` is the algorithm's own (NewReno 0.5,
    /// CUBIC 0.7). BBR does not use it.
    pub backoff: Option<f64>,
    /// The number of connections (N, at least 1) that a window-based controller emulates in congestion avoidance,
    /// as the controllers of gQUIC do: it keeps (N - 1 + b) / N of the window, where b is the part that one
    /// connection keeps. BBR and OLIA do not use it.
    pub emulated_flows: u32,
    /// Growth of the window in a round trip of slow start, above 1 and at most 2: 2 adds all bytes acknowledged
    /// (RFC 9002, section 7.3.1). BBR does not use it.
    pub slow_start_growth: f64,
    /// A number that differs between paths and randomizes when BBR probes.
    pub seed: u64,
}

impl ControllerConfig {
    /// The defaults of RFC 9002 for datagrams of `max_datagram_size` bytes, with hybrid slow start.
    pub fn new(max_datagram_size: u64) -> Self {
        Self {
            initial_window: super::initial_window::rfc9002(max_datagram_size),
            max_datagram_size,
            slow_start_exit: Box::new(HybridSlowStart::default()),
            backoff: None,
            emulated_flows: 1,
            slow_start_growth: 2.0,
            seed: 0,
        }
    }
}

/// Makes the controllers of new paths.
pub trait ControllerFactory: Send + Sync + fmt::Debug {
    /// A controller for a new path.
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller>;

    /// The factory of the controllers of one new connection, if its paths share state; `None` if they are
    /// independent.
    fn of_connection(&self) -> Option<Arc<dyn ControllerFactory>> {
        None
    }

    /// Whether its controllers [answer marks in proportion](Controller::is_scalable).
    fn is_scalable(&self) -> bool {
        self.build(ControllerConfig::new(MIN_DATAGRAM_SIZE.into()))
            .is_scalable()
    }

    /// The notation of its controllers in settings.
    fn spec(&self) -> Spec {
        self.build(ControllerConfig::new(MIN_DATAGRAM_SIZE.into()))
            .spec()
    }
}

/// Makes a controller for each path from a function; paths share no state.
#[derive(Clone, Copy, Debug)]
pub struct PerPath(
    /// Makes one controller.
    pub fn(ControllerConfig) -> Box<dyn Controller>,
);

impl ControllerFactory for PerPath {
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller> {
        (self.0)(config)
    }
}

/// Controllers of [`CONTROLLERS`](super::CONTROLLERS) that programs select by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RFC 9002, appendix B.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// BBR version 1.
    Bbr,
    /// BBR version 3.
    Bbr3,
    /// OLIA, which couples the paths of a connection; NewReno with a single path.
    Olia,
    /// Prague, for short queues that mark packets.
    Prague,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 6] = [
        Self::NewReno,
        Self::Cubic,
        Self::Bbr,
        Self::Bbr3,
        Self::Olia,
        Self::Prague,
    ];

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => new_reno::ENTRY.name,
            Self::Cubic => cubic::ENTRY.name,
            Self::Bbr => bbr::ENTRY.name,
            Self::Bbr3 => bbr3::ENTRY.name,
            Self::Olia => olia::ENTRY.name,
            Self::Prague => prague::ENTRY.name,
        }
    }
}

impl ControllerFactory for Algorithm {
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller> {
        match self {
            Self::NewReno => Box::new(NewReno::new(config)),
            Self::Cubic => Box::new(Cubic::new(config)),
            Self::Bbr => Box::new(Bbr::new(&config)),
            Self::Bbr3 => Box::new(Bbr3::new(&config)),
            Self::Olia => OliaGroup::default().build(config),
            Self::Prague => Box::new(Prague::new(config)),
        }
    }

    fn of_connection(&self) -> Option<Arc<dyn ControllerFactory>> {
        (*self == Self::Olia).then(|| Arc::new(OliaGroup::default()) as _)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
