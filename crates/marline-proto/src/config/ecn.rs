//! Explicit congestion notification.

use crate::settings::{FieldValue, Value};

/// What packets are marked with, and how marks count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// Nothing, and marks are ignored.
    Off,
    /// ECT(0): a mark counts as a loss does (RFC 9000, section 13.4; RFC 9002, section 7.1).
    #[default]
    Classic,
    /// ECT(1), for short queues (L4S, RFC 9331), if the controller [answers marks in
    /// proportion](crate::congestion::Controller::is_scalable); with any other this is [`Classic`](Self::Classic).
    L4s,
}

impl EcnMode {
    /// How [`L4s`](Self::L4s) is written.
    pub(super) const L4S: &'static str = "l4s";
}

impl FieldValue for EcnMode {
    fn to_value(&self) -> Value {
        match self {
            Self::Off => Value::Switch(false),
            Self::Classic => Value::Switch(true),
            Self::L4s => Value::Word(Self::L4S.to_owned()),
        }
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Switch(false) => Some(Self::Off),
            Value::Switch(true) => Some(Self::Classic),
            Value::Word(word) if word == Self::L4S => Some(Self::L4s),
            _ => None,
        }
    }
}
