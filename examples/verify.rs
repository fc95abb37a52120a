//! A client of rustls: makes a handshake with 127.0.0.1 for a name and says whether it accepts the certificate.
//!
//! `verify ROOTS.pem NAME PORT`: exit status 0 where it does, 1 where it does not, 2 where it could not be tried.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

fn main() -> ExitCode {
    let (status, said) = match verify() {
        Ok(None) => (0, "accepted".to_owned()),
        Ok(Some(refusal)) => (1, refusal.to_string()),
        Err(error) => (2, error.to_string()),
    };
    // Nobody is left to tell where the output is closed.
    let _ = writeln!(io::stdout(), "{said}");
    ExitCode::from(status)
}

/// The refusal, if there was one.
fn verify() -> Result<Option<io::Error>, Box<dyn Error>> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let [roots, name, port] = arguments.as_slice() else {
        return Err("usage: verify ROOTS.pem NAME PORT".into());
    };
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(roots)? {
        store.add(root?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name.clone())?)?;
    let mut socket = TcpStream::connect(("127.0.0.1", port.parse()?))?;
    let mut stream = Stream::new(&mut client, &mut socket);
    let met = stream.write_all(b"GET / HTTP/1.0\r\n\r\n").and_then(|()| stream.read_exact(&mut [0; 4]));
    match met {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(error)),
        Err(error) => Err(error.into()),
    }
}
