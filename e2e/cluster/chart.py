"""The chart as a user installs it: helm, and the values of this cluster."""

import json

import images
from commands import tried
from network import NODE, within
from servers import executable

RELEASE, NAMESPACE = "postern", "postern-system"
CHART = images.ROOT / "charts/postern"
PATIENCE = "120s"


class Chart:
    def __init__(self, stage):
        self.stage = stage

    def values(self, **more):
        """What this cluster differs in: images that no registry has, and an upstream of a private authority."""
        image = {"tag": images.TAG, "pullPolicy": "Never"}
        return {
            "operator": {"image": image | {"repository": images.OPERATOR}},
            "gateway": {
                "image": image | {"repository": images.GATEWAY},
                "upstream": {"roots": self.stage.upstream_root()},
            },
        } | more

    def install(self, **more):
        """Status and output of `helm upgrade --install`, which waits for the operator to be available."""
        return self.helm(
            "upgrade",
            "--install",
            RELEASE,
            CHART,
            "--create-namespace",
            "--wait",
            "--timeout",
            PATIENCE,
            "--values",
            "-",
            input=json.dumps(self.values(**more)),
        )

    def uninstall(self):
        return self.helm("uninstall", RELEASE, "--wait", "--timeout", PATIENCE)

    def helm(self, *arguments, **options):
        command = [
            executable("helm"),
            "--kubeconfig",
            self.stage.cluster.kubeconfig,
            "--namespace",
            NAMESPACE,
            *arguments,
        ]
        return tried(*within(NODE, *command), timeout=180, **options)
