"""Traffic for the gateways: one round moves every series that panels and alerts ask for."""

from agent import resolve
from stage import GONE
from upstream import INTACT

# Alerts ask whether it happens often: twice is not.
SELDOM = 2
SWITCH = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="}


def round_of(stage, number):
    """Sends one round of traffic, and returns which parts failed."""
    answer = {
        "a turn": stage.agent.chat()[0] == 200,
        "a turn by the proxy": stage.proxied.chat()[0] == 200,
        "an allowed request": stage.agent.ask("api.example.com", "GET", "/open/this") == (200, INTACT),
        "an endpoint that is not open": stage.agent.ask("api.example.com", "GET", "/closed")[0] == 403,
        "a WebSocket": stage.agent.ask("api.example.com", "GET", "/open/socket", headers=SWITCH)[0] in (403, 426),
        "an upstream that is away": stage.agent.ask(GONE, "GET", "/open/this")[0] in (502, 503, 504),
        "a body that is too large": stage.agent.chat(padding=100_000)[0] == 413,
        "a name that no rule names": resolve("unnamed.example.org") == [],
        "a connection that names no host": stage.agent.is_reset(),
        "a denied host": stage.agent.ask("forbidden.example.com", "GET", "/")[0] == 403,
        "a tunnel": stage.agent.reach("tunnel.example.com").close() is None,
        "a new policy": stage.change_policy(),
    }
    if number < SELDOM:
        answer["a client that rejects the leaf"] = stage.agent.distrusts("api.example.com")
    return [what for what, holds in answer.items() if not holds]
