"""deploy/kubernetes.yaml against the schemas of Kubernetes, which a package of Python's registry brings."""

import pathlib

import pytest
import yaml

kubernetes_validate = pytest.importorskip("kubernetes_validate")
FILE = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "kubernetes.yaml"


def documents():
    return list(yaml.safe_load_all(FILE.read_text()))


@pytest.mark.parametrize("version", ["1.27", "1.31", "1.34"])
def test_each_document(version):
    kinds = set()
    for document in documents():
        kubernetes_validate.validate(document, version, strict=True)
        kinds.add(document["kind"])
    assert kinds >= {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"}


def test_a_wrong_name_is_found():
    document = documents()[0]
    document["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.31", strict=True)
