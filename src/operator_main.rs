//! The `postern-operator` executable.

use std::process::ExitCode;

use postern::command;
use postern::operator::cli::OperatorCli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    command::panics::tell_places();
    // Before any client is made: kube would install a provider of its own choice.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = match OperatorCli::read() {
        Ok(cli) => cli,
        Err(usage) => {
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    match command::operator::run(cli) {
        Ok(code) => code,
        Err(error) => {
            if !command::output::is_closed_pipe(&error) {
                command::output::print_error("postern-operator", &error);
            }
            ExitCode::FAILURE
        }
    }
}
