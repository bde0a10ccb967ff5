use std::fmt::Debug;

use crate::coordination::bundle::BundleConfig;
use crate::coordination::careful_resume::CarefulResumeConfig;
use crate::coordination::history::{HistoryConfig, StoreLimits};
use crate::scheduling::path::{EcfConfig, HbesConfig, SaEcfConfig};
use crate::scheduling::stream::WrrConfig;
use crate::settings::*;
use crate::{AckFrequencyConfig, EndpointConfig, MultipathConfig, TransportConfig};

fn table(entries: &[(&str, &str)]) -> Vec<(String, RawValue)> {
    let entries = entries.iter();
    entries
        .map(|(key, value)| ((*key).to_owned(), RawValue::parse(value)))
        .collect()
}

#[test]
fn keys_of_earlier_releases_are_read() {
    let read = |entries: &[(&str, &str)]| {
        let mut config = TransportConfig::default();
        apply(TransportConfig::SETTINGS, &mut config, &table(entries)).map(|()| config)
    };
    let config = read(&[("early-repeats", "off"), ("tail_copies", "off")]).unwrap();
    assert!(!config.handshake_retransmission && !config.tail_duplication);
    let former = "bbr3(chance_losses=true, yields=true, early_probes=true)";
    let config = read(&[("cc", former), ("ack", "as_asked(packets=3)")]).unwrap();
    let present = [
        (
            "cc",
            "bbr3(random_loss=true, coexist=true, fast_reprobe=true)",
        ),
        ("ack", "peer_requested(packets=3)"),
    ];
    let present = read(&present).unwrap();
    let shown = |config| show(TransportConfig::SETTINGS, config);
    let is_policy = |(key, _): &(&str, Shown)| matches!(*key, "cc" | "ack");
    assert!(
        shown(&present)
            .into_iter()
            .filter(is_policy)
            .eq(shown(&config).into_iter().filter(is_policy))
    );
    let twice = read(&[("tail_copies", "off"), ("tail_duplication", "on")]);
    assert!(twice.unwrap_err().text.contains("twice"));
}

/// Sets each value at the limits of each domain, shows it, writes it as shown, and shows it again.
fn round_trip<C: Clone>(settings: Settings<C>, config: &C) {
    for setting in settings {
        for sample in setting.samples() {
            let key = setting.key();
            let mut config = config.clone();
            match setting.set(&mut config, &sample) {
                Ok(()) => {}
                // It depends on another setting.
                Err(why) if why.text.contains("needs") => continue,
                Err(why) => panic!("{key} = {sample}: {why}"),
            }
            let shown = setting.show(&config);
            let written = match &shown {
                Some(Shown::Value(value)) => match setting.domain() {
                    Some(domain) => RawValue::parse(&domain.write(value)),
                    None => RawValue::parse(&Domain::SWITCH.write(value)),
                },
                _ => continue,
            };
            setting
                .set(&mut config, &written)
                .unwrap_or_else(|why| panic!("{key} = {written}: {why}"));
            assert_eq!(setting.show(&config), shown, "{key} = {sample}");
        }
        assert!(!setting.about().is_empty() && !setting.about().ends_with('.'));
        assert!(
            setting
                .set(&mut config.clone(), &RawValue::List(Vec::new()))
                .is_err()
        );
    }
}

#[test]
fn every_setting_shows_the_value_that_was_set() {
    round_trip(TransportConfig::SETTINGS, &TransportConfig::default());
    round_trip(
        EndpointConfig::SETTINGS,
        &EndpointConfig::from_seed([0; 32]),
    );
    round_trip(MultipathConfig::SETTINGS, &MultipathConfig::default());
    round_trip(BundleConfig::SETTINGS, &BundleConfig::default());
    round_trip(HistoryConfig::SETTINGS, &HistoryConfig::default());
    round_trip(StoreLimits::SETTINGS, &StoreLimits::default());
    round_trip(
        CarefulResumeConfig::SETTINGS,
        &CarefulResumeConfig::default(),
    );
    round_trip(AckFrequencyConfig::SETTINGS, &AckFrequencyConfig::default());
    round_trip(WrrConfig::SETTINGS, &WrrConfig::SCATTERED);
    round_trip(EcfConfig::SETTINGS, &EcfConfig::default());
    round_trip(SaEcfConfig::SETTINGS, &SaEcfConfig::default());
    round_trip(HbesConfig::SETTINGS, &HbesConfig::default());
}

/// Makes every policy with every parameter, and again from the text of its specification.
fn registry<F>(registry: &Registry<F>, spec: impl Fn(&F) -> Spec) {
    for entry in registry.entries() {
        let name = entry.name();
        let made = registry.make(name).unwrap();
        assert_eq!(spec(&made).to_string(), name, "defaults are not written");
        for (key, sample) in entry.samples() {
            let Ok(made) = entry.make(&[(key.to_owned(), sample.clone())]) else {
                panic!("{name}({key}={sample})");
            };
            let text = spec(&made).to_string();
            assert!(text.starts_with(name), "{text}");
            let again = registry
                .make(&text)
                .unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(spec(&again).to_string(), text);
        }
        assert!(!entry.about().is_empty(), "{name}");
        let rows = entry.parameters();
        assert!(
            rows.iter().all(|row| !row.default.is_empty()),
            "{name}: {rows:?}"
        );
    }
}

#[test]
fn every_policy_is_made_again_from_its_own_text() {
    use crate::congestion::{CONTROLLERS, INITIAL_WINDOWS, slow_start};
    use crate::scheduling::{path, stream};
    use crate::{ack, recovery};
    registry(&CONTROLLERS, |made| made.spec());
    registry(&INITIAL_WINDOWS, |made| made.spec());
    registry(&slow_start::EXITS, |made| made().spec());
    registry(&recovery::loss::DETECTORS, |made| made().spec());
    registry(&ack::POLICIES, |made| made().spec());
    registry(&stream::SCHEDULERS, |made| made().spec());
    registry(&path::SCHEDULERS, |made| made().spec());
}

#[test]
fn policies_keep_their_parameters_and_refuse_invalid_ones() {
    use crate::congestion::slow_start::EXITS;
    let made = EXITS
        .make("hybrid( factor = 0.25, min-rise=8ms, max_rise=none )")
        .unwrap();
    let written = "hybrid(factor=0.25, min_rise=8ms, max_rise=none)";
    assert_eq!(made().spec().to_string(), written);
    for (text, words) in [
        (
            "hybird",
            "unknown exit from slow start \"hybird\"; did you mean hybrid?",
        ),
        (
            "hybrid(factor=11)",
            "hybrid: factor: this must be a number from 0 to 10, not 11",
        ),
        (
            "hybrid(min_rise=4)",
            "min_rise: this must be a time from 0s to 10s, not 4: \"4\" has no unit; write 4ns",
        ),
        (
            "hybrid(facter=1)",
            "unknown key \"facter\"; did you mean factor?",
        ),
        ("hybrid(factor)", "write it as name(key=value, key=value)"),
        ("hybrid(factor=1", "write it as name(key=value, key=value)"),
        ("none(x=1)", "unknown key \"x\""),
    ] {
        let Err(error) = EXITS.make(text) else {
            panic!("{text} is taken");
        };
        assert!(error.contains(words), "{error}");
    }
}

/// Asserts that each field of a configuration has a key in its table: its own name, or the one given.
macro_rules! covers {
    ($config:ident { $($field:ident $(=> $key:literal)?),+ $(,)? }) => {{
        // A new field does not compile here until it is listed.
        fn all($config { $($field: _),+ }: &$config) {}
        all(&$config::default());
        let keys: Vec<_> = $config::SETTINGS.iter().map(|setting| setting.key()).collect();
        for field in [$(covers!(@ $field $($key)?)),+] {
            assert!(keys.contains(&field), "{field} of {} has no key", stringify!($config));
        }
    }};
    (@ $field:ident) => { stringify!($field) };
    (@ $field:ident $key:literal) => { $key };
}

#[test]
fn every_field_of_a_configuration_has_a_key() {
    // How long packets are gathered is chosen by the socket.
    covers!(TransportConfig {
        max_idle_timeout,
        handshake_timeout,
        keep_alive,
        response_ping,
        initial_rtt,
        first_flight_copy,
        handshake_retransmission,
        finished_copy,
        request_copy,
        tail_duplication,
        remember_rtt,
        two_probes,
        late_mtu_probes,
        max_concurrent_bidi_streams,
        max_concurrent_uni_streams,
        stream_receive_window,
        receive_window,
        max_stream_receive_window,
        max_receive_window,
        send_buffer,
        datagram_receive_buffer,
        datagram_send_buffer,
        controller => "cc",
        slow_start_exit,
        initial_window,
        history => "initial_window",
        careful_resume,
        backoff,
        emulated_flows,
        slow_start_growth,
        loss_detector => "loss_detection",
        ack_policy => "ack",
        stream_scheduler,
        pacing,
        send_quantum,
        send_gather => "send_quantum",
        ack_frequency,
        bundle,
        multipath,
        mtu,
        max_udp_payload_size,
        ecn,
        grease,
        skip_packet_numbers,
        key_update_interval,
    });
    // The keys and the seed are secrets; QUIC-LB needs a key; the number of the worker is chosen by who opens several endpoints.
    let EndpointConfig {
        connection_id_len: _,
        quic_lb: _,
        grease_fixed_bit: _,
        clients: _,
        reset_key: _,
        token_key: _,
        worker_key: _,
        worker: _,
        rng_seed: _,
    } = EndpointConfig::from_seed([0; 32]);
    covers!(AckFrequencyConfig {
        threshold,
        max_delay,
        reordering_threshold,
        acks_per_window,
        rtt_fraction,
        start_after,
    });
    covers!(MultipathConfig {
        max_paths,
        probe_interval,
        give_up_after,
        keep_alive,
        scheduler,
        reinjection,
        same_tuple_paths,
        bundle_paths,
    });
    covers!(BundleConfig {
        split_initial_window,
        sync_windows,
        sync_state,
        backoff,
        slow_start_growth,
        avoidance_growth,
        affected_growth,
        imbalance,
        rate_imbalance,
        backoff_on_delay,
        scope,
        coalesce,
        corroborated_by,
        floor_packets,
        fair,
        rate_based_share,
        connections,
        match_addresses,
    });
    covers!(HistoryConfig {
        average,
        scope,
        per_server_name,
        zero_rtt,
        cap,
        raise_only_when_limited,
        lifetime,
    });
    covers!(CarefulResumeConfig {
        max_jump,
        lifetime,
        beta,
        tokens,
        reconnaissance,
    });
    // Its lifetime is a setting of the history.
    covers!(StoreLimits {
        records,
        lifetime => "records",
        of_one_network => "records_per_network",
    });
}

fn applied(entries: &[(&str, &str)]) -> Result<TransportConfig, Refused> {
    let mut config = TransportConfig::default();
    apply(TransportConfig::SETTINGS, &mut config, &table(entries))?;
    Ok(config)
}

#[test]
fn empty_parameters_of_a_policy_are_refused() {
    use crate::congestion::slow_start::EXITS;
    for accepted in [
        "hybrid",
        "hybrid()",
        "hybrid( )",
        " hybrid( factor = 0.5 ) ",
    ] {
        assert!(EXITS.make(accepted).is_ok(), "{accepted}");
    }
    for refused in [
        "hybrid(,,,)",
        "hybrid(,)",
        "hybrid(factor=0.5,)",
        "hybrid(,factor=0.5)",
        "hybrid(factor=0.5,,min_rise=8ms)",
        "hybrid(factor=)",
        "hybrid(=0.5)",
        "hybrid(factor)",
        "hybrid(",
        "hybrid)(",
    ] {
        let Err(why) = EXITS.make(refused) else {
            panic!("{refused} is accepted");
        };
        assert!(
            why.contains("write it as name(key=value, key=value)"),
            "{why}"
        );
    }
}

#[test]
fn a_parameter_outside_of_its_policy_is_refused_with_what_to_write() {
    let inside = |key: &str, value| RawValue::Table(vec![(key.to_owned(), value)]);
    for (key, written, expected) in [
        (
            "hybrid",
            inside("factor", RawValue::Number(0.5)),
            "write slow_start_exit=\"hybrid(factor=0.5)\"",
        ),
        (
            "ecf",
            inside("beta", RawValue::Number(0.3)),
            "write multipath.scheduler=\"ecf(beta=0.3)\"",
        ),
        (
            "sa-ecf",
            RawValue::Switch(true),
            "write multipath.scheduler=\"sa_ecf\"",
        ),
        (
            "slow_start_exit",
            inside("factor", RawValue::Number(0.5)),
            "this must be a policy, as \"hybrid(factor=0.5)\", not a table",
        ),
        (
            "multipath",
            inside("scheduler", inside("beta", RawValue::Number(0.4))),
            "this must be a policy, as \"ecf(beta=0.4)\", not a table",
        ),
        (
            "multipath",
            inside("ecf", inside("beta", RawValue::Number(0.4))),
            "write scheduler=\"ecf(beta=0.4)\"",
        ),
        (
            "slow_start_exit",
            inside("facter", RawValue::Number(0.5)),
            "this must be a policy, as \"none\", not a table",
        ),
        ("hybird", RawValue::Switch(true), "unknown key \"hybird\""),
    ] {
        let mut config = TransportConfig::default();
        let written = [(key.to_owned(), written)];
        let why = apply(TransportConfig::SETTINGS, &mut config, &written).unwrap_err();
        assert!(why.text.contains(expected), "{why}");
    }
}

#[test]
fn a_date_is_refused_by_every_setting() {
    let date = RawValue::Date("1979-05-27".to_owned());
    for setting in TransportConfig::SETTINGS {
        let why = setting.set(&mut TransportConfig::default(), &date);
        let text = why.unwrap_err().text;
        assert!(text.contains("not the date or time 1979-05-27"), "{text}");
    }
}

#[test]
fn a_duplicate_key_is_refused() {
    let why = refused(applied(&[("keep_alive", "1s"), ("keep-alive", "2s")]));
    assert!(why.text.contains("there twice"), "{why}");
}

fn refused<T>(result: Result<T, Refused>) -> Refused {
    match result {
        Err(why) => why,
        Ok(_) => panic!("nothing was refused"),
    }
}

#[test]
fn a_table_enables_disables_or_starts_from_a_base() {
    let config = applied(&[("bundle", "published"), ("multipath", "true")]).unwrap();
    assert_eq!(*config.bundle.unwrap(), BundleConfig::published());
    assert_eq!(config.multipath.unwrap().max_paths, 4);
    let mut config = TransportConfig::default();
    let written = [
        (
            "bundle".to_owned(),
            RawValue::Table(table(&[("base", "published"), ("fair", "true")])),
        ),
        (
            "multipath".to_owned(),
            RawValue::Table(table(&[("max-paths", "7")])),
        ),
    ];
    apply(TransportConfig::SETTINGS, &mut config, &written).unwrap();
    let expected = BundleConfig {
        fair: true,
        ..BundleConfig::published()
    };
    assert_eq!(config.bundle.as_deref(), Some(&expected));
    assert_eq!(config.multipath.as_ref().unwrap().max_paths, 7);
    let off = [
        ("bundle".to_owned(), RawValue::Switch(false)),
        (
            "multipath".to_owned(),
            RawValue::Table(table(&[("on", "false"), ("scheduler", "rr")])),
        ),
    ];
    apply(TransportConfig::SETTINGS, &mut config, &off).unwrap();
    assert!(config.bundle.is_none() && config.multipath.is_none());
}

#[test]
fn errors_name_the_key_and_the_allowed_values() {
    for (key, value, words) in [
        ("receive_windw", "4MB", "did you mean receive_window?"),
        ("receive_window", "4", "no error"),
        (
            "receive_window",
            "4mb",
            "\"4mb\" can be bits or bytes; write 4MB for bytes",
        ),
        (
            "receive_window",
            "0B",
            "a size from 1B to 16GiB, or \"by_role\", not \"0B\"",
        ),
        ("receive_window", "4m", "unknown unit \"m\""),
        (
            "keep_alive",
            "0s",
            "a time from 1ms to 1d, or \"never\", not \"0s\"",
        ),
        (
            "backoff",
            "1",
            "a number above 0 and below 1, or \"own\", not 1",
        ),
        (
            "cc",
            "cubik",
            "did you mean cubic? known: newreno, cubic, bbr, bbr3, wireless, olia",
        ),
        ("cc", "7", "this must be a policy, as \"newreno\", not 7"),
        (
            "bundle",
            "publishd",
            "unknown bundle \"publishd\"; did you mean published?",
        ),
        (
            "bundle",
            "1",
            "true, false, \"default\", \"published\", \"published-every-event\" or a table, not 1",
        ),
        ("pacing", "yes", "this must be true or false, not \"yes\""),
    ] {
        let result = applied(&[(key, value)]);
        if words == "no error" {
            assert!(result.is_ok(), "{key} = {value}");
            continue;
        }
        let why = refused(result);
        assert_eq!(why.path.last().map(String::as_str), Some(key));
        assert!(why.text.contains(words), "{why}");
    }
    let mut config = TransportConfig::default();
    let inner = RawValue::Table(table(&[("scope", "some")]));
    let written = [(
        "multipath".to_owned(),
        RawValue::Table(vec![("bundle-paths".to_owned(), inner)]),
    )];
    let why = refused(apply(TransportConfig::SETTINGS, &mut config, &written));
    assert_eq!(why.path, ["multipath", "bundle-paths", "scope"]);
    assert_eq!(why.text, "unknown scope \"some\"; known: all, active");
}

#[test]
fn a_dependent_setting_needs_the_setting_that_it_depends_on() {
    let mut config = HistoryConfig::default();
    let mut set = |entries| apply(HistoryConfig::SETTINGS, &mut config, &table(entries));
    let why = refused(set(&[("window", "4")]));
    assert_eq!(why.to_string(), "window: window needs average = \"window\"");
    set(&[("window", "4"), ("average", "window")]).unwrap();
    let why = refused(set(&[("scope", "address"), ("v4_prefix", "16")]));
    assert!(why.text.contains("needs scope = \"prefix\""), "{why}");
}

#[test]
fn the_reference_has_a_row_for_each_key() {
    fn complete<C: Debug>(settings: Settings<C>, default: &C) {
        for row in rows(settings, "", default) {
            assert!(!row.about.is_empty() && !row.allowed.is_empty(), "{row:?}");
        }
    }
    complete(TransportConfig::SETTINGS, &TransportConfig::default());
    complete(HistoryConfig::SETTINGS, &HistoryConfig::default());
    let rows = rows(TransportConfig::SETTINGS, "", &TransportConfig::default());
    let find = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
    assert_eq!(find("receive_window").default, "by_role");
    assert_eq!(
        find("multipath.max_paths").allowed,
        "an integer from 1 to 16"
    );
    assert_eq!(find("multipath.bundle_paths.corroborated_by").default, "2");
    assert_eq!(find("slow_start_exit").default, "hystart++");
}
