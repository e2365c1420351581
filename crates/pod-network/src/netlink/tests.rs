//! Tests of messages and their attributes; sockets are tested by what is done with them.

use super::*;

#[test]
fn attributes_are_padded_and_read_back() {
    let inner = Attributes::new().byte(1, 7);
    let all = Attributes::new().text(3, "eth0").nested(18, &inner).number(4, 1500);
    let expected: Vec<u8> = [
        [9_u16.to_ne_bytes(), 3_u16.to_ne_bytes()].concat(),
        b"eth0\0\0\0\0".to_vec(),
        [12_u16.to_ne_bytes(), (18_u16 | 0x8000).to_ne_bytes()].concat(),
        [5_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat(),
        vec![7, 0, 0, 0],
        [8_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat(),
        1500_u32.to_ne_bytes().to_vec(),
    ]
    .concat();
    assert_eq!(all.as_bytes(), expected);
    assert_eq!(find_attribute(&expected, 3).map(read_text).as_deref(), Some("eth0"));
    assert_eq!(find_attribute(&expected, 4).and_then(read_u32), Some(1500));
    let nested = find_attribute(&expected, 18).unwrap();
    assert_eq!(each_attribute(nested).collect::<Vec<_>>(), [(1, &[7_u8][..])]);
}

#[test]
fn attributes_that_are_cut_off_or_empty_end_the_list() {
    let whole = Attributes::new().number(1, 1).number(2, 2);
    for length in 0..whole.as_bytes().len() {
        let found = each_attribute(&whole.as_bytes()[..length]).count();
        assert_eq!(found, length / 8, "{length}");
    }
    assert_eq!(each_attribute(&[0; 16]).count(), 0);
    assert_eq!(each_attribute(&[3, 0, 1, 0]).count(), 0);
}

#[test]
fn the_kernel_refuses_what_it_does_not_know_and_the_socket_stays_usable() {
    let mut socket = NetlinkSocket::open(NetlinkFamily::Route).unwrap();
    let unknown = Message::new(0xfff0, &[0; 16], &Attributes::new());
    assert!(socket.request(&unknown).is_err());
    let links = Message::new(18, &[0; 16], &Attributes::new());
    assert!(!socket.dump(&links).unwrap().is_empty());
}
