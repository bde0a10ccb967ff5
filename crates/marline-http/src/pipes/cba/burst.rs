//! The capacity left on a pipe (eqs. 4 and 5).

use marline::settings::{Named, Word};

/// The bytes that count against the buffer of a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BurstMode {
    /// Bytes that are still to arrive: the capacity of a pipe recovers as objects arrive.
    #[default]
    Outstanding,
    /// Bytes that have arrived of objects that are not complete.
    ReceivedActive,
    /// Bytes that have arrived of all its objects, as in eq. 5: a pipe that is full never recovers.
    Received,
}

impl Named for BurstMode {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "outstanding",
            about: "Bytes that are still to arrive",
            value: Self::Outstanding,
        },
        Word {
            name: "received_active",
            about: "Bytes that have arrived of objects that are not complete",
            value: Self::ReceivedActive,
        },
        Word {
            name: "received",
            about: "Bytes that have arrived of all objects (eq. 5)",
            value: Self::Received,
        },
    ];
}

/// An object on a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectProgress {
    /// S_i: its bytes, or as many as objects of its kind usually have.
    pub size: u64,
    /// R_i = r_i - b_i: the bytes of it that have arrived (eq. 4).
    pub received: u64,
    /// Whether it is complete.
    pub done: bool,
}

/// BA_j in bytes: the buffer P_j of a pipe, less the counted bytes of its objects (eq. 5). Negative if these exceed it.
pub fn available_burst(buffer: u64, mode: BurstMode, objects: &[ObjectProgress]) -> i64 {
    let counts = |object: &ObjectProgress| match mode {
        BurstMode::Outstanding if !object.done => object.size.saturating_sub(object.received),
        BurstMode::ReceivedActive if !object.done => object.received,
        BurstMode::Received => object.received,
        BurstMode::Outstanding | BurstMode::ReceivedActive => 0,
    };
    let used = objects.iter().map(counts).fold(0_u64, u64::saturating_add);
    signed(buffer).saturating_sub(signed(used))
}

fn signed(bytes: u64) -> i64 {
    bytes.try_into().unwrap_or(i64::MAX)
}
