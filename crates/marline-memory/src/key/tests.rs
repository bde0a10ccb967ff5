use std::net::SocketAddr;

use marline_proto::coordination::history::PathScope;
use proptest::prelude::*;

use super::*;

fn key(scope: PathScope, peer: &str, name: Option<&str>) -> PathKey {
    scope.key(SocketAddr::new(peer.parse().unwrap(), 443), name)
}

#[test]
fn keys_encode_to_readable_text() {
    let site = PathScope::default();
    for (key, text) in [
        (key(site, "192.0.2.7", None), "1/192.0.2.0/24"),
        (
            key(site, "192.0.2.7", Some("a-b.example.org")),
            "1/192.0.2.0/24/a-b.example.org",
        ),
        (
            key(site, "2001:db8:1:2::9", Some("example.org")),
            "1/2001:db8:1::/48/example.org",
        ),
        (key(PathScope::Address, "::1", Some("")), "1/::1/128/"),
        (key(PathScope::Global, "::1", None), "1/any"),
        (key(PathScope::Global, "::1", Some("any")), "1/any/any"),
    ] {
        assert_eq!(encode(&key).as_deref(), Some(text));
        assert_eq!(decode(text.as_bytes()), Some(key));
    }
}

#[test]
fn special_characters_in_server_names_are_escaped() {
    let odd = "a/24/x *\r\nDEL %41\0é";
    let text = encode(&key(PathScope::Global, "::1", Some(odd))).unwrap();
    assert_eq!(text, "1/any/a%2F24%2Fx%20%2A%0D%0Adel%20%2541%00%C3%A9");
    let name = decode(text.as_bytes()).unwrap().server_name;
    assert_eq!(name.as_deref(), Some("a/24/x *\r\ndel %41\0é"));
}

#[test]
fn malformed_keys_are_rejected() {
    for text in [
        "",
        "1",
        "1/",
        "1/192.0.2.0",
        "2/any",
        "1/192.0.2.1/24",
        "1/192.0.2.0/024",
        "1/192.0.2.0/+24",
        "1/192.0.2.0/33",
        "1/::ffff:192.0.2.0/24",
        "1/any/a/b",
        "1/any/A",
        "1/any/%61",
        "1/any/%2f",
        "1/any/%+1",
        "1/any/%2",
        "1/any/%FF",
    ] {
        assert_eq!(decode(text.as_bytes()), None, "{text}");
    }
    assert_eq!(decode(b"1/any/\xff"), None);
    let long = PathKey {
        network: None,
        server_name: Some("x".repeat(256).into()),
    };
    assert_eq!(encode(&long), None);
    assert_eq!(
        decode(format!("1/any/{}", "x".repeat(256)).as_bytes()),
        None
    );
}

proptest! {
    #[test]
    fn decode_inverts_encode(
        address: IpAddr,
        bits: u8,
        name in prop::option::of("\\PC{0,80}"),
    ) {
        let key = PathKey {
            network: Some(Prefix::new(address, bits)),
            server_name: name.filter(|name| name.len() <= 255).map(Into::into),
        };
        let text = encode(&key).unwrap();
        prop_assert!(text.len() <= MAX_KEY);
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        prop_assert_eq!(decode(text.as_bytes()), Some(key));
    }

    #[test]
    fn arbitrary_bytes_decode_to_a_unique_key_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(decode(&bytes).is_none_or(|key| encode(&key).unwrap().as_bytes() == bytes));
    }

    #[test]
    fn arbitrary_text_decodes_to_a_unique_key_or_none(text in "1/(any|::|192\\.0\\.2\\.0/24|[0-9a-f:.]{1,9}/[0-9]{1,3})(/[a-zA-Z%0-9/.]{0,9})?") {
        let key = decode(text.as_bytes());
        prop_assert!(key.is_none_or(|key| encode(&key).unwrap() == text));
    }
}
