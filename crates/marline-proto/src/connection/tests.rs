//! Whole connections in virtual time.

use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::endpoint::ConnectionHandle;
use crate::streams::{ReadError, WriteError};
use crate::testing::{Conditions, Direction, Pair, PairConfig};
use marline_wire::Dir;

mod transfer;
