//! One exchange over and over on several connections, for a profiler around the gateway; what `just profile` runs.

use std::process::Command;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::Client;
use super::exchanges::{self, Exchange};
use super::gateway::{API, GUARDED, Gateway, MODEL, PLAIN, TUNNEL, executable, settings, write_policies};
use super::pki::Pki;
use super::upstream;

/// Connections at the same time.
const CONNECTIONS: usize = 32;
/// How long it goes on.
const LASTS: Duration = Duration::from_secs(15);

/// Starts the gateway by the words behind the exchange's name, such as `perf record`, and has it busy.
pub(crate) async fn run(name: &str, profiler: &[String]) {
    let exchange = Exchange::of(name);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let pki = Pki::new(directory);
    let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, GUARDED, TUNNEL])).await;
    std::fs::write(directory.join("settings.yaml"), settings(upstream, 0)).unwrap();
    write_policies(directory, &exchanges::policy());
    let mut command = match profiler {
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(executable());
            command
        }
        [] => Command::new(executable()),
    };
    let gateway = Gateway::with_settings(directory, &mut command);
    let client = Client::new(upstream, gateway.address, &pki);
    let mut workers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut repeated = exchange.begin(&client).await;
        workers.spawn(async move {
            let begun = Instant::now();
            let mut count = 0_u64;
            while begun.elapsed() < LASTS {
                repeated.run(1).await;
                count += 1;
            }
            count
        });
    }
    let count: u64 = workers.join_all().await.into_iter().sum();
    println!("{count} exchanges");
    gateway.terminate();
}
