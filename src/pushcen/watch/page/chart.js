"use strict";
// Charts as SVG: axes, lines with bands, stacked bands. Everything that is drawn can be saved.

const EDGE = { left: 56, right: 14, top: 10, bottom: 38 };

/** Round steps between two values, about `count` of them. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9); // counted, since adding a small step to a large value may change nothing
  return Array.from({ length: Math.min(100, Math.max(0, last - first + 1)) || 0 }, (_, at) => (first + at) * step);
}

class Chart {
  constructor(svg) {
    this.svg = svg;
  }

  /** Begin anew, with axes for these ranges. `x` and `y` have `low`, `high`, `title` and `text`, which writes a tick. */
  begin(x, y) {
    const box = this.svg.getBoundingClientRect();
    [this.width, this.height] = [Math.max(box.width, 160), Math.max(box.height, 120)];
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("font-family", "system-ui, sans-serif");
    this.svg.setAttribute("font-size", "12");
    [this.xAxis, this.yAxis] = [x, y];
    this.svg.replaceChildren();
    const grid = colourOf("grid"), soft = colourOf("soft"), [left, bottom] = [EDGE.left, this.height - EDGE.bottom];
    for (const value of ticks(y.low, y.high, this.height / 55)) {
      const at = this.y(value);
      this.add("line", { x1: left, x2: this.width - EDGE.right, y1: at, y2: at, stroke: grid });
      this.add("text", { x: left - 6, y: at + 4, "text-anchor": "end", fill: soft }, y.text(value));
    }
    for (const value of ticks(x.low, x.high, this.width / 90)) {
      const at = this.x(value);
      this.add("line", { x1: at, x2: at, y1: bottom, y2: bottom + 4, stroke: soft });
      this.add("text", { x: at, y: bottom + 17, "text-anchor": "middle", fill: soft }, x.text(value));
    }
    this.add("line", { x1: left, x2: this.width - EDGE.right, y1: bottom, y2: bottom, stroke: soft });
    this.add("text", { x: (left + this.width - EDGE.right) / 2, y: this.height - 5, "text-anchor": "middle", fill: soft }, x.title);
  }

  add(name, attributes, ...children) {
    const made = element(name, attributes, ...children);
    this.svg.append(made);
    return made;
  }

  x(value) {
    const { low, high } = this.xAxis;
    return EDGE.left + ((value - low) / (high - low)) * (this.width - EDGE.left - EDGE.right);
  }

  y(value) {
    const { low, high } = this.yAxis;
    return this.height - EDGE.bottom - ((value - low) / (high - low)) * (this.height - EDGE.top - EDGE.bottom);
  }

  /** The value of x at a place on the screen. */
  at(clientX) {
    const box = this.svg.getBoundingClientRect(), { low, high } = this.xAxis;
    const part = (clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
    return low + Math.min(Math.max(part, 0), 1) * (high - low);
  }

  path(points) {
    return "M" + points.map(([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join("L");
  }

  line(points, look, width = 2) {
    if (!points.length) return;
    this.add("path", { d: this.path(points), fill: "none", stroke: look.colour, "stroke-width": width, "stroke-dasharray": look.dash.join(" ") || undefined, "stroke-linejoin": "round" });
    const every = Math.max(1, Math.round(points.length / 8));
    points.forEach(([x, y], at) => {
      if (at % every === 0 || points.length === 1) this.marker(this.x(x), this.y(y), look);
    });
  }

  /** A marker for each method, so that nobody needs the colour to tell curves apart. */
  marker(x, y, look) {
    const shapes = { o: 0, "^": 3, v: 3, s: 4, D: 4, h: 6, p: 5, P: 4 }, sides = shapes[look.marker] ?? 5;
    if (!sides) {
      this.add("circle", { cx: x, cy: y, r: 3.2, fill: look.colour });
      return;
    }
    const turn = { v: Math.PI / 2, s: Math.PI / 4 }[look.marker] ?? -Math.PI / 2;
    const corners = Array.from({ length: sides }, (_, at) => [x + 4 * Math.cos(turn + (2 * Math.PI * at) / sides), y + 4 * Math.sin(turn + (2 * Math.PI * at) / sides)]);
    this.add("path", { d: "M" + corners.map((corner) => corner.map((one) => one.toFixed(1)).join(" ")).join("L") + "Z", fill: look.colour });
  }

  /** The area between two lines over the same x. */
  band(lower, upper, colour, opacity) {
    if (lower.length < 2) return null;
    const d = this.path(upper) + "L" + this.path([...lower].reverse()).slice(1) + "Z";
    return this.add("path", { d, fill: colour, opacity, stroke: "none" });
  }

  upright(value, colour, dash, title) {
    const at = this.x(value);
    const made = this.add("line", { x1: at, x2: at, y1: EDGE.top, y2: this.height - EDGE.bottom, stroke: colour, "stroke-dasharray": dash || undefined });
    if (title) this.add("text", { x: at + 3, y: EDGE.top + 9, fill: colour, "font-size": 10 }, title);
    return made;
  }
}

/** Let the user save something as a file. */
function save(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
