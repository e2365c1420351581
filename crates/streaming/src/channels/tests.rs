//! Messages on their channels, and what is refused.

use super::*;
use crate::websocket::FrameMask;

fn client(protocol: ChannelProtocol) -> ChannelSocket {
    ChannelSocket::client(protocol, FrameMask::Random(Box::new(|| [1, 2, 3, 4])))
}

fn data(channel: u8, bytes: &[u8]) -> ChannelEvent {
    ChannelEvent::Data { channel, bytes: bytes.to_vec() }
}

#[test]
fn the_first_known_subprotocol_is_chosen() {
    use ChannelProtocol as P;
    let rows: [(&[&str], Option<P>, Option<P>); 7] = [
        (&[], Some(P::Unnamed), Some(P::Unnamed)),
        (&["v5.channel.k8s.io"], Some(P::V5), None),
        (
            &["v6.channel.k8s.io", "v4.channel.k8s.io", "v5.channel.k8s.io"],
            Some(P::V4),
            Some(P::V4),
        ),
        (&["channel.k8s.io"], Some(P::V1), None),
        (&["v4.base64.channel.k8s.io"], Some(P::V4Base64), Some(P::V4Base64)),
        (&["base64.channel.k8s.io"], Some(P::V1Base64), None),
        (&["v2.channel.k8s.io", "chat"], None, None),
    ];
    for (offered, of_command, of_port_forward) in rows {
        assert_eq!(ChannelProtocol::of_command(offered), of_command, "{offered:?}");
        assert_eq!(ChannelProtocol::of_port_forward(offered), of_port_forward, "{offered:?}");
    }
}

#[test]
fn messages_arrive_on_their_channels_wherever_reads_end() {
    use ChannelProtocol as P;
    for protocol in [P::V5, P::V4, P::V4Base64, P::V1, P::V1Base64, P::Unnamed] {
        let (mut from, mut to) = (client(protocol), ChannelSocket::server(protocol));
        let mut wire = Vec::new();
        from.send(STDIN, b"hello", &mut wire);
        from.send(RESIZE, br#"{"Width":80,"Height":24}"#, &mut wire);
        from.close_channel(STDIN, &mut wire);
        from.close(&mut wire);
        let mut replies = Vec::new();
        let events: Vec<_> =
            wire.chunks(3).flat_map(|piece| to.feed(piece, &mut replies).expect("valid")).collect();
        let joined = |channel| {
            let bytes = events.iter().filter_map(|event| match event {
                ChannelEvent::Data { channel: of, bytes } if *of == channel => Some(bytes.clone()),
                _ => None,
            });
            bytes.collect::<Vec<_>>().concat()
        };
        assert_eq!(joined(STDIN), b"hello", "{protocol:?}");
        assert_eq!(joined(RESIZE), br#"{"Width":80,"Height":24}"#, "{protocol:?}");
        assert_eq!(events.contains(&ChannelEvent::Close(STDIN)), protocol == P::V5);
        assert_eq!(events.last(), Some(&ChannelEvent::End), "{protocol:?}");
    }
}

/// Messages as the Go client of `v4.base64.channel.k8s.io` has them: a digit, then base64 with padding.
#[test]
fn base64_is_as_other_clients_write_it() {
    let (mut server, mut wire) = (ChannelSocket::server(ChannelProtocol::V4Base64), Vec::new());
    server.send(STDOUT, b"hi", &mut wire);
    assert_eq!(wire, b"\x81\x051aGk=");
    let mut client = client(ChannelProtocol::V4Base64);
    assert_eq!(client.feed(&wire, &mut Vec::new()), Ok(vec![data(1, b"hi")]));
    assert!(client.feed(b"\x81\x031aG", &mut Vec::new()).is_err(), "not base64");
    assert!(client.feed(b"\x81\x01!", &mut Vec::new()).is_err(), "not a digit");
}

#[test]
fn a_ping_is_answered_and_a_wrong_close_is_refused() {
    let (mut from, mut to) =
        (client(ChannelProtocol::V5), ChannelSocket::server(ChannelProtocol::V5));
    let (mut wire, mut replies) = (Vec::new(), Vec::new());
    from.encoder.ping(&mut wire);
    assert_eq!(to.feed(&wire, &mut replies), Ok(vec![]));
    assert_eq!(replies, b"\x8a\x00");
    for close in [&[][..], &[0, 1][..]] {
        let (mut wire, mut to) = (Vec::new(), ChannelSocket::server(ChannelProtocol::V5));
        from.send(CLOSE_CHANNEL, close, &mut wire);
        assert!(to.feed(&wire, &mut replies).is_err(), "{close:?}");
    }
}
