"""The chart as a user installs it: helm, and the values of this cluster."""

import json

import images
from commands import tried
from namespaces import within
from network import NODE
from servers import executable

RELEASE, NAMESPACE = "postern", "postern-system"
# The label of the operator's pods.
OPERATOR = "app.kubernetes.io/component=operator"
CHART = images.ROOT / "charts/postern"
# Of Services and of pods.
RANGES = ["10.96.0.0/16", "10.244.0.0/16", "fd00:244::/64"]
# How long agents are given to read a new root before something is issued by it: days, for those who are not waiting.
DISTRIBUTION = "5s"
PATIENCE = "300s"


class Chart:
    def __init__(self, stage):
        self.stage = stage

    def values(self, **more):
        """Returns the values for this cluster: local images, and an upstream of a private authority."""
        image = {"tag": images.TAG, "pullPolicy": "Never"}
        upstream = {"roots": self.stage.upstream_root(), "denyAddresses": RANGES}
        return {
            "operator": {"image": image | {"repository": images.OPERATOR}},
            "gateway": {"image": image | {"repository": images.GATEWAY}, "upstream": upstream, "canaryImages": [f"{images.GATEWAY}:canary"]},
            "ca": {"distribution": DISTRIBUTION},
        } | more

    def install(self, **more):
        """Status and output of `helm upgrade --install`, which waits for the operator to be available."""
        awaited = ["--create-namespace", "--wait", "--timeout", PATIENCE]
        values = json.dumps(self.values(**more))
        return self.helm("upgrade", "--install", RELEASE, CHART, *awaited, "--values", "-", input=values)

    def uninstall(self):
        return self.helm("uninstall", RELEASE, "--wait", "--timeout", PATIENCE)

    def helm(self, *arguments, **options):
        command = [executable("helm"), "--kubeconfig", self.stage.cluster.kubeconfig, "--namespace", NAMESPACE, *arguments]
        return tried(*within(NODE, *command), timeout=400, **options)
