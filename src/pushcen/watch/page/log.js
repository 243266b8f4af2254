"use strict";
// What has happened up to now, newest first; each entry leads to its client.

const LOG_LENGTH = 150;

/** An event in words. */
function inWords(run, event) {
  if (!Array.isArray(event)) return `${run.name(event.failed)}: compute event failed: ${event.why}`;
  const kind = event[0], client = run.name(event[2]), other = typeof event[3] === "number" && event[3] < run.clients ? run.name(event[3]) : event[3];
  if (kind === "p") return `${client} ${other}`;
  if (kind === "l") return `${client} never gets what ${other} sent`;
  if (kind === "x") return `${client} moves towards ${other} by an exchange (${(event[4] / 100).toFixed(1)} %)`;
  if (kind === "r") return `${client} refuses ${other === null ? "a caller" : other}: ${event[4]}`;
  if (kind === "w") return other === "ok" ? `${client}: well again (${event[4]})` : `${client}: ${other}: ${event[4]}`;
  if (kind === "d") return `${client} gets a second copy from ${other}`;
  if (kind === "a") return `${client} gets a message from ${other}`;
  if (kind === "s") {
    const to = event[5].filter((_, at) => at % 2 === 0), bytes = event[5].reduce((sum, one, at) => sum + (at % 2 ? one : 0), 0);
    const missed = event[6].length ? `; ${event[6].length} lost: ${some(event[6].map((one) => run.name(one)))}` : "";
    return `${client} pushes ${bytesText(bytes)} to ${some(to.map((one) => run.name(one)))}${missed}`;
  }
  const merged = [];
  for (let at = 0; at < event[5].length; at += 3) merged.push([event[5][at + 2], event[5][at]]);
  if (!merged.length) return `${client} trains; nothing had arrived`;
  const [share, from] = merged.reduce((most, one) => (one[0] > most[0] ? one : most));
  return `${client} merges ${merged.length === 1 ? "a model" : merged.length + " models"}, most of ${run.name(from)} (${(share / 100).toFixed(1)} %), and trains`;
}

const some = (numbers) => numbers.slice(0, 8).join(", ") + (numbers.length > 8 ? ", …" : "");

class LogView {
  constructor(list, kind, client, onGo) {
    [this.list, this.kind, this.client, this.onGo] = [list, kind, client, onGo];
    for (const input of [kind, client]) input.addEventListener("input", () => { this.key = ""; });
  }

  draw(run, time, selected) {
    const until = upTo(run.events, time, (event) => event[1]), failed = upTo(run.failures, time, (failure) => failure.t);
    const key = [run.number, run.version, until, failed, selected].join();
    if (key === this.key) return;
    this.key = key;
    const asked = this.client.value.trim(), named = run.head?.names?.indexOf(asked) ?? -1;
    const only = asked === "" ? null : named >= 0 ? named : Number(asked);
    const found = this.kind.value === "" || this.kind.value === "f" ? run.failures.slice(Math.max(0, failed - LOG_LENGTH), failed).filter((one) => only === null || one.failed === only) : [];
    for (let at = until - 1; at >= 0 && found.length < LOG_LENGTH; at--) if (this.wanted(run.events[at], only)) found.push(run.events[at]);
    const when = (event) => (Array.isArray(event) ? event[1] : event.t);
    found.sort((one, other) => when(other) - when(one));
    refill(this.list, ...found.slice(0, LOG_LENGTH).map((event) => {
      const client = Array.isArray(event) ? event[2] : event.failed;
      const go = () => this.onGo(client, when(event));
      return element("li", {}, element("button", { type: "button", onclick: go, "aria-current": client === selected }, element("time", {}, run.real ? run.when(when(event)) : when(event).toFixed(2)), element("span", {}, inWords(run, event))));
    }));
    if (!found.length) this.list.append(element("li", { class: "note" }, "Nothing of this kind so far."));
  }

  wanted(event, only) {
    const { value } = this.kind;
    if (only !== null && event[2] !== only && !("aldxr".includes(event[0]) && event[3] === only)) return false;
    return value === "" ? event[0] !== "a" : event[0] === value || (value === "l" && event[0] === "s" && event[6].length > 0);
  }
}
