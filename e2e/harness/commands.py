"""Commands of this machine: what they said, and what a failed one said."""

import subprocess


def run(*command, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise RuntimeError(f"{' '.join(map(str, command[:12]))}: {reason}")
    return done.stdout


def tried(*command, **options):
    """Status and both outputs of a command that may fail; one that hangs is ended and says so."""
    options = {"timeout": 120, "stdin": None if "input" in options else subprocess.DEVNULL} | options
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    except subprocess.TimeoutExpired as error:
        return None, f"no end within {error.timeout} s"
    return done.returncode, done.stdout + done.stderr


def output(command, **options):
    """Status, standard output in bytes and standard error of a command that may fail or hang. Without `input` it reads nothing."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, check=False, timeout=180, **options)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        return None, error.stdout or b"", f"no end within {error.timeout} s: {(error.stderr or b'').decode(errors='replace')}"


def end(process, patience=120):
    """SIGTERM, and SIGKILL if that does not end it."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
