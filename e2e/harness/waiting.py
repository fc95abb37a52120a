"""Waiting for what follows by itself: until a condition holds, within a deadline that only a failure reaches."""

import time

# Seconds; a busy machine takes its time, and whatever has not come by then never comes.
PATIENCE = 180


def becomes(holds, seconds=PATIENCE, pause=0.1):
    """Whether a condition comes to hold before the deadline; returns its last value."""
    deadline = time.monotonic() + seconds
    while True:
        if value := holds():
            return value
        if time.monotonic() > deadline:
            return value
        # Nobody tells when it changes: asking again a little later is all there is.
        time.sleep(pause)
