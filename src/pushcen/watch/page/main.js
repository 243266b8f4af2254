"use strict";
// The page: takes in what is told of runs, keeps the time, and lets every view draw that moment.

const $ = (id) => document.getElementById(id);
const PLAY_SECONDS = 40; // that a whole run is played in, at speed 1

class Page {
  constructor() {
    this.runs = [];
    this.shown = this.selected = this.replay = null;
    this.time = 0;
    this.playing = this.seeked = false;
    this.following = true;
    this.changed = true;
    const go = (time) => this.seek(time), select = (client) => this.select(client);
    this.network = new NetworkView($("network"), select);
    this.curves = new CurvesView($("curves"), $("curves-value"), go);
    this.book = new BookView($("book"), $("book-table"), $("book-sum"), go);
    this.matrix = new MatrixView($("matrix"), $("matrix-value"), $("matrix-what"), select);
    this.peers = new PeersView($("peers-panel"), $("peers"), $("peers-note"), select);
    this.log = new LogView($("log"), $("log-kind"), $("log-client"), (client, time) => { this.select(client); this.seek(time); });
    this.theme(localStored("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    this.listen();
    this.fromHash();
    this.frames = 0; // drawn so far, for whoever measures
    requestAnimationFrame((now) => this.frame(now));
  }

  listen() {
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("slider").addEventListener("input", () => this.seek(Number($("slider").value)));
    $("follow").addEventListener("click", () => this.follow());
    $("theme").addEventListener("click", () => this.theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    $("network-colour").addEventListener("change", () => { this.network.colouring = $("network-colour").value; this.changed = true; });
    for (const id of ["matrix-what", "log-kind", "log-client"]) $(id).addEventListener("input", () => { this.changed = true; });
    addEventListener("hashchange", () => this.fromHash());
    addEventListener("resize", () => { this.changed = true; });
    addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.target.closest("input:not([type=range]), select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.closest("button");
    if (event.key === " " && !onButton) this.play(!this.playing);
    else if (event.key === "ArrowRight" && !event.target.closest("input")) this.seek(this.time + this.end / 200);
    else if (event.key === "ArrowLeft" && !event.target.closest("input")) this.seek(this.time - this.end / 200);
    else if (event.key === "Home") this.seek(0);
    else if (event.key === "End") this.follow();
    else if (event.key === "d") $("theme").click();
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
  }

  /** Begin anew: who serves tells everything again, perhaps of other runs. */
  begin() {
    if (this.shown) this.wanted = String(this.shown.number);
    [this.runs, this.shown, this.replay, this.alone] = [[], null, null, false];
  }

  take(updates) {
    for (const update of updates) {
      while (this.runs.length <= update.run) this.runs.push(new WatchedRun(this.runs.length));
      this.runs[update.run].take(update);
    }
    if (this.shown === null && this.runs.length) this.show(this.runs[0]);
    this.changed = true;
    this.chips();
  }

  get end() { return Math.max(1e-9, ...this.runs.map((run) => run.end)); }

  show(run) {
    this.shown = run;
    this.replay = null;
    if (this.selected !== null && this.selected >= run.clients) this.selected = null;
    this.changed = true;
    this.chips();
  }

  select(client) {
    this.selected = client === this.selected ? null : client;
    this.changed = true;
    this.toHash();
  }

  seek(time) {
    this.following = false;
    this.time = Math.min(Math.max(time, 0), this.end);
    this.changed = true;
    this.toHash();
  }

  follow() {
    this.following = true;
    this.play(false);
    this.changed = true;
  }

  play(on) {
    if (on && this.time >= this.end) this.time = 0;
    if (on) this.following = false;
    this.playing = on;
    $("play").textContent = on ? "⏸" : "▶";
    this.changed = true;
    if (!on) this.toHash();
  }

  fromHash() {
    const asked = new URLSearchParams(location.hash.slice(1)), time = parseFloat(asked.get("t")), client = parseInt(asked.get("client"), 10);
    if (Number.isFinite(time)) [this.time, this.following] = [Math.max(0, time), false];
    this.selected = Number.isInteger(client) && client >= 0 ? client : null;
    const run = this.runs[parseInt(asked.get("run"), 10)];
    if (run) this.show(run);
    this.wanted = asked.get("run");
    this.changed = true;
  }

  toHash() {
    const parts = this.following ? [] : [`t=${Number(this.time.toFixed(4))}`];
    if (this.selected !== null) parts.push(`client=${this.selected}`);
    if (this.shown && this.shown.number) parts.push(`run=${this.shown.number}`);
    const hash = parts.length ? "#" + parts.join("&") : "";
    clearTimeout(this.hashTimer); // browsers refuse to write the address many times a second
    this.hashTimer = setTimeout(() => history.replaceState(null, "", location.href.split("#")[0] + hash), 150);
  }

  theme(name) {
    document.documentElement.dataset.theme = name;
    COLOURS.clear();
    try { localStorage.setItem("theme", name); } catch { /* a page from disk may have no storage */ }
    this.changed = true;
    this.chips();
  }

  chips() {
    if (this.wanted && this.runs[this.wanted]) {
      const run = this.runs[this.wanted];
      this.wanted = null;
      if (run !== this.shown) return this.show(run);
    }
    const key = this.runs.map((run) => [run.label, run.colour, run.facts.status, run.facts.error, run === this.shown].join()).join(";");
    if (key === this.chipsKey) return;
    this.chipsKey = key;
    refill($("runs"), ...this.runs.map((run) => {
      const icon = element("svg", { width: 34, height: 12, "aria-hidden": "true" }, element("line", { x1: 1, x2: 33, y1: 6, y2: 6, stroke: run.colour, "stroke-width": 3, "stroke-dasharray": run.look.dash.join(" ") || undefined }));
      const status = run.facts.error ? "cannot be read" : run.facts.status === "finished" ? "" : run.facts.status;
      return element("button", { class: "run", type: "button", role: "radio", "aria-checked": run === this.shown, title: run.facts.error || run.facts.name || "", onclick: () => { this.show(run); this.toHash(); } }, icon, element("span", {}, run.label), status ? element("small", {}, status) : null);
    }));
  }

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    const passed = Math.min((now - (this.last || now)) / 1000, 0.25);
    this.last = now;
    if (!this.shown) return;
    this.speed = (Number($("speed").value) * this.shown.whole) / PLAY_SECONDS;
    if (this.following && this.shown.real && this.shown.running) this.speed = 1; // as it is
    if (this.playing) {
      this.time = Math.min(this.time + passed * this.speed, this.end);
      if (this.time >= this.end && !this.runs.some((run) => run.running)) this.play(false);
      this.changed = true;
    } else if (this.following && this.time !== this.end) {
      const ahead = this.end - this.time, live = this.runs.some((run) => run.running);
      this.time = !live || ahead < this.end * 1e-4 ? this.end : this.time + ahead * Math.min(1, passed / 0.8);
      this.changed = true;
    }
    if (this.changed || this.network.hovered !== this.hovered) this.draw(now);
    this.hovered = this.network.hovered;
  }

  draw(now) {
    this.frames++;
    this.changed = false;
    const run = this.shown;
    $("no-record").hidden = Boolean(run.head) || run.facts.status === "running";
    if (run.head) {
      if (this.selected !== null && this.selected >= run.clients) this.selected = null;
      this.replay = (this.replay || new Replay(run)).to(this.time);
      this.network.draw(run, this.replay, this.selected, this.speed);
      showCard($("card"), run, this.replay, this.network.hovered ?? this.selected);
    }
    $("slider").max = this.end;
    $("slider").value = this.time;
    $("clock").textContent = run.real ? `${this.time.toFixed(1)} of ${this.end.toFixed(1)} s` : `T ${this.time.toFixed(2)} of ${Number(Math.max(run.head?.horizon || 0, this.end).toPrecision(4))}`;
    $("follow").setAttribute("aria-pressed", this.following);
    if (this.slow && now - this.slow < 400 && (this.playing || this.following)) return this.later();
    this.slow = now;
    this.curves.draw(this.runs, this.time, run.number);
    this.book.draw(run, this.time);
    if (run.head) {
      this.matrix.draw(run, this.replay, this.selected);
      this.peers.draw(run, this.replay, this.selected);
      this.log.draw(run, this.time, this.selected);
      showKey($("network-key"), this.network, run);
      const story = storyOf(run, this.time);
      if ($("story").textContent !== story) $("story").textContent = story;
    }
    showNow($("now"), run, this.time);
    const note = this.alone ? ["the server does not answer: this is the last that it said"] : [];
    if (run.facts.error) note.push(run.facts.error);
    if (run.head?.every > 1) note.push(`one in ${run.head.every} compute events is shown`);
    if (run.head?.since > 0) note.push(`recorded since ${run.when(run.head.since)}`);
    if (run.facts.full) note.push("the record is full: what came later is in the curves only");
    $("status").textContent = note.join("; ");
  }

  /** The slower views follow a moment later. */
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.changed = true; }, 420);
  }
}

function localStored(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function start() {
  const page = (window.page = new Page()), data = $("data");
  if (data) return page.take(JSON.parse(data.textContent));
  const source = new EventSource("stream");
  source.addEventListener("open", () => page.begin());
  source.addEventListener("error", () => { page.alone = page.changed = true; });
  source.addEventListener("message", (event) => page.take(JSON.parse(event.data)));
}
start();
