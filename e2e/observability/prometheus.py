"""A real Prometheus: scrapes gateways and operator as the chart's monitors would have it, and evaluates the alerts."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import replicas
from pod import ADDRESSES, ADMIN, BESIDE, NAME, NODE_ADDRESS

CHART = Path(__file__).resolve().parents[2] / "charts/postern"
PORT = 9090


class Prometheus:
    """Starts scraping; questions are asked over all that was scraped."""

    def __init__(self, directory, processes):
        place = directory / "prometheus"
        place.mkdir()
        self.started = time.time()
        (place / "prometheus.json").write_text(json.dumps(configuration()))
        processes.start(
            "prometheus", "prometheus", f"--config.file={place}/prometheus.json", f"--storage.tsdb.path={place}/data",
            f"--web.listen-address=127.0.0.1:{PORT}", "--log.level=warn",
        )  # fmt: skip

    def ask(self, path, **parameters):
        """The data of an answer of its HTTP API; raises what it says is wrong."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/v1/{path}?{query}", timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def values(self, query):
        """All values of a query since the start, a second apart, by series; NaN is none."""
        output = self.ask("query_range", query=query, start=self.started, end=time.time(), step=1)
        series = [[float(value) for _, value in each["values"]] for each in output["result"]]
        return [value for values in series for value in values if value == value]

    def down(self):
        """The targets that are not scraped well, or why none is."""
        try:
            targets = self.ask("targets", state="active")["activeTargets"]
        except OSError as error:
            return [repr(error)]
        down = [f"{each['scrapeUrl']}: {each['lastError']}" for each in targets if each["health"] != "up"]
        return down or ([] if len(targets) == 3 else [f"{len(targets)} targets"])


def configuration():
    """Targets and labels as Prometheus' operator makes them of the chart's monitors; Debian's finds no pods by itself."""
    injected = target(replicas.found("pod", NAME, replicas.AGENTS))
    beside = injected | {"pod": BESIDE, "targets": [f"{ADDRESSES[BESIDE]}:{ADMIN}"]}
    operator = {"targets": [f"{NODE_ADDRESS}:8080"], "namespace": replicas.SYSTEM, "pod": "postern-operator-0"}
    honored = "honorLabels: true" in (CHART / "templates/monitoring/service-monitor.yaml").read_text()
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(CHART / "alerts/postern.yaml")],
        "scrape_configs": [job("postern-system/postern-gateways", injected, beside), job("postern-operator", operator) | {"honor_labels": honored}],
    }


def target(pod):
    """Returns the scrape target of an injected pod, as the PodMonitor selects it."""
    containers = pod["spec"]["initContainers"] + pod["spec"]["containers"]
    ports = {port["name"]: (each["name"], port["containerPort"]) for each in containers for port in each.get("ports", [])}
    container, port = ports["postern-metrics"]
    metadata = pod["metadata"]
    if metadata["labels"].get("postern.dev/injected") != "true":
        raise RuntimeError("the pod has not the label that the PodMonitor selects")
    labels = {"namespace": metadata["namespace"], "pod": metadata["name"], "container": container}
    return labels | {"targets": [f"{pod['status']['podIP']}:{port}"]}


def job(name, *found):
    fixed = [{"targets": each["targets"], "labels": {key: each[key] for key in each if key != "targets"}} for each in found]
    return {"job_name": name, "static_configs": fixed}
