//! Facts about amounts: what is read, what is written, how they compare.

use super::{Format, ParseQuantityError, Quantity};

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_amount_is_written_back_in_its_shortest_form() {
    let rows = [
        ("0", "0"),
        ("0Mi", "0"),
        ("00", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1.5Gi", "1536Mi"),
        ("1023", "1023"),
        ("1Ki", "1Ki"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("1000000", "1M"),
        ("128974848", "128974848"),
        ("129e6", "129e6"),
        ("1000e3", "1e6"),
        ("1e-3", "1e-3"),
        ("1E", "1E"),
        ("1000k", "1M"),
        (".5", "500m"),
        ("5.", "5."),
        ("-250m", "-250m"),
        (" 1 ", "1"),
        ("0.0000000001", "1n"),
        ("1e-400", "1e-9"),
        ("10Ei", "9223372036854775807"),
        ("0.5m", "500u"),
    ];
    for (text, written) in rows {
        assert_eq!(quantity(text).to_string(), written, "{text}");
    }
}

#[test]
fn text_the_server_takes_for_short_is_repeated() {
    for text in ["2.125", "1.500", "1E3", "+5Mi", "05Mi"] {
        assert_eq!(quantity(text).to_string(), text);
    }
    // Anything computed is written anew.
    assert_eq!(quantity("2.125").plus(&Quantity::ZERO).to_string(), "2125m");
}

#[test]
fn what_is_no_amount_is_refused_with_the_reason() {
    for text in ["", "m", "-", ".", "1.2.3", "1 Gi", "abc", "1Gi!", "0x10"] {
        let refused = Quantity::parse(text);
        assert!(matches!(refused, Err(ParseQuantityError::NotANumber(_))), "{text}: {refused:?}");
    }
    for text in ["1Kb", "1ki", "1Mb", "1mm", "1iK", "5e", "1e1e1"] {
        let refused = Quantity::parse(text);
        let unknown = matches!(
            refused,
            Err(ParseQuantityError::UnknownSuffix { .. } | ParseQuantityError::NotANumber(_))
        );
        assert!(unknown, "{text}: {refused:?}");
    }
    let huge = Quantity::parse("1e400");
    assert_eq!(huge, Err(ParseQuantityError::OutOfRange("1e400".to_owned())));
}

#[test]
fn amounts_compare_as_numbers_whatever_their_suffix() {
    assert_eq!(quantity("1Gi"), quantity("1073741824"));
    assert_eq!(quantity("1"), quantity("1000m"));
    assert!(quantity("1G") < quantity("1Gi"));
    assert!(quantity("-1") < quantity("0"));
    assert!(quantity("0.1").is_multiple_of(&quantity("0.1")));
    assert!(!quantity("3Mi").is_multiple_of(&quantity("2Mi")));
    assert!(!quantity("3Mi").is_multiple_of(&Quantity::ZERO));
}

#[test]
fn a_sum_is_written_like_its_first_part_that_is_something() {
    assert_eq!(quantity("512Mi").plus(&quantity("512Mi")).to_string(), "1Gi");
    assert_eq!(Quantity::ZERO.plus(&quantity("64Mi")).to_string(), "64Mi");
    assert_eq!(quantity("1").plus(&quantity("500m")).to_string(), "1500m");
    assert_eq!(quantity("0.1").plus(&quantity("0.2")), quantity("300m"));
}

#[test]
fn counting_in_units_or_thousandths_rounds_away_from_zero() {
    assert_eq!(quantity("1.1").units(), 2);
    assert_eq!(quantity("-1.1").units(), -2);
    assert_eq!(quantity("0.0001").millis(), 1);
    assert_eq!(quantity("2").millis(), 2000);
    assert_eq!(quantity("0.0001").rounded_to_millis().to_string(), "1m");
    assert_eq!(quantity("2.125").rounded_to_millis().to_string(), "2.125");
    assert_eq!(Quantity::from_units(2048, Format::BinarySi).to_string(), "2Ki");
    assert_eq!(Quantity::from_millis(2500).to_string(), "2500m");
}
