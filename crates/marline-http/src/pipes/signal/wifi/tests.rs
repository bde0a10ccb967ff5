//! Answers of the kernel, recorded ones and others byte by byte. The layout is that of `struct nlmsghdr`
//! (`linux/netlink.h`), `struct genlmsghdr` (`linux/genetlink.h`), and of the attributes that `nl80211_send_iface`,
//! `nl80211_send_station` and `nl80211_send_survey` write (`net/wireless/nl80211.c` of Linux 6.1); numbers are those of
//! `linux/nl80211.h`. Answers contain the attributes that a mac80211 driver sets.

use super::answers::{Interface, interfaces, noise_dbm, signal_dbm};
use super::netlink::Answer;
use super::*;

const NEW_INTERFACE: u8 = 7;
const NEW_STATION: u8 = 19;
const NEW_SURVEY_RESULTS: u8 = 51;

/// The number of nl80211, which a kernel gives when it starts.
const FAMILY: u16 = 0x1c;
const MULTIPART: u16 = 2;
const DONE: u16 = 3;

/// An attribute with its padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

/// The kernel marks nests since Linux 5.2, where it uses `nla_nest_start`; nl80211 uses `nla_nest_start_noflag`.
fn nest(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind, &parts.concat())
}

fn netlink(kind: u16, sequence: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + content.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(MULTIPART.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(4242_u32.to_ne_bytes());
    bytes.extend(content);
    bytes
}

fn message(command: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let header = [command, 1, 0, 0];
    netlink(FAMILY, 7, &[&header[..], &parts.concat()].concat())
}

fn done(code: i32) -> Vec<u8> {
    netlink(DONE, 7, &code.to_ne_bytes())
}

/// The answer to request 7.
fn answer(datagrams: &[Vec<u8>]) -> Result<Vec<Message>, NetlinkError> {
    let mut answer = Answer::default();
    for datagram in datagrams {
        answer.take(7, datagram)?;
    }
    assert!(answer.is_done);
    Ok(answer.into_messages())
}

/// As `signed char`.
fn dbm(power: i8) -> [u8; 1] {
    power.to_ne_bytes()
}

fn interface(index: u32, name: &str, kind: u32) -> Vec<u8> {
    let name = [name.as_bytes(), &[0]].concat();
    message(
        NEW_INTERFACE,
        &[
            number(1, 0),
            number(3, index),
            attribute(4, &name),
            number(5, kind),
            attribute(153, &1_u64.to_ne_bytes()),
            attribute(6, &[2, 0, 0, 0, 0, 1]),
            number(46, 5),
        ],
    )
}

fn station(signals: &[Vec<u8>]) -> Vec<u8> {
    let mut info = vec![number(1, 12), number(2, 4_000_000), number(3, 90_000)];
    info.extend(signals.iter().cloned());
    message(
        NEW_STATION,
        &[
            number(3, 4),
            attribute(6, &[2, 0, 0, 0, 1, 0]),
            number(46, 9),
            nest(21, &info),
        ],
    )
}

fn survey(parts: &[Vec<u8>]) -> Vec<u8> {
    message(NEW_SURVEY_RESULTS, &[number(3, 4), nest(84, parts)])
}

/// An answer of Linux 6.12 about radios of `mac80211_hwsim`, which simulates them: the concatenated datagrams of a
/// dump. hostapd had made an access point of wlan0, with which wlan1 was associated, but for `no-access-point`.
fn recorded(datagrams: &[u8]) -> Vec<Message> {
    let sequence = u32::from_ne_bytes(*datagrams[8..].first_chunk().unwrap());
    let mut answer = Answer::default();
    answer.take(sequence, datagrams).unwrap();
    assert!(answer.is_done);
    answer.into_messages()
}

#[cfg(target_endian = "little")]
#[test]
fn recorded_answers_of_a_kernel_are_read() {
    let clients = interfaces(&recorded(include_bytes!("recorded/interfaces")));
    let client = Interface {
        index: 3,
        name: "wlan1".to_owned(),
    };
    assert_eq!(clients, [client]);
    let station = recorded(include_bytes!("recorded/station"));
    assert_eq!(signal_dbm(&station), Some(-30));
    // It measures noise of -92 dBm in two channels, and does not report which one is in use.
    let survey = recorded(include_bytes!("recorded/survey"));
    assert_eq!(survey.len(), 2);
    assert_eq!(noise_dbm(&survey), None);
    let alone = recorded(include_bytes!("recorded/no-access-point"));
    assert_eq!(signal_dbm(&alone), None);
}

#[test]
fn clients_are_found_among_interfaces() {
    let datagrams = [
        [interface(6, "ap0", 3), interface(5, "wlan1", 2)].concat(),
        interface(4, "wlan0", 2),
        done(0),
    ];
    let found = interfaces(&answer(&datagrams).unwrap());
    let client = |index, name: &str| Interface {
        index,
        name: name.to_owned(),
    };
    assert_eq!(found, [client(4, "wlan0"), client(5, "wlan1")]);
}

#[test]
fn the_signal_is_the_drivers_average_or_that_of_the_last_frame() {
    let signal = |signals: &[Vec<u8>]| {
        let datagrams = [[station(signals), done(0)].concat()];
        signal_dbm(&answer(&datagrams).unwrap())
    };
    let (last, average) = (attribute(7, &dbm(-61)), attribute(13, &dbm(-58)));
    // NL80211_STA_INFO_CHAIN_SIGNAL: one for each antenna.
    let chains = nest(25, &[attribute(0, &dbm(-60)), attribute(1, &dbm(-66))]);
    assert_eq!(signal(&[last.clone(), chains.clone(), average]), Some(-58));
    assert_eq!(signal(&[last, chains]), Some(-61));
    assert_eq!(signal(&[attribute(7, &dbm(0))]), None);
    assert_eq!(signal(&[number(7, 200)]), None, "of another size");
    assert_eq!(signal_dbm(&answer(&[done(0)]).unwrap()), None);
}

#[test]
fn noise_is_that_of_the_channel_in_use() {
    let channel = |mhz, noise| vec![number(1, mhz), attribute(2, &dbm(noise))];
    let mut used = channel(5180, -97);
    used.push(attribute(3, &[]));
    used.push(attribute(4, &1000_u64.to_ne_bytes()));
    let all = [survey(&channel(2412, -90)), survey(&used), done(0)];
    assert_eq!(noise_dbm(&answer(&all).unwrap()), Some(-97));
    let unmeasured = [survey(&[number(1, 5180), attribute(3, &[])]), done(0)];
    assert_eq!(noise_dbm(&answer(&unmeasured).unwrap()), None);
    let unused = [survey(&channel(2412, -90)), done(0)];
    assert_eq!(noise_dbm(&answer(&unused).unwrap()), None);
}

#[test]
fn sinr_is_signal_less_noise_or_less_what_is_assumed() {
    let measured = reading("wlan0", -58, Some(-97));
    assert_eq!(measured.sample.sinr_db, Some(39.0));
    assert_eq!(measured.sample.power_dbm, Some(-58.0));
    let assumed = reading("wlan0", -58, None);
    assert_eq!(assumed.sample.sinr_db, Some(37.0));
    assert!(assumed.radio.contains("-95 dBm assumed"), "{assumed:?}");
}

#[test]
fn errors_of_the_kernel_are_errors() {
    // A driver without surveys: -EOPNOTSUPP at the end of the dump.
    let error = answer(&[done(-95)]).unwrap_err();
    assert!(matches!(error, NetlinkError::System(_)), "{error}");
    // struct nlmsgerr: -ENODEV, and the request's header.
    let content = [&(-19_i32).to_ne_bytes()[..], &[0; 16]].concat();
    let error = answer(&[netlink(2, 7, &content)]).unwrap_err();
    assert!(matches!(&error, NetlinkError::System(error) if error.raw_os_error() == Some(19)));
}

#[test]
fn answers_that_are_cut_or_of_other_requests_are_no_samples() {
    let whole = station(&[attribute(13, &dbm(-58))]);
    for length in 1..whole.len() {
        let mut answer = Answer::default();
        let cut = answer.take(7, &whole[..length]);
        assert!(cut.is_err(), "{length} bytes");
    }
    // Attributes whose length exceeds the data, or is less than a header.
    for length in [0_u16, 3, 200] {
        let attribute = [length.to_ne_bytes(), 21_u16.to_ne_bytes()].concat();
        let datagrams = [message(NEW_STATION, &[attribute]), done(0)];
        assert_eq!(signal_dbm(&answer(&datagrams).unwrap()), None);
    }
    let mut answer = Answer::default();
    answer.take(8, &whole).unwrap();
    answer.take(8, &done(0)).unwrap();
    assert!(!answer.is_done && answer.into_messages().is_empty());
}
