"use strict";
// Peers of a real network, one a line: how they are, their certificates and versions, what they refused, what is wrong.

const LEVELS = { ok: "✓ well", warning: "! warning", critical: "✗ wrong" };

/** How bad it is with a peer: ok, warning or critical. */
function levelOf(peer) {
  return peer.problems.reduce((worst, [level]) => (level === "critical" || worst === "ok" ? level : worst), "ok");
}

function certificateText(days) {
  if (days === null) return "none";
  return days < 0 ? "has ended" : days === 1 ? "1 day left" : `${grouped(days)} days left`;
}

function refusalsText(refusals) {
  const all = Object.entries(refusals);
  return all.length ? all.map(([why, count]) => `${why}: ${grouped(count)}`).join(", ") : "nothing";
}

class PeersView {
  constructor(panel, table, note, onSelect) {
    [this.panel, this.table, this.note, this.onSelect] = [panel, table, note, onSelect];
  }

  draw(run, replay, selected) {
    const { peers, silent, measure } = run.facts;
    this.panel.hidden = !peers;
    if (!peers) return;
    const rows = peers.map((peer, number) => [number, peer, measureText(replay.clients[number]?.metric, measure)]).filter(([, peer]) => peer.asked);
    const key = JSON.stringify([rows, silent, selected, run.number]);
    if (key === this.key) return;
    this.key = key;
    const head = ["peer", "state", "events", measure.title, "certificate", "version", "has refused", "what is wrong"];
    refill(
      this.table,
      element("thead", {}, element("tr", {}, ...head.map((title) => element("th", { scope: "col" }, title)))),
      element("tbody", {}, ...rows.map(([number, peer, score]) => this.row(number, peer, score, selected))),
    );
    const unseen = peers.filter((peer) => !peer.asked), texts = Object.entries(silent || {}).map(([address, why]) => `${address} does not answer: ${why}`);
    if (unseen.length) texts.unshift(`Only heard of, and not asked: ${some(unseen.map((peer) => peer.name))}.`);
    this.note.textContent = texts.join(" ");
  }

  row(number, peer, score, selected) {
    const level = levelOf(peer), wrong = peer.problems.map(([, text, hint]) => `${text} (${hint})`).join("; ");
    const name = element("button", { type: "button", onclick: () => this.onSelect(number), "aria-pressed": number === selected }, peer.name);
    return element("tr", {},
      element("th", { scope: "row" }, name),
      element("td", {}, peer.online ? peer.phase : "does not answer"),
      element("td", {}, grouped(peer.events)),
      element("td", {}, score),
      element("td", {}, certificateText(peer.certificate_days)),
      element("td", {}, peer.version),
      element("td", {}, refusalsText(peer.refusals)),
      element("td", { class: level === "ok" ? "" : level }, wrong ? `${LEVELS[level]}: ${wrong}` : LEVELS.ok));
  }
}
