//! The examples of the standard, and what is refused.

use proptest::prelude::*;

use super::*;
use crate::StreamingError;

fn decode(masking: FrameMasking, pieces: &[&[u8]]) -> Result<Vec<WebSocketEvent>, StreamingError> {
    let mut decoder = WebSocketDecoder::new(masking);
    let events: Result<Vec<_>, _> = pieces.iter().map(|piece| decoder.feed(piece)).collect();
    Ok(events?.into_iter().flatten().collect())
}

fn data(bytes: &[u8], is_first: bool, is_last: bool, is_text: bool) -> WebSocketEvent {
    WebSocketEvent::Data { bytes: bytes.to_vec(), is_first, is_last, is_text }
}

/// The examples of section 5.7 of RFC 6455.
#[test]
fn the_examples_of_the_standard_are_decoded() {
    use FrameMasking::{Masked, Unmasked};
    let whole = data(b"Hello", true, true, true);
    let rows: [(FrameMasking, &[u8], Vec<WebSocketEvent>); 6] = [
        (Unmasked, b"\x81\x05Hello", vec![whole.clone()]),
        (Masked, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", vec![whole]),
        (
            Unmasked,
            b"\x01\x03Hel\x80\x02lo",
            vec![data(b"Hel", true, false, true), data(b"lo", false, true, true)],
        ),
        (Unmasked, b"\x89\x05Hello", vec![WebSocketEvent::Ping(b"Hello".to_vec())]),
        (Masked, b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", vec![WebSocketEvent::Pong]),
        (Unmasked, b"\x88\x02\x03\xe8ignored", vec![WebSocketEvent::Close(Some(1000))]),
    ];
    for (masking, bytes, want) in rows {
        assert_eq!(decode(masking, &[bytes]), Ok(want), "{bytes:?}");
    }
    let mut long = vec![0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0];
    long.extend([7; 65536]);
    assert_eq!(decode(Unmasked, &[&long]), Ok(vec![data(&[7; 65536], true, true, false)]));
}

#[test]
fn what_the_protocol_forbids_is_refused() {
    use FrameMasking::{Masked, Unmasked};
    let rows: [(FrameMasking, &[u8]); 9] = [
        (Masked, b"\x81\x05Hello"),
        (Unmasked, b"\x81\x85\x37\xfa\x21\x3d"),
        (Unmasked, b"\xc1\x05Hello"),
        (Unmasked, b"\x83\x05Hello"),
        (Unmasked, b"\x09\x05Hello"),
        (Unmasked, b"\x89\x7e\x00\x80"),
        (Unmasked, b"\x80\x01x"),
        (Unmasked, b"\x01\x01x\x01\x01x"),
        (Unmasked, b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"),
    ];
    for (masking, bytes) in rows {
        assert!(decode(masking, &[bytes]).is_err(), "{bytes:?}");
    }
    assert!(decode(Unmasked, &[b"\x88\x01x"]).is_err(), "half a status code");
}

/// The example of section 1.3 of RFC 6455.
#[test]
fn the_key_is_accepted_as_in_the_standard() {
    assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert!(
        is_valid_key("dGhlIHNhbXBsZSBub25jZQ==") && !is_valid_key("short") && !is_valid_key("")
    );
    assert!(is_valid_key(&new_key([9; 16])));
}

/// The messages with their pieces joined.
fn messages(events: Vec<WebSocketEvent>) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for event in events {
        let WebSocketEvent::Data { bytes, is_first, .. } = event else { continue };
        if is_first {
            messages.push(Vec::new());
        }
        messages.last_mut().expect("the first piece has begun it").extend(bytes);
    }
    messages
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_wherever_reads_end(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..5),
        cut in 0usize..600, masked: bool, mask: [u8; 4],
    ) {
        let (encoder_mask, masking) = if masked {
            (FrameMask::Random(Box::new(move || mask)), FrameMasking::Masked)
        } else {
            (FrameMask::None, FrameMasking::Unmasked)
        };
        let (mut encoder, mut wire) = (WebSocketEncoder::new(encoder_mask), Vec::new());
        for body in &bodies {
            encoder.binary(&[], body, &mut wire);
            encoder.pong(body, &mut wire);
        }
        let cut = cut.min(wire.len());
        let events = decode(masking, &[&wire[..cut], &wire[cut..]]).unwrap();
        prop_assert_eq!(events.iter().filter(|event| **event == WebSocketEvent::Pong).count(), bodies.len());
        prop_assert_eq!(messages(events), bodies);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let cut = cut.min(bytes.len());
        for masking in [FrameMasking::Masked, FrameMasking::Unmasked] {
            let (one, two) = (decode(masking, &[&bytes]), decode(masking, &[&bytes[..cut], &bytes[cut..]]));
            prop_assert_eq!(one.is_ok(), two.is_ok());
        }
    }
}
