# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Links between pages: none is broken, and every page is in the navigation of the site."""

import re

import pytest
import yaml

from conftest import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links(page):
    """The files that a page links to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [page.parent / target for target in LINK.findall(text) if "://" not in target]


def navigated(entry):
    """The pages of an entry of the navigation."""
    if isinstance(entry, str):
        return {entry}
    below = entry.values() if isinstance(entry, dict) else entry
    return set().union(*map(navigated, below))


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=lambda page: page.name)
def test_the_links_of_a_page_lead_to_files(page):
    assert [str(target) for target in links(page) if not target.exists()] == []


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]  # above it are tags of MkDocs
    assert navigated(nav) >= {page.name for page in PAGES}
