//! Row C2: the names of entries in a tenant's pull secret.

use std::time::{Duration, Instant};

use oarsman_core::image::keyring::Keyring;

fn entries(names: impl Iterator<Item = String>) -> String {
    let entry = |name: String| format!(r#""{name}": {{"username": "u", "password": "p"}}"#);
    format!(r#"{{"auths": {{{}}}}}"#, names.map(entry).collect::<Vec<_>>().join(","))
}

/// The shortest time of several tries: the machine may be busy with other tests.
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn shortest(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    (0..20).map(time).min().unwrap()
}

/// The old matcher took exponential time for this: the test did not end.
#[test]
fn thirty_stars_are_matched_with_250_characters_without_delay() {
    let pattern = format!("{}b", "*a".repeat(30));
    let keyring = Keyring::parse(&entries([format!("{pattern}.io")].into_iter())).unwrap();
    let text = "a".repeat(250);
    let image = format!("{text}.io/image");
    assert!(keyring.for_image(&image).is_empty());
    let took = shortest(|| drop(keyring.for_image(&image)));
    assert!(took < Duration::from_millis(1), "{took:?}");
    assert_eq!(keyring.for_image(&format!("{text}b.io/image")).len(), 1);
}

#[test]
fn a_file_with_too_many_entries_is_refused() {
    let names = |count: usize| entries((0..count).map(|n| format!("r{n}.io")));
    assert!(Keyring::parse(&names(1000)).is_ok());
    let told = Keyring::parse(&names(1001)).unwrap_err().to_string();
    assert!(told.contains("1001") && told.contains("1000"), "{told}");
}
