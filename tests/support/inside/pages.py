# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Pages, tables, plots and descriptions as text."""

from towpath import files
from towpath.api import table
from towpath.api.report import report_page, run_names, write_report
from towpath.pages import exchange_page, show, show_chip, show_chip_cluster
from towpath.pages.doctor_page import doctor_text
from towpath.pages.ethernet_study_page import ethernet_page
from towpath.pages.frame import bars_frame, heat_frame, plot_frame
from towpath.pages.html import write_page
from towpath.pages.job_page import job_page
from towpath.pages.kernel_trace import write_kernel_trace
from towpath.pages.mailbox_page import mailbox_page
from towpath.pages.noc_study_page import Study, bandwidth_plot, noc_page
from towpath.pages.penny_page import penny_page
from towpath.pages.perfetto import write_perfetto
from towpath.pages.provenance import Provenance, machine_hash, provenance, schedule_hash
from towpath.pages.replay_page import (
    LINKS_SHOWN_MAX,
    REQUEST_CORES_MAX,
    grid_plot,
    links_heat,
    phases_bars,
    replay_page,
)
from towpath.pages.show_chip_cluster import describe_chip_cluster, draw_chip_cluster_svg
from towpath.pages.show_host import describe_host
from towpath.pages.text import page_text, table_text, tables_text
from towpath.pages.timeline import timeline_section
from towpath.pages.tune_collective_page import all_table, candidate_name, tune_collective_page
from towpath.pages.validation_text import summary_line, validation_text, verdict_text
from towpath.studies.page import (
    Axis,
    Bars,
    BarSeries,
    Curve,
    Finding,
    Heat,
    Lanes,
    Page,
    PlainTable,
    Plot,
    Section,
)
