//! The engine alone, and with an owner whose members are real controllers.

use super::*;

use owner::Owner;

mod admit;
mod engine;
mod ensemble;
mod random;

impl Owner {
    /// Windows in full datagrams, rounded to tenths.
    pub(crate) fn packets(&self) -> Vec<f64> {
        let tenths = |m: &owner::Member| (m.controller.window() * 10 + m.datagram / 2) / m.datagram;
        self.members
            .values()
            .map(|m| tenths(m) as f64 / 10.0)
            .collect()
    }
}
