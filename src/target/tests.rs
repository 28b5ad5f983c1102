//! How connections fail and succeed, on a real server.

use std::{fs, net::TcpListener, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::{ConnectErrorKind, Driver, pool, session, testing::TestServer};
use crate::model::{RoundTrips, Secret, Statements, TargetAddress, TargetSpec, TlsMode};

const PASSWORD: &str = "open-sesame-9";

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with TLS and a password, whose certificate names `db.example` only.
struct TlsServer {
    server: TestServer,
    port: u16,
    folder: TempDir,
}

impl TlsServer {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let (right, wrong) = (authority(), authority());
        fs::write(folder.path().join("right.pem"), right.pem()).unwrap();
        fs::write(folder.path().join("wrong.pem"), wrong.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        let certificate = names.signed_by(&key, &right).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = "listen_addresses = '127.0.0.1'\nssl = on\n\
                        ssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'";
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        let files = [
            ("server.crt", certificate.pem()),
            ("server.key", key.serialize_pem()),
            ("pg_hba.conf", rules.to_owned()),
        ];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let server = TestServer::start(port, settings, &files);
        server.wait_until_ready().await;
        let admin = session(&server.target("postgres")).await.unwrap();
        let role = format!("CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'");
        admin.batch_execute(&role).await.unwrap();
        Self { server, port, folder }
    }

    fn target(&self, host: &str, authority: &str) -> TargetSpec {
        TargetSpec {
            address: TargetAddress::Tcp {
                host: host.into(),
                port: self.port,
                hostaddr: Some([127, 0, 0, 1].into()),
            },
            user: "app".into(),
            password: Some(Secret::new(PASSWORD)),
            tls: TlsMode::Verified { ca_file: Some(self.folder.path().join(authority)) },
            ..self.server.target("postgres")
        }
    }
}

async fn drive(target: &TargetSpec) -> Result<Driver, super::ConnectError> {
    let password = target.password.as_ref();
    Driver::open(target, password, Statements::Prepared, RoundTrips::Sequential).await
}

/// The same, whichever way the target is reached.
async fn failure(target: &TargetSpec) -> super::ConnectError {
    let error = session(target).await.expect_err("it must be refused");
    let driven = drive(target).await.err().expect("it must be refused");
    assert_eq!((driven.kind(), driven.sqlstate()), (error.kind(), error.sqlstate()), "{driven}");
    assert!(!driven.to_string().contains(PASSWORD), "{driven}");
    let text = error.to_string();
    assert!(!text.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{text}");
    assert!(text.contains(&target.user) && text.contains(&target.database), "{text}");
    error
}

#[tokio::test]
async fn tls_is_verified_by_chain_and_name_and_then_the_password_decides() {
    let tls = TlsServer::start().await;
    let right = tls.target("db.example", "right.pem");

    let client = session(&right).await.unwrap();
    let row = client
        .query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[])
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
    drive(&right).await.unwrap().ping().await.unwrap();

    let wrong_chain = failure(&tls.target("db.example", "wrong.pem")).await;
    assert_eq!(*wrong_chain.kind(), ConnectErrorKind::Tls, "{wrong_chain}");
    let wrong_name = failure(&tls.target("other.example", "right.pem")).await;
    assert_eq!(*wrong_name.kind(), ConnectErrorKind::Tls, "{wrong_name}");
    let no_file = failure(&tls.target("db.example", "absent.pem")).await;
    assert_eq!(*no_file.kind(), ConnectErrorKind::Tls, "{no_file}");

    let guessed = TargetSpec { password: Some(Secret::new("guessed")), ..right.clone() };
    let refused = failure(&guessed).await;
    assert_eq!(*refused.kind(), ConnectErrorKind::Authentication, "{refused}");
    assert_eq!(refused.sqlstate(), Some("28P01"));
    let silent = failure(&TargetSpec { password: None, ..right.clone() }).await;
    assert_eq!(*silent.kind(), ConnectErrorKind::Authentication, "{silent}");

    let plain = failure(&TargetSpec { tls: TlsMode::Off, ..right.clone() }).await;
    assert_eq!(plain.sqlstate(), Some("28000"), "{plain}");

    let pool = pool(&right, 1, Duration::from_millis(50)).await.unwrap();
    let held = pool.get().await.unwrap();
    held.batch_execute("SELECT 1").await.unwrap();
    assert!(pool.get().await.is_err(), "a pool that is empty must not wait for ever");
}

#[tokio::test]
async fn each_way_not_to_reach_a_server_has_its_class() {
    let server = TestServer::shared().await;
    let there = server.target("postgres");
    let absent = failure(&TargetSpec { database: "absent".into(), ..there.clone() }).await;
    assert_eq!(*absent.kind(), ConnectErrorKind::Server("3D000".into()), "{absent}");

    let folder = TempDir::new().unwrap();
    let nowhere = TargetAddress::Unix { directory: folder.path().into(), port: 5432 };
    let refused = failure(&TargetSpec { address: nowhere, ..there.clone() }).await;
    assert_eq!(*refused.kind(), ConnectErrorKind::Refused, "{refused}");

    // It accepts (the kernel does) and never says a word.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = mute.local_addr().unwrap().port();
    let address = TargetAddress::Tcp { host: "127.0.0.1".into(), port, hostaddr: None };
    let hung = TargetSpec { address, connect_timeout_ms: 100, ..there };
    assert_eq!(*failure(&hung).await.kind(), ConnectErrorKind::Timeout);
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut rest = Vec::new();
        // One for each way to reach it.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 8];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(b"N").await.unwrap();
            // The client must hang up without having sent its user.
            stream.read_to_end(&mut rest).await.unwrap();
        }
        rest
    });
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("ca.pem");
    fs::write(&file, authority().pem()).unwrap();
    let target = TargetSpec {
        password: Some(Secret::new(PASSWORD)),
        tls: TlsMode::Verified { ca_file: Some(file) },
        ..TargetSpec::plain(
            TargetAddress::Tcp {
                host: "localhost".into(),
                port,
                hostaddr: Some([127, 0, 0, 1].into()),
            },
            "app",
            "shop",
            "shop",
        )
    };
    assert_eq!(*failure(&target).await.kind(), ConnectErrorKind::Tls);
    assert!(server.await.unwrap().is_empty());
}
