"use strict";
// The page of one job: live updates while the job runs, and buttons that copy. Needs page.js and log.js.

(() => {
  const job = document.getElementById("job");
  const log = new LogView(document.getElementById("log"), job.dataset.address);
  let over = !("follow" in job.dataset);
  let reached = readPlace(log.section.dataset.end);
  const events = new Stream(
    () => over ? null : `${job.dataset.address}/-/live?${new URLSearchParams({ after: place(reached), host: log.host })}`,
    take,
  );

  function take(message) {
    replaceParts(message.parts || {});
    if (message.log) {
      for (const [stream, number] of readPlace(message.log.end)) reached.set(stream, number);
      log.take(message.log);
    }
    if (message.end) {
      over = true;
      events.close();
      log.noMore(message.end);
    }
  }

  log.section.addEventListener("host", () => { reached = new Map(); events.open(); });

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
  events.open();
})();
