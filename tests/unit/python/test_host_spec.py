# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import pytest
import yaml

from conftest import refusal
from inside.machines import Quantity, catalogue, shipped
from inside.pages import describe_host
from towpath import ConfigError

NAMES = ["blackhole-host", "n300-xeon-host", "ryzen-host"]


def figures_in(spec):
    for block in (spec.link, spec.core, spec.driver, spec.memory):
        yield from ((name, getattr(block, name)) for name in type(block).model_fields)


def test_three_hosts_are_shipped():
    assert shipped.names("host") == NAMES
    assert catalogue.kind_of("ryzen-host") == "host"


@pytest.mark.parametrize("name", NAMES)
def test_every_quantity_has_a_source_and_is_shown(name):
    spec = catalogue.load_host(name)
    figures = list(figures_in(spec))
    assert len(figures) == 7 + 10 + 9 + 9
    lines = describe_host(spec).splitlines()
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    for field, figure in figures:
        assert isinstance(figure, Quantity) and len(figure.source) > 5
        assert f" {field} " in text and figure.source in text
    assert spec.build().name == name


def refused(tmp_path, change):
    data = catalogue.load_host("ryzen-host").model_dump(mode="json")
    change(data)
    file = tmp_path / "host.yaml"
    file.write_text(yaml.safe_dump(data))
    return refusal(catalogue.load_host, file)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d["link"].pop("lanes"), "link: has no field 'lanes'"),
        (lambda d: d["link"]["lanes"].update(value=0), "link.lanes.value: is 0; it must be"),
        (lambda d: d["core"]["load_bytes"].update(value=5), "core.load_bytes.value: is 5; it must"),
        (lambda d: d["core"].update(speed=1), "core: has no field 'speed'; choose one of call"),
        (lambda d: d["memory"]["has_iommu"].update(value="yes"), "memory.has_iommu.value: is 'y"),
        (lambda d: d["memory"]["hugepage_bytes"].update(value=4096),
         "memory.hugepage_bytes.value: is 4096; it must be more than 4096, the page"),
        (lambda d: d["driver"]["dma_time_ns"].pop("source"), "driver.dma_time_ns: has no field"),
        (lambda d: d.update(form="chip"), "is not a host; it must be a spec whose form is 'host'"),
    ],
)  # fmt: skip
def test_a_host_that_does_not_fit_is_refused(tmp_path, change, sentence):
    assert sentence in refused(tmp_path, change)


def test_an_unknown_host_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="no file or host 'mine'; choose one of blackhole-host"):
        catalogue.load_host("mine")


def test_other_kinds_are_no_hosts():
    with pytest.raises(ConfigError, match="is not a host"):
        catalogue.load_host("wormhole")


def test_hugepages_are_needed_without_an_iommu():
    blackhole = catalogue.load_host("blackhole-host").with_hugepages(True)
    assert blackhole.memory.has_hugepages.value
    assert not blackhole.with_hugepages(False).memory.has_hugepages.value
    with pytest.raises(ConfigError, match="host 'ryzen-host': has no IOMMU, so it needs hugepages"):
        catalogue.load_host("ryzen-host").with_hugepages(False)
