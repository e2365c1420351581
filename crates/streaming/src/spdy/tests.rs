//! Frames as other implementations write them, and what is refused.

use proptest::prelude::*;

use super::*;
use crate::StreamingError;

fn decode(pieces: &[&[u8]]) -> Result<Vec<SpdyFrame>, StreamingError> {
    let mut decoder = SpdyDecoder::default();
    let frames: Result<Vec<_>, _> = pieces.iter().map(|piece| decoder.feed(piece)).collect();
    Ok(frames?.into_iter().flatten().collect())
}

fn headers(pairs: &[(&str, &str)]) -> SpdyHeaders {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Blocks as zlib 1.3 writes them with the dictionary, one after the other in one stream.
const BLOCKS: [&[u8]; 3] = [
    b"\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x46\x70\x3a\x2b\x29\x4a\x4d\xcc\x85\x16\x25\xac\xa9\xa0\x80\x06\x00\x00\x00\xff\xff",
    b"\xc2\x2a\x05\x4c\xcc\x29\xf9\xa5\x25\x00\x00\x00\x00\xff\xff",
    b"\x02\xa5\x55\x48\xb1\x5d\x04\xce\x21\x16\x06\x16\x06\x40\x9a\xb3\x08\x12\xcd\x99\xa0\xe4\xcf\x68\x80\xa1\x1b\x54\x46\x25\x02\x00\x00\x00\xff\xff",
];

fn syn_stream(stream: u8, block: &[u8]) -> Vec<u8> {
    let length = u8::try_from(block.len() + 10).expect("short");
    let head = [0x80, 3, 0, 1, 0, 0, 0, length, 0, 0, 0, stream, 0, 0, 0, 0, 0, 0];
    [&head, block].concat()
}

#[test]
fn headers_are_decompressed_with_the_dictionary_and_what_came_before() {
    let wire: Vec<_> =
        (0u8..).zip(BLOCKS).flat_map(|(index, block)| syn_stream(index * 2 + 1, block)).collect();
    let want = [
        headers(&[("streamtype", "error")]),
        headers(&[("streamtype", "stdout")]),
        headers(&[("port", "8080"), ("requestid", "0"), ("streamtype", "data")]),
    ];
    let want: Vec<_> = [1, 3, 5]
        .into_iter()
        .zip(want)
        .map(|(stream, headers)| SpdyFrame::SynStream { stream, fin: false, headers })
        .collect();
    assert_eq!(decode(&[&wire]), Ok(want.clone()));
    let bytes: Vec<_> = wire.chunks(1).collect();
    assert_eq!(decode(&bytes), Ok(want));
}

/// Frames as spdystream writes them.
#[test]
fn frames_without_headers_are_as_on_the_wire() {
    let rows: [(SpdyFrame, &[u8]); 6] = [
        (
            SpdyFrame::Data { stream: 5, fin: true, bytes: b"hi".to_vec() },
            b"\x00\x00\x00\x05\x01\x00\x00\x02hi",
        ),
        (
            SpdyFrame::RstStream { stream: 3, status: RST_CANCEL },
            b"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x03\x00\x00\x00\x05",
        ),
        (SpdyFrame::Ping(2), b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x02"),
        (
            SpdyFrame::GoAway { last_stream: 9, status: 0 },
            b"\x80\x03\x00\x07\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00\x00",
        ),
        (
            SpdyFrame::WindowUpdate { stream: 1, delta: 256 },
            b"\x80\x03\x00\x09\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x01\x00",
        ),
        (
            SpdyFrame::Settings(vec![(7, 65536)]),
            b"\x80\x03\x00\x04\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x07\x00\x01\x00\x00",
        ),
    ];
    for (frame, bytes) in rows {
        let mut wire = Vec::new();
        SpdyEncoder::default().encode(&frame, &mut wire);
        assert_eq!(wire, bytes, "{frame:?}");
        assert_eq!(decode(&[bytes]), Ok(vec![frame]));
    }
}

#[test]
fn what_the_protocol_forbids_or_what_is_too_long_is_refused() {
    let rows: [(&str, &[u8]); 8] = [
        ("another version", b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x02"),
        ("data of no stream", b"\x00\x00\x00\x00\x00\x00\x00\x00"),
        ("a long control frame", b"\x80\x03\x00\x01\x00\xff\xff\xff"),
        ("half a ping", b"\x80\x03\x00\x06\x00\x00\x00\x02\x00\x00"),
        ("half a reset", b"\x80\x03\x00\x03\x00\x00\x00\x04\x00\x00\x00\x02"),
        ("settings cut off", b"\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x07"),
        ("no zlib", b"\x80\x03\x00\x02\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00"),
        (
            "another dictionary",
            b"\x80\x03\x00\x02\x00\x00\x00\x0a\x00\x00\x00\x01\x78\xf9\x01\x02\x03\x04",
        ),
    ];
    for (what, bytes) in rows {
        assert!(decode(&[bytes]).is_err(), "{what}");
    }
    assert_eq!(
        decode(&[b"\x80\x03\x00\x63\x00\x00\x00\x01x"]),
        Ok(vec![]),
        "unknown kinds are ignored"
    );
}

#[test]
fn headers_that_grow_beyond_the_bound_are_refused() {
    let long = headers(&[("a", &"x".repeat(60 * 1024)), ("b", &"x".repeat(60 * 1024))]);
    let mut wire = Vec::new();
    SpdyEncoder::default()
        .encode(&SpdyFrame::SynReply { stream: 1, fin: false, headers: long }, &mut wire);
    assert!(decode(&[&wire]).is_err());
    // A deflated block of a few hundred bytes that grows to a hundred KiB.
    let raw = miniz_oxide::deflate::compress_to_vec(&vec![0; 100 * 1024], 9);
    let block = [&[0x78, 0x01][..], &raw].concat();
    assert!(block.len() < 1000);
    let length = u16::try_from(block.len() + 4).expect("short").to_be_bytes();
    let head = [0x80, 3, 0, 2, 0, 0, length[0], length[1], 0, 0, 0, 1];
    assert!(decode(&[&head, &block]).is_err());
}

fn any_frame() -> impl Strategy<Value = SpdyFrame> {
    let stream = 1..=STREAM_ID_MASK;
    let pairs = proptest::collection::vec(("[a-z]{1,12}", "[ -~]{0,40}"), 0..5);
    prop_oneof![
        (stream.clone(), any::<bool>(), pairs.clone())
            .prop_map(|(stream, fin, headers)| SpdyFrame::SynStream { stream, fin, headers }),
        (stream.clone(), any::<bool>(), pairs.clone())
            .prop_map(|(stream, fin, headers)| SpdyFrame::SynReply { stream, fin, headers }),
        (stream.clone(), any::<bool>(), pairs)
            .prop_map(|(stream, fin, headers)| SpdyFrame::Headers { stream, fin, headers }),
        (stream.clone(), any::<u32>())
            .prop_map(|(stream, status)| SpdyFrame::RstStream { stream, status }),
        any::<u32>().prop_map(SpdyFrame::Ping),
        (stream, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(stream, fin, bytes)| SpdyFrame::Data { stream, fin, bytes }),
    ]
}

/// The frames, with pieces of data joined.
fn joined(frames: Vec<SpdyFrame>) -> Vec<SpdyFrame> {
    let mut all: Vec<SpdyFrame> = Vec::new();
    for frame in frames {
        match (all.last_mut(), frame) {
            (
                Some(SpdyFrame::Data { stream, fin, bytes }),
                SpdyFrame::Data { stream: next, fin: ends, bytes: more },
            ) if *stream == next && !*fin => {
                bytes.extend(more);
                *fin = ends;
            }
            (_, frame) => all.push(frame),
        }
    }
    all
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_wherever_reads_end(
        frames in proptest::collection::vec(any_frame(), 1..8), cut in 0usize..1500,
    ) {
        let (mut encoder, mut wire) = (SpdyEncoder::default(), Vec::new());
        frames.iter().for_each(|frame| encoder.encode(frame, &mut wire));
        let cut = cut.min(wire.len());
        let decoded = decode(&[&wire[..cut], &wire[cut..]]).unwrap();
        prop_assert_eq!(joined(decoded), joined(frames));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
        let control = [&[0x80, 3, 0][..], &bytes].concat();
        let cut = cut.min(control.len());
        prop_assert_eq!(decode(&[&control]).is_ok(), decode(&[&control[..cut], &control[cut..]]).is_ok());
    }
}
