//! Users who prove by a certificate who they are.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};

use crate::network::HOST;
use crate::programs::{Program, run, text};
use crate::{Setting, UP, traffic};

/// An authority that signs certificates of users.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// The list with this revoked certificate.
    fn revoked(&self, serial: u64) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

impl Setting {
    /// Writes a certificate and its key into one file.
    fn certify(&self, authority: &Authority, user: &str, serial: u64) -> PathBuf {
        let mut params = CertificateParams::default();
        params.distinguished_name = Default::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        let path = self.path(&format!("{user}.pem"));
        fs::write(&path, certificate.pem() + &key.serialize_pem()).unwrap();
        path
    }

    /// The arguments of a client with a certificate in place of a token.
    fn up_with<'a>(&'a self, device: &'a str, file: &'a Path) -> Vec<String> {
        let mut arguments = self.up(device, "none", &["--cert", text(file), "--key", text(file)]);
        let token = arguments
            .iter()
            .position(|one| one == "--token-file")
            .unwrap();
        arguments.drain(token..token + 2);
        arguments
    }

    /// Runs a client that the server refuses.
    fn refused(&self, arguments: &[String], words: &str) {
        let (status, messages) = run(&self.network.client, arguments);
        assert_eq!(status.code(), Some(1), "{messages}");
        assert!(messages.contains(words), "`{words}` in {messages}");
    }
}

#[test]
fn a_certificate_proves_who_a_user_is_until_it_is_revoked() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let (ca, crl) = (setting.path("ca.pem"), setting.path("crl.pem"));
    fs::write(&ca, &own.pem).unwrap();
    fs::write(&crl, own.revoked(99)).unwrap();
    let carla = setting.certify(&own, "carla", 7);
    let stranger = setting.certify(&other, "stranger", 7);
    let more = ["--client-ca", text(&ca), "--client-crl", text(&crl)];
    let arguments =
        setting.serving(&[&more[..], &["--tcp", "streams", "--per-user", "1"]].concat());
    let mut server = Program::start(&network.server, &arguments);
    server.wait_for("listening on", 1);
    let before = network.routes();

    setting.refused(
        &setting.up_with("tun-stranger", &stranger),
        "it does not know its authority",
    );
    setting.refused(
        &setting.up("tun-bob", "bob.token", &[]),
        "the server does not accept the token",
    );
    assert_eq!(network.routes(), before);

    let mut client = Program::start(&network.client, &setting.up_with("tun-carla", &carla));
    client.wait_for(UP, 1);
    server.wait_for("CN=carla has a tunnel from ", 1);
    traffic::ping(&network.client);
    traffic::transfer(&network.client, HOST[0], || ());
    let opened = "marline_tunnel_split_connections_total{result=\"opened\"}";
    assert_eq!(setting.metric(opened), 1);

    // The limit of a user holds for the subject; another user has one of its own.
    let second = [
        &setting.up_with("tun-second", &carla)[..],
        &["--split".to_owned(), "10.3.0.0/24".to_owned()],
    ];
    setting.refused(&second.concat(), "429");

    // A new list that has others leaves the tunnel.
    fs::write(&crl, own.revoked(98)).unwrap();
    server.signal("HUP");
    server.wait_for("read the tokens again", 1);
    traffic::transfer(&network.client, HOST[1], || ());
    assert_eq!((client.count(UP), setting.metric(opened)), (1, 2));

    fs::write(&crl, own.revoked(7)).unwrap();
    server.signal("HUP");
    server.wait_for("its certificate is not accepted any more: 10.77.0.2", 1);
    client.wait_for("it was revoked", 1);
    assert_eq!(client.count(UP), 1);
    client.signal("TERM");
    assert!(client.ended().success());
    assert_eq!(network.routes(), before);

    // What is wrong with the files of a certificate is said at once.
    let missing = setting.path("missing.pem");
    setting.refused(&setting.up_with("tun-missing", &missing), "missing.pem");
}

/// The certificates of a site that asks for them are those of its tunnels.
#[test]
fn users_of_a_site_may_have_tunnels_with_its_certificates() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let own = Authority::new("own");
    fs::write(setting.path("ca.pem"), &own.pem).unwrap();
    let carla = setting.certify(&own, "carla", 7);
    // A client that asks for an address is asked for the certificates of the site without names.
    let site = r#"listen = ":4433"
state = "state"
[[site]]
names = "192.0.2.1"
respond = "hello"
[[site]]
respond = "hello"
client_certificates = { ca = "ca.pem", require = "optional" }
[tunnel]
client_certificates = true
"#;
    let file = setting.path("site.toml");
    fs::write(&file, site).unwrap();
    let arguments = ["--config", text(&file)];
    let mut server = Program::start_verb(&network.server, "serve", &arguments);
    server.wait_for("listening on", 1);
    let mut client = Program::start(&network.client, &setting.up_with("tun-site-user", &carla));
    client.wait_for(UP, 1);
    server.wait_for("CN=carla has a tunnel from ", 1);
    traffic::ping(&network.client);
    // Without a site that asks for certificates, nobody could be a user: the configuration stays.
    let asks = "client_certificates = { ca = \"ca.pem\", require = \"optional\" }\n";
    fs::write(&file, site.replace(asks, "")).unwrap();
    server.signal("HUP");
    server.wait_for("no site of these names asks for certificates", 1);
    traffic::ping(&network.client);
    client.signal("TERM");
    assert!(client.ended().success());
}
