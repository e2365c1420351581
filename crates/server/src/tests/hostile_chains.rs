//! Chains of client certificates that are made to be expensive to verify.

use super::log_readers::longest_pause;
use super::*;

const SOON: Duration = Duration::from_secs(5);

fn der(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let head = match length {
        [0, short @ 0..128] => vec![tag, short],
        [0, middle] => vec![tag, 0x81, middle],
        [high, low] => vec![tag, 0x82, high, low],
    };
    [head, content].concat()
}

/// The name of one letter.
fn name(letter: u8) -> Vec<u8> {
    let value = [der(6, &[&[0x55, 4, 3]]), der(12, &[&[letter]])].concat();
    der(0x30, &[&der(0x31, &[&der(0x30, &[&value])])])
}

/// A certificate that can be parsed, and is signed by nothing.
fn unsigned(
    issuer: &[u8],
    validity: &[u8],
    subject: &[u8],
    key: u16,
    rest: &[u8],
) -> CertificateDer<'static> {
    let (version, serial) = (der(0xa0, &[&der(2, &[&[2]])]), der(2, &[&[1]]));
    let algorithm = der(0x30, &[]);
    let key = der(0x30, &[&key.to_be_bytes()]);
    let parts: [&[u8]; 8] = [&version, &serial, &algorithm, issuer, validity, subject, &key, rest];
    der(0x30, &[&der(0x30, &parts), &algorithm, &der(3, &[&[0]])]).into()
}

fn authority(issuer: u8, key: u16) -> CertificateDer<'static> {
    let validity = der(0x30, &[&der(23, &[b"200101000000Z"]), &der(23, &[b"490101000000Z"])]);
    let is_ca = der(4, &[&der(0x30, &[&der(1, &[&[0xff]])])]);
    let extension = der(0x30, &[&der(6, &[&[0x55, 29, 19]]), &is_ca]);
    let extensions = der(0xa3, &[&der(0x30, &[&extension])]);
    unsigned(&name(issuer), &validity, &name(b'X'), key, &extensions)
}

/// Authorities that sign one another, each of which also leads to many dead ends, where all the others are looked through.
fn cross_signed(authorities: u16, dead_ends: u16, fillers: u16) -> Vec<CertificateDer<'static>> {
    let empty = der(0x30, &[]);
    let loops = (0..authorities).map(|key| authority(b'X', key));
    let ends = (authorities..authorities + dead_ends).map(|key| authority(b'Y', key));
    let filler = unsigned(&empty, &empty, &empty, 0, &[]);
    loops.chain(ends).chain((0..fillers).map(|_| filler.clone())).collect()
}

/// A certificate of an unknown authority of that name.
fn of_unknown_client() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "X");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    TestAuthority(issuer).client("api")
}

#[tokio::test]
async fn a_chain_that_takes_long_to_verify_is_refused_before_it_is_looked_at() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let (own, key) = of_unknown_client();
    let chain = [vec![own], cross_signed(8, 200, 700)].concat();
    let total: usize = chain.iter().map(|it| it.len() + 5).sum();
    assert!(total < 0xffff, "{total} bytes are no handshake message");
    let asked = async {
        let mut stream = fixture.connect_with(Some((chain, key))).await;
        // The server closes while the client still sends.
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok();
        answer
    };
    let (answer, pause) = longest_pause(asked).await;
    assert_eq!(String::from_utf8(answer).unwrap(), "");
    assert!(pause < Duration::from_secs(1), "{pause:?}");
    let asked = fixture.ask(Some(authority.client("api")), "/healthz", None);
    assert_eq!(timeout(SOON, asked).await.unwrap().0, 200);
}

#[tokio::test]
async fn the_longest_chain_that_is_taken_is_verified_within_a_moment() {
    let fixture = serve(ended, &TestAuthority::new(), true).await;
    let (own, key) = of_unknown_client();
    let chain = [vec![own], cross_signed(6, 0, 0)].concat();
    let asked = async {
        let mut stream = fixture.connect_with(Some((chain, key))).await;
        send(&mut stream, "/healthz", None).await;
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    let (answer, pause) = longest_pause(asked).await;
    assert_eq!(parts(&answer).0, 401);
    assert!(pause < Duration::from_secs(1), "{pause:?}");
}

/// An authority that another has signed.
fn below(
    above: &CertifiedIssuer<'static, KeyPair>,
    name: &str,
) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), above).unwrap()
}

#[tokio::test]
async fn a_client_of_an_authority_below_three_others_is_accepted() {
    let authority = TestAuthority::new();
    let fixture = serve(ended, &authority, true).await;
    let first = below(&authority.0, "first");
    let second = below(&first, "second");
    let third = TestAuthority(below(&second, "third"));
    let (own, key) = third.client("api");
    let between = [&third.0, &second, &first].map(|it| it.der().clone());
    let mut stream =
        fixture.connect_with(Some(([vec![own], between.to_vec()].concat(), key))).await;
    send(&mut stream, "/healthz", None).await;
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(parts(&answer), (200, "ok".to_owned()));
}
