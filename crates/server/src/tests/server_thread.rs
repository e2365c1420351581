//! Handshakes that take long, while the agent has other work.

use std::sync::mpsc;

use oarsman_sync::Guarded;
use tokio_rustls::rustls::server::ClientHello;
use tokio_rustls::rustls::sign::CertifiedKey;

use super::*;

/// Has no certificate, and does not return from the handshake before it is told to.
#[derive(Debug)]
struct BlockedHandshake {
    begun: mpsc::SyncSender<()>,
    released: Guarded<mpsc::Receiver<()>>,
}

impl ResolvesServerCert for BlockedHandshake {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.begun.send(()).unwrap();
        self.released.lock().recv_timeout(LONG).unwrap();
        None
    }
}

/// The test has one thread, as has each of the servers: one that was blocked in a handshake could not answer.
#[tokio::test]
async fn a_handshake_that_takes_a_processor_for_long_delays_no_other_task() {
    let (directory, authority) = (tempfile::tempdir().unwrap(), TestAuthority::new());
    let ((begun, begins), (release, released)) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
    let blocked = Arc::new(BlockedHandshake { begun, released: Guarded::new(released) });
    let settings = settings(directory.path(), "127.0.0.1:0".parse().unwrap(), &authority, true);
    let host = ended(directory.path());
    let opened = open(settings, sources(host), None, blocked, clock(), TaskPanics::default()).await;
    let servers = opened.unwrap();
    let [health, secure] = servers.addresses()[..] else { panic!("health and HTTPS") };
    let end = CancellationToken::new();
    let running = tokio::spawn(servers.run(end.clone()));
    let fixture = ServerFixture { directory, health, secure, fake_reviewer: Arc::default() };
    let mut client = TcpStream::connect(secure).await.unwrap();
    client.write_all(&client_hello()).await.unwrap();
    let begins = tokio::task::spawn_blocking(move || begins.recv_timeout(LONG));
    begins.await.unwrap().unwrap();
    assert_eq!(fixture.health("/healthz").await.0, 200);
    release.send(()).unwrap();
    end.cancel();
    timeout(LONG, running).await.unwrap().unwrap();
}

/// The first message of a client.
fn client_hello() -> Vec<u8> {
    let config = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
    let name = ServerName::try_from("localhost").unwrap();
    let config = Arc::new(config.with_no_client_auth());
    let mut connection = tokio_rustls::rustls::ClientConnection::new(config, name).unwrap();
    let mut message = Vec::new();
    connection.write_tls(&mut message).unwrap();
    message
}
