use super::*;

fn key(scope: PathScope, address: &str, server_name: Option<&str>) -> PathKey {
    scope.key(SocketAddr::new(address.parse().unwrap(), 443), server_name)
}

#[test]
fn peers_in_one_prefix_have_equal_keys() {
    let scope = PathScope::default();
    for (a, b, same) in [
        ("192.0.2.1", "192.0.2.254", true),
        ("192.0.2.1", "192.0.3.1", false),
        ("192.0.2.1", "::ffff:192.0.2.7", true),
        ("2001:db8:1::1", "2001:db8:1:ffff::1", true),
        ("2001:db8:1::1", "2001:db8:2::1", false),
        ("0.0.0.1", "::1", false),
    ] {
        assert_eq!(key(scope, a, None) == key(scope, b, None), same, "{a} {b}");
    }
}

#[test]
fn each_scope_separates_exactly_the_networks_it_names() {
    let (a, b) = ("192.0.2.1", "192.0.2.2");
    assert_ne!(
        key(PathScope::Address, a, None),
        key(PathScope::Address, b, None)
    );
    assert_eq!(
        key(PathScope::Global, a, None),
        key(PathScope::Global, "2001:db8::1", None)
    );
    let everything = PathScope::Prefix { v4: 0, v6: 0 };
    assert_eq!(key(everything, a, None), key(everything, "10.0.0.1", None));
    assert_ne!(
        key(everything, a, None),
        key(everything, "2001:db8::1", None)
    );
    let nothing = PathScope::Prefix { v4: 255, v6: 255 };
    assert_eq!(key(nothing, a, None), key(PathScope::Address, a, None));
}

#[test]
fn ports_are_not_part_of_the_key() {
    let [a, b] = [1, 2].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
    assert_eq!(
        PathScope::Address.key(a, None),
        PathScope::Address.key(b, None)
    );
}

#[test]
fn server_names_are_compared_without_case() {
    let named = |name| key(PathScope::default(), "192.0.2.1", name);
    assert_eq!(named(Some("Example.ORG")), named(Some("example.org")));
    assert_ne!(named(Some("a.example")), named(Some("b.example")));
    assert_ne!(named(Some("a.example")), named(None));
    assert_eq!(named(Some(&"a".repeat(256))), named(None));
}
