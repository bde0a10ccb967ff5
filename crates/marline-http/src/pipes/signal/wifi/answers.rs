//! Parsing the kernel's answers. Unknown attributes, and those of unexpected size, are ignored.

use super::netlink::{Message, attribute, attributes};

const IFINDEX: u16 = 3;
const IFNAME: u16 = 4;
const IFTYPE: u16 = 5;
const STA_INFO: u16 = 21;
const SURVEY_INFO: u16 = 84;

/// An interface that is a client: `NL80211_IFTYPE_STATION`.
const STATION: u32 = 2;

// Of `NL80211_ATTR_STA_INFO`.
const SIGNAL: u16 = 7;
const SIGNAL_AVERAGE: u16 = 13;

// Of `NL80211_ATTR_SURVEY_INFO`.
const NOISE: u16 = 2;
const IN_USE: u16 = 3;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) index: u32,
    pub(super) name: String,
}

/// The interfaces that are clients, by index.
pub(super) fn interfaces(answer: &[Message]) -> Vec<Interface> {
    let interface = |message: &Message| {
        let number = |kind| Some(u32::from_ne_bytes(message.get(kind)?.try_into().ok()?));
        if number(IFTYPE)? != STATION {
            return None;
        }
        let name = message.get(IFNAME)?;
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        Some(Interface {
            index: number(IFINDEX)?,
            name: String::from_utf8_lossy(name).into_owned(),
        })
    };
    let mut found: Vec<_> = answer.iter().filter_map(interface).collect();
    found.sort_by_key(|interface| interface.index);
    found
}

/// The signal of the access point in dBm: the driver's average, or else that of the last frame.
pub(super) fn signal_dbm(answer: &[Message]) -> Option<i8> {
    answer.iter().find_map(|message| {
        let station = message.get(STA_INFO)?;
        decibels(attribute(station, SIGNAL_AVERAGE))
            .or_else(|| decibels(attribute(station, SIGNAL)))
    })
}

/// The noise in the channel that is in use in dBm.
pub(super) fn noise_dbm(answer: &[Message]) -> Option<i8> {
    answer.iter().find_map(|message| {
        let survey = message.get(SURVEY_INFO)?;
        attributes(survey).find(|attribute| attribute.kind == IN_USE)?;
        decibels(attribute(survey, NOISE))
    })
}

/// A power in dBm, which the kernel writes as a byte with a sign. Neither signal nor noise reaches 0 dBm: drivers that do not know
/// them write 0.
fn decibels(value: Option<&[u8]>) -> Option<i8> {
    match value? {
        &[byte] => Some(byte.cast_signed()).filter(|power| *power < 0),
        _ => None,
    }
}
