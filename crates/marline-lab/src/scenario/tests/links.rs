//! Links and topologies.

use super::*;

#[test]
fn links_form_a_chain() {
    let experiment = read(
        "title = 'x'\nlinks = ['lte-a', 'rtt=25ms', 'rate=1gbps, rtt=1ms']\nworkload.page = 'small'\n\
         [sweep]\n'links.2.rtt' = ['25ms', '150ms']",
    );
    let topology = &experiment.cells[1].settings.topology;
    assert_eq!(topology.routers, ["r1", "r2"]);
    let specs: Vec<_> = topology
        .links
        .iter()
        .map(|link| link.spec.as_str())
        .collect();
    assert_eq!(specs, ["lte-a", "rtt=150ms", "rate=1gbps, rtt=1ms"]);
    assert_eq!(topology.links[0].between, ["client", "r1"]);
    assert_eq!(topology.links[2].between, ["r2", "server"]);
    assert_eq!(topology.links[1].name, "link2");
}

#[test]
fn invalid_topologies_are_rejected() {
    let text = |links: &str| {
        format!("title = 'x'\nhosts = ['a', 'b']\nrouters = ['r']\nworkload.page = 'x'\n{links}")
    };
    let good = "[links]\none = { between = ['client', 'r', 'a', 'b'], rtt = '1ms' }\ntwo = { between = ['r', 'server'], rtt = '1ms' }";
    assert_eq!(read(&text(good)).cells.len(), 1);
    for (links, expected) in [
        (
            good.replace("'client', ", ""),
            "train.toml:6: [links] one: host \"client\" has no link",
        ),
        (
            good.replace(", 'b'", ""),
            "train.toml:2: hosts: host \"b\" has no link",
        ),
        (
            good.replace("'r', 'server'", "'b', 'server'"),
            "no route from host \"client\" to \"server\"",
        ),
        (
            good.replace("'r', 'server'", "'q', 'server'"),
            "unknown node \"q\"; known: client, server, a, b, r",
        ),
        (
            good.replace("'r', 'server'", "'server', 'server'"),
            "a link joins two different nodes",
        ),
        (
            good.replace("between = ['r', 'server'], ", ""),
            "train.toml:7: [links] two: between is missing",
        ),
    ] {
        let error = error(&text(&links));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    let twice = text(good).replace("['r']", "['a']");
    assert!(error(&twice).contains("train.toml:3: routers: \"a\" is there twice"));
}

/// An error in a link names the place of the invalid setting.
#[test]
fn errors_in_links_name_the_setting() {
    for (more, expected) in [
        (
            "[variant.a]\nlink.los = '1%'",
            "train.toml:5: [variant.a.link] los: los: unknown key; did you mean loss?",
        ),
        (
            "[sweep]\n'link.loss' = ['1%', '101%']",
            "train.toml:5: [sweep] link.loss: loss: this must be a share in percent, not \"101%\": \"101%\" is above 100%",
        ),
        (
            "[sweep]\n'link.rtt' = ['5']",
            "train.toml:5: [sweep] link.rtt: rtt: \"5\" has no unit; write",
        ),
        (
            "[sweep]\nlink = ['lte-a', 'lte-b']",
            "train.toml:5: [sweep] link: preset: unknown preset \"lte-b\"; did you mean lte-a?",
        ),
        (
            "[variant.a]\nlink = 'loss=1%, loss=2%'",
            "train.toml:5: [variant.a] link: loss is there twice; keep one",
        ),
        (
            "[variant.a]\nlink.up.delay = '5ms'",
            "cannot be combined with",
        ),
        (
            "[variant.a]\nlink.trace.x = 1",
            "[variant.a.link.trace] x: trace.x: unknown key",
        ),
    ] {
        let error = error(&with(more));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
        assert!(
            error.contains("(in the link \"") || error.contains("twice"),
            "{error}"
        );
    }
    let both = with(
        "[variant.a]\nlink = 'rate=1mbps, up.rate=2mbps, up.delay=5ms'\n[sweep]\nlink.rate = ['3mbps']\nlink.rtt = ['4ms']",
    );
    assert_eq!(spec(&read(&both), 0), "rate=3mbps, rtt=4ms");
}
