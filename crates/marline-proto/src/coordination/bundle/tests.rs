//! The engine alone, and with an owner whose members are real controllers.

use super::*;

mod admit;
mod engine;
mod ensemble;
mod owner;
mod random;
