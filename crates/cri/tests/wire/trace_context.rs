//! The trace context that the runtime is given.

use std::sync::{Arc, Mutex};

use oarsman_clock::{Clock, SystemClock};
use oarsman_cri::Runtime;
use oarsman_spans::wire::SpanKind;
use oarsman_spans::{SpanDescription, SpanOutcome, TracingSettings, in_span, traceparent};

use crate::harness::SocketFixture;

#[tokio::test]
async fn the_runtime_is_told_the_span_of_a_call_that_is_sampled_and_of_no_other() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let fixture = SocketFixture::new();
    let notes = told.clone();
    fixture.serve_raw(move |request| {
        let parent = request.headers().get("traceparent");
        let parent = parent.map(|value| value.to_str().unwrap().to_owned());
        notes.lock().unwrap().push(parent);
        async { tonic::Status::unimplemented("only listening").into_http() }
    });
    let client = fixture.client();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut expected = vec![None];
    client.version().await.unwrap_err();
    for rate in [0, 1_000_000] {
        let settings = TracingSettings { endpoint: None, sampling_rate_per_million: rate };
        let (tracer, _exporter) = oarsman_spans::start(&settings, "n1", &clock).unwrap();
        let describe = || SpanDescription {
            name: "test".into(),
            kind: SpanKind::Internal,
            attributes: Vec::new(),
        };
        let call = async {
            client.version().await.unwrap_err();
            traceparent()
        };
        let parent = in_span(Some(&tracer), describe, call, |_| SpanOutcome::default()).await;
        assert_eq!(parent.is_some(), rate > 0);
        expected.push(parent);
    }
    assert_eq!(*told.lock().unwrap(), expected);
}
