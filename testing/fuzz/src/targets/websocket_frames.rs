//! Frames of WebSocket from a client with channels, and frames of a runtime, through the relay of exec.

use oarsman_streaming::channels::{ChannelProtocol, ChannelSocket, RESIZE, STDIN};
use oarsman_streaming::relay::{
    Relay, RelayOutput, RemoteCommandRelay, RemoteCommandStreams, TunnelRelay,
};
use oarsman_streaming::websocket::FrameMask;

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "websocket-frames", max_len: 2048, run, seeds };

const PROTOCOLS: [ChannelProtocol; 6] = [
    ChannelProtocol::V5,
    ChannelProtocol::V4,
    ChannelProtocol::V4Base64,
    ChannelProtocol::V1,
    ChannelProtocol::V1Base64,
    ChannelProtocol::Unnamed,
];
const STREAMS: RemoteCommandStreams =
    RemoteCommandStreams { stdin: true, stdout: true, stderr: true, tty: true };

fn run(bytes: &[u8]) {
    let [first, cut, wire @ ..] = bytes else { return };
    let protocol = PROTOCOLS[usize::from(*first) % PROTOCOLS.len()];
    let cut = usize::from(*cut).min(wire.len());
    let relays: [fn(ChannelProtocol) -> Box<dyn Relay>; 2] = [
        |protocol| Box::new(RemoteCommandRelay::new(protocol, STREAMS)),
        |_| Box::new(TunnelRelay::default()),
    ];
    for relay in relays {
        let (mut one, mut two) = (relay(protocol), relay(protocol));
        let (mut whole, mut parts) = (RelayOutput::default(), RelayOutput::default());
        let of_whole = one.client_sent(wire, &mut whole);
        let of_parts = two
            .client_sent(&wire[..cut], &mut parts)
            .and_then(|()| two.client_sent(&wire[cut..], &mut parts));
        assert_eq!(of_whole.is_ok(), of_parts.is_ok(), "an error depends on where a read ended");
        // Each byte of a client becomes at most a frame of its own.
        let most = wire.len() * 16 + 64;
        assert!(whole.to_runtime.len() <= most, "{} of {}", whole.to_runtime.len(), wire.len());
        assert!(whole.to_client.len() <= most, "{} of {}", whole.to_client.len(), wire.len());
    }
    // The runtime may send anything, too.
    let mut out = RelayOutput::default();
    let mut relay = RemoteCommandRelay::new(protocol, STREAMS);
    relay.start(&mut out);
    drop(relay.runtime_sent(wire, &mut out));
    relay.finish(&mut out);
}

fn seeds() -> Vec<Vec<u8>> {
    let seed = |(index, protocol): (u8, ChannelProtocol)| {
        let mask = FrameMask::Random(Box::new(|| [1, 2, 3, 4]));
        let (mut socket, mut wire) = (ChannelSocket::client(protocol, mask), vec![index, 9]);
        socket.send(STDIN, b"ls\n", &mut wire);
        socket.send(RESIZE, br#"{"Width":80,"Height":24}"#, &mut wire);
        socket.close_channel(STDIN, &mut wire);
        socket.close(&mut wire);
        wire
    };
    (0..).zip(PROTOCOLS).map(seed).collect()
}
