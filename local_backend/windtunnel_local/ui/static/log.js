"use strict";
// The log on a job's page: a window of lines onto a log of any length. New lines are appended at the end. A reader who
// scrolls up is not moved, and gets older lines from the server. Without this script the page has the last lines only.

const MOST_ROWS = 3000; // most lines in the document, so that a phone scrolls smoothly
const A_FRAME = 1500; // most lines added in one frame, so that frames stay short
const NEAR = 300; // pixels from an end at which more lines are requested

class LogView {
  constructor(section, address) {
    this.section = section;
    this.address = address;
    this.box = document.getElementById("log-lines");
    this.state = document.getElementById("log-state");
    this.pauseButton = document.getElementById("log-pause");
    this.matches = document.getElementById("log-matches");
    this.form = section.querySelector("form");
    this.host = "";
    this.withHost = Boolean(this.form.elements.host);
    this.begin = readPlace(section.dataset.begin); // the position before the first line in the window
    this.end = readPlace(section.dataset.end); // the position after the last line in the window
    this.older = "more" in section.dataset;
    this.atEnd = true; // whether the window holds the log's last line
    this.following = true; // whether the reader is at the end, and stays there
    this.paused = false;
    this.over = ""; // why no more lines come
    this.waiting = 0; // how many new lines are not shown
    this.queue = [];
    this.busy = null; // the current request
    this.joining = false; // whether the log's last lines are asked for
    this.searches = 0; // the number of searches: answers of earlier ones are ignored
    for (const row of this.box.children) adopt(row);
    this.box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.pauseButton.addEventListener("click", () => this.pause(!this.paused));
    this.form.addEventListener("submit", (event) => this.search(event));
    this.form.elements.host?.addEventListener("change", () => this.chooseHost());
    document.getElementById("log-wrap").addEventListener("change", (event) => {
      this.box.classList.toggle("wrapped", event.target.checked);
      if (this.following) this.toEnd();
    });
    this.toEnd();
  }

  // --- lines from the server ------------------------------------------------------------

  take(message) {
    if (message.jump) { // there were so many lines that the server has skipped some
      this.queue = [];
      if (this.following && !this.paused) this.show(message, true);
      else { this.atEnd = false; this.older = true; }
      return;
    }
    for (const [place, number, time, text, length] of message.lines) {
      this.queue.push([message.streams[place], number, time, text, length]);
    }
    if (!this.frame) this.frame = requestAnimationFrame(() => this.drain());
  }

  drain() {
    this.frame = 0;
    if (this.joining) return; // the answer comes first: the queue follows it
    if (this.following && !this.atEnd) return this.last();
    if (this.paused || !this.atEnd) return this.hold();
    if (this.following && this.queue.length > MOST_ROWS) { // the first of them would be removed again in this frame
      const passed = this.queue.splice(0, this.queue.length - MOST_ROWS);
      this.box.replaceChildren();
      for (const row of passed) this.end.set(row[0], row[1] + 1);
      this.begin = new Map(this.end);
      this.older = true;
    }
    if (!this.following && this.box.childElementCount + this.queue.length > MOST_ROWS) return this.hold();
    const rows = this.queue.splice(0, A_FRAME).filter((row) => row[1] >= (this.end.get(row[0]) ?? 0));
    if (rows.some((row, i) => row[1] > (this.end.get(row[0]) ?? 0) && !rows.slice(0, i).some((other) => other[0] === row[0]))) {
      this.atEnd = false; // lines before these are missing here: get the last ones from the server
      this.queue.unshift(...rows);
      if (this.following) this.last();
      return;
    }
    this.append(rows);
    if (this.following) { this.trimTop(); this.toEnd(); }
    if (this.queue.length) this.frame = requestAnimationFrame(() => this.drain());
  }

  hold() {
    this.waiting += this.queue.length;
    this.queue = [];
    this.atEnd = false;
    this.tell();
  }

  // --- rows -----------------------------------------------------------------------------

  row([stream, number, time, text, length]) {
    const row = document.createElement("div");
    row.className = "l";
    row.stream = stream;
    row.number = number;
    row.dataset.t = clock(time);
    if (this.withHost) row.dataset.h = stream.slice(0, stream.lastIndexOf("-"));
    row.append(text);
    if (length) {
      const link = document.createElement("a");
      link.href = `${this.address}/log/line?at=${encodeURIComponent(`${stream}:${number}`)}`;
      link.append(`… all ${length.toLocaleString("en")} characters`);
      row.append(link);
    }
    return row;
  }

  append(rows) {
    const fragment = document.createDocumentFragment();
    for (const row of rows) { fragment.append(this.row(row)); this.end.set(row[0], row[1] + 1); }
    this.box.append(fragment);
    document.getElementById("log-empty")?.remove();
  }

  trimTop() {
    const many = this.box.childElementCount - MOST_ROWS;
    for (let i = 0; i < many; i++) {
      const row = this.box.firstElementChild;
      this.begin.set(row.stream, row.number + 1);
      row.remove();
      this.older = true;
    }
  }

  trimBottom() {
    const many = this.box.childElementCount - MOST_ROWS;
    for (let i = 0; i < many; i++) {
      const row = this.box.lastElementChild;
      this.end.set(row.stream, row.number);
      row.remove();
      this.atEnd = false;
    }
  }

  toEnd() { this.box.scrollTop = this.box.scrollHeight; }

  // Replace the whole window. `atEnd`: the page holds the log's last lines.
  show(page, atEnd) {
    this.begin = readPlace(page.begin);
    this.end = readPlace(page.begin);
    this.box.replaceChildren();
    this.append(page.lines.map(([place, ...rest]) => [page.streams[place], ...rest]));
    this.end = readPlace(page.end);
    this.queue = atEnd ? this.queue.filter((row) => row[1] >= (this.end.get(row[0]) ?? 0)) : [];
    this.older = [...this.begin.values()].some((number) => number > 0);
    this.atEnd = atEnd;
    this.following = atEnd && !this.paused;
    if (atEnd) { this.waiting = 0; this.toEnd(); }
    this.tell();
    if (this.queue.length && !this.frame) this.frame = requestAnimationFrame(() => this.drain());
  }

  // --- scrolling ------------------------------------------------------------------------

  scrolled() {
    const box = this.box;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    this.following = this.atEnd && !this.paused && below < 8;
    if (box.scrollTop < NEAR && this.older) this.loadOlder();
    else if (below < NEAR && !this.atEnd && !this.paused) this.newer();
    this.tell();
  }

  async fetched(query) {
    const host = this.host ? `&host=${encodeURIComponent(this.host)}` : "";
    const answer = await load(`${this.address}/log?format=json&${query}${host}`);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  // One request at a time; after a failure the next scroll tries again.
  once(task) {
    this.busy ||= task().catch(() => say("The backend does not answer.")).finally(() => { this.busy = null; });
    return this.busy;
  }

  // A click waits for the current request.
  async clicked(task) {
    while (this.busy) await this.busy;
    return this.once(task);
  }

  loadOlder() {
    return this.once(async () => {
      const page = await this.fetched(`before=${encodeURIComponent(place(this.begin))}`);
      this.begin = readPlace(page.begin);
      this.older = page.more;
      const before = this.box.scrollHeight;
      const fragment = document.createDocumentFragment();
      for (const [at, ...rest] of page.lines) fragment.append(this.row([page.streams[at], ...rest]));
      this.box.prepend(fragment);
      this.box.scrollTop += this.box.scrollHeight - before;
      this.trimBottom();
    });
  }

  newer() {
    return this.once(async () => {
      const page = await this.fetched(`after=${encodeURIComponent(place(this.end))}`);
      const stay = this.following;
      this.append(page.lines.map(([at, ...rest]) => [page.streams[at], ...rest]));
      for (const [stream, number] of readPlace(page.end)) this.end.set(stream, number);
      const before = this.box.scrollHeight;
      this.trimTop();
      if (!stay) this.box.scrollTop -= before - this.box.scrollHeight;
      this.waiting = Math.max(0, this.waiting - page.lines.length);
      if (!page.more) { this.atEnd = true; this.waiting = 0; }
      if (stay) this.toEnd();
      this.tell();
    });
  }

  async last() {
    this.joining = true;
    await this.clicked(async () => {
      const page = await this.fetched("");
      this.joining = false;
      this.show(page, true);
    });
    this.joining = false;
  }

  pause(paused) {
    this.paused = paused;
    this.pauseButton.setAttribute("aria-pressed", String(paused));
    this.pauseButton.textContent = paused ? "Go on" : "Pause";
    if (paused) { this.following = false; this.tell(); } else this.last();
  }

  tell() {
    const text = this.paused ? "Paused." : this.following || this.atEnd ? this.over : "Further up in the log.";
    const more = this.waiting ? ` ${this.waiting.toLocaleString("en")} newer lines.` : "";
    if (this.told === text + more) return;
    this.told = text + more;
    this.state.textContent = this.told;
    if (!this.told || this.told === this.over) return;
    this.state.append(" ", button("To the last line", () => { if (this.paused) this.pause(false); else this.last(); }));
  }

  noMore(word) {
    this.over = word;
    this.tell();
  }

  chooseHost() {
    this.host = this.form.elements.host.value;
    this.section.dispatchEvent(new CustomEvent("host"));
    this.last();
  }

  // --- looking for lines ----------------------------------------------------------------

  search(event) {
    event.preventDefault();
    if (event.submitter?.name === "error") return this.firstError();
    const text = this.form.elements.q.value;
    this.searches += 1;
    this.matches.hidden = !text;
    this.matches.replaceChildren();
    return text ? this.more(text, "") : undefined;
  }

  async firstError() {
    const found = await this.fetched("error=1").catch(() => null);
    if (found?.at) return this.go(found.at);
    say(found ? found.said : "The backend does not answer.");
    return undefined;
  }

  async more(text, token) {
    const search = ++this.searches;
    const page = await this.fetched(`q=${encodeURIComponent(text)}&token=${encodeURIComponent(token)}`).catch(() => null);
    if (search !== this.searches) return undefined;
    if (!page) return say("The backend does not answer.");
    const list = this.matches.querySelector("ol") || document.createElement("ol");
    for (const [at, number, time, line] of page.lines) {
      const item = document.createElement("li");
      item.append(button(`${clock(time)}  ${line.slice(0, 300)}`, () => this.go(`${page.streams[at]}:${number}`)));
      list.append(item);
    }
    const word = document.createElement("p");
    const count = list.childElementCount.toLocaleString("en");
    word.append(page.token ? `${count} lines so far. ` : `${count} lines have it. `);
    if (page.token) word.append(button("Search on", () => this.more(text, page.token)));
    this.matches.replaceChildren(word, list);
    return undefined;
  }

  async go(at) {
    await this.clicked(async () => {
      this.show(await this.fetched(`at=${encodeURIComponent(at)}`), false);
      const [stream, number] = at.split(":");
      const row = [...this.box.children].find((one) => one.stream === stream && one.number === Number(number));
      row?.classList.add("named");
      row?.scrollIntoView({ block: "center" });
      this.box.focus({ preventScroll: true });
    });
  }
}

function adopt(row) {
  row.stream = row.dataset.s;
  row.number = Number(row.dataset.n);
  row.dataset.t = clock(Number(row.dataset.m));
}

function button(words, pressed) {
  const made = document.createElement("button");
  made.type = "button";
  made.append(words);
  made.addEventListener("click", pressed);
  return made;
}

function clock(time) {
  const moment = new Date(time);
  return [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(two).join(":");
}

// A position in the log (stream -> number of its next line) from the text that `log_position.py` writes.
function readPlace(text) {
  return new Map((text ? text.split(",") : []).map((part) => {
    const at = part.lastIndexOf(":");
    return [part.slice(0, at), Number(part.slice(at + 1))];
  }));
}

function place(found) {
  return [...found].map(([stream, number]) => `${stream}:${number}`).join(",");
}
