"use strict";
// The book of mass: where every quantum is, as bands that always add up.

const ACCOUNTS = [
  ["held", "held by clients"],
  ["waiting", "waiting in mailboxes"],
  ["folded", "folded early"],
  ["under_way", "under way"],
  ["written_off", "written off"],
  ["missing", "missing"],
];
const NEARLY = { held: "held by peers that were asked", under_way: "under way, or with others" }; // of real networks
const accountColour = (name) => colourOf(name.replace("_", "-"));

/** Whether what a book has adds up, to the quantum, to what was founded. */
function addsUp(book) {
  if (book.near) return true; // peers were asked one after the other
  return book.exact && ACCOUNTS.reduce((sum, [name]) => sum + BigInt(book[name]), 0n) === BigInt(book.founded);
}

class BookView {
  constructor(svg, table, sum, onSeek) {
    [this.svg, this.table, this.sum, this.chart] = [svg, table, sum, new Chart(svg)];
    svg.addEventListener("click", (event) => onSeek(this.chart.at(event.clientX)));
  }

  draw(run, time) {
    const books = run.states.filter((state) => state.book), panel = this.svg.closest("section");
    panel.classList.toggle("empty", !books.length);
    if (!books.length) {
      this.svg.replaceChildren();
      this.table.replaceChildren();
      this.sum.textContent = run.head && !run.head.founded ? "this method moves no mass" : "nothing yet";
      this.sum.className = this.drawn = "";
      return;
    }
    const key = [run.number, run.version, books.length, colourOf("paper"), this.svg.clientWidth].join();
    if (key !== this.drawn) this.redraw(run, books);
    this.drawn = key;
    if (this.now) this.now.remove();
    this.now = this.chart.upright(Math.min(time, this.chart.xAxis.high), colourOf("ink"));
    const book = run.bookAt(time);
    this.write(book || books[0].book, book ? "" : `; the first is of ${run.when(books[0].t)}`);
  }

  redraw(run, books) {
    const share = (state, name) => Number((BigInt(state.book[name]) * 1000000n) / (BigInt(state.book.founded) || 1n)) / 1000000;
    const high = Math.max(run.head?.horizon || 0, books[books.length - 1].t) || 1;
    this.chart.begin(
      { low: 0, high, title: run.head?.seconds ? "seconds" : "pseudo-time", text: (value) => grouped(Number(value.toPrecision(4))) },
      { low: 0, high: 1, text: (value) => Math.round(100 * value) + " %" },
    );
    let floor = books.map((state) => [state.t, 0]);
    for (const [name] of ACCOUNTS) {
      const top = books.map((state, at) => [state.t, Math.max(0, Math.min(1, floor[at][1] + share(state, name)))]);
      this.chart.band(floor, top, accountColour(name), 1);
      floor = top;
    }
    for (const { t, book } of books) if (!addsUp(book)) this.chart.upright(t, colourOf("bad"), "", "does not add up");
  }

  write(book, more) {
    const exact = addsUp(book), founded = BigInt(book.founded) || 1n;
    const near = "nearly: peers are asked one after the other; `pushcen audit` is exact";
    const text = book.near ? near : (exact ? "✓ adds up to the quantum" : "✗ does not add up") + more;
    if (this.sum.textContent !== text) [this.sum.textContent, this.sum.className] = [text, exact ? "" : "bad"];
    const key = JSON.stringify(book) + colourOf("paper");
    if (this.table.dataset.key === key) return;
    this.table.dataset.key = key;
    const row = (swatch, title, quanta) => element("tr", {},
      element("th", { scope: "row" }, swatch, title),
      element("td", {}, (Number((BigInt(quanta) * 10000n) / founded) / 100).toFixed(2) + " %"),
      element("td", {}, grouped(quanta)));
    const shown = ACCOUNTS.filter(([name]) => (name !== "missing" && !(book.near && ["folded", "written_off"].includes(name))) || book[name] !== "0");
    this.table.replaceChildren(...shown.map(([name, title]) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = accountColour(name);
      return row(swatch, book.near ? NEARLY[name] || title : title, book[name]);
    }), row("", "in all, in quanta", book.founded));
  }
}
