"""Checks a file of `launch --scheduler k8s`: a ConfigMap and a PyTorchJob, key by key.

Usage: check_pytorchjob.py FILE NODES GPUS RESOURCE FILE_IN_MAP...

The keys and types are those of the CustomResourceDefinition pytorchjobs.kubeflow.org, version v1,
and of the pod's spec in Kubernetes' core/v1, as far as they are written.
"""

import re
import sys

import yaml

NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"  # RFC 1123

CONTAINER = {
    "name": str,
    "image": str,
    "command": [str],
    "env?": [{"name": str, "value": str}],
    "resources": {"limits": dict},
    "volumeMounts": [{"name": str, "mountPath": str}],
}
VOLUME = {"name": str, "configMap?": {"name": str}, "emptyDir?": {"medium": str}}
REPLICAS = {
    "replicas": int,
    "restartPolicy": str,
    "template": {"spec": {"containers": [CONTAINER], "volumes": [VOLUME]}},
}
JOB = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {"pytorchReplicaSpecs": {"Master": REPLICAS, "Worker?": REPLICAS}},
}
MAP = {"apiVersion": str, "kind": str, "metadata": {"name": str}, "data": dict}


def check(value, schema, path):
    """Claims that a value has the shape of a schema: no key more, none less but those with '?'."""
    if isinstance(schema, type):
        assert isinstance(value, schema), f"{path}: {value!r} is no {schema.__name__}"
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, f"{path}: no list"
        for i, item in enumerate(value):
            check(item, schema[0], f"{path}[{i}]")
    else:
        assert isinstance(value, dict), f"{path}: no object"
        known = {key.rstrip("?") for key in schema}
        assert set(value) <= known, f"{path}: unknown {set(value) - known}"
        for key, inner in schema.items():
            name = key.rstrip("?")
            assert name in value or key != name, f"{path}: no {name}"
            if name in value:
                check(value[name], inner, f"{path}.{name}")


def main():
    path, nodes, gpus, resource, *files = sys.argv[1:]
    with open(path, encoding="utf-8") as stream:
        config, job = yaml.safe_load_all(stream)
    check(config, MAP, "ConfigMap")
    check(job, JOB, "PyTorchJob")
    assert (config["apiVersion"], config["kind"]) == ("v1", "ConfigMap")
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert re.fullmatch(NAME, job["metadata"]["name"]), job["metadata"]
    assert sorted(config["data"]) == sorted(files), sorted(config["data"])
    assert config["data"]["launch.sh"].startswith("#!/bin/bash\n")
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert sum(part["replicas"] for part in replicas.values()) == int(nodes), replicas
    assert replicas["Master"]["replicas"] == 1
    for part in replicas.values():
        spec = part["template"]["spec"]
        assert part["restartPolicy"] in ("Never", "OnFailure", "Always", "ExitCode")
        container = spec["containers"][0]
        assert container["name"] == "pytorch"  # the operator's name for the one that it configures
        assert container["resources"]["limits"] == {resource: int(gpus)}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}
        maps = [volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume]
        assert maps == [config["metadata"]["name"]]


main()
