"""An SSH server outside that serves git repositories to one key: PORT HOST_KEY CLIENT_KEY REPOSITORIES."""

import asyncio
import shlex
import sys
from functools import partial

import asyncssh

COMMANDS = ["git-upload-pack", "git-receive-pack"]


async def serve(repositories, process):
    """One command, as git's own client asks for it: NAME 'PATH'."""
    name, path = shlex.split(process.command)
    if name not in COMMANDS:
        return process.exit(1)
    pipes = dict.fromkeys(["stdin", "stdout", "stderr"], asyncio.subprocess.PIPE)
    git = await asyncio.create_subprocess_exec(name, f"{repositories}/{path.strip('/')}", **pipes)
    await process.redirect(stdin=git.stdin, stdout=git.stdout, stderr=git.stderr)
    process.exit(await git.wait())


async def main(port, host_key, client_key, repositories):
    keys = {"server_host_keys": [host_key], "authorized_client_keys": client_key}
    server = await asyncssh.listen("", int(port), process_factory=partial(serve, repositories), encoding=None, **keys)
    print(server.get_port(), flush=True)
    await server.wait_closed()


asyncio.run(main(*sys.argv[1:]))
