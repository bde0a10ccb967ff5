//! The state machine alone, and with real controllers on a simulated path.

use super::*;

mod examples;
mod pipe;
mod random;
mod sender;
mod step;
mod transfers;
mod transitions;
