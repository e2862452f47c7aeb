# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Pages, tables, plots and descriptions as text."""

from towpath.pages import exchange_page, show, show_chip, show_chip_cluster, table
from towpath.pages.ethernet_study_page import study_text, write_ethernet_study
from towpath.pages.kernel_trace import write_kernel_trace
from towpath.pages.mailbox_table import study_tables
from towpath.pages.noc_study_page import Study, bandwidth_figure, write_study
from towpath.pages.perfetto import write_perfetto
from towpath.pages.plain_text import table_text, tables_text
from towpath.pages.plots import run_names, timeline_figures
from towpath.pages.provenance import Provenance, machine_hash, provenance, schedule_hash
from towpath.pages.replay_page import (
    LINKS_SHOWN_MAX,
    REQUEST_CORES_MAX,
    grid_figure,
    links_figure,
    phases_figure,
    write_replay,
)
from towpath.pages.report import write_report
from towpath.pages.show_chip_cluster import describe_chip_cluster, draw_chip_cluster_svg
from towpath.pages.show_host import describe_host
from towpath.pages.tune_collective_page import all_table, candidate_name, tuning_text, write_tuning
from towpath.pages.validation_text import summary_line, validation_text, verdict_text
from towpath.studies.plain_table import PlainTable
