//! The phases alone, and with a path whose controller obeys them.

use super::*;

mod arrows;
mod examples;
mod pipe;
mod random;
mod sender;
mod step;
mod transfers;
