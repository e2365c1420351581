//! The messages and the service of OTLP, and what makes attributes.
#![expect(
    clippy::allow_attributes_without_reason,
    missing_docs,
    unused_qualifications,
    reason = "generated code has its own style"
)]

include!(concat!(env!("OUT_DIR"), "/opentelemetry.proto.collector.trace.v1.rs"));

impl KeyValue {
    /// An attribute that is a text.
    pub fn text(key: &str, text: impl Into<String>) -> Self {
        Self::new(key, any_value::Value::StringValue(text.into()))
    }

    /// An attribute that is a number.
    pub fn number(key: &str, number: i64) -> Self {
        Self::new(key, any_value::Value::IntValue(number))
    }

    fn new(key: &str, value: any_value::Value) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}
