"use strict";
// Figures of the moment, the card of one client, and what colours and rings mean.

/** The same numbers as the newest row of metrics.jsonl at this moment. */
function showNow(list, run, time) {
  const row = run.rowAt(time), { measure } = run.facts, shown = [];
  const put = (title, name, text) => { if (row && row[name] !== undefined) shown.push([title, name, text(row[name])]); };
  put(measure.title, measure.name, (value) => measureText(value, measure));
  put(`${measure.title}, worst tenth`, `${measure.name}_worst_tenth`, (value) => measureText(value, measure));
  put(`${measure.title}, joined late`, `delayed_${measure.name}`, (value) => measureText(value, measure));
  put(run.real ? "peers online" : "clients online", "online", grouped);
  put("compute events", "steps", grouped);
  put("bytes sent", "bytes_sent", bytesText);
  put("staleness, events", "tau", (value) => value.toFixed(1));
  put("models waited", "waited", (value) => `${value.toFixed(1)} s`);
  if (row) shown.unshift(["evaluated at", "time", run.head?.seconds ? run.when(row.time) : `T ${Number(row.time.toPrecision(6))}`]);
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
  const unit = run.real ? 2 ** 40 : Number(run.head.founded) / Math.max(1, run.clients - Object.keys(run.head.joins).length);
  const peer = run.facts.peers?.[number];
  const rows = [
    [null, client.online ? (client.late ? "online; joined late" : "online") : client.known ? `offline: ${client.says}` : "has not joined yet"],
    ...(peer ? peerRows(peer) : []),
    client.joined ? ["joined at", run.when(client.joined)] : null,
    run.head.samples ? ["samples", grouped(run.head.samples[number])] : null,
    [measure.title, measureText(client.metric, measure)],
    run.head.founded && client.held !== null ? ["mass, in units", (Number(client.held) / unit).toFixed(3)] : null,
    run.head.founded && client.held !== null ? ["in quanta", grouped(client.held)] : null,
    run.head.founded && client.waiting !== null ? ["waiting for it", grouped(client.waiting)] : null,
    ["events" + (run.real ? " seen" : ""), (run.head.every > 1 ? "about " : "") + grouped(client.events * run.head.every)],
    ["sent", bytesText(client.sent)],
    client.lost ? ["messages lost", grouped(client.lost)] : null,
    client.trained !== null ? ["trained last at", run.when(client.trained)] : null,
    merged.length ? [null, `Its newest model has, of ${merged.length === 1 ? "a neighbour" : merged.length + " neighbours"} (share, and ${run.real ? "how long it waited" : "age in compute events"}):`] : null,
    ...merged.slice(0, 8).map(([share, from, age]) => [`of ${run.called(from)}`, `${(share / 100).toFixed(1)} %, ${run.ageText(age)}${run.real ? "" : " old"}`]),
    merged.length > 8 ? ["others", `${(merged.slice(8).reduce((sum, [share]) => sum + share, 0) / 100).toFixed(1)} %`] : null,
  ].filter(Boolean);
  const key = JSON.stringify([number, rows]);
  if (card.dataset.key === key) return;
  card.dataset.key = key;
  card.replaceChildren(element("h3", {}, run.real ? run.name(number) : `Client ${number}`), labelBars(run.head.labels, number), element("dl", {}, ...rows.flatMap(([title, text, level]) => (title === null ? [element("dd", { class: `whole ${level || ""}` }, text)] : [element("dt", {}, title), element("dd", {}, text)]))));
}

/** How the labels of a client's data are distributed, where that is known: a bar for each. */
function labelBars(labels, number) {
  if (!labels || labels.length < 2) return "";
  const counts = labels.map((clients) => clients[number]), most = Math.max(1, ...counts), [width, height] = [200 / counts.length, 34];
  const told = counts.map((count, label) => `${label}: ${count}`), text = told.length > 30 ? told.slice(0, 30).join(", ") + ", …" : told.join(", ");
  const bars = counts.map((count, label) => element("rect", { x: label * width + 0.5, width: Math.max(0.8, width - 1), y: height - (height * count) / most, height: (height * count) / most, fill: colourOf("accent") }));
  const names = counts.length <= 20 ? counts.map((_, label) => element("text", { x: (label + 0.5) * width, y: height + 10, "text-anchor": "middle", "font-size": 9, fill: colourOf("soft") }, String(label))) : [];
  const chart = element("svg", { class: "labels", viewBox: `0 0 200 ${height + 12}`, role: "img", "aria-label": `samples by label: ${text}` }, element("title", {}, `samples by label: ${text}`), ...bars, ...names);
  return element("div", {}, element("p", {}, "samples by label"), chart);
}

/** What a real peer says of itself. */
function peerRows(peer) {
  if (!peer.asked) return [[null, "It is only heard of: it was not asked."]];
  const wrong = peer.problems.map(([level, text, hint]) => [null, `${LEVELS[level]}: ${text}. ${hint}`, level]);
  return [
    ...wrong,
    ["state", peer.online ? peer.phase : "does not answer"],
    ["address", peer.address],
    ["version", peer.version],
    ["method", peer.method],
    ["certificate", certificateText(peer.certificate_days)],
    ["events in all", grouped(peer.events)],
    ["models that wait", grouped(peer.models)],
    ["bytes in", bytesText(peer.bytes_in)],
    ["has refused", refusalsText(peer.refusals)],
  ];
}

/** What circles, colours, rings and dots mean. */
function showKey(list, network, run) {
  const { low, high } = network.scale, { measure } = run.facts;
  const text = (value) => (network.colouring === "metric" ? measureText(value, measure) : Number(value.toPrecision(3)) + (run.real ? " s" : network.colouring === "age" ? " of time" : " events"));
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
    ...(run.real ? [] : [entry(icon((at) => { ring(at, 4, []); ring(at, 7.5, []); }), "joined late")]),
    entry(icon((at) => ring(at, 6, [2.5, 2.5])), run.real ? "does not answer" : "offline"),
    entry(icon((at) => { disc(at, 9, 9, 1.5); at.fill(); }), "not there yet"),
    entry(icon((at) => { at.fillStyle = colourOf("push"); disc(at, 9, 9, 3.5); at.fill(); }), "push"),
    entry(icon((at) => { at.strokeStyle = colourOf("push"); at.lineWidth = 2; line(at, [5, 5], [13, 13]); line(at, [5, 13], [13, 5]); }), "lost"),
  );
}

/** What the newest change of who is there means, in a sentence. */
function storyOf(run, time) {
  const recent = run.real ? 20 : run.head.horizon / 8;
  for (let at = upTo(run.events, time, (event) => event[1]) - 1; at >= 0 && run.events[at][1] >= time - recent; at--) {
    const [kind, when, client, what] = run.events[at];
    if (kind !== "p" || when === 0) continue;
    const begin = `${run.when(when)}: ${run.called(client)} ${what}. `;
    if (!run.head.founded || (run.real && (what === "joins" || what === "returns"))) return begin;
    if (what === "joins") return begin + "It holds no mass, so its untrained model counts for nothing; what it gets first brings mass, and it takes that over.";
    if (what === "says farewell") return begin + "It hands all its mass to others before it is gone.";
    if (["leaves", "crashes", "falls silent"].includes(what)) return begin + "Its mass stays its own until it is back; what is sent to it meanwhile is made up for by later messages.";
    return begin + "It goes on with the mass that it had.";
  }
  if (run.real) {
    const asked = run.facts.peers?.filter((peer) => peer.asked) || [], wrong = asked.filter((peer) => peer.problems.length);
    const all = `${asked.length === 1 ? "One peer is" : asked.length + " peers are"} asked once a second how ${asked.length === 1 ? "it is" : "they are"}`;
    return wrong.length ? `${all}; something is wrong with ${some(wrong.map((peer) => peer.name))}.` : `${all}; all is well.`;
  }
  const late = Object.keys(run.head.joins).length;
  if (!run.head.founded) return "";
  return late && time < run.head.horizon / 8
    ? `${run.clients - late} clients begin with a unit of mass each; ${late === 1 ? "one joins" : late + " join"} late, with none. Every push splits a client's mass among itself and its receivers.`
    : "A client's model counts by its mass. Every push splits it among the client and its receivers, and none is ever lost or made.";
}
