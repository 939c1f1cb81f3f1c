"use strict";
// The page of one job: live updates while the job runs, and buttons that copy. Needs page.js and log.js.

(() => {
  const job = document.getElementById("job");
  const log = new LogView(document.getElementById("log"), job.dataset.address);
  let events = null;
  let failures = 0;
  let over = !("follow" in job.dataset);
  let reached = readPlace(log.section.dataset.end);

  // One connection for each page, and none for a hidden page.
  function connect() {
    events?.close();
    events = null;
    if (over || document.hidden) return;
    const query = new URLSearchParams({ after: place(reached), host: log.host });
    events = new EventSource(`${job.dataset.address}/-/live?${query}`);
    events.onmessage = (event) => take(JSON.parse(event.data));
    let full = false;
    events.addEventListener("full", (event) => { failures = 0; full = true; say(JSON.parse(event.data)); });
    // Open a new one instead of the browser's own retry, which would begin at the old position.
    events.onerror = () => {
      if (full) return full = false; // the browser's own retry is right: nothing has been received yet
      events.close();
      if (++failures > 5) return say("This page no longer follows: the backend does not answer. `windtunnel ui` opens it again.");
      setTimeout(connect, 1000 * failures);
    };
  }

  function take(message) {
    failures = 0;
    say("");
    for (const [id, html] of Object.entries(message.parts || {})) replacePart(id, html);
    if (message.log) {
      for (const [stream, number] of readPlace(message.log.end)) reached.set(stream, number);
      log.take(message.log);
    }
    if (message.end) {
      over = true;
      events?.close();
      log.noMore(message.end);
    }
  }

  log.section.addEventListener("host", () => { reached = new Map(); connect(); });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copies]");
    if (!button) return;
    const program = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(program.textContent);
      button.textContent = "Copied";
    } catch { // not allowed here: select the text, for the reader to copy
      getSelection().selectAllChildren(program);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  document.documentElement.classList.add("has-script");
  connect();
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", () => events?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
})();
