"use strict";
// The script of every page: live updates, search as you type, times. Without it pages work, but do not update.

// --- live updates ---------------------------------------------------------------------
// Server-sent events, each as JSON. One connection for each page, and none for a hidden page.

class Stream {
  // address(): where to connect now; null for no connection. take(message): called with each event.
  constructor(address, take) {
    this.address = address;
    this.take = take;
    this.failures = 0;
    document.addEventListener("visibilitychange", () => this.open());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => { if (event.persisted) this.open(); });
  }

  close() { this.source?.close(); }

  open() {
    this.close();
    const address = document.hidden ? null : this.address();
    if (!address) return;
    const source = new EventSource(address);
    this.source = source;
    let full = false;
    source.onmessage = (event) => { this.failures = 0; say(""); this.take(JSON.parse(event.data)); };
    source.addEventListener("full", (event) => { this.failures = 0; full = true; say(JSON.parse(event.data)); });
    // Open a new one instead of the browser's own retry, which would use the address of before.
    source.onerror = () => {
      if (full) return full = false; // the browser's own retry is right: nothing has been received yet
      source.close();
      if (++this.failures > 5) return say("This page no longer follows: the backend has left, or your session has ended. `windtunnel ui` opens it again.");
      setTimeout(() => this.open(), 1000 * this.failures);
    };
  }
}

// <div data-live="ADDRESS">: each event is an object of HTML by the id of the element whose content it is.
const live = new Stream(() => document.querySelector("[data-live]")?.dataset.live, replaceParts);

function say(text) {
  const line = document.getElementById("connection");
  if (line.textContent !== text) line.textContent = text;
}

function replaceParts(parts) {
  for (const [id, html] of Object.entries(parts)) replacePart(id, html);
}

// Replace a part's HTML. The focus and ticked boxes are kept; while text in the part is selected, the new HTML waits.
function replacePart(id, html) {
  const part = document.getElementById(id);
  if (!part) return;
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) {
    document.addEventListener("selectionchange", () => replacePart(id, html), { once: true });
    return;
  }
  const focused = part.contains(document.activeElement) ? markOf(document.activeElement) : null;
  const scrolled = [...part.querySelectorAll(".scroll")].map((element) => element.scrollLeft);
  const ticked = [...part.querySelectorAll("input:checked")].map(markOf);
  part.innerHTML = html;
  ticked.forEach((mark) => { const box = mark && part.querySelector(mark); if (box) box.checked = true; });
  part.querySelectorAll(".scroll").forEach((element, i) => { element.scrollLeft = scrolled[i] || 0; });
  if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  finish(part);
}

function markOf(element) {
  for (const name of ["id", "href", "aria-label", "name"]) {
    const value = element.getAttribute(name);
    if (value) return `[${name}="${CSS.escape(value)}"]`;
  }
  return null;
}

// Fetch, with one retry: browsers abort requests when this machine's networks change, as with each new container.
async function load(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return fetch(address, options);
  }
}

// --- search as you type ---------------------------------------------------------------
// <form data-replaces="ID ID">: replaces these elements by those of the page that the form leads to.

function searches(form) {
  let timer = 0;
  let latest = null;
  const search = async () => {
    latest?.abort();
    latest = new AbortController();
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    const address = `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
    try {
      const answer = await load(address, { signal: latest.signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = form.dataset.replaces.split(" ").map((id) => page.getElementById(id));
      if (!found[0]) return say(page.querySelector("main")?.innerText.trim() || "");
      say("");
      for (const part of found) document.getElementById(part.id).replaceWith(part);
      history.replaceState(null, "", address);
      found.forEach(finish);
      document.getElementById("said").textContent = found[0].querySelector("caption, .empty")?.textContent ?? "";
      live.open();
    } catch (error) {
      if (error.name !== "AbortError") say("The backend does not answer. `windtunnel ui` starts it.");
    }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 200); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); search(); });
  form.classList.add("types");
}

// --- times -----------------------------------------------------------------------------

const two = (number) => String(number).padStart(2, "0");

function localTime(element) {
  const moment = new Date(element.dateTime);
  element.title = element.textContent;
  element.textContent =
    `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
    `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
}

// The same as `duration` in formats.py.
function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

function runOn() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("[data-since]")) {
    element.textContent = duration(Math.max(0, (Date.now() - Number(element.dataset.since)) / 1000));
  }
}

// --- parts that are loaded after the page -----------------------------------------------
// <div data-part="ADDRESS">: filled once with the HTML at the address.

async function fill(element) {
  const address = element.dataset.part;
  element.removeAttribute("data-part");
  try {
    const answer = await load(address);
    if (answer.ok) { element.innerHTML = await answer.text(); finish(element); }
  } catch { /* the part stays as it is */ }
}

// --- details that are closed on a phone ------------------------------------------------
// <details data-wide>: open at first only on a wide screen.

if (matchMedia("(max-width: 62rem)").matches) {
  document.querySelectorAll("details[data-wide]").forEach((details) => { details.open = false; });
}

// Prepare new HTML: local times, parts to load, and the event "part".
function finish(root) {
  root.querySelectorAll("time").forEach(localTime);
  root.querySelectorAll("[data-part]").forEach(fill);
  root.dispatchEvent(new CustomEvent("part", { bubbles: true }));
}

finish(document.body);
document.querySelectorAll("form[data-replaces]").forEach(searches);
live.open();
setInterval(runOn, 1000);
