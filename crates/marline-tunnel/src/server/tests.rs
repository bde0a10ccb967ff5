use super::*;
use crate::packet::tests::udp;

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_client_sends_from_its_own_addresses_only() {
    let assigned: Vec<IpAddr> = vec!["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
    let ranges = ranges(&nets(&["0.0.0.0/0", "::/0"]), &Scope::default());
    let verdict = |source: &str, destination: &str| {
        let header = Header::parse(&udp(source, destination, 0)).unwrap();
        accept(&header, &assigned, &ranges).err()
    };
    assert_eq!(verdict("10.0.0.2", "192.0.2.1"), None);
    assert_eq!(verdict("fd00::2", "2001:db8::1"), None);
    for (source, destination, expected) in [
        ("10.0.0.3", "192.0.2.1", Dropped::ForgedSource),
        ("fd00::3", "2001:db8::1", Dropped::ForgedSource),
        ("127.0.0.1", "192.0.2.1", Dropped::Unroutable),
        ("fe80::1", "2001:db8::1", Dropped::Unroutable),
        ("10.0.0.2", "127.0.0.1", Dropped::Unroutable),
        ("10.0.0.2", "255.255.255.255", Dropped::Unroutable),
        ("fd00::2", "ff02::1", Dropped::Unroutable),
        ("fd00::2", "::1", Dropped::Unroutable),
    ] {
        assert_eq!(
            verdict(source, destination),
            Some(expected),
            "{source} {destination}"
        );
    }
}

#[test]
fn a_scope_allows_what_it_has_in_common_with_the_destinations() {
    let destinations = nets(&["10.0.0.0/8", "2001:db8::/32"]);
    let prefixes = |target: &str| {
        let scope = Scope {
            target: Some(target.parse().unwrap()),
            protocol: None,
        };
        let ranges = ranges(&destinations, &scope);
        ranges.iter().flat_map(Range::prefixes).collect::<Vec<_>>()
    };
    assert_eq!(prefixes("10.1.0.0/16"), nets(&["10.1.0.0/16"]));
    assert_eq!(prefixes("0.0.0.0/0"), nets(&["10.0.0.0/8"]));
    assert_eq!(prefixes("192.0.2.0/24"), []);
}

#[test]
fn requests_for_addresses_are_answered_with_all_that_are_assigned() {
    let addresses: Vec<IpAddr> = vec!["10.0.0.2".parse().unwrap()];
    let request = |request, prefix: &str| Address {
        request,
        prefix: prefix.parse().unwrap(),
    };
    let requested = [
        request(4, "0.0.0.0/32"),
        request(5, "::/128"),
        request(6, "0.0.0.0/32"),
    ];
    let expected = [
        request(4, "10.0.0.2/32"),
        request(5, "::/128"),
        request(6, "0.0.0.0/32"),
    ];
    assert_eq!(answers(&requested, &addresses), expected);
    assert_eq!(answers(&[], &addresses), [request(0, "10.0.0.2/32")]);
}
