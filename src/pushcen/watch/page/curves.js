"use strict";
// Curves of all runs over each other, as they grow.

class CurvesView {
  constructor(svg, tip, onSeek) {
    [this.svg, this.tip, this.chart] = [svg, tip, new Chart(svg)];
    this.what = document.getElementById("curves-y");
    this.over = document.getElementById("curves-x");
    for (const select of [this.what, this.over]) select.addEventListener("change", () => { this.drawn = ""; });
    svg.addEventListener("pointermove", (event) => this.say(event));
    svg.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    svg.addEventListener("click", (event) => { if (this.over.value === "time") onSeek(this.chart.at(event.clientX)); });
    for (const button of document.querySelectorAll("[data-save]")) button.addEventListener("click", () => this.save(button.dataset.save));
  }

  /** Offer what any run has. */
  offer(runs) {
    const measure = runs[0].facts.measure, { name, title } = measure;
    const known = new Set(runs.flatMap((run) => (run.rows.length ? Object.keys(run.rows[run.rows.length - 1]) : [])));
    const shown = { low: "", text: (value) => measureText(value, measure).replace(/\.0 %/, " %"), full: (value) => measureText(value, measure) };
    const plain = (value) => Number(value.toPrecision(4)).toString(), number = { text: plain, full: plain };
    const bytes = { text: bytesText, full: bytesText };
    this.figures = new Map([
      [name, { title: `${title}, mean and SD over clients`, sd: name + "_sd", ...shown }],
      [`delayed_${name}`, { title: `${title} of clients that joined late`, sd: `delayed_${name}_sd`, ...shown }],
      [`${name}_worst_tenth`, { title: `${title}, worst tenth of clients`, ...shown }],
      ["loss", { title: "loss", ...number }],
      ["train_loss", { title: "training loss", ...number }],
      ["bytes_sent", { title: "bytes sent", ...bytes }],
      ["tau", { title: "staleness: events between making and merging", ...number }],
      ["waited", { title: "seconds that models waited to be merged", ...number }],
      ["consensus_error", { title: "consensus error", ...number }],
      ["online", { title: "clients online", ...number }],
    ].filter(([key]) => known.has(key)));
    const axes = [["time", runs.every((run) => run.head?.seconds) ? "seconds" : "pseudo-time"], ["bytes_sent", "bytes sent"], ["steps", "compute events"]];
    if (runs.every((run) => run.facts.seconds)) axes.push(["seconds", "seconds by the clock"]);
    this.fill(this.what, [...this.figures].map(([key, figure]) => [key, figure.title]));
    this.fill(this.over, axes);
  }

  fill(select, options) {
    const key = options.flat().join();
    if (select.dataset.options === key) return;
    const before = select.value;
    select.dataset.options = key;
    select.replaceChildren(...options.map(([value, title]) => element("option", { value }, title)));
    if (options.some(([value]) => value === before)) select.value = before;
  }

  points(run) {
    const { value } = this.what, figure = this.figures.get(value);
    return run.rows.map((row, at) => ({ row, x: this.over.value === "seconds" ? run.facts.seconds[at] : row[this.over.value], y: row[value], sd: row[figure.sd] || 0 }))
      .filter(({ x, y }) => x !== undefined && y !== undefined && x !== null);
  }

  draw(runs, time, selected) {
    const usable = runs.filter((run) => run.rows.length);
    if (!usable.length) return;
    this.offer(usable);
    const key = [this.what.value, this.over.value, colourOf("paper"), this.svg.clientWidth, this.svg.clientHeight, selected, ...runs.map((run) => run.rows.length + run.colour)].join();
    if (key !== this.drawn) this.redraw(usable, selected);
    this.drawn = key;
    if (this.now) this.now.remove();
    const row = usable.find((run) => run.number === selected)?.rowAt(time), at = this.over.value === "time" ? time : row?.[this.over.value];
    this.now = at === undefined || at === null || this.over.value === "seconds" ? null : this.chart.upright(Math.min(at, this.chart.xAxis.high), colourOf("ink"), "", "");
  }

  redraw(runs, selected) {
    const figure = this.figures.get(this.what.value);
    this.series = runs.map((run) => ({ run, points: this.points(run) })).filter(({ points }) => points.length);
    const all = this.series.flatMap(({ points }) => points), last = this.series.length < 4;
    let [low, high] = range(all.flatMap(({ y, sd }) => (last ? [y - sd, y + sd] : [y])));
    if (figure.low === "") [low, high] = [Math.max(low, this.percent(runs) ? 0 : low), this.percent(runs) ? Math.min(high, 1) : high];
    if (this.what.value === "bytes_sent") low = 0;
    const room = (high - low) * 0.05 || 0.5, [, right] = range(all.map(({ x }) => x));
    const horizon = this.over.value === "time" ? Math.max(right, ...runs.map((run) => run.head?.horizon || 0)) : right;
    const text = this.over.value === "bytes_sent" ? bytesText : (value) => grouped(Number(value.toPrecision(4)));
    const clipped = this.percent(runs) && figure.low === "" ? Math.min(1, high + room) : high + room;
    this.chart.begin(
      { low: 0, high: horizon || 1, title: this.over.selectedOptions[0].textContent, text },
      { low: this.what.value === "bytes_sent" ? 0 : Math.max(low - room, figure.low === "" && this.percent(runs) ? 0 : -Infinity), high: clipped, text: figure.text },
    );
    if (last) for (const { run, points } of this.series) {
      const side = (sign) => points.map(({ x, y, sd }) => [x, Math.min(Math.max(y + sign * sd, this.chart.yAxis.low), this.chart.yAxis.high)]);
      if (figure.sd) this.chart.band(side(-1), side(1), run.colour, 0.16);
    }
    const shown = runs.find((run) => run.number === selected);
    if (this.over.value === "time" && shown?.head) {
      const joins = Object.values(shown.head.joins).filter((time) => time <= horizon);
      joins.sort((one, other) => one - other);
      let free = 0; // where the next word has room
      for (const time of joins.slice(0, 2000)) {
        const at = this.chart.x(time), word = at > free ? "joins" : "", bottom = this.chart.y(this.chart.yAxis.low);
        if (joins.length > 12) this.chart.add("line", { x1: at, x2: at, y1: bottom - 7, y2: bottom, stroke: colourOf("soft") });
        else this.chart.upright(time, colourOf("soft"), "2 4", word);
        if (word) free = at + 34;
      }
      if (joins.length > 12) this.chart.add("text", { x: this.chart.x(joins[0]), y: this.chart.y(this.chart.yAxis.low) - 10, fill: colourOf("soft"), "font-size": 10 }, `${joins.length} clients join late`);
    }
    for (const { run, points } of this.series) this.chart.line(points.map(({ x, y }) => [x, y]), { ...run.look, colour: run.colour }, run.number === selected ? 2.6 : 1.8);
  }

  percent(runs) { return runs[0].facts.measure.percent; }

  say(event) {
    if (!this.series?.length) return;
    const figure = this.figures.get(this.what.value), x = this.chart.at(event.clientX);
    const lines = this.series.map(({ run, points }) => {
      const nearest = points.reduce((best, point) => (Math.abs(point.x - x) < Math.abs(best.x - x) ? point : best));
      const spread = figure.sd && nearest.row[figure.sd] !== undefined ? ` ± ${figure.full(nearest.sd)}` : "";
      return `${run.label}: ${figure.full(nearest.y)}${spread} at T ${Number(nearest.row.time.toPrecision(4))}`;
    });
    this.tip.textContent = lines.join("\n");
    this.tip.hidden = false;
    const box = this.svg.getBoundingClientRect(), right = event.clientX - box.left > box.width / 2;
    this.tip.style.left = right ? "60px" : "auto";
    this.tip.style.right = right ? "auto" : "14px";
  }

  save(form) {
    const name = `pushcen-${this.what.value}`;
    if (form === "csv") {
      const quoted = (text) => `"${String(text).replace(/"/g, '""').replace(/^[=+@\-]/, "'$&")}"`;
      const cells = (run, { row, x, y, sd }) => ({ run: quoted(run.label), time: row.time, [this.over.value]: x, [this.what.value]: y, sd });
      const rows = this.series.flatMap(({ run, points }) => points.map((point) => cells(run, point)));
      const lines = [Object.keys(rows[0] || {}), ...rows.map(Object.values)].map((line) => line.join() + "\n");
      save(new Blob(lines, { type: "text/csv" }), name + ".csv");
      return;
    }
    const copy = this.svg.cloneNode(true), [width, height] = [this.chart.width, this.chart.height];
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height + 18 * this.series.length);
    copy.setAttribute("viewBox", `0 0 ${width} ${height + 18 * this.series.length}`);
    copy.prepend(element("rect", { width: "100%", height: "100%", fill: colourOf("panel") }));
    this.series.forEach(({ run }, at) => copy.append(
      element("line", { x1: EDGE.left, x2: EDGE.left + 30, y1: height + 18 * at + 5, y2: height + 18 * at + 5, stroke: run.colour, "stroke-width": 2, "stroke-dasharray": run.look.dash.join(" ") || undefined }),
      element("text", { x: EDGE.left + 38, y: height + 18 * at + 9, fill: colourOf("ink") }, run.label),
    ));
    const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
    if (form === "svg") return save(blob, name + ".svg");
    const image = new Image();
    image.onload = () => {
      const canvas = element("canvas", { width: 2 * width, height: 2 * (height + 18 * this.series.length) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((png) => save(png, name + ".png"));
    };
    image.src = URL.createObjectURL(blob);
  }
}
