//! The signal of modems, from ModemManager.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use marline::{Runtime, TokioRuntime};
use marline_http::pipes::{
    LiveSignal, ModemSource, RadioError, RadioSample, RadioSignal, SignalHost, SignalNotice,
};
use zbus::zvariant::Value;

use crate::bus::{Bus, REFUSES, SETS_RATE, Values};

/// The measurements of a modem.
fn measured(snr: f64, rsrp: f64) -> Values {
    Values::from([("snr", Value::from(snr)), ("rsrp", Value::from(rsrp))])
}

fn sample(sinr_db: f64, power_dbm: f64) -> RadioSample {
    RadioSample {
        sinr_db: Some(sinr_db),
        power_dbm: Some(power_dbm),
    }
}

/// A signal, and its notices.
struct Radio {
    signal: LiveSignal,
    runtime: Arc<TokioRuntime>,
    notices: mpsc::Receiver<SignalNotice>,
}

impl Radio {
    async fn start(bus: &Bus, modem: Option<u32>) -> Result<Self, RadioError> {
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        let (sender, notices) = mpsc::channel();
        let host = SignalHost {
            runtime: Arc::clone(&runtime) as Arc<dyn Runtime>,
            notify: Box::new(move |notice| sender.send(notice).unwrap_or_default()),
        };
        let source = ModemSource {
            modem,
            bus: Some(bus.address.clone()),
        };
        // It waits for the first answer.
        let started = tokio::task::spawn_blocking(|| source.start(host));
        Ok(Self {
            signal: started.await.unwrap()?,
            runtime,
            notices,
        })
    }

    /// Waits until the quality is `wanted`.
    async fn has(&self, wanted: Option<RadioSample>) {
        while self.signal.sample(self.runtime.now()) != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modem_that_did_not_measure_does_until_the_signal_is_dropped() {
    let Some(mut bus) = Bus::start().await else {
        return;
    };
    bus.start_manager().await;
    bus.add_modem(0, 0, SETS_RATE, measured(12.5, -95.0)).await;
    let radio = Radio::start(&bus, None).await.unwrap();
    radio.has(Some(sample(12.5, -95.0))).await;
    assert_eq!(bus.rate(0).await, 1);
    let found = radio.notices.try_recv().unwrap();
    assert_eq!(found.to_string(), "modem 0 (LTE): SINR 12.5 dB, -95.0 dBm");

    bus.set(0, "Lte", measured(-2.0, -118.0)).await;
    radio.has(Some(sample(-2.0, -118.0))).await;
    bus.set(0, "Nr5g", measured(21.0, -80.0)).await;
    radio.has(Some(sample(21.0, -80.0))).await;

    drop(radio);
    while bus.rate(0).await != 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modem_that_goes_away_is_found_again_under_another_number() {
    let Some(mut bus) = Bus::start().await else {
        return;
    };
    bus.start_manager().await;
    bus.add_modem(0, 5, REFUSES, measured(9.0, -100.0)).await;
    let radio = Radio::start(&bus, None).await.unwrap();
    radio.has(Some(sample(9.0, -100.0))).await;
    assert!(matches!(
        radio.notices.try_recv(),
        Ok(SignalNotice::Found { .. })
    ));

    bus.remove_modem(0).await;
    radio.has(None).await;
    let lost = radio.notices.try_recv().unwrap();
    assert!(lost.is_warning(), "{lost}");
    bus.add_modem(1, 5, REFUSES, measured(7.0, -105.0)).await;
    radio.has(Some(sample(7.0, -105.0))).await;
    assert!(matches!(
        radio.notices.try_recv(),
        Ok(SignalNotice::Found { radio, .. }) if radio == "modem 1 (LTE)"
    ));

    bus.stop_manager().await;
    radio.has(None).await;
    assert!(matches!(
        radio.notices.try_recv(),
        Ok(SignalNotice::Lost { .. })
    ));
    bus.start_manager().await;
    bus.add_modem(0, 5, REFUSES, measured(8.0, -101.0)).await;
    radio.has(Some(sample(8.0, -101.0))).await;
    assert_eq!(bus.rate(0).await, 5, "what others have set stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_a_modem_does_not_know_are_unknown() {
    let Some(mut bus) = Bus::start().await else {
        return;
    };
    bus.start_manager().await;
    // ModemManager's MM_SIGNAL_UNKNOWN.
    bus.add_modem(0, 1, REFUSES, measured(-f64::MAX, -f64::MAX))
        .await;
    let radio = Radio::start(&bus, Some(0)).await.unwrap();
    radio.has(Some(RadioSample::default())).await;
    bus.set(0, "Lte", Values::from([("snr", Value::from("12"))]))
        .await;
    bus.set(0, "Nr5g", Values::from([("snr", Value::from(3.0))]))
        .await;
    radio.has(Some(RadioSample::of_sinr(3.0))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named() {
    let Some(mut bus) = Bus::start().await else {
        return;
    };
    let error = async |bus: &Bus, modem| match Radio::start(bus, modem).await {
        Ok(_) => panic!("there is no radio"),
        Err(error) => error,
    };
    assert_eq!(error(&bus, None).await, RadioError::NoModemManager);
    bus.start_manager().await;
    let none = RadioError::NoModem { modem: None };
    assert_eq!(error(&bus, None).await, none);
    bus.add_modem(3, 0, REFUSES, measured(9.0, -100.0)).await;
    let other = RadioError::NoModem { modem: Some(1) };
    assert_eq!(error(&bus, Some(1)).await, other);
    let denied = error(&bus, Some(3)).await;
    assert!(
        matches!(denied, RadioError::Denied { modem: 3, .. }),
        "{denied}"
    );
    assert!(
        denied
            .to_string()
            .contains("PolicyKit authorization failed"),
        "{denied}"
    );
    bus.address = "unix:path=/nonexistent".to_owned();
    let none = error(&bus, None).await;
    assert!(matches!(none, RadioError::Bus { .. }), "{none}");
}
