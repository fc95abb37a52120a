"""Checks of an API server's answers: the status, and the admission policy that refused."""

from administration import said


class Checks:
    """The checks of a step that asks an API server."""

    def __init__(self, step, api=None):
        self.step, self.api = step, api

    def expect(self, right, what, evidence=""):
        self.step.check(what, right, evidence)

    def refused(self, policy, what, *request, words="", **more):
        """That a request is refused by this very policy, and with these words."""
        status, answer = self.api.ask(*request, **more)
        right = is_refused(policy, status, answer) and words in said(answer)
        self.expect(right, f"{policy} refuses {what}", f"{status} {said(answer)}; meant: {words}")

    def admitted(self, what, *request, **more):
        """That no policy refuses; whatever else the server says to a request to connect is not asked here."""
        status, answer = self.api.ask(*request, **more)
        connects = any(request[1].split("?")[0].endswith(end) for end in ("/exec", "/attach", "/portforward"))
        right = "ValidatingAdmissionPolicy" not in said(answer) if connects else status < 300
        self.expect(right, f"let through: {what}", f"{status} {said(answer)}")


def at(namespace, kind, name="", more=""):
    return f"/api/v1/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "") + more


def named(name, kind="configmaps", **more):
    kinds = {"configmaps": "ConfigMap", "secrets": "Secret"}
    return {"apiVersion": "v1", "kind": kinds[kind], "metadata": {"name": name}} | more


def is_refused(policy, status, answer):
    """Whether a request was refused by this very policy."""
    return status in (403, 422) and f"ValidatingAdmissionPolicy '{policy}'" in said(answer)
