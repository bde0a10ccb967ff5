//! Tunnels of `marline serve`, beside its sites.

use std::fs;
use std::path::PathBuf;

use crate::network::{HOST, SERVER};
use crate::programs::{Program, output_of, run, text};
use crate::{Setting, UP, traffic, until};

/// The first lines of the file, 7 of them.
const SITE: &str = r#"dir = "public"
listen = ":4433"
name = "192.0.2.1"
state = "state"
metrics = "127.0.0.1:9090"
[tunnel]
tokens = "tokens"
"#;

const TUNNEL: &str = r#"pool = ["10.77.0.0/24", "fd77::/64"]
tcp = "streams"
udp = true
"#;

impl Setting {
    /// Writes the file of the server, with `more` in its table of tunnels.
    fn write_site(&self, more: &str) -> PathBuf {
        let file = self.path("site.toml");
        fs::write(&file, [SITE, TUNNEL, more].concat()).unwrap();
        file
    }

    /// The content of the page of the site.
    fn page(&self) -> String {
        let certificate = self.up("none", "anna.token", &[])[3].clone();
        let url = format!("https://{SERVER}:4433/page.txt");
        let arguments = ["--cacert", &certificate, "--http3", &url];
        let output = output_of(&self.network.client, "get", &arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_server_of_sites_has_tunnels_that_stay_while_its_sites_change() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    fs::create_dir(setting.path("public")).unwrap();
    fs::write(setting.path("public/page.txt"), "one").unwrap();
    let file = setting.write_site("");
    let arguments = ["--config", text(&file)];
    let checked = output_of(&network.server, "check", &[text(&file)]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(said.contains("tunnels for users: 1"), "{said}");

    let mut server = Program::start_verb(&network.server, "serve", &arguments);
    server.wait_for("listening on", 1);
    assert_eq!(setting.page(), "one");
    let mut client = setting.start("tun-site", &[]);
    assert_eq!(client.count("TCP as streams"), 1, "{client:?}");
    traffic::ping(&network.client);
    for host in HOST {
        traffic::transfer(&network.client, host, || ());
    }
    assert_eq!(setting.metric("marline_tunnel_clients"), 1);
    setting.passes_datagrams_on();

    // Other sites, and a setting of tunnels that only a restart changes.
    fs::create_dir(setting.path("other")).unwrap();
    fs::write(setting.path("other/page.txt"), "two").unwrap();
    let text_of = fs::read_to_string(&file).unwrap();
    let other = text_of.replace("dir = \"public\"", "dir = \"other\"");
    fs::write(&file, format!("{other}mtu = 1300\n")).unwrap();
    server.signal("HUP");
    server.wait_for("only a restart applies it: [tunnel]", 1);
    server.wait_for("read the configuration again", 1);
    assert_eq!(setting.page(), "two");
    traffic::ping(&network.client);
    // What is wrong changes nothing, nor does a process that would take over.
    fs::write(&file, format!("{text_of}mtu = 5\n")).unwrap();
    server.signal("HUP");
    server.wait_for("site.toml:11: tunnel.mtu: this must be a number", 1);
    fs::write(&file, &other).unwrap();
    server.signal("USR2");
    server.wait_for("another process cannot take over tunnels", 1);
    server.wait_for("this process goes on", 1);
    traffic::ping(&network.client);
    assert_eq!(
        (client.count(UP), server.count("anna has a tunnel")),
        (1, 1)
    );

    // Other names of the server have no tunnels; those that are open stay.
    setting.write_site("names = \"vpn.example\"\n");
    server.signal("HUP");
    server.wait_for("read the configuration again", 2);
    traffic::ping(&network.client);
    let (status, messages) = run(
        &network.client,
        &setting.passing("anna.token", traffic::at(HOST[0], traffic::UDP_PORT), &[]),
    );
    assert_eq!(status.code(), Some(1));
    assert!(messages.contains("it answered 501"), "{messages}");

    // A user is revoked, and comes back.
    let tokens = setting.path("tokens");
    let lines = fs::read_to_string(&tokens).unwrap();
    setting.write_site("");
    fs::write(&tokens, "").unwrap();
    server.signal("HUP");
    server.wait_for("its token was revoked: 10.77.0.2", 1);
    client.wait_for("the server does not accept the token", 1);
    fs::write(&tokens, lines).unwrap();
    server.signal("HUP");
    client.wait_for(UP, 2);
    traffic::ping(&network.client);

    // It does not wait for tunnels.
    server.signal("TERM");
    assert!(server.ended().success());
    until("the end is printed", || {
        server.count("the server has stopped: 10.77.0.2") == 1
    });
    client.signal("TERM");
    assert!(client.ended().success());
}
