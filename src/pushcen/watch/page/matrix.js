"use strict";
// Who has merged whom so far: a row for each receiver, a column for each sender; of many clients, a cell for several.

class MatrixView {
  constructor(canvas, note, what, onSelect) {
    [this.canvas, this.note, this.what, this.onSelect] = [canvas, note, what, onSelect];
    this.pen = canvas.getContext("2d");
    this.mark = document.getElementById("matrix-mark"); // the row of the selected client
    this.over = null;
    canvas.addEventListener("pointermove", (event) => { this.over = this.cellAt(event); this.say(); });
    canvas.addEventListener("pointerleave", () => { this.over = null; this.say(); });
    canvas.addEventListener("click", (event) => { const cell = this.cellAt(event); if (cell) this.onSelect(this.first(cell[0])); });
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect(), bins = this.replay?.bins;
    if (!bins) return null;
    const part = (from, length, at) => Math.min(bins - 1, Math.max(0, Math.floor(((at - from) / length) * bins)));
    return [part(box.top, box.height, event.clientY), part(box.left, box.width, event.clientX)];
  }

  first(bin) { return Math.ceil((bin * this.replay.clients.length) / this.replay.bins); }

  value(receiver, sender) {
    const { replay } = this, cell = receiver * replay.bins + sender;
    if (this.what.value === "lost") return replay.lost[cell];
    if (this.what.value === "age") return replay.merges[cell] ? replay.age[cell] / replay.merges[cell] : 0;
    return replay.eventsOf[receiver] ? replay.share[cell] / replay.eventsOf[receiver] : 0;
  }

  draw(run, replay, selected) {
    [this.run, this.replay] = [run, replay];
    const { bins } = replay, { pen } = this, dark = document.documentElement.dataset.theme === "dark";
    const cells = new ImageData(bins, bins), colours = new Uint32Array(cells.data.buffer), values = new Float64Array(bins * bins);
    this.most = 0;
    for (let at = 0; at < values.length; at++) {
      values[at] = this.value(Math.floor(at / bins), at % bins);
      if (values[at] > this.most) this.most = values[at];
    }
    const scale = SHADES.map(packed), [grid, panel] = [packed(colourOf("grid")), packed(colourOf("panel"))];
    for (let at = 0; at < values.length; at++) {
      const part = Math.sqrt(values[at] / (this.most || 1));
      colours[at] = values[at] ? scale[Math.round(100 * (dark ? 0.15 + 0.85 * part : 1 - 0.97 * part))] : at % (bins + 1) ? panel : grid;
    }
    this.canvas.width = this.canvas.height = bins;
    pen.putImageData(cells, 0, 0);
    this.mark.hidden = selected === null;
    this.row = selected === null ? null : Math.floor((selected * bins) / replay.clients.length);
    if (selected === null) return this.say();
    this.mark.style.top = `${(100 * this.row) / bins}%`;
    this.mark.style.height = `${100 / bins}%`;
    this.say();
  }

  text(value) {
    if (this.what.value === "share") return (100 * value).toFixed(2) + " % of each new model";
    if (this.what.value === "age") return this.run.real ? `waited ${this.run.ageText(value)} in the mailbox, on average` : value.toFixed(1) + " compute events old, on average";
    return value + " messages lost";
  }

  say() {
    if (!this.replay) return;
    const several = this.replay.bins < this.replay.clients.length, lightest = document.documentElement.dataset.theme === "dark" ? "brightest" : "darkest";
    const name = (bin) => (several ? `${this.first(bin)}–${this.first(bin + 1) - 1}` : this.run.name(bin));
    const most = this.row === null ? 0 : Array.from({ length: this.replay.bins }, (_, sender) => sender).reduce((best, sender) => (this.value(this.row, sender) > this.value(this.row, best) ? sender : best));
    const cell = this.over || (this.row === null || !this.value(this.row, most) ? null : [this.row, most]);
    const text = cell
      ? `${name(cell[0])} from ${name(cell[1])}${this.over ? "" : ", the most"}: ${this.text(this.value(...cell))}`
      : `receivers down, senders across; ${lightest}: ${this.text(this.most)}`;
    if (this.note.textContent !== text) this.note.textContent = text;
  }
}

/** A colour as a pixel of an image. */
function packed(colour) {
  const parts = colour.startsWith("#") ? [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16)) : colour.match(/\d+/g).map(Number);
  return ((255 << 24) | (parts[2] << 16) | (parts[1] << 8) | parts[0]) >>> 0;
}
