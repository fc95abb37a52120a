"""Runs a command in a pseudo-terminal as a person would: waits for a text on the screen, types, waits for the next.

python in_terminal.py STEPS COMMAND...

STEPS is JSON, [[PATTERN, [KEYS, ...]], ...]. Prints JSON: how many patterns were seen, the last screen, and the exit status,
which is null where the command did not end after the last step.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte

LINES, COLUMNS = 60, 160
# A full-screen program of Node may take half a minute to start on a busy machine.
PATIENCE, LEAVING = 90, 20
# A dialog that has just been drawn may not listen yet: keys are typed once the screen has been still for this long.
STILL = 0.7


class Screen(pyte.Screen):
    """Answers what programs ask of their terminal, such as the place of its cursor."""

    def __init__(self, terminal):
        super().__init__(COLUMNS, LINES)
        self.terminal = terminal

    def write_process_input(self, data):
        os.write(self.terminal, data.encode())

    # pyte takes the private forms of these for the public ones, or fails on them.
    def report_device_status(self, mode, private=False):
        if not private:
            super().report_device_status(mode)

    def select_graphic_rendition(self, *attributes, private=False):
        if not private:
            super().select_graphic_rendition(*attributes)


class Terminal:
    """A command, and what it shows."""

    def __init__(self, command):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            try:
                os.execvp(command[0], command)
            finally:
                os._exit(127)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.screen, self.open = Screen(self.terminal), True
        self.stream = pyte.ByteStream(self.screen)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).strip()

    def wait(self, holds, seconds):
        """Draws what comes until `holds` is true of the screen's text, the command ends, or the time is over."""
        deadline = time.monotonic() + seconds
        while not (seen := holds(self.text())) and self.open and time.monotonic() < deadline:
            self.draw(0.1)
        return seen

    def draw(self, seconds):
        """Draws what comes within that time; returns whether anything came."""
        readable, _, _ = select.select([self.terminal], [], [], seconds)
        if not readable:
            return False
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # Linux says so once nobody has the other end any more.
            data = b""
        self.open = bool(data)
        self.stream.feed(data)
        return self.open

    def settle(self):
        """Waits until the screen's text does not change any more; a spinner is not waited for."""
        deadline, before, since = time.monotonic() + 5, self.text(), time.monotonic()
        while self.open and time.monotonic() < deadline and time.monotonic() - since < STILL:
            self.draw(0.1)
            if self.text() != before:
                before, since = self.text(), time.monotonic()

    def type(self, keys):
        for each in keys:
            self.settle()
            os.write(self.terminal, each.encode())

    def leave(self):
        """The exit status, once the command has ended by itself; None where it had to be ended."""
        deadline = time.monotonic() + LEAVING
        while self.open and time.monotonic() < deadline:
            self.draw(0.1)
        ended, status = os.waitpid(self.pid, os.WNOHANG if self.open else 0)
        if ended:
            return os.waitstatus_to_exitcode(status)
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.kill(self.pid, number)
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                self.draw(0.1)
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    return None
        return None


def main():
    steps, command = json.loads(sys.argv[1]), sys.argv[2:]
    terminal, seen = Terminal(command), 0
    for pattern, keys in steps:
        if not terminal.wait(re.compile(pattern).search, PATIENCE):
            break
        seen += 1
        screen = terminal.text()
        terminal.type(keys)
    else:
        print(json.dumps({"seen": seen, "screen": screen, "status": terminal.leave()}))
        return
    screen = terminal.text()
    terminal.leave()
    print(json.dumps({"seen": seen, "screen": screen, "status": None}))


main()
