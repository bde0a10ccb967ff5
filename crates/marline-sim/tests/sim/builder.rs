//! Networks described by names and texts.

use marline_sim::SimBuilder;
use marline_sim::fabric::PlanError;

#[test]
fn a_radio_and_its_wire_have_an_access_point_in_between() {
    let sim = SimBuilder::new(1)
        .link("home", ["client", "server"], "wifi-n-190,rtt=20ms")
        .build()
        .unwrap();
    sim.fabric(|fabric| {
        let names: Vec<_> = fabric.nodes().map(|node| fabric.name(node)).collect();
        assert_eq!(names, ["client", "server", "access point of home"]);
        let media: Vec<_> = fabric.media().map(|one| fabric.medium_name(one)).collect();
        assert_eq!(media, ["home radio", "home wire"]);
    });
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    assert_eq!(client.at(1), ([10, 1, 0, 1], 1).into());
    assert_eq!(server.at(1), ([10, 2, 0, 2], 1).into());
}

#[test]
fn errors_name_the_link() {
    let build = |builder: SimBuilder| builder.build().unwrap_err();
    let error = build(SimBuilder::new(1).link("lte", ["a", "b"], "rate=fast"));
    assert!(
        error.to_string().starts_with("link \"lte\": rate: "),
        "{error}"
    );
    let twice =
        SimBuilder::new(1)
            .link("lte", ["a", "b"], "rtt=1ms")
            .link("lte", ["a", "b"], "rtt=1ms");
    assert_eq!(build(twice), PlanError::DuplicateName("lte".into()).into());
    let islands =
        SimBuilder::new(1)
            .link("one", ["a", "b"], "rtt=1ms")
            .link("other", ["c", "d"], "rtt=1ms");
    let error = build(islands).to_string();
    assert_eq!(error, "no route from \"a\" to \"c\"");
}
