//! The shared medium against what other simulators of 802.11 and published measurements found.

mod delay;
mod goodput;
mod laws;
mod source;
