//! Amounts of resources: what is written is read as the same amount.

use oarsman_core::quantity::{Format, Quantity};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "quantities", max_len: 128, run, seeds };

fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut amounts = text.split('+').filter_map(|text| Quantity::parse(text).ok());
    let Some(first) = amounts.next() else { return };
    let second = amounts.next().unwrap_or_default();
    assert!(first.to_string().len() <= text.len() + 48, "{first} is much longer than {text}");
    round_trip(&first);
    round_trip(&first.plus(&second));
    round_trip(&first.minus(&second));
    let rounded = first.clone().rounded_to_millis();
    round_trip(&rounded);
    assert!(first.is_negative() || rounded >= first, "{first} became less: {rounded}");
    round_trip(&Quantity::from_units(first.units(), Format::BinarySi));
    round_trip(&Quantity::from_millis(first.millis()));
    assert!(!first.clone().or_nothing().is_negative(), "{first} is less than nothing");
    first.is_multiple_of(&second);
}

fn round_trip(amount: &Quantity) {
    let text = amount.to_string();
    match Quantity::parse(&text) {
        // A sum that is too large is written as it is, and read as the greatest amount.
        Ok(again) if amount.units().abs() == i64::MAX => {
            assert_eq!(again.units(), amount.units(), "{text} is read as {again:?}");
        }
        Ok(again) => assert_eq!(&again, amount, "{text} is read as {again:?}"),
        // A sum or a rounded amount may be beyond what can be read.
        Err(error) => assert!(text.len() > 20, "{text}: {error}"),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "250m",
        "1.5Gi",
        "12e6",
        "-3Ki",
        "0.000000001",
        "9223372036854775807",
        "1E",
        "100n+2Ei",
        "170141183460469231731687303715884105727n",
        ".5",
        "+1e-3+0",
    ])
}
