# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath reproduce`: the statements of five documents, each with a verdict."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.options import AsJson, Jobs, OutPage
from towpath.cli.output_file import check_output, command_line, json_text, note, page_output
from towpath.errors import ConfigError
from towpath.files import write_text

if TYPE_CHECKING:
    from towpath.studies.page import Page

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def reproduce(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DOCUMENT] [ROW]...",
            help="documents 000 to 004, and rows by number; default: all",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="only rows whose runs take a minute together")
    ] = False,
    out: OutPage = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="write the rows as CSV")] = None,
    png: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write the page as an image (needs chromium)"),
    ] = None,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="run again instead of using kept results")
    ] = False,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Compare statements of five documents with runs, row by row.

    Results of runs are kept. After an interruption or a change, the same command only runs what is
    missing. Exits 1 if a row is off and DEVIATIONS.md does not name it.
    """
    from towpath.cli.progress import bar
    from towpath.pages.html import write_page
    from towpath.pages.text import page_text
    from towpath.reproduce.documents_report import chosen, report
    from towpath.reproduce.rules import OFF, UNTESTABLE

    output = page_output(out)
    for file in (csv, png):
        check_output(file)
    asked = chosen(documents or [])
    found = report(asked, quick=quick, jobs=jobs, progress=bar, afresh=afresh)
    page = found.page(command_line())
    text = json_text(found.to_dict())
    print(text if as_json else page_text(page))
    if csv is not None:
        write_text(csv, found.csv())
        note(f"rows: {csv}")
    if output is not None:
        output.write(lambda path: write_page(page, path), text)
    if png is not None:
        _write_image(page, png)
    untested = found.counts[UNTESTABLE] == len(found.verdicts)
    if found.counts[OFF] or (untested and any(each.run for each in asked)):
        raise typer.Exit(1)


def _write_image(page: Page, png: Path) -> None:
    from towpath.pages.html import write_page

    browser = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise ConfigError(f"--png needs a browser; install one of {', '.join(_BROWSERS)}")
    with tempfile.TemporaryDirectory(prefix="towpath-") as folder:
        file = Path(folder, "page.html")
        write_page(page, file)
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={folder}/profile",
                "--window-size=1440,6000",
                f"--screenshot={png.resolve()}",
                file.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    note(f"image: {png}")
