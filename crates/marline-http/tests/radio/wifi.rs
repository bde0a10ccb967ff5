//! The signal of Wi-Fi, from this machine's kernel.

use std::sync::Arc;

use marline::TokioRuntime;
use marline_http::pipes::{RadioError, SignalHost, WifiSource};

#[tokio::test]
async fn an_interface_that_is_not_there_is_named_or_that_the_kernel_has_no_wifi() {
    let host = SignalHost {
        runtime: Arc::new(TokioRuntime::current().unwrap()),
        notify: Box::new(|notice| panic!("{notice}")),
    };
    let interface = Some("none-such".to_owned());
    let source = WifiSource { interface };
    match source.start(host).unwrap_err() {
        RadioError::NoNl80211 => {}
        error @ RadioError::NoInterface { .. } => {
            assert!(error.to_string().contains("none-such"), "{error}");
        }
        error => panic!("{error}"),
    }
}
