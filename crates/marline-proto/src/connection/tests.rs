//! Whole connections in virtual time. The cases of the QUIC interop runner bear its names.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::config::RetryPolicy;
use crate::endpoint::ConnectionHandle;
use crate::handshake::Cipher;
use crate::streams::{ReadError, WriteError};
use crate::testing::{Conditions, Datagram, Direction, Node, Pair, PairConfig};
use marline_wire::{Dir, ErrorCode};

mod amplificationlimit;
mod blackhole;
mod chacha20;
mod closing;
mod craft;
mod handshake;
mod handshakeloss;
mod hostile;
mod idle;
mod longrtt;
mod multiplexing;
mod resumption;
mod retry;
mod support;
mod transfer;
mod transferloss;
mod versionnegotiation;
mod zerortt;

use support::*;
