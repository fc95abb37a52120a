"""Clients that are commands: openssl s_client, which reads the chain strictly, and git with a placeholder in Basic."""

import base64
import re
from functools import partial

from commands import output
from fetching import INTACT, version
from stage import KEYS
from steps import Step


def steps(tools, stage):
    yield Step(f"openssl s_client {version('openssl', 'version')}", openssl)
    yield Step(f"git {version('git', '--version')}", git)


def openssl(stage, client):
    """SNI, and the checks of RFC 5280 that `-x509_strict` adds."""
    code, printed, errors = s_client(stage, "packages.example.com", "GET /public/data")
    verified = code == 0 and "Verify return code: 0 (ok)" in printed
    client.check("strict chain verifies", verified, printed + errors)
    issuer = re.search(r"issuer=.*CN = (Postern.*)", printed)
    client.check("issuer is Postern", issuer, printed)
    client.check("answer intact", INTACT in printed, printed)
    code, printed, _ = s_client(stage, "forbidden.example.com", "GET /")
    client.check("denied host: reason shown", code == 0 and "Rule: e2e/clients/forbidden" in printed, printed)
    code, printed, errors = s_client(stage, "unnamed.example.com", "GET /")
    what, words = stage.way.UNNAMED
    client.check(what, code and words.search(errors), errors)


def s_client(stage, host, request):
    command = ["openssl", "s_client", "-connect", f"{host}:443", "-servername", host, *stage.way.s_client(stage)]
    command += ["-CAfile", stage.roots("postern"), "-no-CApath", "-x509_strict", "-verify_hostname", host]
    command += ["-verify_return_error", "-ign_eof"]
    head = f"{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    code, printed, errors = stage.output(command, stage.bare(), input=head.encode())
    return code, printed.decode(), errors


def git(stage, client):
    """Clone and push, then what the endpoints do not open, a host that no rule names, and another key."""
    copy, swapped = stage.directory / "clone", "Basic " + base64.b64encode(f"x-access-token:{KEYS['GIT_TOKEN']}".encode()).decode()
    mark, run_git = stage.mark(), partial(git_command, stage)
    code, answer = run_git("clone", "https://git.example.com/team/tools.git", copy)
    same = code == 0 and (copy / "large").read_bytes() == (stage.directory / "work/large").read_bytes()
    client.check("cloned intact", same, answer)
    (copy / "more").write_text("more")
    run_git("-C", copy, "add", "more")
    run_git("-C", copy, "-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "-m", "second")
    code, answer = run_git("-C", copy, "push", "origin", "HEAD:refs/heads/agent")
    _, head, _ = output(["git", "-C", copy, "rev-parse", "HEAD"])
    bare = stage.directory / "repositories/team/tools.git"
    _, pushed, _ = output(["git", "-C", bare, "rev-parse", "refs/heads/agent"])
    client.check("pushed", code == 0 and pushed == head, answer)
    keys = {request["headers"].get("authorization") for request in stage.seen_since(mark)}
    client.check("key swapped inside Basic", keys == {None, swapped}, keys)

    mark = stage.mark()
    code, answer = run_git("clone", "https://git.example.com/other/tools.git", stage.directory / "other")
    client.check("denied endpoint: reason shown", code and "Rule: postern/builtin/endpoint" in answer, answer)
    code, answer = run_git("clone", "https://forbidden.example.com/tools.git", stage.directory / "forbidden")
    client.check("denied host: reason shown", code and "Rule: e2e/clients/forbidden" in answer, answer)
    code, answer = run_git("clone", "https://unnamed.example.com/tools.git", stage.directory / "unnamed")
    what, words = stage.way.UNNAMED
    client.check(what, code and words.search(answer), answer)
    client.check("nothing refused was sent upstream", not stage.seen_since(mark), stage.seen_since(mark))
    code, answer = run_git("clone", "https://git.example.com/team/tools.git", stage.directory / "again", password="another")
    client.check("another key: reason shown", code and "Rule: postern/builtin/credential" in answer, answer)


def git_command(stage, *arguments, password="postern:git"):
    helper = f"credential.helper=!f() {{ echo username=x-access-token; echo password={password}; }}; f"
    environment = stage.environment(GIT_TERMINAL_PROMPT="0", GIT_CONFIG_NOSYSTEM="1")
    code, printed, errors = stage.output(["git", "-c", helper, *arguments], environment)
    return code, printed.decode() + errors
