//! The `postern` executable.

use std::process::ExitCode;

use postern::cli::Cli;
use postern::command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    command::panics::tell_places();
    // Only libraries that ask for the process's provider need this; it fails where one is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(usage) => {
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    match command::run(cli) {
        Ok(code) => code,
        Err(error) => {
            if !command::output::is_closed_pipe(&error) {
                command::output::print_error("postern", &error);
            }
            ExitCode::FAILURE
        }
    }
}
