// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Draws every figure in the page's colours, once more when those change between light and dark.
"use strict";
{
  const figures = [...document.querySelectorAll(".figure")].map((element) => [
    element,
    JSON.parse(element.querySelector("script").textContent),
  ]);

  // Only buttons that stay on this machine: plotly would also offer to upload the chart.
  const options = {
    responsive: true,
    displaylogo: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };

  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    for (const [element, { data, layout }] of figures) {
      layout.font = { color: color("--text"), size: 12, family: getComputedStyle(document.body).fontFamily };
      for (const axis of [layout.xaxis, layout.yaxis]) {
        axis.gridcolor = axis.linecolor = color("--rule");
        axis.tickfont = { ...axis.tickfont, color: color("--muted") };
      }
      layout.hoverlabel = { bgcolor: color("--sheet"), bordercolor: color("--muted"), font: { color: color("--text") } };
      layout.modebar = { bgcolor: "transparent", color: color("--muted"), activecolor: color("--text") };
      for (const menu of layout.updatemenus ?? []) {
        menu.bgcolor = color("--sheet");
        menu.bordercolor = color("--rule");
      }
      Plotly.react(element, data, layout, options);
    }
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
