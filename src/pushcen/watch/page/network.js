"use strict";
// The network on a canvas: clients as circles, messages as dots that move along links.

const SCALE = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"]; // cividis: every eye reads it alike
const FLY = 0.7; // seconds that a message is seen for, where messages take no time
const RING = 60; // so many clients still fit on a ring
const MOST_SIZE = 1.6; // of a circle, in those of one with the mean mass
const AROUND = 10; // pixels around a circle that its rings, and the mark of the selected one, take

/** The colour of a value from 0 to 1. */
function shade(value) {
  const at = Math.min(Math.max(value, 0), 1) * (SCALE.length - 1), low = Math.min(Math.floor(at), SCALE.length - 2);
  const part = (text, from) => parseInt(text.slice(from, from + 2), 16);
  const mixed = [1, 3, 5].map((from) => Math.round(part(SCALE[low], from) * (low + 1 - at) + part(SCALE[low + 1], from) * (at - low)));
  return `rgb(${mixed.join()})`;
}
const SHADES = Array.from({ length: 101 }, (_, at) => shade(at / 100));

class NetworkView {
  constructor(canvas, onSelect) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.onSelect = onSelect;
    this.hovered = null;
    this.colouring = "metric";
    this.places = [];
    canvas.addEventListener("pointermove", (event) => { this.hovered = this.hit(event); });
    canvas.addEventListener("pointerleave", () => { this.hovered = null; });
    canvas.addEventListener("click", (event) => this.onSelect(this.hit(event)));
    canvas.addEventListener("keydown", (event) => this.step(event));
  }

  hit(event) {
    const box = this.canvas.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let nearest = null, least = Math.max(this.radius * 1.6, 12) ** 2;
    this.places.forEach(([a, b], number) => {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least) [nearest, least] = [number, distance];
    });
    return nearest;
  }

  step(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !this.places.length) return;
    event.preventDefault();
    event.stopPropagation();
    const count = this.places.length;
    this.selected = this.selected === null ? 0 : (this.selected + by + count) % count;  // the next key may come before it is drawn
    this.onSelect(this.selected);
  }

  /** Put few clients on a ring, many like the seeds of a sunflower. */
  lay(count) {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.max(box.width, 50), Math.max(box.height, 50)];
    if (this.laid === `${count} ${width} ${height} ${ratio}`) return;
    this.laid = `${count} ${width} ${height} ${ratio}`;
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    [this.width, this.height] = [width, height];
    const half = Math.min(width, height) / 2;
    if (count <= RING) {
      this.radius = Math.min(half * 0.13, (half * 0.82 * Math.PI) / count / 1.5);
      const room = MOST_SIZE * this.radius + AROUND, far = Math.max(half - room, half / 3), wide = Math.min(1.15 * far, Math.max(width / 2 - room, far));
      this.places = Array.from({ length: count }, (_, at) => {
        const angle = (2 * Math.PI * at) / count - Math.PI / 2;
        return [width / 2 + wide * Math.cos(angle), height / 2 + far * Math.sin(angle)];
      });
    } else {
      const stretch = Math.min(Math.max(width / height, 1), 1.7);
      this.radius = Math.max(1.6, (half * 0.66 * Math.sqrt(stretch)) / Math.sqrt(count));
      this.places = Array.from({ length: count }, (_, at) => {
        const far = (half - MOST_SIZE * this.radius - AROUND) * Math.sqrt((at + 0.5) / count), angle = at * Math.PI * (3 - Math.sqrt(5));
        return [width / 2 + stretch * far * Math.cos(angle), height / 2 + far * Math.sin(angle)];
      });
    }
  }

  /** The smallest and largest value that colours stand for now, and what a client's colour says. */
  colours(replay, run) {
    const time = replay.time, measure = run.facts.measure;
    const of = {
      metric: (client) => client.metric,
      age: (client) => (client.trained === null ? null : time - client.trained),
      stale: (client) => staleness(client),
    }[this.colouring];
    const values = replay.clients.map((client) => (client.known ? of(client) : null)), known = values.filter((value) => value !== null);
    let [low, high] = known.length ? range(known) : [0, 1];
    if (this.colouring === "metric" && measure.percent) [low, high] = [0, 1];
    return { values, low, high: high > low ? high : low + 1 };
  }

  draw(run, replay, selected, speed) {
    this.selected = selected;
    this.lay(replay.clients.length);
    const { pen } = this, ink = colourOf("ink"), soft = colourOf("soft");
    pen.clearRect(0, 0, this.width, this.height);
    const clients = replay.clients, scale = this.scale = this.colours(replay, run);
    const known = clients.filter((client) => client.held !== null), held = clients.map((client) => Number(client.held || 0));
    const mean = held.reduce((sum, one) => sum + one, 0) / (run.real ? known.length : clients.length) || 1;
    this.sizes = held.map((one, number) => (run.head.founded && !(run.real && clients[number].held === null) ? this.radius * Math.min(MOST_SIZE, Math.max(0.45, Math.sqrt(one / mean))) : this.radius));
    this.drawLinks(replay, soft);
    if (selected !== null) this.drawInfluence(clients[selected]);
    this.drawFlights(run, replay.time, run.head.instant ? FLY * speed : run.longest);
    this.drawClients(clients, scale, replay.time, speed, run);
    if (run.facts.peers) this.drawWarnings(run.facts.peers);
    for (const number of [selected, this.hovered]) if (number !== null && clients[number]) this.mark(number, ink);
  }

  drawLinks(replay, soft) {
    if (replay.clients.length > RING) return;
    const { pen } = this, count = replay.clients.length;
    pen.strokeStyle = soft;
    for (const [link, bytes] of replay.links) {
      const [from, to] = [this.places[Math.floor(link / count)], this.places[link % count]], part = bytes / replay.mostBytes;
      pen.globalAlpha = 0.06 + 0.16 * part;
      pen.lineWidth = 0.4 + 2.2 * part;
      line(pen, from, to);
    }
    pen.globalAlpha = 1;
  }

  /** Draw whose models the selected client has merged last, each as thick as its share. */
  drawInfluence(client) {
    const { pen } = this;
    pen.strokeStyle = colourOf("accent");
    for (let at = 0; at < client.merged.length; at += 3) {
      pen.lineWidth = 1 + client.merged[at + 2] / 400;
      line(pen, this.places[client.merged[at]], this.places[client.number]);
    }
  }

  drawFlights(run, time, window) {
    const { pen } = this, flights = run.flights, dot = Math.max(1.6, Math.min(3.6, this.radius * 0.4));
    pen.fillStyle = pen.strokeStyle = colourOf("push");
    pen.lineWidth = 1.8;
    const dots = new Path2D();
    for (let at = upTo(flights, time, (flight) => flight.start) - 1; at >= 0 && flights[at].start >= time - window; at--) {
      const { from, to, start, lost } = flights[at], end = flights[at].end ?? start + run.longest; // of one under way, a guess
      if (!run.head.instant && time > end) continue;
      const whole = run.head.instant ? window : end - start, part = whole ? (time - start) / whole : 1;
      const [[a, b], [c, d]] = [this.places[from], this.places[to]];
      if (lost && part > 0.55) {
        const [x, y] = [a + 0.55 * (c - a), b + 0.55 * (d - b)];
        line(pen, [x - dot, y - dot], [x + dot, y + dot]);
        line(pen, [x - dot, y + dot], [x + dot, y - dot]);
        continue;
      }
      const [x, y] = [a + part * (c - a), b + part * (d - b)];
      if (this.places.length <= RING) {
        pen.globalAlpha = 0.45;
        line(pen, [a + Math.max(0, part - 0.16) * (c - a), b + Math.max(0, part - 0.16) * (d - b)], [x, y]);
        pen.globalAlpha = 1;
      }
      if (this.places.length > RING) dots.rect(x - dot, y - dot, 2 * dot, 2 * dot);
      else {
        dots.moveTo(x + dot, y);
        dots.arc(x, y, dot, 0, 2 * Math.PI);
      }
    }
    pen.fill(dots);
  }

  /** Draw all clients, those of the same look in one go: of a thousand, a frame still takes a few milliseconds. */
  drawClients(clients, scale, time, speed, run) {
    const { pen } = this, looks = new Map(), rings = new Map(), [ink, soft, panel] = ["ink", "soft", "panel"].map(colourOf);
    const put = (map, key, entry) => (map.has(key) ? map.get(key).push(entry) : map.set(key, [entry]));
    for (const { number, known, online, late, trained } of clients) {
      const [x, y] = this.places[number], size = this.sizes[number], value = scale.values[number];
      if (!known) {
        put(looks, soft, [x, y, Math.max(1, size * 0.25)]);
        continue;
      }
      put(looks, !online ? panel : value === null ? soft : SHADES[Math.round(100 * Math.min(1, Math.max(0, (value - scale.low) / (scale.high - scale.low))))], [x, y, size]);
      const since = trained === null ? Infinity : (time - trained) / speed; // seconds since it has merged and trained
      put(rings, !online ? "away" : since < 0.35 ? 1 + Math.round(6 * (1 - since / 0.35)) / 2 : 1, [x, y, size]);
      if (late && size > 4) put(rings, 1.2, [x, y, size + 3.5]);
    }
    for (const [colour, discs] of looks) {
      pen.fillStyle = colour;
      allDiscs(pen, discs);
      pen.fill();
    }
    pen.strokeStyle = ink;
    for (const [width, discs] of rings) {
      pen.setLineDash(width === "away" ? [2.5, 2.5] : []);
      pen.lineWidth = width === "away" ? 1 : width;
      allDiscs(pen, discs);
      pen.stroke();
    }
    pen.setLineDash([]);
    if (clients.length <= 200) for (const client of clients) this.label(client, scale, ink, run);
  }

  label({ number, known, online }, scale, ink, run) {
    const { pen } = this, [x, y] = this.places[number], size = this.sizes[number], value = scale.values[number], name = run.name(number);
    if (run.real && this.places.length <= RING && (!known || name.length > 3)) return this.nameBeside(name, x, y, size, ink);
    if (!known || size <= 7.5) return;
    pen.fillStyle = !online ? ink : value === null ? colourOf("panel") : (value - scale.low) / (scale.high - scale.low) > 0.55 ? "#111111" : "#ffffff";
    pen.font = `${Math.min(13, size)}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(name, x, y + 0.5);
  }

  /** A long name stands below its circle, or above it where there is no room below. */
  nameBeside(name, x, y, size, ink) {
    const { pen } = this, below = y + size + 22 < this.height;
    pen.fillStyle = ink;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = x < 60 ? "left" : x > this.width - 60 ? "right" : "center";
    pen.textBaseline = "middle";
    const text = name.length > 18 ? name.slice(0, 17) + "…" : name, at = x < 60 ? Math.max(2, x - size) : x > this.width - 60 ? Math.min(this.width - 2, x + size) : x;
    pen.fillText(text, at, below ? y + size + 15 : y - size - 15);
  }

  /** A sign at each peer with which something is wrong. */
  drawWarnings(peers) {
    const { pen } = this;
    for (const [number, peer] of peers.entries()) {
      if (!this.places[number] || !peer.problems.length) continue;
      const [x, y] = this.places[number], off = 0.8 * this.sizes[number];
      pen.fillStyle = colourOf("bad");
      disc(pen, x + off, y - off, 7.5);
      pen.fill();
      pen.fillStyle = colourOf("panel");
      pen.font = "bold 12px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText("!", x + off, y - off + 0.5);
    }
  }

  mark(number, ink) {
    const [x, y] = this.places[number];
    disc(this.pen, x, y, this.sizes[number] + 7);
    this.pen.strokeStyle = ink;
    this.pen.lineWidth = 2;
    this.pen.stroke();
  }
}

/** How many compute events of all clients ago the models were made that a client merged last, on average. */
function staleness(client) {
  if (!client.merged.length) return null;
  let sum = 0;
  for (let at = 0; at < client.merged.length; at += 3) sum += client.born - client.merged[at + 1];
  return (3 * sum) / client.merged.length;
}

function line(pen, [a, b], [c, d]) {
  pen.beginPath();
  pen.moveTo(a, b);
  pen.lineTo(c, d);
  pen.stroke();
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
}

function allDiscs(pen, discs) {
  pen.beginPath();
  for (const [x, y, radius] of discs) {
    pen.moveTo(x + radius, y);
    pen.arc(x, y, radius, 0, 2 * Math.PI);
  }
}
