// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Says what is under the pointer, and draws lanes over time. Plots are there without it.
"use strict";
{
  const dataOf = (element) => JSON.parse(element.querySelector(":scope > script").textContent);
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 3 });

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;

  const show = (area, x, y, text) => {
    area.append(tip);
    tip.textContent = text;
    tip.hidden = false;
    const isRight = x > area.clientWidth / 2;
    tip.style.left = isRight ? "" : `${x + 10}px`;
    tip.style.right = isRight ? `${area.clientWidth - x + 10}px` : "";
    tip.style.top = `${Math.max(y - 30, 0)}px`;
  };
  const hide = () => { tip.hidden = true; };

  const placeIn = (area, event) => {
    const box = area.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top, box.width, box.height];
  };

  const pointsUnder = (area, points) => (event) => {
    const [x, y, width, height] = placeIn(area, event);
    let nearest = null;
    let least = 40 ** 2;
    for (const point of points) {
      const distance = (point[0] / 100 * width - x) ** 2 + (point[1] / 100 * height - y) ** 2;
      if (distance < least) [nearest, least] = [point, distance];
    }
    if (nearest) show(area, nearest[0] / 100 * width, nearest[1] / 100 * height, nearest[2]);
    else hide();
  };

  const heatUnder = (area, { rows, scale }) => {
    const image = area.querySelector("img");
    const canvas = document.createElement("canvas");
    let pixels = null;
    return (event) => {
      if (!pixels) {
        canvas.width = image.naturalWidth;
        canvas.height = image.naturalHeight;
        const context = canvas.getContext("2d", { willReadFrequently: true });
        context.drawImage(image, 0, 0);
        pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
      }
      const [x, y, width, height] = placeIn(area, event);
      const column = Math.min(Math.max(Math.floor(x / width * canvas.width), 0), canvas.width - 1);
      const row = Math.min(Math.max(Math.floor(y / height * canvas.height), 0), canvas.height - 1);
      const percent = Math.round(pixels[4 * (row * canvas.width + column) + 3] / 2.55);
      const at = scale[0] + (column + 0.5) / canvas.width * (scale[1] - scale[0]);
      show(area, x, y, `${rows[row]} at ${number(at)}: ${percent} % ${scale[2]}`);
    };
  };

  for (const plot of document.querySelectorAll(".plot")) {
    const area = plot.querySelector(".area");
    let under = null;
    area.addEventListener("pointermove", (event) => {
      if (!under) {
        const data = dataOf(plot);
        under = data.points ? pointsUnder(area, data.points) : heatUnder(area, data);
      }
      under(event);
    });
    area.addEventListener("pointerleave", hide);
  }

  // --- lanes ---------------------------------------------------------------------------------

  class Lanes {
    constructor(element) {
      this.element = element;
      this.data = dataOf(element);
      this.names = Object.keys(this.data.groups);
      this.group = this.names[0];
      this.view = [...this.data.span];
      this.select = document.createElement("select");
      this.names.forEach((name) => this.select.add(new Option(name)));
      this.select.ariaLabel = "what is shown";
      this.legend = document.createElement("div");
      this.legend.className = "legend";
      this.legend.append(this.select);
      for (const [name, color] of this.data.kinds) {
        const entry = document.createElement("span");
        const swatch = document.createElement("i");
        swatch.style.background = color;
        entry.append(swatch, name);
        this.legend.append(entry);
      }
      this.canvas = document.createElement("canvas");
      element.append(this.legend, this.canvas);
      this.select.addEventListener("change", () => { this.group = this.select.value; this.draw(); });
      this.canvas.addEventListener("pointerdown", (event) => { this.from = event.offsetX; });
      this.canvas.addEventListener("pointerup", (event) => this.zoom(event.offsetX));
      this.canvas.addEventListener("dblclick", () => { this.view = [...this.data.span]; this.draw(); });
      this.canvas.addEventListener("pointermove", (event) => this.say(event));
      this.canvas.addEventListener("pointerleave", () => { this.from = undefined; hide(); });
      new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(element);
    }

    get lanes() {
      return this.data.groups[this.group].reduce((most, span) => Math.max(most, span[0] + 1), 1);
    }

    at(value) {
      return this.left + (value - this.view[0]) / (this.view[1] - this.view[0]) * this.width;
    }

    back(x) {
      return this.view[0] + (x - this.left) / this.width * (this.view[1] - this.view[0]);
    }

    zoom(to) {
      if (this.from !== undefined && Math.abs(to - this.from) > 4) {
        const ends = [this.back(Math.min(this.from, to)), this.back(Math.max(this.from, to))];
        this.view = [Math.max(ends[0], this.data.span[0]), Math.min(ends[1], this.data.span[1])];
        this.draw();
      }
      this.from = undefined;
    }

    draw() {
      const style = getComputedStyle(document.documentElement);
      const color = (name) => style.getPropertyValue(name).trim();
      const ratio = devicePixelRatio || 1;
      const full = this.element.clientWidth;
      if (!full) return;
      const lanes = this.lanes;
      this.left = 44;
      this.width = full - this.left - 12;
      this.lane = Math.max(3, Math.min(22, 520 / lanes));
      const height = this.lane * lanes + 26;
      this.canvas.width = full * ratio;
      this.canvas.height = height * ratio;
      this.canvas.style.height = `${height}px`;
      const context = this.canvas.getContext("2d");
      context.scale(ratio, ratio);
      context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
      context.fillStyle = color("--muted");
      context.textAlign = "right";
      const every = Math.ceil(12 / this.lane);
      for (let lane = 0; lane < lanes; lane += every) {
        context.fillText(lane, this.left - 6, (lane + 0.5) * this.lane + 4);
      }
      this.ticks(context, height, color("--rule"), color("--muted"));
      for (const [lane, begin, end, kind] of this.data.groups[this.group]) {
        const x = Math.max(this.at(begin), this.left);
        const right = Math.min(this.at(end), this.left + this.width);
        if (right < this.left || x > this.left + this.width) continue;
        context.fillStyle = this.data.kinds[kind][1];
        context.fillRect(x, (lane + 0.08) * this.lane, Math.max(right - x, 0.6), this.lane * 0.84);
      }
    }

    ticks(context, height, rule, muted) {
      const [low, high] = this.view;
      const rough = (high - low) / Math.max(2, Math.floor(this.width / 110));
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
      context.textAlign = "center";
      for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
        context.fillStyle = rule;
        context.fillRect(this.at(value), 0, 1, height - 22);
        context.fillStyle = muted;
        context.fillText(`${number(value)} ${this.data.unit}`, this.at(value), height - 6);
      }
    }

    say(event) {
      const time = this.back(event.offsetX);
      const lane = Math.floor(event.offsetY / this.lane);
      const slack = 2 / this.width * (this.view[1] - this.view[0]);
      const found = this.data.groups[this.group].findLast(
        (span) => span[0] === lane && span[1] - slack <= time && time <= span[2] + slack);
      if (!found) return hide();
      const [, begin, end, kind, text] = found;
      const words = this.data.texts[text] || this.data.kinds[kind][0];
      show(this.element, event.offsetX, event.offsetY + this.canvas.offsetTop,
        `${this.data.lane} ${lane}: ${words}, from ${number(begin)} to ${number(end)} ${this.data.unit}`);
    }
  }

  const lanes = [...document.querySelectorAll(".lanes")].map((element) => new Lanes(element));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    lanes.forEach((each) => each.draw());
  });
}
