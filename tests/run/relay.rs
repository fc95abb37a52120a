//! A corporate proxy: whatever is asked of it, it leads to one upstream.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::support::journal::Journal;

/// A proxy on a free port of the loopback; it lasts as long as the tests do.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    asked: Arc<Journal<String>>,
}

impl Relay {
    pub(super) fn to(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Journal::new());
        let heads = Arc::clone(&asked);
        thread::spawn(move || {
            for agent in listener.incoming().map_while(Result::ok) {
                let heads = Arc::clone(&heads);
                // A connection that breaks off is the test's own affair.
                thread::spawn(move || drop(relay(&agent, upstream, &heads)));
            }
        });
        Self { address, asked }
    }

    /// The heads of the requests so far.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.entries()
    }
}

fn relay(agent: &TcpStream, upstream: SocketAddr, heads: &Journal<String>) -> io::Result<()> {
    // A buffer of one byte reads nothing that belongs to the tunnel.
    let mut reader = BufReader::with_capacity(1, agent.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head)?;
    }
    heads.push(head);
    let upstream = TcpStream::connect(upstream)?;
    (&*agent).write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut back, mut to) = (upstream.try_clone()?, agent.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut back, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    io::copy(&mut (&*agent), &mut (&upstream))?;
    upstream.shutdown(Shutdown::Write)
}
