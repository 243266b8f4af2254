"use strict";
// What is known of each run, and how it stands at any moment of its pseudo-time.

/** All that was told of one run: rows of its metrics, events, states. */
class WatchedRun {
  constructor(number) {
    this.number = number;
    this.look = { label: "run " + number, colour: "#888888", dash: [], marker: "o" };
    this.facts = { status: "unknown", measure: { name: "accuracy", title: "accuracy", percent: true, higher: true } };
    this.forget();
  }

  forget() {
    this.rows = [];
    this.events = [];
    this.states = [];
    this.failures = [];
    this.flights = []; // messages under way, in the order in which they were sent
    this.open = new Map(); // those whose end is not known
    this.longest = 0; // time that a message took
    this.version = (this.version || 0) + 1; // so that others see that they must begin again
  }

  take(update) {
    if (update.anew) this.forget();
    if (update.look) this.look = update.look;
    if (update.facts) this.facts = { ...this.facts, error: undefined, ...update.facts };
    for (const row of update.rows || []) this.rows.push(row);
    for (const state of update.states || []) ("failed" in state ? this.failures : this.states).push(state);
    for (const event of update.events || []) {
      this.events.push(event);
      this.fly(event);
    }
  }

  fly(event) {
    const [kind, time, client, other] = event;
    if (kind === "s") {
      const [to, missed] = event.slice(5);
      for (let at = 0; at < to.length; at += 2) {
        const flight = { from: client, to: to[at], start: time, end: null, lost: false, size: to[at + 1] };
        if (this.head.instant) [flight.end, flight.lost] = [time, missed.includes(to[at])];
        else this.open.set(client + " " + to[at] + " " + other, flight);
        this.flights.push(flight);
      }
    } else if (kind === "a" || kind === "l") {
      const key = other + " " + client + " " + event[4];
      const flight = this.open.get(key);
      if (!flight) return;
      this.open.delete(key);
      flight.end = time;
      flight.lost = kind === "l";
      this.longest = Math.max(this.longest, time - flight.start);
    }
  }

  get head() { return this.facts.head || null; }
  get label() { return this.look.label; }

  /** The colour of its curves: that of our figures; on dark ground a dark one is lighter. */
  get colour() {
    const parts = [1, 3, 5].map((from) => parseInt(this.look.colour.slice(from, from + 2), 16));
    if (document.documentElement.dataset.theme !== "dark") return this.look.colour;
    const bright = (0.3 * parts[0] + 0.6 * parts[1] + 0.1 * parts[2]) / 255, mix = Math.max(0, 0.62 - bright);
    return `rgb(${parts.map((part) => Math.round(part + mix * (255 - part))).join()})`;
  }
  /** Whether these are real peers, which have names, and time is in seconds. */
  get real() { return Boolean(this.head?.names); }
  name(number) { return this.head?.names ? this.head.names[number] : String(number); }
  called(number) { return this.head?.names ? this.name(number) : `client ${number}`; }
  when(time, digits = 2) { return this.head?.seconds ? `${time.toFixed(Math.min(digits, 1))} s` : `T ${time.toFixed(digits)}`; }
  ageText(age) { return this.head?.seconds ? `${(age / 1000).toFixed(1)} s` : String(Math.round(age)); }
  /** How long it takes as a whole, as far as that is known. */
  get whole() { return this.head?.horizon || this.end; }
  get clients() { return this.head ? this.head.clients : 0; }
  get running() { return this.facts.status === "running"; }

  /** The newest moment that is known. */
  get end() {
    const last = (list, time) => (list.length ? time(list[list.length - 1]) : 0);
    return Math.max(last(this.rows, (row) => row.time), last(this.events, (event) => event[1]), last(this.states, (state) => state.t));
  }

  /** The newest row of the metrics at a moment; null before the first. */
  rowAt(time) {
    const at = upTo(this.rows, time, (row) => row.time);
    return at ? this.rows[at - 1] : null;
  }

  bookAt(time) {
    for (let at = upTo(this.states, time, (state) => state.t) - 1; at >= 0; at--) {
      if (this.states[at].book) return this.states[at].book;
    }
    return null;
  }
}

/** How all clients of a run stand at one moment. It goes forward by events; to go back it begins again. */
class Replay {
  constructor(run) {
    this.run = run;
    this.begin();
  }

  begin() {
    const { clients, head } = this.run;
    this.version = this.run.version;
    this.time = -1;
    this.nextEvent = this.nextState = 0;
    this.clients = Array.from({ length: clients }, (_, number) => ({
      number, online: false, known: false, held: null, waiting: null, metric: null, trained: null, events: 0, merged: [],
      born: 0, sent: 0, lost: 0, joined: null, late: head.joins[number] !== undefined, says: "",
    }));
    for (const number of head ? head.online : []) this.clients[number].online = this.clients[number].known = true;
    this.bins = Math.min(clients, 250); // the matrix of many clients has a cell for several
    const size = this.bins * this.bins;
    this.share = new Float64Array(size);
    this.age = new Float64Array(size);
    this.merges = new Uint32Array(size);
    this.lost = new Uint32Array(size);
    this.eventsOf = new Uint32Array(this.bins);
    this.links = new Map(); // bytes, by sender * clients + receiver
    this.mostBytes = 1;
  }

  to(time) {
    if (time < this.time || this.version !== this.run.version || this.clients.length !== this.run.clients) this.begin();
    const { events, states } = this.run;
    if (this.nextState < states.length && states[this.nextState].t < this.time) this.begin(); // it was long in the making
    for (;;) { // at the same moment, an evaluation comes last
      const event = this.nextEvent < events.length ? events[this.nextEvent][1] : Infinity;
      const state = this.nextState < states.length ? states[this.nextState].t : Infinity;
      if (Math.min(event, state) > time) break;
      if (event <= state) this.happen(events[this.nextEvent++]);
      else this.stand(states[this.nextState++]);
    }
    this.time = time;
    return this;
  }

  cell(receiver, sender) {
    const scale = this.bins / this.clients.length;
    return Math.floor(receiver * scale) * this.bins + Math.floor(sender * scale);
  }

  happen(event) {
    const [kind, time, number, born] = event;
    const client = this.clients[number];
    if (kind === "m") {
      Object.assign(client, { trained: time, held: event[4], born, merged: event[5], events: client.events + 1 });
      this.eventsOf[Math.floor(number * this.bins / this.clients.length)]++;
      for (let at = 0; at < event[5].length; at += 3) {
        const cell = this.cell(number, event[5][at]);
        this.share[cell] += event[5][at + 2] / 10000;
        this.age[cell] += born - event[5][at + 1];
        this.merges[cell]++;
      }
    } else if (kind === "s") {
      client.sent = event[4];
      for (let at = 0; at < event[5].length; at += 2) {
        const link = number * this.clients.length + event[5][at];
        const bytes = (this.links.get(link) || 0) + event[5][at + 1];
        this.links.set(link, bytes);
        if (bytes > this.mostBytes) this.mostBytes = bytes;
      }
      for (const missed of event[6]) this.lost[this.cell(missed, number)]++;
    } else if (kind === "l") {
      this.lost[this.cell(number, born)]++;
    } else if (kind === "x") { // an exchange: its model has moved towards another's
      this.share[this.cell(number, born)] += event[4] / 10000;
    } else if (kind === "p") {
      client.online = ["joins", "returns", "is repaired", "answers again"].includes(born);
      client.known = true;
      client.says = born;
      if (born === "joins") client.joined = time;
    }
  }

  stand(state) {
    if (state.held === undefined) return;
    const held = state.held.split(" "), waiting = state.waiting.split(" ");
    if (held.length !== this.clients.length) return; // one of two files was written anew, the other will be
    for (const client of this.clients) {
      const at = client.number;
      client.online = state.online[at] === "1";
      if (client.online) client.known = true;
      client.held = held[at] === "-" ? null : held[at];
      client.waiting = waiting[at] === "-" ? null : waiting[at];
      client.sent = state.sent[at];
      client.lost = state.lost[at];
      if (state.metric[at] !== null) client.metric = state.metric[at];
    }
  }
}

/** How many of a sorted list are at most at `time`. */
function upTo(list, time, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** An element with attributes and children; strings become text, never HTML. */
function element(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "rect", "circle", "g", "tspan"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Put other children into an element; what had the keyboard's focus has it again, by its place. */
function refill(parent, ...children) {
  const focusable = () => [...parent.querySelectorAll("button")], at = focusable().indexOf(document.activeElement);
  parent.replaceChildren(...children);
  if (at >= 0) focusable()[Math.min(at, focusable().length - 1)]?.focus({ preventScroll: true });
}

/** The smallest and the largest of any number of values. */
function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

const COLOURS = new Map(); // of the theme that is on, by their names in the style
function colourOf(name) {
  if (!COLOURS.has(name)) COLOURS.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return COLOURS.get(name);
}

function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (bytes >= 999.5 && at < units.length - 1) [bytes, at] = [bytes / 1000, at + 1];
  return (at && bytes < 100 ? bytes.toPrecision(3) : Math.round(bytes)) + " " + units[at];
}

function measureText(value, measure) {
  if (value === null || value === undefined) return "–";
  return measure.percent ? (100 * value).toFixed(1) + " %" : Number(value.toPrecision(4)).toString();
}

const grouped = (text) => String(text).replace(/\B(?=(\d{3})+(?!\d))/g, " ");
