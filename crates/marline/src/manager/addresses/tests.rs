use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::TokioRuntime;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SIX: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

fn of(runtime: &TokioRuntime, known: Option<&str>, remote: IpAddr) -> Option<String> {
    let entry = |name: &str, address: &str, is_up| InterfaceAddress {
        name: name.to_owned(),
        address: address.parse().unwrap(),
        index: None,
        is_up,
    };
    let addresses = Addresses {
        runtime,
        list: Some(vec![
            entry("eth0", "10.0.0.9", false),
            entry("wlan0", "169.254.0.7", true),
            entry("wlan0", "10.0.1.2", true),
            entry("wlan0", "10.0.1.3", true),
            entry("wlan0", "fe80::1", true),
            entry("wlan0", "2001:db8::2", true),
        ]),
    };
    let source = PathSource::Interface("wlan0".to_owned());
    let down = PathSource::Interface("eth0".to_owned());
    let listed = PathSource::Address("10.0.0.9".parse().unwrap());
    for gone in [&down, &listed] {
        assert_eq!(addresses.of(gone, None, remote), None);
    }
    let known = known.map(|address| address.parse().unwrap());
    let found = addresses.of(&source, known, remote);
    found.map(|address| address.to_string())
}

#[tokio::test]
async fn the_known_address_of_an_interface_is_kept_while_it_is_listed() {
    let runtime = TokioRuntime::current().unwrap();
    let of = |known, remote| of(&runtime, known, remote).unwrap();
    assert_eq!(of(None, SERVER), "10.0.1.2");
    assert_eq!(of(Some("10.0.1.3"), SERVER), "10.0.1.3");
    assert_eq!(of(Some("10.0.1.4"), SERVER), "10.0.1.2");
    assert_eq!(of(None, SIX), "2001:db8::2");
    let neighbor = "fe80::2".parse().unwrap();
    assert_eq!(of(None, neighbor), "fe80::1");
}

#[tokio::test]
async fn an_assigned_interface_has_the_addresses_of_the_one_that_it_is_now() -> io::Result<()> {
    let runtime = TokioRuntime::current()?;
    let addresses = Addresses::now(&runtime);
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut listed = addresses.list.iter().flatten();
    let name = listed.find(|one| one.address == here).unwrap().name.clone();
    let assigned = crate::AssignedInterface::default();
    let source = PathSource::Assigned(assigned.clone());
    assert_eq!(addresses.of(&source, None, here), None);
    assigned.assign(Some(name));
    assert_eq!(addresses.of(&source, None, here), Some(here));
    assigned.assign(Some("none".to_owned()));
    assert_eq!(addresses.of(&source, Some(here), here), None);
    Ok(())
}

#[tokio::test]
async fn loopback_addresses_are_found_listed_or_not() -> io::Result<()> {
    let runtime = TokioRuntime::current()?;
    let addresses = Addresses::now(&runtime);
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listed = addresses.list.iter().flatten();
    let entry = listed.clone().find(|one| one.address == here).unwrap();
    assert!(entry.is_up, "{entry:?}");
    let source = PathSource::Interface(entry.name.clone());
    assert_eq!(addresses.of(&source, None, here), Some(here));
    let second = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let address = |address| addresses.of(&PathSource::Address(address), None, here);
    assert_eq!(address(second), Some(second), "not listed, but local");
    assert_eq!(address(SERVER), None, "not this host's");
    assert_eq!(address(SIX), None, "of another family");
    Ok(())
}
