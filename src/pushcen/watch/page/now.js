"use strict";
// Figures of the moment, the card of one client, and what colours and rings mean.

/** The same numbers as the newest row of metrics.jsonl at this moment. */
function showNow(list, run, time) {
  const row = run.rowAt(time), { measure } = run.facts, shown = [];
  const put = (title, name, text) => { if (row && row[name] !== undefined) shown.push([title, name, text(row[name])]); };
  put(measure.title, measure.name, (value) => measureText(value, measure));
  put(`${measure.title}, worst tenth`, `${measure.name}_worst_tenth`, (value) => measureText(value, measure));
  put(`${measure.title}, joined late`, `delayed_${measure.name}`, (value) => measureText(value, measure));
  put("clients online", "online", grouped);
  put("compute events", "steps", grouped);
  put("bytes sent", "bytes_sent", bytesText);
  put("staleness, events", "tau", (value) => value.toFixed(1));
  if (row) shown.unshift(["evaluated at", "time", `T ${Number(row.time.toPrecision(6))}`]);
  const key = JSON.stringify(shown);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...(shown.length ? shown : [["", "", "nothing is evaluated yet"]]).map(([title, name, text]) => element("div", {}, element("dt", {}, title), element("dd", { "data-figure": name, "data-value": row ? row[name] : undefined }, text))));
}

/** All that is known of one client at this moment. */
function showCard(card, run, replay, number) {
  const client = number === null ? null : replay.clients[number];
  if (!client) {
    if (card.dataset.key !== "none") card.replaceChildren(element("p", {}, "Point at a client, or choose one with the arrow keys, and here is all that is known of it."));
    card.dataset.key = "none";
    return;
  }
  const { measure } = run.facts, merged = [];
  for (let at = 0; at < client.merged.length; at += 3) merged.push([client.merged[at + 2], client.merged[at], client.born - client.merged[at + 1]]);
  merged.sort((one, other) => other[0] - one[0]);
  const unit = Number(run.head.founded) / Math.max(1, run.clients - Object.keys(run.head.joins).length);
  const rows = [
    [null, client.online ? (client.late ? "online; joined late" : "online") : client.known ? `offline: ${client.says}` : "has not joined yet"],
    client.joined ? ["joined at", `T ${client.joined.toFixed(2)}`] : null,
    ["samples", grouped(run.head.samples[number])],
    [measure.title, measureText(client.metric, measure)],
    run.head.founded && client.held !== null ? ["mass, in units", (Number(client.held) / unit).toFixed(3)] : null,
    run.head.founded && client.held !== null ? ["in quanta", grouped(client.held)] : null,
    run.head.founded && client.waiting !== null ? ["waiting for it", grouped(client.waiting)] : null,
    ["events", (run.head.every > 1 ? "about " : "") + grouped(client.events * run.head.every)],
    ["sent", bytesText(client.sent)],
    client.lost ? ["messages lost", grouped(client.lost)] : null,
    client.trained !== null ? ["trained last at", `T ${client.trained.toFixed(2)}`] : null,
    merged.length ? [null, `Its newest model has, of ${merged.length === 1 ? "a neighbour" : merged.length + " neighbours"} (share, and age in compute events):`] : null,
    ...merged.slice(0, 8).map(([share, from, age]) => [`of client ${from}`, `${(share / 100).toFixed(1)} %, ${age} old`]),
    merged.length > 8 ? ["others", `${(merged.slice(8).reduce((sum, [share]) => sum + share, 0) / 100).toFixed(1)} %`] : null,
  ].filter(Boolean);
  const key = JSON.stringify([number, rows]);
  if (card.dataset.key === key) return;
  card.dataset.key = key;
  card.replaceChildren(element("h3", {}, `Client ${number}`), element("dl", {}, ...rows.flatMap(([title, text]) => (title === null ? [element("dd", { class: "whole" }, text)] : [element("dt", {}, title), element("dd", {}, text)]))));
}

/** What circles, colours, rings and dots mean. */
function showKey(list, network, run) {
  const { low, high } = network.scale, { measure } = run.facts;
  const text = (value) => (network.colouring === "metric" ? measureText(value, measure) : Number(value.toPrecision(3)) + (network.colouring === "age" ? " of time" : " events"));
  const key = [text(low), text(high), run.head.founded !== null, network.colouring].join();
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  const ramp = element("canvas", { width: 80, height: 10 }), pen = ramp.getContext("2d");
  for (let at = 0; at < 80; at++) {
    pen.fillStyle = SHADES[Math.round((at / 79) * 100)];
    pen.fillRect(at, 0, 1, 10);
  }
  const icon = (draw) => {
    const canvas = element("canvas", { width: 18, height: 18, "aria-hidden": "true" }), at = canvas.getContext("2d");
    at.strokeStyle = at.fillStyle = colourOf("soft");
    draw(at);
    return canvas;
  };
  const ring = (at, radius, dash) => { at.setLineDash(dash); disc(at, 9, 9, radius); at.stroke(); };
  const entry = (image, title) => element("span", {}, image, title);
  list.replaceChildren(
    element("span", {}, text(low), ramp, text(high)),
    ...(run.head.founded ? [entry(icon((at) => { disc(at, 5, 9, 2.5); at.fill(); disc(at, 12, 9, 5); at.fill(); }), "size: mass")] : []),
    entry(icon((at) => { at.lineWidth = 3; ring(at, 5, []); }), "just trained"),
    entry(icon((at) => { ring(at, 4, []); ring(at, 7.5, []); }), "joined late"),
    entry(icon((at) => ring(at, 6, [2.5, 2.5])), "offline"),
    entry(icon((at) => { disc(at, 9, 9, 1.5); at.fill(); }), "not there yet"),
    entry(icon((at) => { at.fillStyle = colourOf("push"); disc(at, 9, 9, 3.5); at.fill(); }), "push"),
    entry(icon((at) => { at.strokeStyle = colourOf("push"); at.lineWidth = 2; line(at, [5, 5], [13, 13]); line(at, [5, 13], [13, 5]); }), "lost"),
  );
}

/** What the newest change of who is there means, in a sentence. */
function storyOf(run, time) {
  const recent = run.head.horizon / 8;
  for (let at = upTo(run.events, time, (event) => event[1]) - 1; at >= 0 && run.events[at][1] >= time - recent; at--) {
    const [kind, when, client, what] = run.events[at];
    if (kind !== "p" || when === 0) continue;
    const begin = `T ${when.toFixed(2)}: client ${client} ${what}. `;
    if (!run.head.founded) return begin;
    if (what === "joins") return begin + "It holds no mass, so its untrained model counts for nothing; what it gets first brings mass, and it takes that over.";
    if (what === "says farewell") return begin + "It hands all its mass to others before it is gone.";
    if (what === "leaves" || what === "crashes") return begin + "Its mass stays its own until it is back; what is sent to it meanwhile is made up for by later messages.";
    return begin + "It goes on with the mass that it had.";
  }
  const late = Object.keys(run.head.joins).length;
  if (!run.head.founded) return "";
  return late && time < run.head.horizon / 8
    ? `${run.clients - late} clients begin with a unit of mass each; ${late === 1 ? "one joins" : late + " join"} late, with none. Every push splits a client's mass among itself and its receivers.`
    : "A client's model counts by its mass. Every push splits it among the client and its receivers, and none is ever lost or made.";
}
