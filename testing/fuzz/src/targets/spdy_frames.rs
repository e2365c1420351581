//! Frames of SPDY/3.1 from a peer, read in two pieces; what was read is written and read again.

use oarsman_streaming::StreamingError;
use oarsman_streaming::spdy::{SpdyDecoder, SpdyEncoder, SpdyFrame};

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "spdy-frames", max_len: 2048, run, seeds };

fn run(bytes: &[u8]) {
    let Some((first, wire)) = bytes.split_first() else { return };
    let cut = usize::from(*first).min(wire.len());
    let (whole, parts) = (decode(&[wire]), decode(&[&wire[..cut], &wire[cut..]]));
    let (Ok(whole), Ok(parts)) = (&whole, &parts) else {
        assert_eq!(whole.is_err(), parts.is_err(), "an error depends on where a read ended");
        return;
    };
    assert_eq!(data(whole), data(parts), "data depends on where a read ended");
    let (mut encoder, mut again) = (SpdyEncoder::default(), Vec::new());
    whole.iter().for_each(|frame| encoder.encode(frame, &mut again));
    assert_eq!(decode(&[&again]).as_ref(), Ok(whole), "what is written is not what was read");
}

fn decode(pieces: &[&[u8]]) -> Result<Vec<SpdyFrame>, StreamingError> {
    let mut decoder = SpdyDecoder::default();
    let frames: Result<Vec<_>, _> = pieces.iter().map(|piece| decoder.feed(piece)).collect();
    Ok(frames?.into_iter().flatten().collect())
}

/// The bytes of all streams with their ids.
fn data(frames: &[SpdyFrame]) -> Vec<(u32, u8)> {
    let of_frame = |frame: &SpdyFrame| match frame {
        SpdyFrame::Data { stream, bytes, .. } => {
            bytes.iter().map(|byte| (*stream, *byte)).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    frames.iter().flat_map(of_frame).collect()
}

fn seeds() -> Vec<Vec<u8>> {
    let headers = |kind: &str| vec![("streamtype".to_owned(), kind.to_owned())];
    let frames = [
        SpdyFrame::SynStream { stream: 1, fin: false, headers: headers("error") },
        SpdyFrame::SynReply { stream: 1, fin: false, headers: Vec::new() },
        SpdyFrame::Headers { stream: 1, fin: true, headers: headers("stdout") },
        SpdyFrame::Data { stream: 3, fin: true, bytes: b"hello".to_vec() },
        SpdyFrame::RstStream { stream: 3, status: 5 },
        SpdyFrame::Settings(vec![(4, 100)]),
        SpdyFrame::Ping(2),
        SpdyFrame::GoAway { last_stream: 3, status: 0 },
        SpdyFrame::WindowUpdate { stream: 1, delta: 1 },
    ];
    let (mut encoder, mut wire) = (SpdyEncoder::default(), vec![20]);
    frames.iter().for_each(|frame| encoder.encode(frame, &mut wire));
    // A header block as zlib compresses it with the dictionary.
    let deflated = b"\x05\x80\x03\x00\x01\x00\x00\x00\x28\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x46\x70\x3a\x2b\x29\x4a\x4d\xcc\x85\x16\x25\xac\xa9\xa0\x80\x06\x00\x00\x00\xff\xff";
    vec![wire, deflated.to_vec()]
}
