//! Tests of whole connections in virtual time. The cases of the QUIC interop runner have its names.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::config::RetryPolicy;
use crate::endpoint::ConnectionHandle;
use crate::handshake::{Cipher, Versions};
use crate::observe::Observer;
use crate::streams::{ReadError, WriteError};
use crate::testing::{Conditions, Datagram, Direction, Ends, Node, Pair, PairConfig};
use marline_wire::{Dir, ErrorCode, StreamId, Version};

mod ack_only_peer;
mod ackfrequency;
mod amplificationlimit;
mod blackhole;
mod bundle;
mod capacity_tokens;
mod careful_resume;
mod chacha20;
mod closing;
mod connectionids;
mod connectionmigration;
mod controllers;
mod craft;
mod datagrams;
mod ecn;
mod handshake;
mod handshake_retransmission;
mod handshakeloss;
mod handshakeprobes;
mod history;
mod hostile;
mod idle;
mod keyupdate;
mod longrtt;
mod lost_acks;
mod mtu;
mod multipath;
mod multiplexing;
mod nat_rebinding;
mod observed_events;
mod priorities;
mod random;
mod randomness;
mod rebind;
mod remembered_rtt;
mod reordering;
mod resumption;
mod retry;
mod statelessreset;
mod stream_ends;
mod support;
mod tail_duplication;
mod transfer;
mod transferloss;
mod unreachable;
mod v2;
mod versionnegotiation;
mod windows;
mod zerortt;

use support::*;
