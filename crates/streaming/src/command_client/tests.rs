//! The client against the relay of a server.

use std::time::Duration;

use tokio::io::duplex;

use super::*;
use crate::relay::{self, RemoteCommandRelay, RemoteCommandStreams};
use crate::spdy::{SpdyDecoder, SpdyEncoder, SpdyFrame};

const ALL: RemoteCommandStreams =
    RemoteCommandStreams { stdin: true, stdout: true, stderr: true, tty: true };

/// A runtime whose command writes its input to both outputs, and ends with its input.
async fn echo(mut stream: tokio::io::DuplexStream) {
    let (mut decoder, mut encoder) = (SpdyDecoder::default(), SpdyEncoder::default());
    let (mut buffer, mut kinds) = ([0; 4096], std::collections::BTreeMap::new());
    loop {
        let length = stream.read(&mut buffer).await.unwrap();
        let mut wire = Vec::new();
        for frame in decoder.feed(&buffer[..length]).unwrap() {
            match frame {
                SpdyFrame::SynStream { stream, headers, .. } => {
                    kinds.insert(headers[0].1.clone(), stream);
                    let reply = SpdyFrame::SynReply { stream, fin: false, headers: vec![] };
                    encoder.encode(&reply, &mut wire);
                }
                SpdyFrame::Data { stream, bytes, fin } if kinds["stdin"] == stream => {
                    for (kind, bytes) in [("stdout", &bytes), ("stderr", &bytes)] {
                        let (stream, bytes) = (kinds[kind], bytes.clone());
                        encoder.encode(&SpdyFrame::Data { stream, bytes, fin }, &mut wire);
                    }
                    if fin {
                        let bytes = br#"{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"9"}]}}"#.to_vec();
                        let stream = kinds["error"];
                        encoder.encode(&SpdyFrame::Data { stream, bytes, fin }, &mut wire);
                    }
                }
                _ => {}
            }
        }
        stream.write_all(&wire).await.unwrap();
        if length == 0 {
            return;
        }
    }
}

#[tokio::test]
async fn more_than_all_buffers_hold_goes_there_and_comes_back_with_the_exit_code() {
    let ((client, its), (runtime, other)) = (duplex(4096), duplex(4096));
    tokio::spawn(echo(other));
    let relay = RemoteCommandRelay::new(ChannelProtocol::V5, ALL);
    tokio::spawn(relay::run(its, runtime, Box::new(relay), Duration::ZERO));
    let input: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[0] ^ 7).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = CommandStreams {
        stdin: Some(input.as_slice()),
        stdout: &mut out,
        stderr: &mut err,
        sizes: None,
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), run(client, streams)).await;
    assert_eq!(ended.unwrap().unwrap(), 9);
    assert!(out == input && err == input, "{} and {} bytes", out.len(), err.len());
}

/// `head -1` of a long input: the server closes its end while the client still sends.
#[tokio::test]
async fn a_command_that_ends_before_its_input_gives_its_output_and_its_exit_code() {
    let (client, mut server) = duplex(4096);
    tokio::spawn(async move {
        let (mut socket, mut wire) = (ChannelSocket::server(ChannelProtocol::V5), Vec::new());
        socket.send(STDOUT, b"first line", &mut wire);
        socket.send(ERROR, br#"{"status":"Success"}"#, &mut wire);
        server.write_all(&wire).await.unwrap();
    });
    let (input, mut out, mut err) = (vec![b'x'; 1 << 20], Vec::new(), Vec::new());
    let streams = CommandStreams {
        stdin: Some(input.as_slice()),
        stdout: &mut out,
        stderr: &mut err,
        sizes: None,
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), run(client, streams)).await;
    assert_eq!(ended.unwrap().unwrap(), 0);
    assert_eq!(out, b"first line");
}

#[test]
fn a_status_has_an_exit_code_or_a_message() {
    assert_eq!(exit_code(br#"{"status":"Success"}"#).unwrap(), 0);
    let failed = exit_code(br#"{"status":"Failure","message":"no such file"}"#).unwrap_err();
    assert_eq!(failed.to_string(), "no such file");
    assert!(exit_code(b"").is_err());
}
